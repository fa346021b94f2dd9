"""One message between members is lost in a run that other modules describe: while members are cut
off and give their copies back, leave and return with their folders, or start again after the power
was gone. They send what no run of ``sim_losses`` sends, and judge themselves."""

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
import sim_power
import sim_returns
import test_donors
from sim_losses import DATA_ONLY, Kinds, Loss
from sim_network import LOST, Fate, Sent, SimulatedNetwork

STORMS: Mapping[str, Callable[[int], Any]] = {
    "donors": test_donors.storm,
    "donors with logs": partial(test_donors.storm, logged=True),
    "returns": sim_returns.run_seed,
    "power": sim_power.run_seed,
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
                    network.loop.call_soon(_reset, network, sent)
                return LOST
        return None


def _reset(network: SimulatedNetwork, sent: Sent) -> None:
    """The connections between the two, of the channel that bore the frame."""
    kind = "data" if sent.name in DATA_ONLY else "control"
    for end in list(network.transports):
        nodes = {end.node.name, end.other.node.name}
        if nodes == {sent.sender, sent.receiver} and end.channel == kind:
            network.break_connections(end.node, end.other.node, kind)
            return
