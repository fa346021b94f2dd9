"""Which requests are sent again, how often, and until when."""

from __future__ import annotations

from typing import Protocol

from remuda.client.network import backoff
from remuda.client.network.contact import client_closed
from remuda.client.network.deadline import Deadline
from remuda.client.network.known_members import KnownMembers
from remuda.client.network.ports import Ports
from remuda.datatypes.view import View
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    JobAborted,
    MemberLeaving,
    MemberUnavailable,
    NoAnswer,
    NotServed,
    OutcomeUnknown,
    PartitionsLost,
    PartitionsUnreachable,
    QueryTimeout,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
    UndefinedStatement,
    ViewChanged,
)

LOST = (ConnectionBroken, MemberUnavailable, ConnectionRefused)
"""Errors of requests that were lost with a connection or a member."""
REFUSED = (NotServed, ViewChanged)
ABSENT = (PartitionsLost, PartitionsUnreachable)
"""Errors of requests that nobody has served: sending them again does no harm."""
MAYBE_AGAIN = (*LOST, ViewChanged)
"""Errors that ``Tries.after`` may have an answer to."""
STALE = (SchemaChanged, UndefinedMap, UndefinedStatement)
"""Errors of requests that were made for a map as it was: it has an answer to these as well, when
the request is made anew."""

IN_DOUBT = (ConnectionBroken, NoAnswer, QueryTimeout, *REFUSED)
"""Errors of writes that leave open whether they were done. A refusal says for itself that nothing
was; one that ended a commit which others may have completed says otherwise."""

_LONGEST_PAUSE = 0.5
"""Seconds: a cluster that heals itself is noticed soon."""
_DARK = 2
"""So many times in a row no member at all answers; then it is time to say so."""


class Retrying(Protocol):
    """The client whose requests are sent again: its view, its members and its pauses."""

    in_transaction: bool
    members: KnownMembers
    ports: Ports

    @property
    def closed(self) -> bool: ...

    @property
    def view(self) -> View: ...

    def hear_of_view(self) -> None: ...

    async def refresh(self, deadline: Deadline) -> object: ...


class Tries:
    """The tries of one request.

    A request that was refused before anything was done is sent again until ``timeout`` seconds have
    passed, reads and writes alike, and so is a write that has lost a member and has changed
    nothing. A request that was lost with its connection is sent again ``repeats`` times: the caller
    says by it that the request may run twice. A request for an older schema of its map is sent
    again once.
    """

    __slots__ = (
        "_core",
        "_dark",
        "_deadline",
        "_leaving",
        "_left",
        "_lost_partition",
        "_pauses",
        "_reads",
        "_stale",
    )

    def __init__(self, core: Retrying, repeats: int, deadline: Deadline, *, reads: bool) -> None:
        """``reads``: the request changes nothing, and its errors say so."""
        self._core = core
        self._left = repeats
        self._deadline = deadline
        self._reads = reads
        self._pauses = 0
        self._dark = 0
        self._leaving = 0
        """So often a member has sent the request elsewhere, because it leaves."""
        self._stale = False
        self._lost_partition = False

    @property
    def deadline(self) -> Deadline:
        """Of all tries."""
        return self._deadline

    async def after(self, error: RemudaError) -> None:
        """Wait until the request may be sent again, and learn the view; raises ``error`` when it
        may not, and ClientClosed in its place when the client was closed."""
        core = self._core
        # A read that is lost with its connection is repeated as often as the user says, no more.
        undone = isinstance(error, (MemberUnavailable, JobAborted)) and not error.may_have_run
        certain = self._reads or not error.may_have_run
        refused = (isinstance(error, REFUSED) and certain) or (undone and not self._reads)
        if self._reads:
            error = error.knowing(may_have_run=False)
        if core.closed:
            raise closed_with(error) from error
        if isinstance(error, STALE):
            if self._stale:
                raise error
            self._stale = True
            return
        if isinstance(error, ABSENT) and certain:  # by a view that may be an old one
            if self._lost_partition or core.in_transaction:  # which it may have failed
                raise error
            self._lost_partition = True
        elif not refused:
            if self._left == 0 or not isinstance(error, LOST):
                raise error
            self._left -= 1
        if isinstance(error, MemberLeaving) and self._leaving < len(core.view.members):
            self._leaving += 1
            if error.member:
                core.members.go_round(int(error.member))
            core.hear_of_view()
            return
        pause = min(backoff.pause(self._pauses), _LONGEST_PAUSE)
        if self._deadline.left(pause) < pause:
            raise error
        self._pauses += 1
        # The first time somebody else's view is the remedy, and it is there already.
        if self._pauses > 1 or not isinstance(error, (ViewChanged, *ABSENT)):
            await core.ports.pause(pause)
        await self._learn(error)

    async def _learn(self, error: RemudaError) -> None:
        core = self._core
        before = core.view.number
        try:
            await core.refresh(self._deadline)
        except LOST as dark:
            self._dark += 1
            if self._dark < _DARK:
                return
            if type(error) is NotServed:  # one member was not reached, and nor is any other
                raise NotServed(dark.message, detail=dark.detail) from None
            raise error from None
        self._dark = 0
        if core.view.number == before and isinstance(error, NotServed) and error.member:
            core.members.go_round(int(error.member))


def closed_with(error: RemudaError) -> RemudaError:
    """The error of a request that ended with ``error`` while its client was closed: it says that
    the client will not answer again, or, of a write, that its outcome is not known."""
    if not error.transient or isinstance(error, OutcomeUnknown):
        return error
    return client_closed(may_have_run=error.may_have_run)


def told(error: RemudaError, *, reads: bool) -> RemudaError:
    """The error that the caller of a request gets for ``error``. A read has changed nothing."""
    return error.knowing(may_have_run=False) if reads else of_write(error)


def of_write(error: RemudaError) -> RemudaError:
    """The error that the caller of a write gets: a lost connection, or an answer that did not come
    in time, leaves open whether it was done."""
    in_doubt = isinstance(error, IN_DOUBT) and error.may_have_run
    if not in_doubt or isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(
        error.message,
        detail="It is not known whether the write was carried out.",
        hint="Read before you write again, unless writing twice does no harm.",
        member=error.member,
    )
