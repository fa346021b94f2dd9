"""Streaming aggregates against hash aggregates over the same rows, in whatever order they come."""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType, array, decimal
from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.group_states import BoundCall
from remuda.execution.operators.ordering import BoundKey
from remuda.execution.operators.streaming_aggregate import StreamingAggregateOperator
from remuda.plan.expression import AggregateCall, ArgumentOrder, Call, ColumnRef, Literal, SortKey
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    AggregatePhase,
    ExchangeKind,
    Fragment,
    HashAggregate,
    LimitRows,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    Site,
    SortRows,
    StreamingAggregate,
)

sys.path.insert(0, str(Path(__file__).parent))

from spilling import Given, drained

TOTAL = decimal(38, 0)
COLUMNS: list[tuple[str, SqlType]] = [
    ("a", INTEGER),
    ("s", VARCHAR),
    ("f", DOUBLE),
    ("d", decimal(30, 4)),
    ("v", BIGINT),
]


def ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)


def some_rows(seed: int, count: int, distinct: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    return [
        (
            chance.choice([None, *range(distinct)]),
            chance.choice([None, "", "a", "a longer one", "ä"]),
            chance.choice([None, 0.0, -0.0, float("nan"), float("-inf"), 1.5]),
            chance.choice([None, 0, -(10**25), 10**25, 7]),
            chance.choice([None, *range(5), 2**62]),
        )
        for _ in range(count)
    ]


@pytest.fixture(params=[(1, False), (3, True), (1000, False)], ids=["one", "waits", "whole"])
def run(request: Any, engine: Any, monkeypatch: Any) -> Any:
    batch_rows, waits = request.param
    if waits:
        engine.interrupt_scans(monkeypatch, 7)
    return lambda node, *tables, **more: engine.run(node, *tables, batch_rows=batch_rows, **more)


def calls_over(columns: tuple[OutputColumn, ...]) -> list[AggregateCall]:
    s, v = ref(columns[1]), ref(columns[4])
    small = Call(BOOLEAN, "<", (v, Literal(BIGINT, 3)))
    return [
        AggregateCall("count", None, BIGINT),
        AggregateCall("count", v, BIGINT),
        AggregateCall("sum", v, TOTAL),
        AggregateCall("sum", v, TOTAL, distinct=True),
        AggregateCall("count", s, BIGINT, filter=small),
        AggregateCall("count", s, BIGINT, distinct=True, filter=small),
        AggregateCall("min", s, VARCHAR),
        AggregateCall("max", v, BIGINT),
        AggregateCall(
            "string_agg",
            s,
            VARCHAR,
            more=(Literal(VARCHAR, "+"),),
            order=(ArgumentOrder(v, descending=True), ArgumentOrder(s)),
        ),
    ]


def order_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (2, 0)
    return (1, 0) if value != value else (0, value)


def plain(row: tuple[Any, ...]) -> str:
    """Zeros have one sign, NaN equals itself."""
    return repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row))


def both(
    engine: Any, rows: list[tuple[Any, ...]], places: list[int]
) -> tuple[Any, HashAggregate, HashAggregate]:
    """A table of ``rows``, sorted so that groups are together, and the same aggregate both ways."""
    rows = sorted(rows, key=lambda row: [order_key(row[place]) for place in places])
    table = engine.table(COLUMNS, rows)
    group = [table.columns[place] for place in places]
    calls = tuple(calls_over(table.columns))
    results = engine.columns(*((f"r{i}", call.type) for i, call in enumerate(calls)))
    parts = (
        (*group, *results),
        engine.traits,
        table.scan(),
        AggregatePhase.SINGLE,
        tuple(column.id for column in group),
        calls,
    )
    return table, HashAggregate(*parts), StreamingAggregate(*parts)


@pytest.mark.parametrize("places", [[0], [1], [2], [3], [0, 1], [2, 0, 3]], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_same_groups_as_by_hash(run: Any, engine: Any, places: list[int], seed: int) -> None:
    chance = random.Random(seed)
    rows = some_rows(seed, (0, 1, 60, 90)[seed], chance.choice([1, 3, 40]))
    table, hashed, streaming = both(engine, rows, places)
    found = run(streaming, table)
    assert Counter(map(plain, found)) == Counter(map(plain, run(hashed, table)))
    keys = [[order_key(value) for value in row[: len(places)]] for row in found]
    assert keys == sorted(keys)
    assert bool(found) == bool(rows)


def test_sorted_rows_of_any_order(run: Any, engine: Any) -> None:
    """NULLs first and last, up and down: groups keep the order of their rows."""
    table, _, streaming = both(engine, some_rows(7, 80, 9), [0, 1])
    a, s = table.columns[0], table.columns[1]
    scan = streaming.input
    for down, first in ((True, False), (False, True), (True, True)):
        keys = (SortKey(s.id, down, first), SortKey(a.id, not down, first))
        ordered = SortRows(scan.output, engine.traits, scan, keys)
        found = [row[:2] for row in run(replace(streaming, input=ordered), table)]
        assert len(found) == len(set(found)) > 20
        texts = [s for s, _ in groupby(found, key=lambda row: row[1])]
        assert (texts[0] is None) == first
        assert texts[first : len(texts) - (not first)] == sorted(
            (text for text in texts if text is not None), reverse=down
        )


def test_states_and_their_merge(engine: Any) -> None:
    """Partial and final phase on sorted rows of two members, states merged in between."""
    members = (1, 2)
    rows = sorted(some_rows(3, 90, 20), key=lambda row: order_key(row[0]))
    table = engine.table(COLUMNS, rows, members)
    a, v = table.columns[0], ref(table.columns[4])
    calls = (AggregateCall("count", None, BIGINT), AggregateCall("min", v, BIGINT))
    states, results = (engine.columns(("n", BIGINT), ("m", BIGINT)) for _ in range(2))
    ids = tuple((column.id,) for column in states)
    order = (SortKey(a.id),)
    partial = StreamingAggregate(
        (a, *states), engine.traits, table.scan(), AggregatePhase.PARTIAL, (a.id,), calls, ids
    )
    merged = Receive(partial.output, engine.traits, edge=0, sender_fragment=1, collation=order)
    final = StreamingAggregate(
        (a, *results), engine.traits, merged, AggregatePhase.FINAL, (a.id,), calls, ids
    )
    send = Send(partial.output, engine.traits, partial, 0, ExchangeKind.MERGE, 0)
    plan = PhysicalPlan(
        (
            Fragment(0, Root(final.output, engine.traits, final), Site.INITIATOR),
            Fragment(1, send, Site.DATA_MEMBERS),
        ),
        final.output, (), (),
    )  # fmt: skip
    expected = [
        (key, len(group), min((row[4] for row in group if row[4] is not None), default=None))
        for key, group in (
            (key, list(found)) for key, found in groupby(rows, key=lambda row: row[0])
        )
    ]
    for seed in range(5):
        grid = engine.Grid(plan, [table], members, seed=seed, batch_rows=seed + 1)
        assert grid.run() == expected


def test_a_limit_ends_the_input(engine: Any) -> None:
    """The first groups come out while most of the rows are still to be read."""
    table = engine.table(COLUMNS, [(k // 10, "x", 1.0, 1, k) for k in range(5000)])
    (count,) = engine.columns(("n", BIGINT))
    a = table.columns[0]
    streaming = StreamingAggregate(
        (a, count), engine.traits, table.scan(), AggregatePhase.SINGLE, (a.id,),
        (AggregateCall("count", None, BIGINT),),
    )  # fmt: skip
    limited = LimitRows(streaming.output, engine.traits, streaming, Literal(BIGINT, 2), None)
    grid = engine.Grid(engine.single(limited), [table], batch_rows=10)
    assert grid.run() == [(0, 10), (1, 10)]
    (profile,) = grid.members[1].profiles
    (scan,) = (each for each in profile.operators if each.operator == "TableScan")
    assert scan.rows < 100


def test_only_open_groups_are_held() -> None:
    """Ever so many groups need the memory of a few; one that is too large is told."""
    calls = [
        BoundCall("count", [], [], BIGINT),
        BoundCall("array_agg", [lambda batch: batch.column(1)], [VARCHAR], array(VARCHAR)),
    ]
    text = "x" * 100

    def counted(rows: list[tuple[Any, ...]], account: MemoryAccount) -> list[int]:
        given = Given(rows, (BIGINT, VARCHAR), 500)
        operator = StreamingAggregateOperator(
            given, [BoundKey(0, BIGINT)], calls, Reservation(account, "StreamingAggregate")
        )
        types = (BIGINT, BIGINT, array(VARCHAR))
        return [row[1] for row in drained(operator, types)]

    account = MemoryAccount(2_000_000)
    assert counted([(k // 3, text) for k in range(60_000)], account) == [3] * 20_000
    assert account.held == 0
    with pytest.raises(OutOfMemory):
        counted([(1, text)] * 60_000, account)
    assert account.held == 0
