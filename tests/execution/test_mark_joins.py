"""MARK joins against their definition: three-valued OR over the pairs; and the single-row check."""

from __future__ import annotations

import random

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, VARCHAR
from remuda.errors import CardinalityViolation
from remuda.plan.expression import Call, ColumnRef
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import HashJoin, NestedLoopJoin, ProjectRows


def ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)


def by_nulls(row: tuple) -> tuple:
    return tuple((value is None, str(value)) for value in row)


@pytest.fixture(params=[(1, False), (3, True), (1000, False)], ids=["one", "waits", "whole"])
def run(request, engine, monkeypatch):
    batch_rows, waits = request.param
    if waits:
        engine.interrupt_scans(monkeypatch, 7)
    return lambda node, *tables: sorted(
        engine.run(node, *tables, batch_rows=batch_rows), key=by_nulls
    )


def any_of(values):
    values = list(values)
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def equal(a, b):
    return None if a is None or b is None else a == b


def less(a, b):
    return None if a is None or b is None else a < b


def tables(engine, seed, nulls=True, right_rows=12):
    chance = random.Random(seed)
    specs = [("k", INTEGER), ("s", VARCHAR), ("v", INTEGER)]
    missing = [None] if nulls else []

    def rows(count):
        return [
            (
                chance.choice([*missing, *range(5)]),
                chance.choice([*missing, "a", "longer text"]),
                chance.choice([*missing, *range(9)]),
            )
            for _ in range(count)
        ]

    return engine.table(specs, rows(30)), engine.table(specs, rows(right_rows))


def marked(engine, left):
    (mark,) = engine.columns(("mark", BOOLEAN))
    return (*left.columns, mark)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("residual", [False, True])
def test_a_key_that_is_never_null_for_a_match(run, engine, seed, residual):
    left, right = tables(engine, seed)
    test = Call(BOOLEAN, "<", (ref(left.columns[2]), ref(right.columns[2]))) if residual else None
    node = HashJoin(
        marked(engine, left), engine.traits, JoinKind.MARK, left.scan(), right.scan(),
        (left.columns[0].id,), (right.columns[0].id,), test,
    )  # fmt: skip

    def mark(row):
        found = [other for other in right.rows[1] if equal(row[0], other[0])]
        return any_of(less(row[2], other[2]) if residual else True for other in found)

    want = sorted([(*row, mark(row)) for row in left.rows[1]], key=by_nulls)
    assert run(node, left, right) == want
    if residual:
        assert {row[3] for row in want} == {True, False, None}


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize(("nulls", "right_rows"), [(True, 12), (True, 2), (False, 3), (True, 0)])
def test_in_with_nulls_on_both_sides(run, engine, column, nulls, right_rows):
    left, _ = tables(engine, 1)
    _, right = tables(engine, 5, nulls, right_rows)
    node = HashJoin(
        marked(engine, left), engine.traits, JoinKind.MARK, left.scan(), right.scan(),
        (left.columns[column].id,), (right.columns[column].id,), None, null_aware=True,
    )  # fmt: skip
    want = [
        (*row, any_of(equal(row[column], other[column]) for other in right.rows[1]))
        for row in left.rows[1]
    ]
    assert run(node, left, right) == sorted(want, key=by_nulls)


@pytest.mark.parametrize("right_rows", [0, 1, 12])
def test_nested_loops(run, engine, right_rows):
    left, right = tables(engine, 7, right_rows=right_rows)
    test = Call(BOOLEAN, "<", (ref(left.columns[0]), ref(right.columns[0])))
    for condition in (test, None):
        node = NestedLoopJoin(
            marked(engine, left), engine.traits, JoinKind.MARK, left.scan(), right.scan(), condition
        )
        want = [
            (
                *row,
                any_of(
                    True if condition is None else less(row[0], other[0]) for other in right.rows[1]
                ),
            )
            for row in left.rows[1]
        ]
        assert run(node, left, right) == sorted(want, key=by_nulls)


def test_only_needed_columns_and_the_mark(run, engine):
    left, right = tables(engine, 3)
    *_, mark = marked(engine, left)
    node = HashJoin(
        (left.columns[2], mark), engine.traits, JoinKind.MARK, left.scan(), right.scan(),
        (left.columns[0].id,), (right.columns[0].id,), None,
    )  # fmt: skip
    keys = {row[0] for row in right.rows[1]} - {None}
    want = [(row[2], row[0] in keys) for row in left.rows[1]]
    assert run(node, left, right) == sorted(want, key=by_nulls)


def test_single_row_fails_only_where_it_is_asked(run, engine):
    rows = engine.table([("v", VARCHAR), ("n", BIGINT)], [("a", 1), (None, 1), ("b", None)])
    many = engine.table([("v", VARCHAR), ("n", BIGINT)], [("a", 1), ("b", 2)])
    for table in (rows, many):
        v, n = table.columns
        (value,) = engine.columns(("value", VARCHAR))
        call = Call(VARCHAR, "single_row", (ref(v), ref(n)))
        node = ProjectRows((value,), engine.traits, table.scan(), (call,))
        if table is rows:
            assert run(node, table) == [("a",), ("b",), (None,)]
        else:
            with pytest.raises(CardinalityViolation, match="more than one row returned"):
                run(node, table)
