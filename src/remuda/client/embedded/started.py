"""The face of a cluster that this process has started, wherever its members run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from remuda.client.blocking.client import Client, connect
from remuda.limits import CONNECT_TIMEOUT


class StartedCluster(ABC):
    """A context manager: leaving the block stops the members."""

    def __init__(self, tls: Mapping[str, str] | None = None) -> None:
        """``tls``: the options with which its clients connect."""
        self._tls = dict(tls or {})

    @property
    @abstractmethod
    def addresses(self) -> tuple[str, ...]:
        """host:port of every member's user channel."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all members. Stopping twice does nothing."""

    @property
    def connect_options(self) -> dict[str, Any]:
        """The arguments of ``remuda.connect`` besides an address: the TLS of a cluster that has
        it."""
        return dict(self._tls)

    def connect(
        self,
        *,
        retry_reads: int = 0,
        retry_writes: int = 0,
        connect_timeout: float = CONNECT_TIMEOUT,
        application: str = "python",
        **security: Any,
    ) -> Client:
        """A client of this cluster; the same options as ``remuda.connect``. Those of TLS are the
        cluster's own unless given; where every client must show a certificate, the members'."""
        return connect(
            self.addresses,
            retry_reads=retry_reads,
            retry_writes=retry_writes,
            connect_timeout=connect_timeout,
            application=application,
            **(self._tls | security),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
