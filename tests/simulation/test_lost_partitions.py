"""Storms of members without backups, in which losses are accepted at any moment, by any member: no
two members ever serve one partition, and in the end the cluster serves all of them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_views import STORM, ViewStorm

from remuda.errors import RemudaError

SEEDS = int(os.environ.get("REMUDA_SIMULATION_LOSS_SEEDS", "3"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20


class AcceptingStorm(ViewStorm):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, backups=0)
        self.accepted = 0

    async def storm(self) -> None:
        accepting = self.sim.loop.create_task(self.accept())
        await super().storm()
        accepting.cancel()

    async def accept(self) -> None:
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + STORM:
            await asyncio.sleep(self.random.uniform(0.01, 1.0))
            if members := self.staying():
                number = self.random.choice(members)
                try:
                    self.accepted += await self.sim.members[number].lost.accept()
                except RemudaError as error:
                    self.sim.note(f"member {number} accepts no loss: {error!r}")

    async def calm(self) -> None:
        await super().calm()
        last = self.views[max(self.views)]
        live = {n: m for n, m in self.sim.live().items() if n not in self.gone}
        here = [n for n in last.by_number if n in live]
        if 2 * len(here) <= len(last.members):
            return
        self.accepted += await live[here[0]].lost.accept()
        for number in here:
            await self.until_ready(live[number])
        client = await self.sim.client(here[0])
        await client.run("SELECT count(*) FROM t")
        await client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1001, 1500) g(g)")
        for number in here:
            other = await self.sim.client(number)
            found = await other.run("SELECT count(*) FROM t WHERE id > 1000")
            if found != [(500,)]:
                raise Violation(f"member {number} finds {found} of 500 rows")
            other.channel.close()
        client.channel.close()

    async def until_ready(self, member: object) -> None:
        for _ in range(1000):
            if member.core.ready and not member.core.view.absent:  # type: ignore[attr-defined]
                return
            await asyncio.sleep(0.02)
        raise Violation("a member is not ready 20 s after a loss was accepted")


def run_seed(seed: int) -> AcceptingStorm:
    storm = AcceptingStorm(seed)
    try:
        storm.run(seed)
    except Violation as problem:
        raise Violation(f"seed {seed}: {problem}\n--- log\n{storm.sim.useful_log()}") from problem
    return storm


def test_losses_are_accepted_in_storms() -> None:
    assert sum(run_seed(seed).accepted for seed in range(SEEDS)) > 50


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms_with_accepted_losses() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


if __name__ == "__main__":
    run_seed(int(sys.argv[1]))
