"""The window operator against a direct reading of the standard, frame by frame."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes.sql import BIGINT, DOUBLE, INTEGER, VARCHAR, decimal
from remuda.errors import (
    InvalidFrameOffset,
    InvalidNthValueArgument,
    InvalidNtileArgument,
    NumericOverflow,
    OutOfMemory,
)
from remuda.execution.operators import window_aggregates
from remuda.execution.operators.window_aggregates import Frames, fold
from remuda.execution.operators.window_frames import segments
from remuda.plan.expression import ColumnRef, Literal, Parameter, SortKey
from remuda.plan.physical import WindowRows
from remuda.plan.windows import BoundKind, Frame, FrameBound, FrameUnit, WindowCall

WHOLE = Frame(
    FrameUnit.ROWS,
    FrameBound(BoundKind.UNBOUNDED_PRECEDING),
    FrameBound(BoundKind.UNBOUNDED_FOLLOWING),
)


def ref(column):
    return ColumnRef(column.type, column.id, column.name)


def rows_frame(before, after):
    return Frame(
        FrameUnit.ROWS,
        FrameBound(BoundKind.PRECEDING, Literal(BIGINT, before)),
        FrameBound(BoundKind.FOLLOWING, Literal(BIGINT, after)),
    )


@pytest.fixture(params=[(1, False), (3, True), (1000, False)], ids=["one", "waits", "whole"])
def run(request, engine, monkeypatch):
    batch_rows, waits = request.param
    if waits:
        engine.interrupt_scans(monkeypatch, 7)
    return lambda node, *tables, **more: engine.run(node, *tables, batch_rows=batch_rows, **more)


def window(engine, source, partition, order, *calls):
    results = engine.columns(*((call.function, call.type) for call in calls))
    return WindowRows(
        (*source.output, *results),
        engine.traits,
        input=source,
        partition=tuple(column.id for column in partition),
        order=tuple(SortKey(column.id) for column in order),
        calls=calls,
    )


@pytest.mark.parametrize("seed", range(4))
def test_sliding_frames(run, engine, seed):
    chance = random.Random(seed)
    data = [
        (
            chance.choice(["a", "b", None]),
            i,
            None if chance.random() < 0.2 else chance.randrange(-50, 50),
        )
        for i in range(60)
    ]
    chance.shuffle(data)
    table = engine.table([("g", VARCHAR), ("i", INTEGER), ("v", INTEGER)], data)
    group, number, value = table.columns
    before, after = chance.randrange(0, 5), chance.randrange(0, 5)
    frame = rows_frame(before, after)
    calls = [
        WindowCall("sum", (ref(value),), BIGINT, frame),
        WindowCall("count", (ref(value),), BIGINT, frame),
        WindowCall("min", (ref(value),), INTEGER, frame),
        WindowCall("max", (ref(value),), INTEGER, frame),
        WindowCall("first_value", (ref(value),), INTEGER, frame),
        WindowCall("row_number", (), BIGINT),
    ]
    found = run(window(engine, table.scan(), [group], [number], *calls), table)
    expected = []
    for row in data:
        partition = sorted((r for r in data if r[0] == row[0]), key=lambda r: r[1])
        at = partition.index(row)
        inside = partition[max(0, at - before) : at + after + 1]
        known = [r[2] for r in inside if r[2] is not None]
        expected.append(
            (
                *row,
                sum(known) if known else None,
                len(known),
                min(known, default=None),
                max(known, default=None),
                inside[0][2],
                at + 1,
            )
        )
    assert sorted(found, key=lambda r: r[1]) == sorted(expected, key=lambda r: r[1])


@pytest.mark.parametrize("seed", range(6))
def test_each_way_to_fold_gives_the_same(seed, monkeypatch):
    chance = np.random.default_rng(seed)
    rows = int(chance.integers(1, 200))
    keys = np.sort(chance.integers(0, 1 + rows // 10, rows))
    found = segments(rows, [keys], [chance.integers(0, 3, rows)])
    ends = found.end if seed % 2 else np.minimum(found.end, np.arange(rows) + 2)
    frames = Frames(found, found.first, ends)
    data = chance.integers(-100, 100, rows)
    direct = [data[a:b].min() for a, b in zip(frames.start, frames.end, strict=True)]
    most = np.iinfo(np.int64).max
    for limit in (0, 10**9):
        monkeypatch.setattr(window_aggregates, "_RUNNING_ROWS", limit)
        assert fold(np.minimum, data, most, frames).tolist() == direct


def test_frames_one_by_one_give_the_same(run, engine, monkeypatch):
    chance = random.Random(5)
    data = [
        (i % 3, None if chance.random() < 0.3 else str(chance.randrange(30))) for i in range(40)
    ]
    table = engine.table([("g", INTEGER), ("s", VARCHAR)], data)
    group, text = table.columns
    call = WindowCall("min", (ref(text),), VARCHAR, rows_frame(2, 1))
    node = window(engine, table.scan(), [group], [text], call)
    fast = run(node, table)
    monkeypatch.setattr(window_aggregates, "_PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(
        window_aggregates,
        "_extreme",
        lambda given, _smallest: window_aggregates.frame_by_frame("min", given, VARCHAR),
    )
    assert run(node, table) == fast


def test_sums_beyond_64_bits_are_exact(run, engine):
    big = 2**63 - 1
    table = engine.table([("i", INTEGER), ("v", BIGINT)], [(i, big) for i in range(5)])
    number, value = table.columns
    call = WindowCall("sum", (ref(value),), decimal(38, 0), rows_frame(2, 0))
    rows = run(window(engine, table.scan(), [], [number], call), table)
    assert [row[2] for row in rows] == [big, 2 * big, 3 * big, 3 * big, 3 * big]


def test_negative_sums_beyond_64_bits(run, engine):
    table = engine.table(
        [("i", INTEGER), ("v", BIGINT)], [(0, -(2**63)), (1, -(2**63)), (2, 5), (3, 2**63 - 1)]
    )
    number, value = table.columns
    call = WindowCall("sum", (ref(value),), decimal(38, 0), rows_frame(1, 0))
    rows = run(window(engine, table.scan(), [], [number], call), table)
    assert [row[2] for row in rows] == [-(2**63), -(2**64), 5 - 2**63, 2**63 + 4]


def test_long_decimals(run, engine):
    wide = 10**30
    table = engine.table([("i", INTEGER), ("v", decimal(38, 2))], [(i, i * wide) for i in range(4)])
    number, value = table.columns
    calls = [
        WindowCall("sum", (ref(value),), decimal(38, 2), WHOLE),
        WindowCall("max", (ref(value),), decimal(38, 2), rows_frame(1, 0)),
        WindowCall(
            "lag",
            (ref(value), Literal(INTEGER, 2), Literal(decimal(38, 2), 7)),
            decimal(38, 2),
        ),
    ]
    rows = run(window(engine, table.scan(), [], [number], *calls), table)
    assert [row[2] for row in rows] == [6 * wide] * 4
    assert [row[3] for row in rows] == [0, wide, 2 * wide, 3 * wide]
    assert [row[4] for row in rows] == [7, 7, 0, wide]


def test_sum_overflow_is_an_error(run, engine):
    most = 10**38 - 1
    table = engine.table([("i", INTEGER), ("v", decimal(38, 0))], [(1, most), (2, most)])
    number, value = table.columns
    call = WindowCall("sum", (ref(value),), decimal(38, 0))
    with pytest.raises(NumericOverflow):
        run(window(engine, table.scan(), [], [number], call), table)


def test_floating_sums_are_not_spoilt_by_rows_outside_the_frame(run, engine):
    data = [(0, 1e300), (1, float("inf")), (2, float("nan")), (3, 0.25), (4, 0.5), (5, None)]
    table = engine.table([("i", INTEGER), ("v", DOUBLE)], data)
    number, value = table.columns
    calls = [
        WindowCall("sum", (ref(value),), DOUBLE, rows_frame(1, 0)),
        WindowCall("max", (ref(value),), DOUBLE, rows_frame(1, 0)),
    ]
    rows = run(window(engine, table.scan(), [], [number], *calls), table)
    assert [row[2] for row in rows[3:]][1:] == [0.75, 0.5]
    assert np.isnan(rows[3][2])
    assert np.isnan(rows[3][3]), "NaN is the largest"
    assert [row[3] for row in rows[4:]] == [0.5, 0.5]


def test_empty_input_and_no_columns(run, engine):
    table = engine.table([("i", INTEGER)], [])
    (number,) = table.columns
    call = WindowCall("row_number", (), BIGINT)
    assert run(window(engine, table.scan(), [], [number], call), table) == []
    some = engine.table([("i", INTEGER)], [(7,), (8,)])
    node = window(engine, some.scan(output=[]), [], [], call)
    assert run(node, some) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("function", "error"),
    [("ntile", InvalidNtileArgument), ("nth_value", InvalidNthValueArgument)],
)
def test_wrong_arguments(run, engine, function, error):
    table = engine.table([("i", INTEGER)], [(1,), (2,)])
    (number,) = table.columns
    arguments = (Literal(INTEGER, 0),) if function == "ntile" else (ref(number), ref(number))
    if function == "nth_value":
        arguments = (ref(number), Literal(INTEGER, -1))
    with pytest.raises(error, match="must be greater than zero"):
        run(
            window(engine, table.scan(), [], [number], WindowCall(function, arguments, INTEGER)),
            table,
        )


@pytest.mark.parametrize(("value", "what"), [(-1, "negative"), (None, "null")])
def test_wrong_offsets_of_parameters(run, engine, value, what):
    table = engine.table([("i", INTEGER)], [(1,)])
    (number,) = table.columns
    frame = Frame(
        FrameUnit.ROWS,
        FrameBound(BoundKind.PRECEDING, Parameter(BIGINT, 0)),
        FrameBound(BoundKind.CURRENT_ROW),
    )
    call = WindowCall("count", (), BIGINT, frame)
    with pytest.raises(InvalidFrameOffset, match=f"starting offset must not be {what}"):
        run(window(engine, table.scan(), [], [number], call), table, parameters=(value,))


def test_memory_is_counted(engine):
    table = engine.table([("i", INTEGER)], [(i,) for i in range(5000)])
    (number,) = table.columns
    node = window(engine, table.scan(), [], [number], WindowCall("row_number", (), BIGINT))
    with pytest.raises(OutOfMemory, match="WindowRows"):
        engine.run(node, table, memory_limit=200_000)


def test_results_have_the_declared_types(engine):
    table = engine.table([("i", INTEGER), ("f", DOUBLE)], [(1, 0.5), (2, None)])
    number, value = table.columns
    calls = [
        WindowCall("rank", (), BIGINT),
        WindowCall("ntile", (Literal(INTEGER, 2),), INTEGER),
        WindowCall("cume_dist", (), DOUBLE),
        WindowCall("sum", (ref(value),), DOUBLE),
    ]
    grid = engine.Grid(engine.single(window(engine, table.scan(), [], [number], *calls)), [table])
    assert grid.run() == [(1, 0.5, 1, 1, 0.5, 0.5), (2, None, 2, 2, 1.0, 0.5)]
    types = grid.pages[0].schema.types[2:]
    assert types == [pa.int64(), pa.int32(), pa.float64(), pa.float64()]
