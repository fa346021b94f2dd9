"""The session of a client: what its statements leave for later ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from remuda.client.core.held import Held


class Closable(Protocol):
    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class SharedSession:
    """One for a client and all clients that its ``with_timeout`` gives."""

    settings: bytes = b""
    """Settings and prepared statements, as a member wrote them down."""
    held: Held | None = None
    """The transaction that a BEGIN among the statements has begun."""
    keeps_transactions: bool = True
    """Whether there may be one: not where several users share the client unknowingly."""
    background: Closable | None = None
    """Of a blocking client: the loop that its listeners run on (``client.blocking.background``)."""
