"""Aggregates with more groups than their memory holds: the same groups as in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT, decimal
from remuda.errors import OutOfMemory
from remuda.execution.contract import Operator
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.aggregate import HashAggregateOperator
from remuda.execution.operators.group_states import BoundCall
from remuda.execution.operators.partitioned_aggregate import Overflow, PartitionedAggregateOperator

sys.path.insert(0, str(Path(__file__).parent))

from spilling import TYPES, Given, Rows, drained, small_account, some_rows


def grouped(
    rows: Rows, group: list[int], account: MemoryAccount, always: tuple[Rows, ...] | Rows = ()
) -> tuple[Rows, Given]:
    """Per group: count(*), sum of column 3, min of column 1, count of distinct values of 0."""
    types = [TYPES[place] for place in group]
    total = decimal(38, 4)
    calls = [
        BoundCall("count", [], [], BIGINT),
        BoundCall("sum", [lambda batch: batch.column(3)], [TYPES[3]], total),
        BoundCall("min", [lambda batch: batch.column(1)], [TYPES[1]], TYPES[1]),
        BoundCall("count", [lambda batch: batch.column(0)], [TYPES[0]], BIGINT, distinct=True),
    ]

    def make(source: Operator, overflow: Overflow | None, first: bool) -> HashAggregateOperator:
        return HashAggregateOperator(
            source,
            group,
            types,
            calls,
            always_one=True,
            flushes=False,
            always=always if first else (),
            memory=Reservation(account, "HashAggregate"),
            overflow=overflow,
        )

    given = Given(rows, TYPES, 700)
    operator = PartitionedAggregateOperator(
        given, make, types=TYPES, group=group, memory=Reservation(account, "HashAggregate")
    )
    return drained(operator, [*types, BIGINT, total, TYPES[1], BIGINT]), given


def ordered(rows: Rows) -> list[str]:
    return sorted(repr(row) for row in rows)


@pytest.mark.parametrize("group", [[0], [1], [0, 1], [1, 2, 3]], ids=str)
def test_more_groups_than_memory(group: list[int]) -> None:
    rows = some_rows(30_000, 5, 9_000)
    account = small_account(4_000_000)

    found, given = grouped(rows, group, account)

    assert ordered(found) == ordered(grouped(rows, group, MemoryAccount())[0])
    assert account.spill is not None
    assert account.spill.written > 0
    assert account.spill.used == 0
    assert account.held == 0
    assert given.closed == 1


def test_groups_without_rows_come_out_once() -> None:
    rows = some_rows(30_000, 5, 9_000)
    always: Rows = [(None,), (10**9,), (rows[-1][0],)]
    account = small_account(4_000_000)

    found, _ = grouped(rows, [0], account, always)

    assert ordered(found) == ordered(grouped(rows, [0], MemoryAccount(), always)[0])
    assert account.spill is not None
    assert account.spill.written > 0


def test_without_spilling_it_fails_and_frees_everything() -> None:
    account = MemoryAccount(1_000_000)
    with pytest.raises(OutOfMemory, match="memory limit of 1000000 bytes"):
        grouped(some_rows(30_000, 5, 9_000), [0, 1], account)
    assert account.held == 0


def test_a_failure_in_a_file_frees_everything() -> None:
    account = small_account(4_000_000, spill_limit=100_000)
    with pytest.raises(OutOfMemory, match="spill limit"):
        grouped(some_rows(30_000, 5, 9_000), [0, 1], account)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0
