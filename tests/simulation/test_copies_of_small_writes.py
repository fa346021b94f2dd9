"""A copy of maps that many small atomic writes have made: how many requests bring it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, simulation
from sim_network import Sent

from remuda.storage.maps.map_store import MapStore

WRITES = 150
"""Each leaves a chunk."""


async def write_and_join(sim: Simulation) -> None:
    client = await sim.client(1)
    await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
    await client.run("INSERT INTO t VALUES " + ", ".join(f"({n}, 0)" for n in range(40)))
    for _ in range(WRITES):
        await client.run("UPDATE t SET n = n + 1")
    client.channel.close()
    joined = await sim.join(through=1)
    async with asyncio.timeout(60.0):
        while len(joined.core.view.backed_up_by(joined.core.number)) < 100:
            await asyncio.sleep(0.1)


def test_small_chunks_travel_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request for each would take longer than writers take to make as many new ones."""
    monkeypatch.setattr(MapStore, "maintain", lambda *_: False)  # it does not keep up with writers
    requests: list[str] = []

    def count(sent: Sent) -> None:
        if sent.name == "COPY_ROWS" and sent.mode == 0:
            requests.append(sent.receiver)

    with simulation(1, 1, backups=1) as sim:
        sim.network.watchers.append(count)
        sim.form()
        sim.complete(write_and_join(sim))
        sim.settle()
        sim.verdict()
    assert 0 < len(requests) < WRITES / 4, f"{len(requests)} requests"
