"""Operators one by one against what SQL says, with batches of any size and inputs that wait."""

from __future__ import annotations

import itertools
import random

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, decimal
from remuda.errors import NumericOverflow, OutOfMemory
from remuda.plan.expression import AggregateCall, Call, ColumnRef, Literal, SortKey
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import (
    AggregatePhase,
    FilterRows,
    HashAggregate,
    HashJoin,
    KeyLookup,
    LimitRows,
    NestedLoopJoin,
    ProjectRows,
    SortRows,
    UnionRows,
    ValuesScan,
)


def ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)


def number(value: int) -> Literal:
    return Literal(INTEGER, value)


def by_nulls(row: tuple) -> tuple:
    return tuple((value is None, str(value)) for value in row)


@pytest.fixture(params=[(1, False), (3, True), (1000, False)], ids=["one", "waits", "whole"])
def run(request, engine, monkeypatch):
    batch_rows, waits = request.param
    if waits:
        engine.interrupt_scans(monkeypatch, 7)
    return lambda node, *tables, **more: engine.run(node, *tables, batch_rows=batch_rows, **more)


@pytest.fixture
def numbers(engine):
    return engine.table(
        [("a", INTEGER), ("b", BIGINT), ("s", VARCHAR)],
        [(1, 10, "x"), (2, 20, None), (None, 30, "longer text"), (2, None, "x"), (5, 50, "")],
    )


def test_scan_filters_and_projects(run, numbers):
    a = numbers.columns[0]
    node = numbers.scan(Call(BOOLEAN, ">", (ref(a), number(1))), output=[2, 1])
    assert run(node, numbers) == [(None, 20), ("x", None), ("", 50)]


def test_scan_waits_for_prepared_transactions(engine, numbers):
    grid = engine.Grid(engine.single(numbers.scan()), [numbers])
    grid.members[1].sources.prepared = 3
    assert len(grid.run()) == 5


def test_filter_project_limit(run, engine, numbers):
    _a, b, s = numbers.columns
    kept = FilterRows(
        numbers.columns, engine.traits, numbers.scan(), Call(BOOLEAN, "is_not_null", (ref(b),))
    )
    (total,) = engine.columns(("t", BIGINT))
    made = ProjectRows(
        (s, total), engine.traits, kept, (ref(s), Call(BIGINT, "+", (ref(b), Literal(BIGINT, 1))))
    )
    node = LimitRows(made.output, engine.traits, made, number(2), number(1))
    assert run(node, numbers) == [(None, 21), ("longer text", 31)]
    none = LimitRows(made.output, engine.traits, made, number(0), None)
    assert run(none, numbers) == []


def test_values_and_union(run, engine):
    output = engine.columns(("a", INTEGER), ("d", decimal(30, 2)))
    values = ValuesScan(output, engine.traits, ((1, 10**25), (None, None)))
    union = UnionRows(output, engine.traits, (values, ValuesScan(output, engine.traits, ((2, 5),))))
    assert sorted(run(union), key=by_nulls) == [(1, 10**25), (2, 5), (None, None)]


def test_key_lookup(run, engine, numbers):
    a, b, s = numbers.columns
    node = KeyLookup(
        (b, s), engine.traits, "t", numbers.id, 1, "t", (1, 2),
        keys=((number(5),), (number(1),), (number(5),), (number(99),), (Literal(INTEGER, None),)),
        filter=Call(BOOLEAN, ">", (ref(a), number(1))), filter_columns=((a.id, 0),),
    )  # fmt: skip
    assert run(node, numbers) == [(50, "")]


# --- joins -----------------------------------------------------------------------------------

KINDS = [kind for kind in JoinKind if kind is not JoinKind.MARK]  # see test_mark_joins


def expected_join(kind, left, right, matches):
    """The definition: a nested loop."""
    result, right_seen = [], set()
    for row in left:
        found = [place for place, other in enumerate(right) if matches(row, other)]
        right_seen.update(found)
        if kind is JoinKind.SEMI:
            result += [row] if found else []
        elif kind is JoinKind.ANTI:
            result += [] if found else [row]
        else:
            result += [row + right[place] for place in found]
            if not found and kind in (JoinKind.LEFT, JoinKind.FULL):
                result.append(row + (None,) * len(right[0] if right else (0, 0, 0)))
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        result += [
            (None,) * 3 + other for place, other in enumerate(right) if place not in right_seen
        ]
    return sorted(result, key=by_nulls)


def join_tables(engine, seed, text, size=40):
    chance = random.Random(seed)
    specs = [("k", VARCHAR if text else INTEGER), ("j", BIGINT), ("v", INTEGER)]

    def rows(count):
        for _ in range(count):
            key = chance.choice([None, *range(6)])
            if text and key is not None:
                key = "key" * key  # short and long ones
            yield (key, chance.choice([None, 10**15, 2, 3]), chance.randrange(10))

    return engine.table(specs, list(rows(size))), engine.table(specs, list(rows(size // 2)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("with_residual", [False, True])
def test_hash_join(run, engine, kind, text, keys, with_residual):
    left, right = join_tables(engine, f"{kind}{text}{keys}", text)
    residual = None
    if with_residual:
        residual = Call(BOOLEAN, "<", (ref(left.columns[2]), ref(right.columns[2])))
    alone = kind in (JoinKind.SEMI, JoinKind.ANTI)
    node = HashJoin(
        left.columns if alone else left.columns + right.columns,
        engine.traits, kind, left.scan(), right.scan(),
        tuple(c.id for c in left.columns[:keys]), tuple(c.id for c in right.columns[:keys]),
        residual,
    )  # fmt: skip

    def matches(row, other):
        same = all(a is not None and a == b for a, b in zip(row[:keys], other[:keys], strict=True))
        return same and (not with_residual or row[2] < other[2])

    want = expected_join(kind, left.rows[1], right.rows[1], matches)
    assert sorted(run(node, left, right), key=by_nulls) == want


@pytest.mark.parametrize("kind", KINDS)
def test_hash_join_with_unique_and_empty_sides(run, engine, kind):
    specs = [("k", INTEGER), ("j", BIGINT), ("v", INTEGER)]
    some = [(None, 1, 1), (1, 2, 3), (7, 8, 9)]
    for left_rows, right_rows in [(some, []), ([], some), (some, some), ([], [])]:
        left, right = engine.table(specs, left_rows), engine.table(specs, right_rows)
        alone = kind in (JoinKind.SEMI, JoinKind.ANTI)
        node = HashJoin(
            left.columns if alone else left.columns + right.columns,
            engine.traits, kind, left.scan(), right.scan(),
            (left.columns[0].id,), (right.columns[0].id,), None,
        )  # fmt: skip
        want = expected_join(
            kind, left_rows, right_rows, lambda a, b: a[0] is not None and a[0] == b[0]
        )
        assert sorted(run(node, left, right), key=by_nulls) == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", [True, False])
def test_nested_loop_join(run, engine, kind, condition):
    left, right = join_tables(engine, 3, text=False, size=14)
    alone = kind in (JoinKind.SEMI, JoinKind.ANTI)
    node = NestedLoopJoin(
        left.columns if alone else left.columns + right.columns,
        engine.traits, kind, left.scan(), right.scan(),
        Call(BOOLEAN, "<", (ref(left.columns[0]), ref(right.columns[0]))) if condition else None,
    )  # fmt: skip

    def matches(row, other):
        return not condition or (None not in (row[0], other[0]) and row[0] < other[0])

    want = expected_join(kind, left.rows[1], right.rows[1], matches)
    assert sorted(run(node, left, right), key=by_nulls) == want


def test_large_join_output_is_cut_into_batches(engine):
    specs = [("k", INTEGER), ("v", INTEGER)]
    left = engine.table(specs, [(1, i) for i in range(300)])
    right = engine.table(specs, [(1, i) for i in range(700)])
    node = HashJoin(
        (left.columns[1], right.columns[1]), engine.traits, JoinKind.INNER, left.scan(),
        right.scan(), (left.columns[0].id,), (right.columns[0].id,), None,
    )  # fmt: skip
    grid = engine.Grid(engine.single(node), [left, right], page_rows=100_000)
    rows = grid.run()
    assert sorted(rows) == list(itertools.product(range(300), range(700)))
    assert max(page.num_rows for page in grid.pages) <= 65536


# --- aggregates ------------------------------------------------------------------------------


def aggregate(engine, source, group, calls, phase=AggregatePhase.SINGLE):
    results = engine.columns(*((f"r{i}", call.type) for i, call in enumerate(calls)))
    return HashAggregate(
        (*group, *results), engine.traits, source, phase, tuple(c.id for c in group), tuple(calls)
    )


def test_aggregate_groups_with_null(run, engine, numbers):
    a, b, s = numbers.columns
    calls = [
        AggregateCall("count", None, BIGINT),
        AggregateCall("count", ref(b), BIGINT),
        AggregateCall("sum", ref(b), decimal(38, 0)),
        AggregateCall("min", ref(s), VARCHAR),
        AggregateCall("max", ref(b), BIGINT),
    ]
    node = aggregate(engine, numbers.scan(), (a,), calls)
    assert sorted(run(node, numbers), key=by_nulls) == sorted(
        [(1, 1, 1, 10, "x", 10), (2, 2, 1, 20, "x", 20), (None, 1, 1, 30, "longer text", 30),
         (5, 1, 1, 50, "", 50)], key=by_nulls,
    )  # fmt: skip


def test_aggregate_by_two_columns(run, engine, numbers):
    a, _b, s = numbers.columns
    node = aggregate(engine, numbers.scan(), (s, a), [AggregateCall("count", None, BIGINT)])
    assert sorted(run(node, numbers), key=by_nulls) == sorted(
        [("x", 1, 1), (None, 2, 1), ("longer text", None, 1), ("x", 2, 1), ("", 5, 1)],
        key=by_nulls,
    )


def test_global_aggregate_over_nothing_is_one_row(run, engine, numbers):
    a, b, s = numbers.columns
    never = FilterRows(
        numbers.columns, engine.traits, numbers.scan(), Call(BOOLEAN, "<", (ref(a), number(0)))
    )
    calls = [
        AggregateCall("count", None, BIGINT),
        AggregateCall("sum", ref(b), decimal(38, 0)),
        AggregateCall("min", ref(s), VARCHAR),
        AggregateCall("max", ref(a), INTEGER),
    ]
    assert run(aggregate(engine, never, (), calls), numbers) == [(0, None, None, None)]
    assert run(aggregate(engine, never, (a,), calls), numbers) == []


def test_distinct_and_filter(run, engine, numbers):
    a, _b, s = numbers.columns
    calls = [
        AggregateCall("count", ref(a), BIGINT, distinct=True),
        AggregateCall("sum", ref(a), BIGINT, distinct=True),
        AggregateCall(
            "count", None, BIGINT, filter=Call(BOOLEAN, "=", (ref(s), Literal(VARCHAR, "x")))
        ),
    ]
    assert run(aggregate(engine, numbers.scan(), (), calls), numbers) == [(3, 8, 2)]
    assert sorted(
        run(aggregate(engine, numbers.scan(), (s,), calls), numbers), key=by_nulls
    ) == sorted(
        [("x", 2, 3, 2), (None, 1, 2, 0), ("longer text", 0, None, 0), ("", 1, 5, 0)], key=by_nulls
    )


def test_sums_beyond_64_bits_are_exact(run, engine):
    top = 2**63 - 1
    data = engine.table(
        [("g", INTEGER), ("v", BIGINT), ("d", decimal(38, 0))],
        [(1, top, 10**37), (1, top, 10**37), (2, -top, -(10**37)), (2, -5, 7)],
    )
    g, v, d = data.columns
    calls = [
        AggregateCall("sum", ref(v), decimal(38, 0)),
        AggregateCall("sum", ref(d), decimal(38, 0)),
    ]
    assert sorted(run(aggregate(engine, data.scan(), (g,), calls), data)) == [
        (1, 2 * top, 2 * 10**37), (2, -top - 5, -(10**37) + 7)]  # fmt: skip
    assert run(aggregate(engine, data.scan(), (), calls), data) == [(top - 5, 10**37 + 7)]


def test_sum_overflow_is_an_error(run, engine):
    data = engine.table([("d", decimal(38, 0))], [(9 * 10**37,), (9 * 10**37,)])
    node = aggregate(
        engine, data.scan(), (), [AggregateCall("sum", ref(data.columns[0]), decimal(38, 0))]
    )
    with pytest.raises(NumericOverflow):
        run(node, data)


def test_float_groups_and_extremes(run, engine):
    nan = float("nan")
    data = engine.table(
        [("f", DOUBLE), ("v", DOUBLE)],
        [(0.0, 1.0), (-0.0, nan), (nan, 2.0), (nan, 3.0), (None, None)],
    )
    f, v = data.columns
    calls = [
        AggregateCall("count", None, BIGINT),
        AggregateCall("min", ref(v), DOUBLE),
        AggregateCall("max", ref(v), DOUBLE),
    ]
    rows = run(aggregate(engine, data.scan(), (f,), calls), data)
    assert sorted(map(str, rows)) == sorted(
        map(str, [(0.0, 2, 1.0, nan), (nan, 2, 2.0, 3.0), (None, 1, None, None)])
    )


# --- sorts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 100])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_sort(run, engine, limit, descending, nulls_first):
    nan = float("nan")
    rows = [
        (None, "b", 1),
        (1.5, None, 2),
        (nan, "a", 3),
        (-2.0, "a", 4),
        (1.5, "zz", 5),
        (None, "a", 6),
        (float("inf"), "é", 7),
    ]
    data = engine.table([("f", DOUBLE), ("s", VARCHAR), ("i", INTEGER)], rows)
    f, s, _i = data.columns
    keys = (SortKey(f.id, descending, nulls_first), SortKey(s.id, not descending, nulls_first))

    def place(value, down, order):
        if value is None:
            return (0 if nulls_first else 2, 0)
        code = order(value)
        return (1, -code if down else code)

    floats = sorted({r[0] for r in rows if r[0] is not None and r[0] == r[0]})
    texts = sorted({r[1] for r in rows if r[1] is not None})
    want = sorted(rows, key=lambda r: (
        place(r[0], descending, lambda x: 99 if x != x else floats.index(x)),
        place(r[1], not descending, texts.index)))  # fmt: skip
    node = SortRows(
        data.columns, engine.traits, data.scan(), keys, None if limit is None else number(limit)
    )
    assert str(run(node, data)) == str(want[:limit])


def test_top_n_of_many(engine):
    rows = [((i * 7919) % 10007, i) for i in range(9000)]
    data = engine.table([("d", DATE), ("i", INTEGER)], rows)
    d, _i = data.columns
    node = SortRows(data.columns, engine.traits, data.scan(), (SortKey(d.id),), number(50))
    assert engine.run(node, data, batch_rows=512) == sorted(rows)[:50]


def test_memory_limit_is_a_clear_error(engine):
    data = engine.table([("d", BIGINT)], [(i,) for i in range(1000)])
    node = SortRows(data.columns, engine.traits, data.scan(), (SortKey(data.columns[0].id),))
    with pytest.raises(OutOfMemory, match="memory limit of 500 bytes"):
        engine.run(node, data, memory_limit=500)
