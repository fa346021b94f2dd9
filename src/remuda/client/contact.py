"""What both faces' ports know about one member: its address, and what its failures are called."""

from __future__ import annotations

import time

from remuda.client.address import format_address
from remuda.client.backoff import Backoff
from remuda.client.ports import Settings
from remuda.client.requests import hello
from remuda.errors import ConnectionBroken, MemberUnavailable, QueryTimeout, RemudaError
from remuda.rpc.messages import user_pb2

CLIENT_CLOSED = "the client is closed"


class Contact:
    """``member`` is what errors carry: the member's number, as the members themselves write it.

    Both faces begin their connections with ``hello``, and protect them by ``security``.
    """

    def __init__(self, number: int | None, host: str, port: int, settings: Settings) -> None:
        self.name = member_name(number, host, port)
        self.member = "" if number is None else str(number)
        self.host = host
        self.port = port
        self.closed = False
        self.backoff = Backoff()
        self.settings = settings
        self.security = settings.security
        self.request_timeout = settings.request_timeout

    def hello(self) -> user_pb2.UserToBitHandshake:
        """The client's side of the handshake."""
        return self.security.introduce(hello(self.settings.application))

    def require_reachable(self) -> float:
        """When the attempt to connect that may begin now begins. Raises when none may."""
        self.security.check(self.host)
        if self.closed:
            raise ConnectionBroken(CLIENT_CLOSED)
        now = time.monotonic()
        if now < self.backoff.until:
            raise MemberUnavailable(
                f"{self.name} is not reachable: it did not answer a moment ago", member=self.member
            )
        return now

    def unreachable(self, begin: float, error: RemudaError) -> MemberUnavailable:
        """The error of an attempt to connect that has failed now."""
        self.backoff.failed(begin, time.monotonic())
        return MemberUnavailable(
            f"{self.name} is not reachable: {error.message}", member=self.member
        )

    def broken(self, error: RemudaError, timeout: float | None = None) -> RemudaError:
        """The error of a lost connection or an unanswered request, naming the member."""
        if isinstance(error, QueryTimeout):
            waited = self.request_timeout if timeout is None else timeout
            return MemberUnavailable(
                f"{self.name} did not answer within {waited:g} s", member=self.member
            )
        return ConnectionBroken(
            f"the connection to {self.name} broke: {error.message}", member=self.member
        )


def member_name(number: int | None, host: str, port: int) -> str:
    where = format_address(host, port)
    return where if number is None else f"member {number} ({where})"
