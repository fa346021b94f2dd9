"""The knowledge of both faces' ports about one member: its address, and the names of its
failures."""

from __future__ import annotations

import time
from collections.abc import Callable

from google.protobuf.message import Message

from remuda.client.network.address import format_address
from remuda.client.network.backoff import Backoff
from remuda.client.network.ports import Settings
from remuda.client.requests.requests import hello
from remuda.errors import (
    ClientClosed,
    ConnectionBroken,
    NoAnswer,
    NotServed,
    QueryTimeout,
    RemudaError,
)
from remuda.rpc.messages import user_pb2

CLIENT_CLOSED = "the client is closed"


class Contact:
    """``member`` is what errors carry: the member's number, as the members themselves write it.

    Both faces begin their connections with ``hello``, and protect them by ``security``.
    """

    def __init__(self, number: int | None, host: str, port: int, settings: Settings) -> None:
        self.number = number
        self.name = member_name(number, host, port)
        self.member = "" if number is None else str(number)
        self.host = host
        self.port = port
        self.closed = False
        self.retired = False
        """The member has left the view."""
        self.on_silence: Callable[[], None] = _nothing
        self.backoff = Backoff()
        self.settings = settings
        self.security = settings.security
        self.request_timeout = settings.request_timeout

    def hello(self) -> user_pb2.UserToBitHandshake:
        """The client's side of the handshake."""
        return self.security.introduce(hello(self.settings.application))

    def require_member(self, welcome: Message) -> None:
        """Raises NotServed if the handshake's answer comes from another member than this port is
        for: a member that was started again has the old address and a new number."""
        assert isinstance(welcome, user_pb2.BitToUserHandshake)
        if self.number in {None, welcome.member}:
            return
        there = f"member {welcome.member}" if welcome.member else "a member that is joining"
        raise NotServed(
            f"{self.name} is not there any more: {there} answers at its address",
            member=self.member,
        )

    def require_open(self) -> None:
        """Raises when nothing may be sent there any more: nothing was."""
        if self.retired:
            raise NotServed(f"{self.name} has left the cluster", member=self.member)
        if self.closed:
            raise client_closed()

    def require_reachable(self) -> float:
        """When the attempt to connect that may begin now begins. Raises when none may."""
        self.security.check(self.host)
        self.require_open()
        now = time.monotonic()
        if now < self.backoff.until:
            raise NotServed(
                f"{self.name} is not reachable: it did not answer a moment ago", member=self.member
            )
        return now

    def unreachable(self, begin: float, error: RemudaError, patience: float) -> NotServed:
        """The error of an attempt to connect that has failed now. Of one that had ``patience``
        seconds, less than usual, for its caller had no more: others may try at once."""
        now = time.monotonic()
        if patience >= self.settings.connect_timeout or now - begin < patience:
            self.backoff.failed(begin, now)
        return NotServed(f"{self.name} is not reachable: {error.message}", member=self.member)

    def broken(self, error: RemudaError, timeout: float | None = None) -> RemudaError:
        """The error of a lost connection or an unanswered request, naming the member."""
        if isinstance(error, QueryTimeout):
            if not error.may_have_run:
                return NotServed(f"{self.name} took nothing: {error.message}", member=self.member)
            waited = self.request_timeout if timeout is None else timeout
            return NoAnswer(f"{self.name} did not answer within {waited:g} s", member=self.member)
        if self.closed and not self.retired:
            return client_closed(may_have_run=error.may_have_run)
        return ConnectionBroken(
            f"the connection to {self.name} broke: {error.message}",
            member=self.member,
            may_have_run=error.may_have_run,
        )


def client_closed(*, may_have_run: bool = False) -> ClientClosed:
    """The error of requests of a closed client; ``may_have_run`` if it was closed meanwhile."""
    return ClientClosed(
        CLIENT_CLOSED,
        hint="Connect again: a closed client never answers.",
        may_have_run=may_have_run,
    )


def _nothing() -> None:
    return None


def member_name(number: int | None, host: str, port: int) -> str:
    where = format_address(host, port)
    return where if number is None else f"member {number} ({where})"
