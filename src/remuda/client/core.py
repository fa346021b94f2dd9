"""What the parts of a client share: the view, the pools, the clock, and the rules for retries."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from remuda.client import requests
from remuda.client.address import Address, format_address
from remuda.client.connections import REQUEST_TIMEOUT, Pool, member_name, scatter
from remuda.client.cursor import Cursor
from remuda.client.execution import Execution
from remuda.client.pages import Header
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
)
from remuda.limits import CONNECT_TIMEOUT

T = TypeVar("T")

LOST = (ConnectionBroken, MemberUnavailable, ConnectionRefused)
_RETRY_PAUSE = 0.05
_READS = ("select", "values", "show", "describe", "table", "(")
_MAYBE_READS = ("with", "explain")
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|sink|truncate|create|alter|drop|execute)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``connect`` was asked for; times in seconds."""

    application: str = "python"
    retry_reads: int = 0
    connect_timeout: float = CONNECT_TIMEOUT
    request_timeout: float = REQUEST_TIMEOUT


class Core:
    """Connections to all members of one cluster. Thread-safe."""

    def __init__(self, addresses: Sequence[Address], settings: Settings) -> None:
        self.addresses = tuple(addresses)
        self.settings = settings
        self.clock = Clock()
        self.closed = False
        self.session = b""
        """Settings and prepared statements, as a member wrote them down."""
        self._lock = threading.Lock()
        self._turn = itertools.count()
        self._pools: dict[int, Pool] = {}
        self.view: View
        self._install(self._first_contact())

    # --- one request ---

    def call(self, member: int | None, call: Call[T], read: bool = False) -> T:
        """Ask ``member`` (None: any). Only a ``read`` is repeated after a lost connection."""
        attempts = self.settings.retry_reads if read else 0
        if not attempts:
            return self.reachable(member).call(call)
        for attempt in itertools.count():
            try:
                return self.reachable(member).call(call)
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                time.sleep(_RETRY_PAUSE * 2**attempt)
        raise AssertionError("unreachable")

    def scatter(self, calls: Sequence[tuple[int, Call[T]]], read: bool = False) -> list[T]:
        """One request to each of several members at the same time; answers in the same order."""
        attempts = self.settings.retry_reads if read else 0
        for attempt in itertools.count():
            try:
                return scatter([(self.pool(member), call) for member, call in calls])
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                time.sleep(_RETRY_PAUSE * 2**attempt)
        raise AssertionError("unreachable")

    def pool(self, member: int | None) -> Pool:
        """The connections to a member; None takes the members in turn."""
        if member is None:
            member = self.next_member()
        try:
            return self._pools[member]
        except KeyError:
            if self.closed:
                raise ConnectionBroken("the client is closed") from None
            raise InputError(
                f"the cluster has no member {member}",
                detail="members: " + ", ".join(map(str, self._pools)),
            ) from None

    def reachable(self, member: int | None) -> Pool:
        """``pool``; of the members in turn, the first one that takes a connection. Nothing has been
        sent to those that do not, so whatever the request is, another one may be asked."""
        if member is not None:
            return self.pool(member)
        errors: list[MemberUnavailable] = []
        for _ in self.view.members:
            pool = self.pool(None)
            try:
                pool.reach()
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

    def execute(
        self,
        text: str,
        parameters: Sequence[PhysicalValue],
        types: tuple[SqlType, ...],
        options: RunOptions,
        *,
        handle: bytes | None = None,
        header: Header | None = None,
        member: int | None = None,
    ) -> Cursor:
        """Run a statement until its first page (or its end) is here.

        ``handle`` stands for the text on the ``member`` that prepared it; ``header`` is what an
        earlier run gave.
        """
        attempts = self.settings.retry_reads if _is_read(text) else 0
        start = requests.prologue(handle or text, types, header.form if header else 0)
        for attempt in itertools.count():
            stream = ResultStream(text, self.clock, header)
            context = self.clock.context(self.view.number)
            body = requests.run_query(start, parameters, types, options, context)
            body += requests.session_part(self.session)
            try:
                run = Execution(self.reachable(member), stream, body, options.timeout)
                cursor = Cursor(run)
                if stream.outcome is not None and stream.outcome.session is not None:
                    self.session = stream.outcome.session
                return cursor
            except LOST:
                if attempt >= attempts or self.closed:
                    raise
                time.sleep(_RETRY_PAUSE * 2**attempt)
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

    def refresh(self) -> ClusterInfo:
        """Learn the view again, from whichever member answers."""
        errors: list[RemudaError] = []
        for pool in list(self._pools.values()):
            try:
                info = pool.call(requests.cluster_info(self.clock))
            except LOST as error:
                errors.append(error)
            else:
                self._install(info)
                return info
        raise errors[0]

    def close(self) -> None:
        self.closed = True
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools = {}

    def _first_contact(self) -> ClusterInfo:
        errors: list[RemudaError] = []
        for host, port in self.addresses:
            pool = self._new_pool(None, host, port)
            try:
                info = pool.call(requests.cluster_info(self.clock))
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
                old = self._pools.get(member.number)
                if old is not None and (old.host, old.port) == (member.host, member.user_port):
                    pools[member.number] = old
                else:
                    pools[member.number] = self._new_pool(
                        member.number, member.host, member.user_port
                    )
            gone = [pool for number, pool in self._pools.items() if pools.get(number) is not pool]
            self.view = info.view
            self._pools = pools
        for pool in gone:
            pool.close()

    def _new_pool(self, number: int | None, host: str, port: int) -> Pool:
        settings = self.settings
        return Pool(
            member_name(number, host, port),
            host,
            port,
            number=number,
            application=settings.application,
            connect_timeout=settings.connect_timeout,
            request_timeout=settings.request_timeout,
        )


def _is_read(text: str) -> bool:
    """Whether a statement may be run twice. In doubt (a word of a write anywhere) it may not."""
    start = text.lstrip()[:10].lower()
    if start.startswith(_MAYBE_READS):
        return _WRITES.search(text) is None
    return start.startswith(_READS)
