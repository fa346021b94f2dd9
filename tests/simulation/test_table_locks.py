"""LOCK TABLE while members fail; and ways to break it, each of which must turn a storm red.

``python tests/simulation/test_table_locks.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_table_locks import TableLocks, TableLockStorm
from sim_transactions import run_seed

from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.transaction.advisory import AdvisoryLocks

SOAK_SEEDS = max(100, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20)
Patch = pytest.MonkeyPatch


def run(seed: int) -> TableLocks:
    storm: Any = run_seed(seed, None, TableLockStorm)
    (work,) = storm.works
    assert isinstance(work, TableLocks)
    return work


def test_tables_that_are_locked_in_storms() -> None:
    works = [run(seed) for seed in (1, 2)]
    assert sum(len(work.holds) for work in works) > 20
    assert sum(work.circles for work in works) > 0
    assert sum((work.added for work in works), Counter[Any]()).total() > 20


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_tables_that_are_locked_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed)


# --- broken locks -------------------------------------------------------------------------------


def everybody_passes(patch: Patch) -> None:
    patch.setattr(AdvisoryLocks, "_obstacles", lambda *_: [])


def writers_are_not_looked_for(patch: Patch) -> None:
    """A transaction that has locked a table does not count as a reader of it."""
    patch.setattr(OpenTransaction, "note_table", lambda *_: None)


MUTATIONS: dict[Callable[[Patch], None], tuple[int, str]] = {
    everybody_passes: (0, "exclude each other"),
    writers_are_not_looked_for: (6, "was raised"),
}
"""With a seed that notices it, and what it says."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_broken_locks_are_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    seed, text = MUTATIONS[mutation]
    mutation(monkeypatch)
    with pytest.raises(Violation, match=text):
        run(seed)


if __name__ == "__main__":
    first = int(sys.argv[1])
    with Patch.context() as broken:
        if len(sys.argv) > 3:
            globals()[sys.argv[3]](broken)
        for number in range(first, int((*sys.argv, first)[2]) + 1):
            try:
                found = run(number)
            except Violation as problem:
                print(number, str(problem)[:1500], flush=True)
            else:
                told = dict(found.told.ends)
                print(number, len(found.holds), found.circles, found.refused, told, flush=True)
