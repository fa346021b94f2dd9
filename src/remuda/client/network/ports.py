"""The network, as the client's logic sees it. ``connections`` answers on blocking sockets,
``asynchronous.connections`` on an event loop; nothing else of the client knows which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.login import NO_SECURITY, Security
from remuda.client.requests.requests import Buffers, Call
from remuda.errors import InputError, RemudaError
from remuda.limits import CONNECT_TIMEOUT
from remuda.rpc.request import Body, Incoming

T = TypeVar("T")

REQUEST_TIMEOUT = 60.0
"""Seconds until a request that is no query counts as unanswered."""
SILENCE = 2.0
"""Seconds: when a member says nothing for longer, others are asked whether it is still there."""
RETIREMENT = 2.0
"""Seconds that a member that has left the view may still answer what was sent to it before."""
COMMIT_TIMEOUT = 600.0
"""The same of the commit of a staged job, which grows with its rows and waits for its turn."""

COMMIT_GRACE = 8.0
"""Seconds after ``request_timeout`` in which a member may still say what became of a transaction's
commit: a little more than it takes to find out."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of ``connect``; times in seconds."""

    application: str = "python"
    retry_reads: int = 0
    connect_timeout: float = CONNECT_TIMEOUT
    request_timeout: float = REQUEST_TIMEOUT
    max_connections: int | None = None
    """To one member; None: as many as suit the face."""
    timeout: float | None = None
    """Of ``with_timeout``: for each statement, operation and request, whatever it waits for; None:
    statements take what the members allow, bulk writes what their rows need."""
    retry_writes: int = 0
    """How often a put that may run twice is sent again after its answer was lost."""
    security: Security = NO_SECURITY


def checked_settings(
    *,
    application: str,
    retry_reads: int,
    connect_timeout: float,
    request_timeout: float,
    max_connections: int | None,
    retry_writes: int = 0,
    security: Security = NO_SECURITY,
) -> Settings:
    """The settings that ``connect`` was given. InputError for one that makes no sense."""
    for name, attempts in (("retry_reads", retry_reads), ("retry_writes", retry_writes)):
        if not isinstance(attempts, int) or attempts < 0:
            raise InputError(f"{name} is a number of attempts, 0 or more, found {attempts!r}")
    for name, value in (("connect_timeout", connect_timeout), ("request_timeout", request_timeout)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"{name} is a number of seconds above 0, found {value!r}")
    if max_connections is not None and (
        not isinstance(max_connections, int)
        or isinstance(max_connections, bool)
        or max_connections < 1
    ):
        raise InputError(f"max_connections is 1 or more, found {max_connections!r}")
    return Settings(
        application=application,
        retry_reads=retry_reads,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
        retry_writes=retry_writes,
        security=security,
    )


class Conversation(Protocol):
    """Several messages in both directions that belong together: a statement, or the frames of a
    bulk write. The caller that began it ends it by ``release`` or ``abandon``."""

    async def send(
        self, rpc_type: int, body: Body, dbody: Buffers = (), deadline: Deadline = NEVER
    ) -> int:
        """Send a request; its answer comes from ``receive`` under the returned number. QueryTimeout
        when the member does not take it in time: then it was not carried out."""
        ...

    async def receive(self, timeout: float | None) -> Incoming:
        """The next answer, or request of the member. QueryTimeout, ConnectionBroken."""
        ...

    def acknowledge(self, incoming: Incoming) -> None:
        """Answer a request of the member, at the latest when the next message is waited for. One
        that has ended the connection needs no answer: nothing is raised."""
        ...

    def release(self) -> None:
        """Nothing is under way any more: others may have the connection."""
        ...

    def abandon(self) -> None:
        """Nobody reads the rest: the member is told so, by a cancel or by a closed connection."""
        ...


class MemberPort(Protocol):
    """The connections to one member. ``name`` is for messages; ``member`` what errors carry: its
    number, as the members themselves write it ("" when it is not known)."""

    name: str
    member: str
    host: str
    port: int
    request_timeout: float
    on_silence: Callable[[], None]
    """Called now and then while a request waits and the member says nothing."""

    async def call(self, call: Call[T], deadline: Deadline | None = None) -> T:
        """Connect if need be, send one request, wait for its answer and read it: all of that before
        the deadline (``request_timeout`` from now unless told)."""
        ...

    async def reach(self, deadline: Deadline = NEVER) -> None:
        """Make a connection unless one is there. MemberUnavailable when nobody answers."""
        ...

    async def converse(self, deadline: Deadline = NEVER) -> Conversation:
        """Begin a conversation. MemberUnavailable when nobody answers."""
        ...

    def broken(self, error: RemudaError, timeout: float | None = None) -> RemudaError:
        """The error of a lost connection or an unanswered request, naming the member."""
        ...

    def close(self) -> None:
        """Use it no more."""
        ...

    def retire(self) -> None:
        """The member has left the view: nothing new goes there. Requests that are under way may be
        answered for a short while yet, and fail with ConnectionBroken then."""
        ...


class Lock(AbstractAsyncContextManager[object], Protocol):
    """A lock, for ``async with``."""

    async def take(self, deadline: Deadline) -> bool:
        """Whether it was free before the deadline; then ``release`` must follow."""
        ...

    def release(self) -> None: ...


class Ports(Protocol):
    """One face's way to the members."""

    def member(self, number: int | None, host: str, port: int, settings: Settings) -> MemberPort:
        """The connections to one member; nothing is connected yet."""
        ...

    async def pause(self, seconds: float) -> None: ...

    def later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``work`` beside everything else, after a while. It raises nothing."""
        ...

    async def whole(
        self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]
    ) -> T:
        """The result of ``work``. When its caller is cancelled meanwhile it goes on, and is undone
        then: nothing that it began at a member may stay there."""
        ...

    def lock(self) -> Lock:
        """A lock among the threads or the tasks that use the client."""
        ...

    async def together(
        self, calls: Sequence[tuple[Any, Call[T]]], deadline: Deadline
    ) -> list[T | RemudaError]:
        """One request to each of several of these ``member`` ports at once; answers and errors in
        the order of ``calls``. No request is still under way when the caller sees them."""
        ...
