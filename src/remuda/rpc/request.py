"""A request of the peer, as a handler gets it, and the messages that a client receives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from remuda.errors import NotServed, RemudaError
from remuda.rpc.frame import Buffer, Frame

Buffers: TypeAlias = Sequence[Buffer]
"""A dbody in pieces (bytes or views of bytes), written one after the other."""
Body: TypeAlias = Message | bytes
"""A pbody: a message, or one that has been serialized already."""
OnAnswer: TypeAlias = Callable[[RemudaError | None], None]
"""Called once when a request is answered, with the error or None."""


def serialized(body: Body) -> bytes:
    return body if isinstance(body, bytes) else body.SerializeToString()


@dataclass(slots=True)
class Incoming:
    """The result of ``receive``: the answer to a ``send_request``, or a REQUEST of the server.

    ``is_reply``: ``coordination_id`` is what ``send_request`` returned, ``error`` the server's
    typed error or None. Otherwise it is the server's request, to answer with ``acknowledge``
    (unless ``coordination_id`` is 0: one-way).
    """

    is_reply: bool
    coordination_id: int
    rpc_type: int
    pbody: bytes
    dbody: memoryview | bytes
    error: RemudaError | None = None


def said_goodbye(peer: str) -> NotServed:
    """The error of requests that a member has not answered before it said goodbye: it does so when
    it has answered everything that it has received."""
    return NotServed(f"{peer} has left the cluster; it had not received the request")


class Answering(Protocol):
    """A connection that takes answers to requests of its peer."""

    @property
    def user(self) -> str: ...

    def respond(self, identifier: int, rpc_type: int, body: Body, dbody: Buffers) -> None: ...

    def respond_failure(self, identifier: int, error: RemudaError) -> None: ...


C = TypeVar("C", bound=Answering)


class PeerRequest(Generic[C]):
    """A REQUEST of the peer. The handler may keep it and answer later, once.

    ``one_way``: the peer expects no answer; ``reply`` and ``fail`` then send nothing.
    """

    __slots__ = (
        "_answered",
        "_on_answer",
        "channel",
        "coordination_id",
        "dbody",
        "pbody",
        "rpc_type",
    )

    def __init__(self, channel: C, frame: Frame) -> None:
        self.channel = channel
        self.coordination_id = frame.coordination_id
        self.rpc_type = frame.rpc_type
        self.pbody = frame.pbody
        self.dbody = frame.dbody
        self._answered = False
        self._on_answer: OnAnswer | None = None

    @property
    def user(self) -> str:
        """The user that the client has proved to be; "" where nobody asked."""
        return self.channel.user

    @property
    def one_way(self) -> bool:
        return self.coordination_id == 0

    @property
    def answered(self) -> bool:
        return self._answered

    def when_answered(self, on_answer: OnAnswer) -> None:
        """Call ``on_answer`` once, with the answer; never if the connection ends before it."""
        self._on_answer = on_answer

    def reply(self, rpc_type: int, body: Body, dbody: Buffers = ()) -> None:
        """Send the answer. FrameTooLarge when it does not fit a frame: ``fail`` may follow then."""
        assert not self._answered, "a request is answered once"
        if self.coordination_id != 0:
            self.channel.respond(self.coordination_id, rpc_type, body, dbody)
        self._answered = True
        if self._on_answer is not None:
            self._on_answer(None)

    def fail(self, error: RemudaError) -> None:
        """Send RESPONSE_FAILURE; the peer raises an error of the same class."""
        assert not self._answered, "a request is answered once"
        if self.coordination_id != 0:
            self.channel.respond_failure(self.coordination_id, error)
        self._answered = True
        if self._on_answer is not None:
            self._on_answer(error)
