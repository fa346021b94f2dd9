"""Joins whose right side is larger than their memory: the same rows as in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.errors import OutOfMemory
from remuda.execution.contract import Operator
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.hash_join import HashJoinOperator, RightNulls
from remuda.execution.operators.partitioned_join import JoinSide, PartitionedJoinOperator
from remuda.execution.operators.row_partitions import FAN_OUT
from remuda.plan.logical import JoinKind

sys.path.insert(0, str(Path(__file__).parent))

from spilling import TYPES, Given, Rows, drained, small_account, some_rows

KINDS = [
    kind for kind in JoinKind if kind.name in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
]


def join(
    kind: JoinKind, left: Rows, right: Rows, keys: list[int], account: MemoryAccount
) -> tuple[Rows, list[Given]]:
    """The rows, and the inputs."""
    given = [Given(left, TYPES, 500), Given(right, TYPES, 300)]
    one_sided = kind in (JoinKind.SEMI, JoinKind.ANTI)
    key_types = [TYPES[key] for key in keys]

    def make(left: Operator, right: Operator) -> Operator:
        return HashJoinOperator(
            kind=kind,
            left=left,
            right=right,
            left_keys=keys,
            right_keys=keys,
            key_types=key_types,
            left_types=TYPES,
            right_kept=[] if one_sided else range(len(TYPES)),
            right_types=[] if one_sided else TYPES,
            residual=None,
            output=range(len(TYPES) if one_sided else 2 * len(TYPES)),
            memory=Reservation(account, "HashJoin"),
        )

    operator = PartitionedJoinOperator(
        make,
        JoinSide(given[0], TYPES, keys),
        JoinSide(given[1], TYPES, keys),
        key_types=key_types,
        memory=Reservation(account, "HashJoin"),
    )
    return drained(operator, TYPES if one_sided else [*TYPES, *TYPES]), given


def ordered(rows: Rows) -> list[str]:
    return sorted(repr(row) for row in rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize("keys", [[0], [1, 3]], ids=["integer", "text and decimal"])
def test_a_right_side_of_many_times_the_memory(kind: JoinKind, keys: list[int]) -> None:
    left, right = some_rows(3_000, 1, 2_000), some_rows(30_000, 2, 2_000)
    account = small_account(400_000)

    found, given = join(kind, left, right, keys, account)
    expected, _ = join(kind, left, right, keys, MemoryAccount())

    assert ordered(found) == ordered(expected)
    assert account.spill is not None
    assert account.spill.written > 400_000
    assert account.spill.used == 0
    assert account.held == 0
    assert [operator.closed for operator in given] == [1, 1]


def test_parts_that_are_still_too_large_are_split_again() -> None:
    left, right = some_rows(1_000, 3, 6_000), 8 * some_rows(6_000, 4, 6_000)
    account = small_account(480_000)

    found, _ = join(JoinKind.INNER, left, right, [0], account)

    assert ordered(found) == ordered(join(JoinKind.INNER, left, right, [0], MemoryAccount())[0])
    assert account.spill is not None
    files = 2 * FAN_OUT
    assert account.spill.opened > files, "no part was split again"


def test_a_right_side_that_fits_stays_in_memory() -> None:
    left, right = some_rows(3_000, 1, 200), some_rows(300, 2, 200)
    account = small_account(4_000_000)

    found, given = join(JoinKind.FULL, left, right, [0], account)

    assert ordered(found) == ordered(join(JoinKind.FULL, left, right, [0], MemoryAccount())[0])
    assert account.spill is not None
    assert account.spill.written == 0
    assert account.held == 0
    assert [operator.closed for operator in given] == [1, 1]


def test_one_key_that_is_too_large_fails_clearly() -> None:
    right: Rows = [(1, "x" * 20, 0.0, number) for number in range(20_000)]
    account = small_account(100_000)
    with pytest.raises(OutOfMemory, match="memory limit of 100000 bytes"):
        join(JoinKind.INNER, right[:10], right, [0], account)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.95, 0.99, 1.0])
def test_a_spill_limit_that_is_reached_at_any_moment_leaves_nothing(share: float) -> None:
    """At 1.0 by the last block of all, when the files of the right side are complete."""
    left, right = some_rows(400, 1, 2_000), some_rows(4_000, 2, 2_000)
    whole = small_account(300_000)
    join(JoinKind.INNER, left, right, [0], whole)
    assert whole.spill is not None
    assert whole.spill.opened == 2 * FAN_OUT, "no part is split again"
    account = small_account(300_000, int(share * whole.spill.written) - 1)
    with pytest.raises(OutOfMemory, match="spill limit"):
        join(JoinKind.INNER, left, right, [0], account)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0


@pytest.mark.parametrize("nulls_on_the_right", [False, True])
@pytest.mark.parametrize("right_count", [0, 30_000])
def test_not_in_knows_of_nulls_in_other_parts(nulls_on_the_right: bool, right_count: int) -> None:
    left = some_rows(3_000, 1, 4_000)
    right = [r for r in some_rows(right_count, 2, 1_000) if nulls_on_the_right or r[0] is not None]

    def marked(account: MemoryAccount) -> Rows:
        nulls = RightNulls()

        def make(left: Operator, right: Operator) -> Operator:
            return HashJoinOperator(
                kind=JoinKind.MARK,
                left=left,
                right=right,
                left_keys=[0],
                right_keys=[0],
                key_types=[BIGINT],
                left_types=TYPES,
                right_kept=[],
                right_types=[],
                residual=None,
                output=range(len(TYPES)),
                memory=Reservation(account, "HashJoin"),
                null_aware=True,
                nulls=nulls,
            )

        operator = PartitionedJoinOperator(
            make,
            JoinSide(Given(left, TYPES, 500), TYPES, [0]),
            JoinSide(Given(right, TYPES, 300), TYPES, [0]),
            key_types=[BIGINT],
            memory=Reservation(account, "HashJoin"),
            nulls=nulls,
        )
        return drained(operator, [*TYPES, BOOLEAN])

    account = small_account(400_000)
    found = marked(account)
    assert ordered(found) == ordered(marked(MemoryAccount()))
    keys = {row[0] for row in right}

    def mark(value: object) -> bool | None:
        if not right:
            return False
        if value is not None and value in keys:
            return True
        return None if value is None or None in keys else False

    assert all(row[-1] is mark(row[0]) for row in found)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0
    assert (account.spill.written > 0) == (right_count > 0)
