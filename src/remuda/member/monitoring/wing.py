"""The metrics of one member, and the server that shows them."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from remuda.config import check_exposure
from remuda.member.base.core import Core
from remuda.member.base.wing import Wing
from remuda.member.metrics.collections import Collections
from remuda.member.metrics.families import Family
from remuda.member.metrics.loop_delay import LoopDelay
from remuda.member.monitoring.pages import Pages
from remuda.member.monitoring.server import MetricsServer
from remuda.member.monitoring.sources import Sources
from remuda.rpc.messages import control_pb2
from remuda.rpc.strangers import Verifier


class Metrics(Wing):
    """``listen`` comes before the member has found its cluster, so that /health answers at once.
    From ``start`` on the pages show what the wings hold, too."""

    def __init__(
        self,
        core: Core,
        gauges: Callable[[], Mapping[str, int]],
        subscriptions: Callable[[], Iterable[control_pb2.Subscription]],
        backup_lag: Callable[[], float],
    ) -> None:
        """``gauges`` says what the wings hold, ``subscriptions`` who reads changes, and
        ``backup_lag`` how many seconds backups are behind."""
        self._core = core
        self._before = Sources(core, dict, tuple, float)
        self._sources = Sources(core, gauges, subscriptions, backup_lag)
        self._started = False
        self._loop_delay = LoopDelay(core.world.clock)
        self._collections = Collections()
        self._server: MetricsServer | None = None

    @property
    def address(self) -> str:
        """Host and port while the server listens; "" otherwise."""
        found = None if self._server is None else self._server.address
        return "" if found is None else f"{found[0]}:{found[1]}"

    async def listen(self, tls: ssl.SSLContext | None, verifier: Verifier | None) -> None:
        """Listen as the settings say. With a ``verifier``, /metrics wants a user and a password.
        Raises ConnectionRefused, InputError for an address that others reach unprotected."""
        config = self._core.config
        if config.metrics_port < 0:
            return
        check_exposure(replace(config, host=config.metrics_host))
        sock = self._core.world.network.listen(config.metrics_host, config.metrics_port)
        self._collections.start()
        self._core.spawn(self._loop_delay.run(), "loop delay")
        pages = Pages(self._core, self.families, verifier)
        self._server = MetricsServer(self._core, pages.serve)
        await self._server.start(sock, tls)

    def start(self) -> None:
        self._started = True

    def free(self) -> None:
        self._collections.close()
        if self._server is not None:
            self._server.close()

    def families(self) -> Iterator[Family]:
        """Everything that /metrics shows."""
        yield from (self._sources if self._started else self._before).families()
        yield from self._core.measures.families()
        yield from self._loop_delay.families()
        yield from self._collections.families()
