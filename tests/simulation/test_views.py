"""Storms of members that come and go: a few seeds here, many in ./run soak.

``python tests/simulation/test_views.py SEED`` runs one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_views import run_seed

SEEDS = int(os.environ.get("REMUDA_SIMULATION_VIEW_SEEDS", "8"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 5


def test_storms_of_members() -> None:
    events: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for seed in range(SEEDS):
        storm = run_seed(seed)
        events.update(storm.events)
        ends.update(storm.ends)
    assert set(events) == {"crash", "split", "join", "leave"}
    assert ends["well"] > 0.3 * ends.total(), ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms_of_members() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


if __name__ == "__main__":
    run_seed(int(sys.argv[1]))
