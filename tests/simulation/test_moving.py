"""Partitions move under scans whose readers are slow: a few seeds here, many in ./run soak.

``python tests/simulation/test_moving.py FIRST LAST`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_moving import run_seed

SEEDS = int(os.environ.get("REMUDA_SIMULATION_MOVING_SEEDS", "2"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20


def test_scans_read_one_state_while_partitions_move() -> None:
    ends: Counter[str] = Counter()
    moved = 0
    for seed in range(3, 3 + SEEDS):
        storm = run_seed(seed)
        ends += storm.ends
        moved += storm.moved
        assert storm.rounds > 2
    assert ends["NoneType"] > 0.5 * ends.total(), ends
    assert moved > 0, "no scan went on while a view changed"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_seeds() -> None:
    for seed in (0, 1, 2, *range(3 + SEEDS, SOAK_SEEDS)):
        run_seed(seed)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[-1]) + 1):
        found = run_seed(number)
        print(number, found.events, dict(found.ends), found.rounds, found.moved, flush=True)
