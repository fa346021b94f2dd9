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
from sim_lock_splits import LockSplit
from sim_transactions import run_seed

from remuda.member.advisory import host
from remuda.member.advisory.host import AdvisoryHost
from remuda.member.advisory.locks import AdvisoryService
from remuda.member.base.core import Core
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


@pytest.mark.parametrize("seed", [3, 4])
def test_no_half_of_a_split_cluster_has_a_lock_of_the_other(seed: int) -> None:
    assert LockSplit(seed).run().held_beside_the_split


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_half_has_a_lock_of_the_other_in_many_splits() -> None:
    for seed in range(SOAK_SEEDS):
        LockSplit(seed).run()


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


def a_lock_that_is_held_needs_no_lease(patch: Patch) -> None:
    async def sure(_self: AdvisoryService) -> None: ...

    patch.setattr(AdvisoryService, "_surely_held", sure)


def grants_count_without_a_lease(patch: Patch) -> None:
    """The minority's host goes on to grant locks, and its members believe it."""

    async def ready(*_: Any) -> None: ...

    patch.setattr(Core, "until_ready", ready)
    patch.setattr(Core, "require_lease", lambda _self: None)


@pytest.mark.parametrize(
    "mutation",
    [a_lock_that_is_held_needs_no_lease, grants_count_without_a_lease],
    ids=lambda each: each.__name__,
)
def test_broken_halves_are_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation, match="advisory"):
        LockSplit(3).run()


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
