"""The connection of a client, as the parts of a member see it that do not care for its protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from remuda.errors import RemudaError


class ClientChannel(Protocol):
    """A ``Channel`` is one. ``on_closed`` runs once, with the reason, and ``on_writable`` each time
    that the client has taken enough of what was written."""

    on_writable: list[Callable[[], None]]
    on_closed: list[Callable[[RemudaError], None]]

    @property
    def peer(self) -> str:
        """HOST:PORT of the client."""

    @property
    def user(self) -> str:
        """The user that the client has shown to be; "" where nobody asked."""

    @property
    def application(self) -> str:
        """The name that the client gives itself."""

    @property
    def protocol(self) -> str:
        """The name of the protocol, for operators."""

    @property
    def unanswered(self) -> int:
        """Requests that have no answer yet."""

    @property
    def closed(self) -> bool: ...

    @property
    def writable(self) -> bool: ...

    def close(self, error: RemudaError | None = None) -> None: ...


class NoClient:
    """Stands where a query has no client: a member asks it for itself."""

    peer = user = application = protocol = ""
    unanswered = 0
    closed = False
    writable = True

    def __init__(self) -> None:
        self.on_writable: list[Callable[[], None]] = []
        self.on_closed: list[Callable[[RemudaError], None]] = []

    def close(self, error: RemudaError | None = None) -> None:
        """Nothing is open."""
