"""A request as its handler sees it."""

from __future__ import annotations

from typing import Protocol

from remuda.errors import RemudaError
from remuda.rpc.transport import Body, Buffers


class Call(Protocol):
    """``rpc.transport.Request`` without its connection."""

    @property
    def rpc_type(self) -> int: ...

    @property
    def pbody(self) -> bytes: ...

    @property
    def dbody(self) -> memoryview | bytes: ...

    @property
    def user(self) -> str:
        """The user that asks; "" for the member itself, and where nobody needs to say."""

    def reply(self, rpc_type: int, body: Body, dbody: Buffers = ()) -> None: ...

    def fail(self, error: RemudaError) -> None: ...
