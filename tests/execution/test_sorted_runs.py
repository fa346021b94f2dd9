"""Sorts and windows larger than their memory: the same rows in the same order as in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT
from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.ordering import BoundKey
from remuda.execution.operators.sort import SortOperator
from remuda.execution.operators.window import WindowOperator
from remuda.execution.operators.window_calls import BoundFrame, BoundLimit, BoundWindowCall
from remuda.plan.windows import BoundKind, FrameUnit

sys.path.insert(0, str(Path(__file__).parent))

from spilling import TYPES, Given, Rows, drained, small_account, some_rows

KEYS = {
    "integer": [BoundKey(0, TYPES[0])],
    "text, descending": [BoundKey(1, TYPES[1], descending=True, nulls_first=True)],
    "float, then decimal": [BoundKey(2, TYPES[2]), BoundKey(3, TYPES[3], descending=True)],
    "all": [BoundKey(place, type_, place % 2 == 0, place < 2) for place, type_ in enumerate(TYPES)],
}
WHOLE = BoundFrame(
    FrameUnit.ROWS, BoundLimit(BoundKind.UNBOUNDED_PRECEDING), BoundLimit(BoundKind.CURRENT_ROW)
)


def comparable(rows: Rows) -> list[str]:
    return [repr(row) for row in rows]


def sort(
    rows: Rows, keys: list[BoundKey], account: MemoryAccount, limit: int | None = None
) -> Rows:
    operator = SortOperator(
        Given(rows, TYPES, 300), keys, TYPES, limit, Reservation(account, "SortRows")
    )
    return drained(operator, TYPES)


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("memory", [40_000, 400_000])
def test_a_sort_of_many_times_its_memory(keys: list[BoundKey], memory: int) -> None:
    """The smaller memory makes more runs than are merged at once."""
    rows = some_rows(20_000, 1, 700)
    account = small_account(memory)

    assert comparable(sort(rows, keys, account)) == comparable(sort(rows, keys, MemoryAccount()))

    assert account.spill is not None
    assert account.spill.written > memory, "it was not larger than its memory"
    assert account.spill.used == 0
    assert account.held == 0
    assert account.peak <= memory


@pytest.mark.parametrize("limit", [1, 5_000])
def test_the_first_rows_of_many(limit: int) -> None:
    rows = some_rows(20_000, 2, 5)
    account = small_account(100_000)

    found = sort(rows, KEYS["integer"], account, limit)

    assert comparable(found) == comparable(sort(rows, KEYS["integer"], MemoryAccount())[:limit])
    assert account.spill is not None
    assert (account.spill.written > 0) == (limit > 1)


def test_rows_of_one_value_keep_their_order() -> None:
    rows: Rows = [(1, str(number), 0.0, 0) for number in range(5_000)]
    assert sort(rows, KEYS["integer"], small_account(60_000)) == rows


def test_without_spilling_a_sort_fails_and_frees_everything() -> None:
    account = MemoryAccount(100_000)
    with pytest.raises(OutOfMemory, match="memory limit of 100000 bytes"):
        sort(some_rows(20_000, 1, 700), KEYS["all"], account)
    assert account.held == 0


def test_the_disk_is_bounded_too() -> None:
    account = small_account(100_000, spill_limit=200_000)
    with pytest.raises(OutOfMemory, match="spill limit of 200000 bytes"):
        sort(some_rows(20_000, 1, 700), KEYS["all"], account)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0


def window(rows: Rows, partition: int, account: MemoryAccount) -> Rows:
    operator = WindowOperator(
        Given(rows, TYPES, 300),
        types=TYPES,
        partition=[BoundKey(partition, TYPES[partition])],
        order=[BoundKey(3, TYPES[3])],
        calls=[
            BoundWindowCall("row_number", [], [], BIGINT, None, WHOLE),
            BoundWindowCall("rank", [], [], BIGINT, None, WHOLE),
            BoundWindowCall("count", [], [], BIGINT, None, WHOLE),
        ],
        memory=Reservation(account, "WindowRows"),
    )
    return drained(operator, [*TYPES, BIGINT, BIGINT, BIGINT])


@pytest.mark.parametrize("partition", [0, 1])
def test_windows_over_many_partitions(partition: int) -> None:
    rows = some_rows(50_000, 3, 400)
    account = small_account(1_500_000)

    found = window(rows, partition, account)

    assert comparable(found) == comparable(window(rows, partition, MemoryAccount()))
    assert account.spill is not None
    assert account.spill.written > 1_000_000
    assert account.spill.used == 0
    assert account.held == 0


def test_a_window_whose_rows_fit_but_not_the_work_on_them() -> None:
    rows: Rows = [(number % 4000, "", 0.0, number) for number in range(12_000)]
    account = small_account(2_000_000)

    found = window(rows, 0, account)

    assert comparable(found) == comparable(window(rows, 0, MemoryAccount()))
    assert account.spill is not None
    assert account.spill.written > 0
    assert account.held == 0


def test_one_partition_that_is_too_large_fails_clearly() -> None:
    rows: Rows = [(1, "x" * 20, 0.0, number) for number in range(20_000)]
    account = small_account(100_000)
    with pytest.raises(OutOfMemory, match="memory limit of 100000 bytes"):
        window(rows, 0, account)
    assert account.held == 0
