"""The members as a client knows them: the newest view that it has learned, and a port for each of
its members. A client and its transactions share one object, so all of them learn of a new view in
the same moment. Thread-safe over blocking ports.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection

from remuda.client.network.contact import client_closed
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.forking import forget_in_children
from remuda.client.network.ports import MemberPort, Ports, Settings
from remuda.datatypes.view import NOBODY, View
from remuda.errors import (
    InputError,
    MemberUnavailable,
    NotServed,
    PartitionsLost,
    PartitionsUnreachable,
    RemudaError,
)

_DETOUR = 1.0
"""Seconds until a member that could not be reached is asked directly again."""


def without_owner(view: View) -> PartitionsLost | PartitionsUnreachable:
    """The error of a request for a partition of which no member of ``view`` has a copy."""
    if view.unreachable and not view.lost:
        return PartitionsUnreachable(
            "a partition of the request cannot be reached: no member has a copy, and those that"
            " kept it last may come back with theirs",
            detail="They were " + ", ".join(str(member) for member in view.former),
            hint="Try again. If their processes have ended, see ALTER CLUSTER ACCEPT LOST"
            " PARTITIONS.",
        )
    return PartitionsLost(
        "every copy of the partition of the request is lost",
        hint="A map survives the loss of as many members at one time as it has backups.",
    )


class KnownMembers:
    """``on_silence`` is given to every port."""

    def __init__(self, ports: Ports, settings: Settings, on_silence: Callable[[], None]) -> None:
        self.view: View
        self.closed = False
        self._ports = ports
        self._settings = settings
        self._on_silence = on_silence
        self._lock = threading.Lock()
        self._turn = itertools.count()
        self._by_number: dict[int, MemberPort] = {}
        self._detours: dict[int, float] = {}
        """Members that cannot be reached from here, and until when they are not tried."""
        forget_in_children(self)

    @property
    def ports(self) -> Collection[MemberPort]:
        """The port of each member of the view; none once the client is closed."""
        return self._by_number.values()

    def install(self, view: View) -> None:
        """Use ``view`` from now on. A member that keeps its number and its address keeps its port;
        the ports of the others are retired."""
        with self._lock:
            before, ports = self._by_number, {}
            for member in view.members:
                old = before.get(member.number)
                if old is not None and (old.host, old.port) == (member.host, member.user_port):
                    ports[member.number] = old
                else:
                    made = self._ports.member(
                        member.number, member.host, member.user_port, self._settings
                    )
                    made.on_silence = self._on_silence
                    ports[member.number] = made
            gone = [port for number, port in before.items() if ports.get(number) is not port]
            self.view = view
            self._by_number = {} if self.closed else ports
            self._detours = {}
        for port in gone:
            port.retire()

    def close(self) -> None:
        """Close all ports; requests under way fail with ConnectionBroken."""
        self.closed = True
        with self._lock:
            for port in self._by_number.values():
                port.close()
            self._by_number = {}

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def port(self, member: int) -> MemberPort:
        """Raises NotServed for a member that has left, or that a newer view may have;
        PartitionsLost for NOBODY, InputError for what is no member's number, ClientClosed when the
        client is closed."""
        try:
            return self._by_number[member]
        except KeyError:
            raise self._absent(member) from None

    def direct(self, member: int) -> MemberPort | None:
        """``port``; None while requests for the member go round it."""
        if self._detours and self.detoured(member):
            return None
        try:
            return self._by_number[member]
        except KeyError:
            raise self._absent(member) from None

    def _absent(self, member: int) -> RemudaError:
        if self.closed:
            return client_closed()
        if member == NOBODY:
            return without_owner(self.view)
        if 0 < member <= self.view.last_number:
            return NotServed(f"member {member} has left the cluster", detail=self._names())
        if member > 0:  # a view that is not known here yet has given out the number
            return NotServed(f"{self.unknown(member).message} yet", detail=self._names())
        return self.unknown(member)

    def unknown(self, member: int) -> InputError:
        """The error of a request for a number that no member has had."""
        return InputError(f"the cluster has no member {member}", detail=self._names())

    def _names(self) -> str:
        return "members: " + ", ".join(map(str, self._by_number))

    # --- whom to ask --------------------------------------------------------------------------

    def next_number(self) -> int:
        """Members in turn, by number."""
        members = self.view.members
        return members[next(self._turn) % len(members)].number

    def nearest(self, owner: int | None) -> int:
        """The ``owner`` of a key, or another member: in turn, as far as it is known to be there."""
        straight = not self._detours  # the usual case
        if owner is not None and owner != NOBODY and (straight or not self.detoured(owner)):
            return owner
        for _ in self.view.members:
            member = self.next_number()
            if member != owner and not self.detoured(member):
                return member
        return self.next_number()

    async def another(self, shunned: int = NOBODY, deadline: Deadline = NEVER) -> MemberPort:
        """A member that takes a connection: in turn, and not ``shunned`` nor one that requests go
        round, unless there is no other. Nothing is sent to those that take none, so another one may
        be asked, whichever request it is. MemberUnavailable when none does."""
        errors: list[MemberUnavailable] = []
        passed: list[MemberPort] = []
        for _ in self.view.members:
            number = self.next_number()
            try:
                port = self.port(number)
                if number == shunned or number in self._detours:
                    passed.append(port)
                    continue
                await port.reach(deadline)
            except MemberUnavailable as error:
                errors.append(error)
            else:
                return port
        for port in passed:
            try:
                await port.reach(deadline)
            except MemberUnavailable as error:
                errors.append(error)
            else:
                return port
        raise errors[0]

    def go_round(self, member: int) -> None:
        """A member of the newest view cannot be reached from here: others pass its requests on, or
        know what has become of it. Until the view changes, or for a while."""
        self._detours = {**self._detours, member: time.monotonic() + _DETOUR}

    def detoured(self, member: int) -> bool:
        """Whether requests for ``member`` go round it now."""
        if not self._detours:
            return False
        end = self._detours.get(member)
        if end is not None and end <= time.monotonic():  # it may be back
            self._detours = {m: other for m, other in self._detours.items() if m != member}
            end = None
        return end is not None
