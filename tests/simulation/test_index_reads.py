"""Reads by a secondary index on the short way and the general one, judged by one history; and a
short way that leaves a member out, which must turn a storm red. Broken rules of timestamps are in
``tests/member/maps/test_index_reads.py``: they show too seldom in storms.

``python tests/simulation/test_index_reads.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_index_reads import IndexStorm, dense
from sim_transactions import run_seed

from remuda.member.base.peers import Peers
from remuda.rpc.messages.control_pb2 import RpcType

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20
CAUGHT_WITHIN = 10
"""Seeds that are tried."""
Patch = pytest.MonkeyPatch


def run(seed: int, kind: Callable[[int, str | None], Any]) -> IndexStorm:
    storm: Any = run_seed(seed, "serializable", kind)
    assert isinstance(storm, IndexStorm)
    return storm


def test_both_ways_have_one_history() -> None:
    storm = run(0, dense)
    assert storm.asked > 50, storm.ends
    assert storm.ends["indexed well"] > 50, storm.ends
    storm = run(0, IndexStorm)
    assert storm.asked > 20, storm.ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_both_ways_have_one_history_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed, dense)
        run(seed, IndexStorm)


def a_member_is_left_out(patch: Patch) -> None:
    original = Peers.request_nowait

    def request_nowait(self: Peers, number: int, rpc_type: int, *rest: Any) -> None:
        if rpc_type == RpcType.INDEX_READ and number == 2:
            number = 3 if self._core.number == 1 else 1
        original(self, number, rpc_type, *rest)

    patch.setattr(Peers, "request_nowait", request_nowait)


def test_a_member_that_is_left_out_is_noticed(monkeypatch: Patch) -> None:
    a_member_is_left_out(monkeypatch)
    with pytest.raises(Violation, match="the index finds"):
        for seed in range(CAUGHT_WITHIN):
            run(seed, dense)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for each in (dense, IndexStorm):
            found = run(number, each)
            print(number, found.events, found.asked, dict(found.ends))
