"""Rows read several times, and the nested loop join over them: the same with little memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.errors import OutOfMemory
from remuda.execution.arrays import data_of
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.hash_join import LEFT_ONLY
from remuda.execution.operators.nested_loop_join import NestedLoopJoinOperator
from remuda.execution.operators.row_blocks import RowBlocks
from remuda.plan.logical import JoinKind

sys.path.insert(0, str(Path(__file__).parent))

from spilling import TYPES, Given, Rows, batch_of, drained, rows_of, small_account, some_rows

NUMBERS = [BIGINT, BIGINT]


class Condition:
    """Pairs whose sum of first columns is divisible by 7; NULL where both second ones are 0."""

    def __init__(self, unknown: bool) -> None:
        self._unknown = unknown

    def select(self, pairs):
        columns = [data_of(pairs.column(place)) for place in range(4)]
        unknown = (columns[1] == 0) & (columns[3] == 0)
        passed = ((columns[0] + columns[2]) % 7 == 0) & ~unknown
        return np.flatnonzero(unknown if self._unknown else passed)


def numbers(count: int, step: int) -> Rows:
    return [(i * step, i % 5) for i in range(count)]


def joined(kind: JoinKind, left: Rows, right: Rows, account: MemoryAccount, *, any_=False) -> Rows:
    given = [Given(left, NUMBERS, 200), Given(right, NUMBERS, 150)]
    one_sided = kind in LEFT_ONLY
    mark = kind is JoinKind.MARK
    operator = NestedLoopJoinOperator(
        kind=kind,
        left=given[0],
        right=given[1],
        left_types=NUMBERS,
        right_kept=[0, 1],
        right_types=NUMBERS,
        condition=None if any_ else Condition(False),
        output=range(2 if one_sided else 4),
        memory=Reservation(account, "NestedLoopJoin"),
        unknown=Condition(True) if mark else None,
    )
    types = [*NUMBERS, BOOLEAN] if mark else NUMBERS if one_sided else [*NUMBERS, *NUMBERS]
    rows = drained(operator, types)
    assert account.held == 0
    assert [source.closed for source in given] == [1, 1]
    return rows


def ordered(rows: Rows) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("kind", list(JoinKind))
@pytest.mark.parametrize("sizes", [(700, 900), (40, 3000), (1200, 0), (0, 700), (1, 1500)])
def test_nested_loops_over_blocks_on_disk(kind, sizes):
    left, right = numbers(sizes[0], 3), numbers(sizes[1], 5)
    account = small_account(40_000)
    found = joined(kind, left, right, account)
    assert ordered(found) == ordered(joined(kind, left, right, MemoryAccount()))
    assert account.spill is not None
    assert account.spill.used == 0
    assert (account.spill.written > 0) == (sizes[1] >= 700)


def test_a_cross_join_is_complete():
    found = joined(
        JoinKind.INNER, numbers(900, 1), numbers(1100, 1), small_account(30_000), any_=True
    )
    assert len(found) == 900 * 1100
    assert len(set(found)) == 900 * 1100


def test_without_spilling_the_operator_and_the_setting_are_named():
    with pytest.raises(OutOfMemory, match="30000 bytes") as caught:
        joined(JoinKind.INNER, numbers(10, 1), numbers(3000, 1), MemoryAccount(30_000))
    assert "NestedLoopJoin" in caught.value.detail
    assert "spill_limit" in caught.value.detail


def test_blocks_are_read_in_any_order():
    account = small_account(100_000)
    rows = some_rows(6000, 1, 40)
    blocks = RowBlocks(TYPES, Reservation(account, "test"))
    for at in range(0, len(rows), 250):
        blocks.add(batch_of(rows[at : at + 250], TYPES))
    blocks.finish()
    assert blocks.spilled
    assert blocks.rows == len(rows)
    read = [rows_of(blocks.block(number), TYPES) for number in reversed(range(blocks.count))]
    assert repr([row for part in reversed(read) for row in part]) == repr(rows)
    for row in (0, 249, 250, 4321, 5999):
        number, place = blocks.place(row)
        assert repr(rows_of(blocks.block(number), TYPES)[place]) == repr(rows[row])
    blocks.close()
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0
