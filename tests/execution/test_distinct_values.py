"""DISTINCT within groups beyond memory: the same results as with enough of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT, VARCHAR, array, decimal
from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.aggregate import HashAggregateOperator
from remuda.execution.operators.group_states import BoundCall
from remuda.execution.operators.partitioned_aggregate import PartitionedAggregateOperator

sys.path.insert(0, str(Path(__file__).parent))

from spilling import TYPES, Given, Rows, drained, small_account, some_rows

TOTAL = decimal(38, 4)


def call(function, place, result, **options):
    return BoundCall(
        function,
        [lambda batch: batch.column(place)],
        [TYPES[place]],
        result,
        distinct=True,
        **options,
    )


def aggregated(rows: Rows, group: list[int], account: MemoryAccount, calls=None) -> Rows:
    calls = calls or [
        BoundCall("count", [], [], BIGINT),
        call("count", 1, BIGINT),
        call("sum", 3, TOTAL),
        call("min", 0, BIGINT),
    ]
    types = [TYPES[place] for place in group]

    def make(source, overflow=None, first=True):
        return HashAggregateOperator(
            source,
            group,
            types,
            calls,
            always_one=True,
            flushes=False,
            memory=Reservation(account, "HashAggregate"),
            overflow=overflow,
        )

    given = Given(rows, TYPES, 700)
    memory = Reservation(account, "HashAggregate")
    operator = (
        PartitionedAggregateOperator(given, make, types=TYPES, group=group, memory=memory)
        if group and account.spill is not None
        else make(given)
    )
    found = drained(operator, [*types, *(call.result for call in calls)])
    assert account.held == 0
    assert given.closed == 1
    return found


def with_group(rows: Rows, groups: int) -> Rows:
    """The first column becomes one of a few groups."""
    return [(number % groups, *row[1:]) for number, row in enumerate(rows)]


@pytest.mark.parametrize("group", [[], [0]], ids=["all rows", "few groups"])
@pytest.mark.parametrize("memory", [750_000, 3_000_000])
def test_values_of_many_times_the_memory(group, memory):
    rows = with_group(some_rows(30_000, 5, 15_000), 7)
    account = small_account(memory)
    found = aggregated(rows, group, account)
    assert sorted(map(repr, found)) == sorted(map(repr, aggregated(rows, group, MemoryAccount())))
    assert account.spill is not None
    assert account.spill.written > 0
    assert account.spill.used == 0


def test_many_groups_with_many_values():
    rows = [
        (row[0] if row[0] is None else row[0] % 4500, *row[1:])
        for row in some_rows(30_000, 6, 15_000)
    ]
    account = small_account(2_500_000)
    found = aggregated(rows, [0], account)
    assert sorted(map(repr, found)) == sorted(map(repr, aggregated(rows, [0], MemoryAccount())))
    assert account.spill is not None
    assert account.spill.used == 0


def test_collected_values_keep_nulls():
    rows = [(n % 3, f"word {n % 5000}" if n % 50 else None, 0.0, None) for n in range(40_000)]
    calls = [call("array_agg", 1, array(VARCHAR))]
    account = small_account(4_000_000)
    found = aggregated(rows, [0], account, calls)

    def comparable(rows: Rows) -> list[object]:
        return sorted((key, sorted(map(repr, values))) for key, values in rows)

    assert comparable(found) == comparable(aggregated(rows, [0], MemoryAccount(), calls))
    assert account.spill is not None
    assert account.spill.written > 0


def test_without_spilling_the_operator_and_the_setting_are_named():
    with pytest.raises(OutOfMemory, match="1000000 bytes") as caught:
        aggregated(with_group(some_rows(60_000, 5, 30_000), 7), [0], MemoryAccount(1_000_000))
    assert "HashAggregate" in caught.value.detail
    assert "spill_limit" in caught.value.detail


def test_a_full_disk_frees_everything():
    account = small_account(1_500_000, spill_limit=100_000)
    with pytest.raises(OutOfMemory, match="spill limit"):
        aggregated(with_group(some_rows(60_000, 5, 30_000), 7), [0], account)
    assert account.held == 0
    assert account.spill is not None
    assert account.spill.used == 0
