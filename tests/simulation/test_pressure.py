"""Storms with too little memory, disk, turns or trust, and of staged jobs: a few seeds here, many
in ./run soak. ``python tests/simulation/test_pressure.py KIND SEED`` prints the log of a seed;
KIND is "jobs" or one of ``sim_pressure.KINDS``.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import sim_jobs
import sim_pressure

SEEDS = int(os.environ.get("REMUDA_SIMULATION_PRESSURE_SEEDS", "5"))
"""Of each kind."""
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 10
KINDS = ("jobs", *sim_pressure.KINDS)


def run(kind: str, seed: int) -> str:
    if kind == "jobs":
        return sim_jobs.run_seed(seed)[0]
    return sim_pressure.run_seed(seed, kind)[0]


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_many_storms(kind: str) -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run(kind, seed)


def test_storms_of_pressure_are_what_they_claim_to_be() -> None:
    """What is scarce has been felt, and most statements end well all the same."""
    ends: Counter[str] = Counter()
    for kind in sim_pressure.KINDS:
        storms = [sim_pressure.run_seed(seed, kind)[1] for seed in range(SEEDS)]
        ends.update(end.split()[1] for storm in storms for end in storm.ends)
        for wanted, felt in (
            (("instances", "all"), "multiplied"),
            (("spill", "all"), "spilled"),
            (("admission",), "waited"),
            (("secured", "all"), "refused"),
        ):
            if kind in wanted:
                assert sum(getattr(storm, felt) for storm in storms) > 0, f"{kind}: {felt}"
    assert {"NoneType", "DiskFull", "MemberUnavailable"} <= set(ends)
    assert ends["NoneType"] > 0.4 * ends.total()


def test_storms_of_jobs_are_what_they_claim_to_be() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(2 * SEEDS):
        outcomes.update(sim_jobs.run_seed(seed)[1].outcomes)
    assert {"committed (commit)", "overwritten", "inserted", "refused"} <= set(outcomes)
    # Some lose the member that they use; the error depends on the moment.
    assert outcomes.keys() & {"MemberUnavailable", "ConnectionBroken", "ConnectionRefused"}


@pytest.mark.parametrize(("kind", "seed"), [("jobs", 6), ("all", 5)])
def test_the_same_seed_replays_the_same_log(kind: str, seed: int) -> None:
    assert run(kind, seed) == run(kind, seed)


if __name__ == "__main__":
    print(run(sys.argv[1], int(sys.argv[2])))
