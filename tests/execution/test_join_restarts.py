"""Joins of recursive terms: restarted, they join what their inputs give now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.hash_join import HashJoinOperator, RightNulls
from remuda.execution.operators.partitioned_join import JoinSide, PartitionedJoinOperator
from remuda.plan.logical import JoinKind

sys.path.insert(0, str(Path(__file__).parent))
from spilling import Rows, all_rows, batch_of, small_account

TYPES = [BIGINT, VARCHAR]
KINDS = [kind for kind in JoinKind if kind is not JoinKind.MARK]


class Replaced(Operator):
    """Gives ``rows``; others after a restart, if they were replaced."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._at = 0

    def advance(self) -> Progress:
        self._batch = batch_of(self.rows[self._at : self._at + 200], TYPES)
        self._at += 200
        return Progress.FETCHED if self._at < len(self.rows) else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        self._at = 0
        return True


def rows(first: int, count: int, *, null: bool = False) -> Rows:
    found: Rows = [(n % 400, f"text {n}") for n in range(first, first + count)]
    return [*found, (None, "null")] if null else found


ROUNDS = [
    (rows(0, 1), rows(0, 1)),
    (rows(1, 3), rows(2, 1, null=True)),
    (rows(1, 3), rows(7, 2)),
    (rows(0, 900), []),
    (rows(5, 500), rows(100, 700, null=True)),
    ([], rows(0, 2)),
    (rows(3, 2), rows(3, 900)),
]


def join(
    kind: JoinKind, sides: list[Replaced], account: MemoryAccount, *, partitioned: bool
) -> Operator:
    one_sided = kind in (JoinKind.SEMI, JoinKind.ANTI)
    nulls = RightNulls() if kind is JoinKind.ANTI else None

    def make(left: Operator, right: Operator) -> Operator:
        return HashJoinOperator(
            kind=kind,
            left=left,
            right=right,
            left_keys=[0],
            right_keys=[0],
            key_types=[BIGINT],
            left_types=TYPES,
            right_kept=[] if one_sided else [0, 1],
            right_types=[] if one_sided else TYPES,
            residual=None,
            output=range(2 if one_sided else 4),
            memory=Reservation(account, "HashJoin"),
            null_aware=nulls is not None,
            nulls=nulls,
        )

    if not partitioned:
        return make(*sides)
    return PartitionedJoinOperator(
        make,
        *(JoinSide(side, TYPES, [0]) for side in sides),
        key_types=[BIGINT],
        memory=Reservation(account, "HashJoin"),
        nulls=nulls,
    )


def output(operator: Operator, kind: JoinKind) -> list[str]:
    types = TYPES if kind in (JoinKind.SEMI, JoinKind.ANTI) else [*TYPES, *TYPES]
    return sorted(map(repr, all_rows(operator, types)))


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_a_restarted_join_is_a_new_one(kind: JoinKind, partitioned: bool) -> None:
    account = small_account(400_000_000)
    sides = [Replaced([]), Replaced([])]
    restarted = join(kind, sides, account, partitioned=partitioned)
    for number, (left, right) in enumerate(ROUNDS):
        sides[0].rows, sides[1].rows = left, right
        if number:
            assert restarted.restart()
        fresh = join(kind, [Replaced(left), Replaced(right)], account, partitioned=partitioned)
        assert output(restarted, kind) == output(fresh, kind)
        fresh.close()
    restarted.close()
    assert account.held == 0


def test_a_join_whose_right_side_grows_beyond_its_memory_is_split_then() -> None:
    kind = JoinKind.LEFT
    account = small_account(400_000)
    sides = [Replaced(rows(0, 3)), Replaced(rows(0, 1))]
    restarted = join(kind, sides, account, partitioned=True)
    assert len(output(restarted, kind)) == 3
    sides[1].rows = rows(0, 20_000)
    assert restarted.restart()
    found = output(restarted, kind)
    assert len(found) == 3 * 20_000 // 400
    assert not restarted.restart()  # it is built anew
    restarted.close()
    assert account.held == 0
