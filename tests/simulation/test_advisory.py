"""Advisory locks while members fail; and ways to break them, each of which must turn a storm red.

``python tests/simulation/test_advisory.py SEED [LAST]`` runs some.
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
from sim_advisory import Advisory, AdvisoryStorm
from sim_cluster import Violation
from sim_transactions import run_seed

from remuda.member.advisory import host
from remuda.member.advisory.host import AdvisoryHost
from remuda.transaction.advisory import AdvisoryLocks, Claim

SOAK_SEEDS = max(100, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20)
CAUGHT_WITHIN = 30
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch


def run(seed: int) -> AdvisoryStorm:
    storm: Any = run_seed(seed, "serializable", AdvisoryStorm)
    assert isinstance(storm, AdvisoryStorm)
    return storm


def work_of(storm: AdvisoryStorm) -> Advisory:
    (work,) = storm.works
    assert isinstance(work, Advisory)
    return work


def test_no_two_holders_exclude_each_other() -> None:
    works = [work_of(run(seed)) for seed in (1, 2)]
    assert sum(len(work.holds) for work in works) > 20
    assert sum(work.tried for work in works) > 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_two_holders_exclude_each_other_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed)


# --- broken locks -------------------------------------------------------------------------------


def the_host_does_not_ask_the_members(patch: Patch) -> int:
    async def nothing(*_: object) -> list[Claim]:
        return []

    patch.setattr(AdvisoryHost, "_held_at", nothing)
    return 1


def the_host_does_not_wait_for_leases(patch: Patch) -> int:
    """And believes that the members it asks have nothing: only dropped ones would."""
    patch.setattr(host, "takeover_delay", lambda *_: 0.0)
    return 1


def everybody_passes(patch: Patch) -> int:
    patch.setattr(AdvisoryLocks, "_obstacles", lambda *_: [])
    return 1


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(the_host_does_not_ask_the_members, marks=pytest.mark.soak),
        everybody_passes,
    ],
    ids=lambda each: each.__name__,
)
def test_broken_locks_are_noticed(mutation: Callable[[Patch], int], monkeypatch: Patch) -> None:
    known = mutation(monkeypatch)
    with pytest.raises(Violation, match="advisory"):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        found = run(number)
        print(number, found.events, len(work_of(found).holds), dict(found.ends))
