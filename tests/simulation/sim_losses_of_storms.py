"""One message between members is lost in a run that other modules describe: while members are cut
off and give their copies back, leave and return with their folders, or start again after the power
was gone; while members with open transactions or snapshots are lost; while a backup has no room.
They send what no run of ``sim_losses`` sends, and judge themselves."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
import sim_numbers
import sim_power
import sim_returns
import sim_snapshots
import sim_transactions
import sim_uniques
import test_donors
from sim_cluster import Simulation
from sim_losses import DATA_ONLY, Kinds, Loss
from sim_network import LOST, Fate, Sent, SimulatedNetwork

from remuda.errors import StorageFull


async def _full_backups(sim: Simulation) -> None:
    """Members 4 and 5 have no room for a while: they refuse to keep parts as backups, and nothing
    of those is left."""
    limits = [sim.members[number].core.room.stored for number in (4, 5)]
    client = await sim.client(1)
    before = limits[0].limit
    for each in limits:
        each.resize(1)
    there = {5000}
    for number in range(2000, 2040):
        try:
            await client.run(f"INSERT INTO t VALUES ({number}, 0)")
        except StorageFull:
            continue
        there.add(number)
    assert len(there) < 35
    for each in limits:
        each.resize(before)
    await client.run("INSERT INTO t VALUES (5000, 0)")
    found = await client.run("SELECT id FROM t WHERE id >= 2000")
    assert {row[0] for row in found} == there
    client.channel.close()
    sim.violations = [one for one in sim.violations if "no room for rows" not in one]


STORMS: Mapping[str, Callable[[int], Any]] = {
    "donors": test_donors.storm,
    "donors with logs": partial(test_donors.storm, logged=True),
    "returns": sim_returns.run_seed,
    "power": sim_power.run_seed,
    "transactions": sim_transactions.run_seed,
    "snapshots": sim_snapshots.run_seed,
    "bulk writes in doubt": partial(test_donors.play, test_donors.forgotten_end),
    "uniques": lambda seed: sim_transactions.run_seed(seed, kind=sim_uniques.dense),
    "numbers": lambda seed: sim_transactions.run_seed(seed, kind=sim_numbers.dense),
    "full backups": partial(test_donors.play, _full_backups),
}


@dataclass
class StormLoss:
    """``lost``: of each kind the n-th frame of the run."""

    storm: str
    seed: int
    lost: Mapping[str, tuple[int, Loss]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    happened: list[str] = field(default_factory=list)

    def run(self) -> StormLoss:
        made = SimulatedNetwork.__init__

        def watched(network: SimulatedNetwork, *arguments: Any) -> None:
            made(network, *arguments)
            kinds = Kinds()
            network.rules.append(lambda sent: self._rule(network, kinds, sent))

        with mock.patch.object(SimulatedNetwork, "__init__", watched):
            STORMS[self.storm](self.seed)
        return self

    def _rule(self, network: SimulatedNetwork, kinds: Kinds, sent: Sent) -> Fate | None:
        for name in kinds.of(sent):
            self.counts[name] += 1
            number, loss = self.lost.get(name, (0, Loss.DROP))
            if number == self.counts[name]:
                self.happened.append(name)
                network.log(f"LOST ({loss.value}): {sent}")
                if loss is Loss.BREAK:
                    network.loop.call_soon(reset, network, sent)
                return LOST
        return None


def reset(network: SimulatedNetwork, sent: Sent) -> None:
    """The connections between the two, of the channel that bore the frame."""
    kind = "data" if sent.name in DATA_ONLY else "control"
    for end in list(network.transports):
        nodes = {end.node.name, end.other.node.name}
        if nodes == {sent.sender, sent.receiver} and end.channel == kind:
            network.break_connections(end.node, end.other.node, kind)
            return
