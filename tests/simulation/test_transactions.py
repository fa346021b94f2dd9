"""Storms of open transactions: a few seeds here, many in ./run soak; and ways to break what each
guarantee rests on, each of which must turn one red.

``python tests/simulation/test_transactions.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_transaction_mutations import MUTATIONS, Seen
from sim_transactions import dense, run_seed

from remuda.member.sessions.snapshots import Snapshots
from remuda.member.statements.transaction_changes import TransactionChanges

SEEDS = int(os.environ.get("REMUDA_SIMULATION_TRANSACTION_SEEDS", "3"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 10
CAUGHT_WITHIN = 25
"""Seeds that are tried when the known one shows nothing any more."""
WORKS = ("lists", "bank", "set", "counters", "skew", "registers")


def test_storms_of_transactions() -> None:
    ends: Counter[str] = Counter()
    for seed in range(SEEDS):
        ends.update(run_seed(seed).ends)
    for name in WORKS:
        assert ends[f"{name} well"] > 10, ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms_of_transactions() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("level", ["serializable", "repeatable read", "read committed"])
@pytest.mark.parametrize("work", WORKS)
def test_many_who_meet_each_other(work: str, level: str) -> None:
    for seed in range(SOAK_SEEDS // 20):
        run_seed(seed, level, dense(work))
        run_seed(
            seed, f"pessimistic {level}".replace("serializable", "read committed"), dense(work)
        )


@pytest.fixture
def one_statement_at_a_time(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The clients of the storm do so, as those at PostgreSQL's door, so snapshots may move. Counts
    the moves."""
    before, move, moved = TransactionChanges._reads_before, Snapshots.move, Counter[str]()

    def unaided(self: Any, statement: Any, transaction: Any) -> Any:
        return before(self, replace(statement, unaided=True), transaction)

    async def counted(self: Any, *arguments: Any) -> None:
        await move(self, *arguments)
        moved["moved"] += 1

    monkeypatch.setattr(TransactionChanges, "_reads_before", unaided)
    monkeypatch.setattr(Snapshots, "move", counted)
    return moved


def test_snapshots_that_move_keep_every_guarantee(
    one_statement_at_a_time: Counter[str],
) -> None:
    for work in ("lists", "counters"):
        run_seed(1, "serializable", dense(work))
    assert one_statement_at_a_time["moved"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_guarantee_is_noticed(
    mutation: Callable[[pytest.MonkeyPatch], Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = mutation(monkeypatch)
    with pytest.raises(Violation, match=seen.says):
        for seed in (seen.seed, *range(CAUGHT_WITHIN)):
            run_seed(seed, seen.level, dense(seen.work))


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        storm = run_seed(number)
        print(number, storm.level, storm.events, dict(storm.ends))
