"""What the parts of a client share: the view, the members' ports, the clock, and the rules for
retries. Coroutines: ``driving`` runs them over blocking ports, an event loop over its own.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from remuda.client import backoff, requests
from remuda.client.address import Address, format_address
from remuda.client.contact import CLIENT_CLOSED
from remuda.client.execution import Execution
from remuda.client.forking import forget_in_children
from remuda.client.latest import Latest
from remuda.client.pages import Header
from remuda.client.ports import MemberPort, Ports, Settings
from remuda.client.reader import Reader
from remuda.client.requests import Call, Clock, ClusterInfo, Route, RunOptions
from remuda.client.result_stream import ResultStream
from remuda.datatypes.keyhash import partition_of
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, to_physical
from remuda.datatypes.view import View
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    DataError,
    InputError,
    MemberUnavailable,
    RemudaError,
    TypeMismatch,
    ViewChanged,
)

T = TypeVar("T")

LOST = (ConnectionBroken, MemberUnavailable, ConnectionRefused)
_READS = ("select", "values", "show", "describe", "table", "(")
_MAYBE_READS = ("with", "explain")
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|sink|truncate|create|alter|drop|execute)\b", re.IGNORECASE
)


class Core:
    """Connections to all members of one cluster. Thread-safe over blocking ports."""

    def __init__(self, addresses: Sequence[Address], settings: Settings, ports: Ports) -> None:
        self.addresses = tuple(addresses)
        self.settings = settings
        self.ports = ports
        self.clock = Clock()
        self.closed = False
        self.session = b""
        """Settings and prepared statements, as a member wrote them down."""
        self._lock = threading.Lock()
        self._turn = itertools.count()
        self._members: dict[int, MemberPort] = {}
        self.view: View
        self._view_again = Latest(ports, self._learn_view)
        forget_in_children(self)

    async def open(self) -> None:
        """Learn the view from the first address that answers. MemberUnavailable."""
        self._install(await self._first_contact())

    # --- one request ---

    def call(self, member: int | None, call: Call[T], read: bool = False) -> Coroutine[Any, Any, T]:
        """Ask ``member`` (None: any). Only a ``read`` is repeated after a lost connection."""
        if member is not None and not (read and self.settings.retry_reads):
            return self.pool(member).call(call)
        return self._call(member, call, self.settings.retry_reads if read else 0)

    async def _call(self, member: int | None, call: Call[T], attempts: int) -> T:
        for attempt in itertools.count():
            try:
                return await (await self.reachable(member)).call(call)
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                await self._recover(attempt, member is not None)
        raise AssertionError("unreachable")

    async def scatter(self, calls: Sequence[tuple[int, Call[T]]], read: bool = False) -> list[T]:
        """One request to each of several members at the same time; answers in the same order."""
        attempts = self.settings.retry_reads if read else 0
        for attempt in itertools.count():
            try:
                return await self.ports.together(
                    [(self.pool(member), call) for member, call in calls]
                )
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                await self._recover(attempt, routed=True)
        raise AssertionError("unreachable")

    async def _recover(self, attempt: int, routed: bool) -> None:
        """Before a read is repeated: wait, and learn the view again. ViewChanged when the request
        was ``routed`` by a view that is no longer the cluster's."""
        await self.ports.pause(backoff.pause(attempt))
        before = self.view.number
        with contextlib.suppress(*LOST):  # then the next attempt fails with what is wrong
            await self.refresh()
        if routed and self.view.number != before:
            raise ViewChanged("the members have changed; the request must be routed again")

    def pool(self, member: int | None) -> MemberPort:
        """The connections to a member; None takes the members in turn."""
        if member is None:
            member = self.next_member()
        try:
            return self._members[member]
        except KeyError:
            if self.closed:
                raise ConnectionBroken(CLIENT_CLOSED) from None
            raise InputError(
                f"the cluster has no member {member}",
                detail="members: " + ", ".join(map(str, self._members)),
            ) from None

    async def reachable(self, member: int | None) -> MemberPort:
        """``pool``; of the members in turn, the first one that takes a connection. Nothing has been
        sent to those that do not, so whatever the request is, another one may be asked."""
        if member is not None:
            return self.pool(member)
        errors: list[MemberUnavailable] = []
        for _ in self.view.members:
            pool = self.pool(None)
            try:
                await pool.reach()
            except MemberUnavailable as error:
                errors.append(error)
            else:
                return pool
        raise errors[0]

    def next_member(self) -> int:
        """Members in turn, by number."""
        members = self.view.members
        return members[next(self._turn) % len(members)].number

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
    ) -> Reader:
        """Run a statement until its first page (or its end) is here.

        ``handle`` stands for the text on the ``member`` that prepared it; ``header`` is what an
        earlier run gave.
        """
        attempts = self.settings.retry_reads
        if attempts and not _is_read(text):
            attempts = 0
        start = requests.prologue(handle or text, types, header.form if header else 0)
        for attempt in itertools.count():
            stream = ResultStream(text, self.clock, header)
            context = self.clock.context(self.view.number)
            body = requests.run_query(start, parameters, types, options, context)
            body += requests.session_part(self.session)
            try:
                asked = await self.reachable(member)
                reader = Reader(await Execution.begin(asked, stream, body, options.timeout))
                await reader.begin()
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                await self._recover(attempt, handle is not None)
            else:
                if stream.outcome is not None and stream.outcome.session is not None:
                    self.session = stream.outcome.session
                return reader
        raise AssertionError("unreachable")

    def owner(self, route: Route, values: Sequence[Any]) -> int | None:
        """The member that answers a statement alone, by its parameters as the user gave them; None
        when they make up no key (any member will do, and will say what is wrong)."""
        try:
            parts = [
                to_physical(values[index], declared)
                for index, declared in zip(route.parameters, route.types, strict=True)
            ]
        except (DataError, TypeMismatch, IndexError):
            return None
        if None in parts:
            return None
        return self.view.owners[partition_of(route.hash(parts))]

    # --- the cluster ---

    async def refresh(self) -> ClusterInfo:
        """Learn the view again, from whichever member answers."""
        return await self._view_again.get()

    async def _learn_view(self) -> ClusterInfo:
        errors: list[RemudaError] = []
        for pool in list(self._members.values()):
            try:
                info = await pool.call(requests.cluster_info(self.clock))
            except LOST as error:
                errors.append(error)
            else:
                self._install(info)
                return info
        raise errors[0] if errors else ConnectionBroken(CLIENT_CLOSED)

    def close(self) -> None:
        """Close all connections; requests under way fail with ConnectionBroken."""
        self.closed = True
        with self._lock:
            for pool in self._members.values():
                pool.close()
            self._members = {}

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    async def _first_contact(self) -> ClusterInfo:
        errors: list[RemudaError] = []
        for host, port in self.addresses:
            pool = self.ports.member(None, host, port, self.settings)
            try:
                info = await pool.call(requests.cluster_info(self.clock))
            except LOST as error:
                errors.append(error)
                continue
            finally:
                pool.close()
            return info
        if len(errors) == 1:
            raise errors[0]
        tried = ", ".join(format_address(*address) for address in self.addresses)
        raise MemberUnavailable(
            f"no member answers at {tried}", detail="; ".join(error.message for error in errors)
        )

    def _install(self, info: ClusterInfo) -> None:
        with self._lock:
            pools = {}
            for member in info.view.members:
                old = self._members.get(member.number)
                if old is not None and (old.host, old.port) == (member.host, member.user_port):
                    pools[member.number] = old
                else:
                    pools[member.number] = self.ports.member(
                        member.number, member.host, member.user_port, self.settings
                    )
            gone = [pool for number, pool in self._members.items() if pools.get(number) is not pool]
            self.view = info.view
            self._members = {} if self.closed else pools
        for pool in gone:
            pool.close()


def _is_read(text: str) -> bool:
    """Whether a statement may be run twice. In doubt (a word of a write anywhere) it may not."""
    start = text.lstrip()[:10].lower()
    if start.startswith(_MAYBE_READS):
        return _WRITES.search(text) is None
    return start.startswith(_READS)
