"""Those who have connected and not shown yet who they are: how they may, and how many may wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from remuda.errors import LimitExceeded, RemudaError
from remuda.limits import STRANGERS_MAX
from remuda.rpc.sasl import Credentials, ServerExchange
from remuda.rpc.tls_transport import TlsLayer

Verifier: TypeAlias = Callable[[Credentials, str, Callable[[str | RemudaError], None]], None]
"""``verifier(credentials, host of the other side, told)``: ``told`` hears, on the loop and at some
time, which user that is, or the error."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The doorkeeper of strangers: an exchange for each, and a verifier of users' passwords."""

    exchange: Callable[[], ServerExchange]
    verifier: Verifier | None = None


class Stranger(Protocol):
    """A connection whose other side has not shown who it is."""

    connected: bool
    on_closed: list[Callable[[RemudaError], None]]

    def close(self, error: RemudaError | None = None) -> None: ...


class Strangers:
    """The strangers of one port: so many, and no more; the oldest goes first."""

    def __init__(self, most: int = STRANGERS_MAX) -> None:
        self._most = most
        self._waiting: dict[Stranger, TlsLayer | None] = {}  # in the order of their coming

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, channel: Stranger, layer: TlsLayer | None) -> None:
        """``layer``: the transport below the channel until TLS is through."""
        if len(self._waiting) >= self._most:
            oldest = next(iter(self._waiting))
            self._drop(oldest, LimitExceeded(f"{self._most} others wait to be let in"))
        self._waiting[channel] = layer
        channel.on_closed.append(lambda _: self.let_go(channel))

    def let_go(self, channel: Stranger) -> None:
        """It is a stranger no more, or gone."""
        self._waiting.pop(channel, None)

    def close(self, error: RemudaError | None) -> None:
        for channel in list(self._waiting):
            self._drop(channel, error)

    def _drop(self, channel: Stranger, error: RemudaError | None) -> None:
        layer = self._waiting.pop(channel, None)
        if channel.connected:
            channel.close(error)
        elif layer is not None:
            layer.abort()
