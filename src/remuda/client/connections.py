"""Blocking connections to the members: one pool per member, and what its failures are called."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from remuda.client.address import format_address
from remuda.client.requests import Call, hello
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    MemberUnavailable,
    QueryTimeout,
    RemudaError,
)
from remuda.limits import CONNECT_TIMEOUT
from remuda.rpc.blocking import BlockingChannel

T = TypeVar("T")

REQUEST_TIMEOUT = 60.0
"""Seconds until a request that is no query counts as unanswered."""
COMMIT_TIMEOUT = 600.0
"""The same of the commit of a staged job, which grows with its rows and waits for its turn."""
_IDLE_CONNECTIONS_KEPT = 16
_LONG = 1.0
_AVOIDED_FOR = 5.0
"""Seconds without another attempt after one that failed by waiting longer than ``_LONG``: a member
that hangs must not cost every request a whole connect timeout."""


class Pool:
    """Connections to one member. Any thread may take one; whoever took it is alone on it."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        number: int | None = None,
        application: str,
        connect_timeout: float = CONNECT_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self.name = name
        self.member = "" if number is None else str(number)
        """What errors carry: the member's number, as the members themselves write it."""
        self.host = host
        self.port = port
        self.closed = False
        self._application = application
        self._connect_timeout = connect_timeout
        self.request_timeout = request_timeout
        self._idle: deque[BlockingChannel] = deque()  # append and pop are atomic
        self._avoided_until = 0.0

    def take(self) -> BlockingChannel:
        """An idle connection, or a new one. MemberUnavailable when nobody answers."""
        while True:
            try:
                channel = self._idle.pop()
            except IndexError:
                return self._connect()
            if not channel.closed:
                return channel

    def reach(self) -> None:
        """Make a connection unless an idle one is there. MemberUnavailable when nobody answers."""
        self.give(self.take())

    def give(self, channel: BlockingChannel) -> None:
        """Take back a connection on which nothing is under way."""
        if self.closed or channel.closed or len(self._idle) >= _IDLE_CONNECTIONS_KEPT:
            channel.close()
        else:
            self._idle.append(channel)

    def drop_idle(self) -> None:
        """Close the idle connections: after one broke, the others are suspect as well."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread took the last one
                return

    def close(self) -> None:
        self.closed = True
        self.drop_idle()

    def call(self, call: Call[T], timeout: float | None = None) -> T:
        """Send one request, wait for its answer (``request_timeout`` unless told) and read it."""
        if timeout is None:
            timeout = self.request_timeout
        channel = self.take()
        try:
            reply = channel.request(call.rpc_type, call.body, call.dbody, timeout=timeout)
        except (ConnectionBroken, QueryTimeout) as error:
            channel.close()
            raise self.broken(error, timeout) from error
        except RemudaError:
            self.give(channel)
            raise
        except BaseException:  # an interrupt: the answer may still come
            channel.close()
            raise
        self.give(channel)
        return call.parse(reply.pbody)

    def broken(self, error: RemudaError, timeout: float | None = None) -> RemudaError:
        """The error of a lost connection or an unanswered request, naming the member."""
        self.drop_idle()
        if isinstance(error, QueryTimeout):
            waited = self.request_timeout if timeout is None else timeout
            return MemberUnavailable(
                f"{self.name} did not answer within {waited:g} s", member=self.member
            )
        return ConnectionBroken(
            f"the connection to {self.name} broke: {error.message}", member=self.member
        )

    def _connect(self) -> BlockingChannel:
        if self.closed:
            raise ConnectionBroken("the client is closed")
        begin = time.monotonic()
        if begin < self._avoided_until:
            raise MemberUnavailable(
                f"{self.name} is not reachable: it did not answer a moment ago", member=self.member
            )
        try:
            return BlockingChannel(
                self.host, self.port, hello(self._application), timeout=self._connect_timeout
            )
        except (ConnectionRefused, ConnectionBroken, QueryTimeout) as error:
            end = time.monotonic()
            if end - begin > _LONG:
                self._avoided_until = end + _AVOIDED_FOR
            raise MemberUnavailable(
                f"{self.name} is not reachable: {error.message}", member=self.member
            ) from error


def scatter(calls: Sequence[tuple[Pool, Call[T]]]) -> list[T]:
    """Several requests at once, on a connection each; answers in the order of ``calls``.

    The first error is raised after every other answer has been read, so that no request is still
    under way when the caller sees it.
    """
    if len(calls) == 1:
        ((pool, call),) = calls
        return [pool.call(call)]
    under_way: list[tuple[Pool, Call[T], BlockingChannel]] = []
    errors: list[RemudaError] = []
    results: list[T] = []
    try:
        for pool, call in calls:
            channel = pool.take()
            under_way.append((pool, call, channel))
            try:
                channel.send_request(call.rpc_type, call.body, call.dbody)
            except ConnectionBroken as error:
                raise pool.broken(error) from error
        while under_way:
            pool, call, channel = under_way[0]
            try:
                results.append(_answer(pool, call, channel))
            except RemudaError as error:
                errors.append(error)
            under_way.pop(0)
    finally:
        for _, _, channel in under_way:
            channel.close()
    if errors:
        raise errors[0]
    return results


def _answer(pool: Pool, call: Call[T], channel: BlockingChannel) -> T:
    try:
        incoming = channel.receive(pool.request_timeout)
    except RemudaError as error:
        channel.close()
        raise pool.broken(error) from error
    pool.give(channel)
    if incoming.error is not None:
        raise incoming.error
    return call.parse(incoming.pbody)


def member_name(number: int | None, host: str, port: int) -> str:
    where = format_address(host, port)
    return where if number is None else f"member {number} ({where})"
