"""The state that the parts of a client share: the view, the members' ports, the clock, and the
rules for retries. Coroutines: ``driving`` runs them over blocking ports, an event loop over its
own.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, TypeVar

from remuda.client.core.execution import Execution
from remuda.client.core.held import Held, SharedSession, ends_transaction, run_held
from remuda.client.core.reader import Reader
from remuda.client.core.tries import LOST, MAYBE_AGAIN, Tries, closed_with, of_write, told
from remuda.client.core.view_source import first_contact, is_news, newest_view
from remuda.client.network import backoff
from remuda.client.network.address import Address
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.forking import forget_in_children
from remuda.client.network.known_members import KnownMembers
from remuda.client.network.latest import Latest
from remuda.client.network.ports import MemberPort, Ports, Settings
from remuda.client.network.tracing import OPENTELEMETRY, trace_part
from remuda.client.requests import requests
from remuda.client.requests.pages import Header
from remuda.client.requests.requests import (
    Call,
    Clock,
    ClusterInfo,
    MapDescription,
    Route,
    RunOptions,
)
from remuda.client.requests.result_stream import ResultStream
from remuda.datatypes.hashes.keyhash import partition_of
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, to_physical
from remuda.datatypes.view import View
from remuda.errors import (
    DataError,
    RemudaError,
    TypeMismatch,
)

T = TypeVar("T")

_NO_TRANSACTION = requests.transaction_part("")
_READS = ("select", "values", "show", "describe", "table", "(", "begin", "start")
_MAYBE_READS = ("with", "explain")
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|sink|truncate|create|alter|drop|execute)\b", re.IGNORECASE
)
_SETS = re.compile(r"\bsetval\b", re.IGNORECASE)

Known: TypeAlias = tuple[requests.Prologue, bool, Deadline]
"""Of a statement: how its request begins, whether it only reads, and when it must have ended."""


class Core:
    """Connections to all members of one cluster. Thread-safe over blocking ports."""

    in_transaction = False
    """Whether all its requests belong to one transaction."""

    def __init__(self, addresses: Sequence[Address], settings: Settings, ports: Ports) -> None:
        self.addresses = tuple(addresses)
        self.settings = settings
        self.patience = settings.timeout or settings.request_timeout
        """Seconds that an operation may take, with all its tries."""
        self.ports = ports
        self.clock = Clock()
        self.members = KnownMembers(ports, settings, self.hear_of_view)
        self.shared = SharedSession()
        self.described: dict[str, MapDescription] = {}
        """Maps as handles have last learned them; good for as long as the catalog stays."""
        self.shapes: dict[Any, Any] = {}
        """The state that the bindings of transactions share (``transaction_binding``)."""
        self._written: dict[str, int] = {}
        """When this client has written to a map last ("": by a statement, to whichever)."""
        self._view_again = Latest(ports, self._learn_view)
        self._learning = False
        forget_in_children(self)

    async def open(self) -> None:
        """Learn the view from the first address that answers. MemberUnavailable."""
        info = await first_contact(self.addresses, self.ports, self.settings, self.clock)
        self.members.install(info.view)
        self.clock.on_view = self.hear_of_view

    def with_timeout(self, seconds: float) -> Self:
        """The same session over the same connections, where each statement, operation and request
        ends after so many seconds, whatever it waits for."""
        made = copy.copy(self)
        made.settings = replace(self.settings, timeout=seconds)
        made.patience = seconds or self.settings.request_timeout
        return made

    @property
    def view(self) -> View:
        """The newest one that is known here."""
        return self.members.view

    @property
    def closed(self) -> bool:
        return self.members.closed

    async def still_described(self, name: str) -> MapDescription | None:  # noqa: ARG002
        """The map as it is known to be now. Only a transaction knows that much: its member said
        when it began which version of the catalog it has."""
        return None

    async def last_described(self, name: str) -> MapDescription | None:
        """The map as it was, perhaps, for a request that is refused if that is long ago."""
        return await self.still_described(name)

    # --- one request ---

    def call(
        self,
        member: int | None,
        call: Call[T],
        read: bool = False,
        deadline: Deadline | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Ask ``member``, and nobody else, once (a ``read`` as often as ``retry_reads`` says); or
        any member (None), again until somebody serves it. For what the owner of a key must answer
        see ``ask``. ``deadline``: of all tries, ``request_timeout`` from now unless told."""
        repeats = self.settings.retry_reads if read else 0
        if deadline is None:
            deadline = self.deadline()
        if member is not None:
            return self._insist(member, call, read, repeats, deadline)
        return self._anybody(call, read, repeats, deadline)

    def deadline(self) -> Deadline:
        """Of an operation that begins now, with all its tries."""
        return Deadline(self.patience)

    def limited(self, options: RunOptions) -> RunOptions:
        """The options of a statement, with the timeout of this client unless they have one."""
        limit = self.settings.timeout
        if limit is None or options.timeout is not None:
            return options
        return replace(options, timeout=limit)

    def lasting(self, deadline: Deadline) -> Deadline:
        """The deadline of an operation whose time grows with its rows: only a timeout that the user
        gave for everything ends it."""
        return NEVER if self.settings.timeout is None else deadline

    def ask(self, owner: int, call: Call[T], deadline: Deadline) -> Coroutine[Any, Any, T]:
        """One try of a request for the owner of its keys. The caller that routes it tries again."""
        port = self.members.direct(owner)
        return self._round(owner, call, deadline) if port is None else port.call(call, deadline)

    async def write(self, owner: int, call: Call[T], deadline: Deadline, name: str = "") -> T:
        """``ask`` for a write (of the map ``name``): OutcomeUnknown when its answer was lost."""
        try:
            return await self.ask(owner, call, deadline)
        except LOST as error:
            lost = of_write(error)
            if lost is error:
                raise
            raise lost from error
        finally:
            self.wrote(name)

    async def _insist(
        self, member: int, call: Call[T], read: bool, repeats: int, deadline: Deadline
    ) -> T:
        for attempt in itertools.count():
            try:
                port = await self.reachable(member, deadline)
                return await port.call(call, deadline)
            except LOST as error:
                lost = told(error, reads=read)
                await self._same_again(attempt, repeats, lost, deadline)
        raise AssertionError("unreachable")

    async def _anybody(self, call: Call[T], read: bool, repeats: int, deadline: Deadline) -> T:
        tries: Tries | None = None
        while True:
            try:
                port = await self.reachable(None, deadline)
                return await port.call(call, deadline)
            except MAYBE_AGAIN as error:
                tries = tries or Tries(self, repeats, deadline, reads=read)
                await tries.after(told(error, reads=read))

    async def scatter(
        self, calls: Sequence[tuple[int, Call[T]]], deadline: Deadline
    ) -> list[T | RemudaError]:
        """One try of several requests for owners of keys at the same time: the answers or errors,
        in the same order. Nothing is under way any more when it returns."""
        ports: list[tuple[Any, Call[T]]] = []
        failed: dict[int, RemudaError] = {}
        for place, (owner, call) in enumerate(calls):
            try:
                around = self.members.detoured(owner)
                another = self.members.another
                port = await another(owner, deadline) if around else self.pool(owner)
                ports.append((port, call))
            except LOST as error:
                failed[place] = error
        answers: list[T | RemudaError] = await self.ports.together(ports, deadline)
        found = iter(answers)
        return [failed[place] if place in failed else next(found) for place in range(len(calls))]

    def tries(
        self, repeats: int, deadline: Deadline | None = None, *, reads: bool = False
    ) -> Tries:
        """The further tries of a request, until ``deadline``, or for ``request_timeout`` seconds;
        ``reads``: it changes nothing."""
        if deadline is None or deadline.seconds is None:
            deadline = self.deadline()
        return Tries(self, repeats, deadline, reads=reads)

    def pool(self, member: int | None) -> MemberPort:
        """The connections to a member; None takes the members in turn."""
        return self.members.port(self.next_member() if member is None else member)

    async def reachable(self, member: int | None, deadline: Deadline = NEVER) -> MemberPort:
        """``pool``, after a look for a newer view if this one cannot have the member (InputError if
        that one neither); of the members in turn, the first one that takes a connection."""
        if member is None:
            return await self.members.another(deadline=deadline)
        if member > self.members.view.last_number and not self.closed:
            await self.refresh(deadline)
            if member > self.view.last_number:
                raise self.members.unknown(member)
        return self.members.port(member)

    async def _round(self, owner: int, call: Call[T], deadline: Deadline) -> T:
        return await (await self.members.another(owner, deadline)).call(call, deadline)

    def nearest(self, owner: int | None) -> int:
        """The ``owner`` of a key, or another member: in turn, as far as it is known to be there.
        The one that has the transaction, if one is open."""
        held = self.shared.held
        return self.members.nearest(owner) if held is None else held.member

    def next_member(self) -> int:
        """Members in turn, by number."""
        return self.members.next_number()

    def wrote(self, name: str = "") -> None:
        """A write of the map (or of some) has been answered, or may have been carried out."""
        self._written[name] = self.clock.value

    def written_to(self, name: str) -> int:
        """At or below it lies everything that this client has written to the map."""
        written = self._written
        return max(written.get(name, 0), written.get("", 0))

    # --- statements ---

    async def execute(
        self,
        text: str,
        parameters: Sequence[PhysicalValue],
        types: tuple[SqlType, ...],
        options: RunOptions,
        *,
        handle: bytes | None = None,
        header: Header | None = None,
        member: int | None = None,
        route: Callable[[], int | None] | None = None,
        known: Known | None = None,
    ) -> Reader:
        """Run a statement until its first page (or its end) is here.

        ``member`` and nobody else runs it, once, if given; else the one that ``route`` says (None:
        any). ``handle`` stands for the text on the ``member`` that prepared it; ``header`` is what
        an earlier run gave. ``known`` is what a caller that runs a statement again and again
        has found out before.
        """
        shared, settings = self.shared, self.settings
        held = None if shared.held is None else self.released(text)
        if held is not None:
            try:
                options = self.limited(options)
                return await run_held(
                    self, held, text, parameters, types, options, handle=handle, header=header
                )
            finally:
                self.wrote()  # it may have been the COMMIT
        if settings.timeout is not None:
            options = self.limited(options)
        start, reads, deadline = known or (
            requests.prologue(handle or text, types, header.form if header else 0),
            is_read(text),
            Deadline(options.timeout),
        )
        tries: Tries | None = None
        repeats = settings.retry_reads if reads else 0
        whole, began = options, time.monotonic()
        for attempt in itertools.count():
            if attempt:
                options = whole.after(time.monotonic() - began)
            stream = ResultStream(text, self.clock, header, self.keep_session)
            context = self.clock.context(self.members.view.number)
            body = requests.run_query(start, parameters, options, context)
            if shared.settings:
                body += requests.session_part(shared.settings)
            if OPENTELEMETRY in sys.modules:
                body += trace_part()
            if shared.keeps_transactions:
                body += _NO_TRANSACTION
            try:
                asked = await (
                    self._runner(route, deadline)
                    if member is None
                    else self.reachable(member, deadline)
                )
                execution = await Execution.begin(asked, stream, body, deadline, reads=reads)
                reader = Reader(execution)
                await reader.begin()
            except MAYBE_AGAIN as error:
                lost = told(error, reads=reads)
                if handle is not None:
                    raise lost from error.__cause__
                if member is not None:
                    await self._same_again(attempt, repeats, lost, deadline)
                    continue
                tries = tries or self.tries(repeats, deadline, reads=reads)
                await tries.after(lost)
            else:
                outcome = stream.outcome
                if outcome is None or outcome.transaction is not None:
                    self.told(stream)
                if not reads:
                    self.wrote()
                return reader
        raise AssertionError("unreachable")

    def released(self, text: str) -> Held | None:
        """The transaction that a statement belongs to. One that is lost ends when the user says so:
        by ROLLBACK, or by COMMIT, which raises UndefinedTransaction."""
        held = self.shared.held
        if held is None or held.broken is None or not (end := ends_transaction(text)):
            return held
        self.shared.held = None
        if end == "COMMIT":
            raise held.lost() from held.broken
        return None

    def refuse_transactions(self) -> None:
        """BEGIN is refused from now on."""
        self.shared.keeps_transactions = False

    def outside(self) -> Core:
        """Over the same connections, without the transaction."""
        made = copy.copy(self)
        made.shared = replace(self.shared, held=None)
        return made

    def keep_session(self, session: bytes) -> None:
        """It goes along with the statements from now on."""
        self.shared.settings = session

    def told(self, stream: ResultStream) -> None:
        """Take over the state of the transaction from the end of a statement, if it has ended."""
        outcome = stream.outcome
        if outcome is None:
            held = self.shared.held
            if held is not None and held.ended:  # a COMMIT whose answer is lost
                self.shared.held = None
            return
        status, held = outcome.transaction, self.shared.held
        if status is None:
            return
        if held is not None:
            held.told(status, outcome.tag)
        if held is None or held.name != status.transaction:
            name = status.transaction
            held = Held(name, status.member, status.state) if name else None
            self.shared.held = held

    async def _runner(
        self, route: Callable[[], int | None] | None, deadline: Deadline
    ) -> MemberPort:
        owner = None if route is None else route()
        if owner is not None and self.members.detoured(owner):
            return await self.members.another(owner, deadline)
        return await self.reachable(owner, deadline)

    async def _same_again(
        self, attempt: int, repeats: int, error: RemudaError, deadline: Deadline
    ) -> None:
        """Before a request for one certain member is sent again; raises ``error`` if it is not."""
        if self.closed:
            raise closed_with(error) from error
        pause = backoff.pause(attempt)
        if attempt >= repeats or not isinstance(error, LOST) or deadline.left(pause) < pause:
            raise error
        await self.ports.pause(pause)

    def owner(
        self,
        route: Route,
        values: Sequence[Any],
        physical: Sequence[PhysicalValue],
        types: Sequence[SqlType],
    ) -> int | None:
        """The member that answers a statement alone, by its parameters as the user gave them, and
        ``physical`` in the ``types`` that they suggest; None when they make up no key (any member
        will do, and will say what is wrong)."""
        parts: list[PhysicalValue] = []
        try:
            for index, declared in zip(route.parameters, route.types, strict=True):
                fits = types[index] is declared
                parts.append(physical[index] if fits else to_physical(values[index], declared))
        except (DataError, TypeMismatch, IndexError):
            return None
        if None in parts:
            return None
        return self.members.view.owners[partition_of(route.hash(parts))]

    # --- the cluster ---

    async def refresh(self, deadline: Deadline = NEVER) -> ClusterInfo:
        """Learn the view again, from members that answer. MemberUnavailable when none does before
        the deadline."""
        return await self._view_again.get(deadline)

    async def _learn_view(self, deadline: Deadline) -> ClusterInfo:
        info = await newest_view(
            self.view, self.addresses, self.ports, self.settings, self.clock, deadline
        )
        if is_news(self.view, info.view):
            if info.view.number < self.view.number:  # another cluster, started in its place
                self.clock.view = info.view.number
            self.members.install(info.view)
        return info

    def hear_of_view(self) -> None:
        """There is a newer view, or may be: learn it beside everything else."""
        if not self._learning and not self.closed:
            self._learning = True
            self.ports.later(0.0, self._learn_aside)

    async def _learn_aside(self) -> None:
        try:
            with contextlib.suppress(RemudaError):  # the next request that needs it will tell
                await self.refresh()
        finally:
            self._learning = False

    def close(self) -> None:
        """Close all connections; requests under way fail with ConnectionBroken."""
        self.members.close()  # first: with it the client is closed, and no new background begins
        if self.shared.background is not None:
            self.shared.background.close()

    def after_fork(self) -> None:
        """In the child: the threads that learned a view are the parent's."""
        self._learning = False
        self.shared.background = None


def is_read(text: str) -> bool:
    """Whether a statement may be run twice. In doubt (a word of a write anywhere) it may not."""
    start = text.lstrip()[:10].lower()
    if start.startswith(_MAYBE_READS):
        return _WRITES.search(text) is None and _SETS.search(text) is None
    return start.startswith(_READS) and _SETS.search(text) is None
