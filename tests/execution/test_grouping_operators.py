"""ExpandRows, GroupLimitRows and aggregates with rows that are always there."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType
from remuda.errors import InvalidSampleArgument
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.operators import group_limit
from remuda.plan.expression import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Parameter,
    SortKey,
)
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import AggregatePhase, ExpandRows, GroupLimitRows, HashAggregate


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
        [(1, 10, "x"), (2, 20, None), (None, 30, "y"), (2, None, "x")],
    )


def expand(engine, data, sets):
    a, b, s = data.columns
    copies = (OutputColumn(100, "a", INTEGER), OutputColumn(101, "s", VARCHAR))
    number = OutputColumn(102, "set", INTEGER)
    return ExpandRows((b, *copies, number), engine.traits, data.scan(), (a.id, s.id), sets)


def test_expand_gives_each_row_once_per_set(run, engine, numbers):
    node = expand(engine, numbers, ((0, 1), (1,), ()))
    found = run(node, numbers)
    assert sorted(found, key=repr) == sorted(
        [(b, a, s, 0) for a, b, s in numbers.rows[1]]
        + [(b, None, s, 1) for _, b, s in numbers.rows[1]]
        + [(b, None, None, 2) for _, b, _ in numbers.rows[1]],
        key=repr,
    )


@pytest.mark.parametrize("phase", [AggregatePhase.SINGLE, AggregatePhase.PARTIAL])
def test_empty_grouping_sets_have_a_row_over_no_input(run, engine, numbers, phase):
    empty = engine.table([("a", INTEGER), ("b", BIGINT), ("s", VARCHAR)], [])
    for data, rows in ((numbers, 4), (empty, 0)):
        source = expand(engine, data, ((0,), (), ()))
        b, a, _, number = source.output
        result = OutputColumn(200, "n", BIGINT)
        node = HashAggregate(
            (a, number, result),
            engine.traits,
            source,
            phase,
            (a.id, number.id),
            (AggregateCall("count", ColumnRef(BIGINT, b.id, "b"), BIGINT),),
            ((200,),) if phase is AggregatePhase.PARTIAL else (),
            always=((None, 1), (None, 2)),
        )
        found = run(node, data)
        by_set = sorted((number, count) for a, number, count in found if number > 0)
        assert by_set == [(1, 3 if rows else 0), (2, 3 if rows else 0)]
        assert sum(1 for _, number, _ in found if number == 0) == (3 if rows else 0)


def first(engine, data, group, limit):
    g, x, _ = data.columns
    partition = (g.id,) if group else ()
    order = (SortKey(x.id, descending=True, nulls_first=True),)
    return GroupLimitRows(data.columns, engine.traits, data.scan(), partition, order, limit)


def ranked(rows, group, limit):
    """The rows of which fewer than ``limit`` others of their group come before them."""

    def place(row):
        return (row[1] is not None, -(row[1] or 0))

    return sorted(
        (
            row
            for row in rows
            if sum((not group or o[0] == row[0]) and place(o) < place(row) for o in rows) < limit
        ),
        key=repr,
    )


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_group_limit_keeps_the_first_and_their_ties(run, engine, group, limit):
    chance = random.Random(limit)
    values = [None, 0.5, 1.5, 1.5, 7.0]
    rows = [(chance.choice(["a", "b", None]), chance.choice(values), i) for i in range(40)]
    data = engine.table([("g", VARCHAR), ("x", DOUBLE), ("i", INTEGER)], rows)
    found = run(first(engine, data, group, Literal(BIGINT, limit)), data)
    assert sorted(found, key=repr) == ranked(rows, group, limit)


def test_group_limit_takes_its_limit_from_a_parameter(run, engine):
    rows = [("a", float(i), i) for i in range(10)]
    data = engine.table([("g", VARCHAR), ("x", DOUBLE), ("i", INTEGER)], rows)
    node = first(engine, data, True, Parameter(BIGINT, 0))
    assert sorted(run(node, data, parameters=(2,))) == [("a", 8.0, 8), ("a", 9.0, 9)]
    assert run(node, data, parameters=(None,)) == []


@pytest.mark.parametrize("groups", [3, 5000])
def test_group_limit_cuts_as_it_goes_or_lets_pass(engine, monkeypatch, groups):
    """With few groups what is held stays small; with many, cutting does not pay, and rows pass."""
    monkeypatch.setattr(group_limit, "_CUT_ROWS", 64)
    rows = [(str(i % groups), float(i * 7919 % 10007), i) for i in range(5000)]
    data = engine.table([("g", VARCHAR), ("x", DOUBLE), ("i", INTEGER)], rows)
    found = engine.run(first(engine, data, True, Literal(BIGINT, 1)), data, batch_rows=50)
    wanted = ranked(rows, True, 1) if groups == 3 else sorted(rows, key=repr)
    assert sorted(found, key=repr) == wanted


# --- samples ---------------------------------------------------------------------------------


def sample(percent: float | None, seed: float, keys: list[object], type_: SqlType) -> list[bool]:
    arguments: tuple[Expression, ...] = (
        Parameter(DOUBLE, 0),
        Literal(DOUBLE, seed),
        ColumnRef(type_, 1, "k"),
    )
    call = Call(BOOLEAN, "sampled", arguments)
    compiled = Compiler({1: 0}, (percent,)).column(call)
    array = pa.array(keys, pa.string() if type_ == VARCHAR else pa.int32())
    found: list[bool] = compiled(Batch([array], len(keys))).to_pylist()
    return found


def test_a_sample_is_decided_by_key_and_seed():
    keys: list[object] = list(range(20_000))
    tenth = sample(10.0, 1.0, keys, INTEGER)
    assert tenth == sample(10.0, 1.0, keys, INTEGER)
    # As many of any part, and each key for itself: members decide about their own rows.
    assert sample(10.0, 1.0, keys[100:200], INTEGER) == tenth[100:200]
    assert 1_800 < sum(tenth) < 2_200
    other = sample(10.0, 2.0, keys, INTEGER)
    assert 100 < np.sum(np.array(tenth) & np.array(other)) < 320
    fifth = sample(20.0, 1.0, keys, INTEGER)
    assert all(b for a, b in zip(tenth, fifth, strict=True) if a)


def test_all_and_nothing():
    keys: list[object] = ["a", "b", ""]
    assert sample(100.0, 3.0, keys, VARCHAR) == [True] * 3
    assert sample(0.0, 3.0, keys, VARCHAR) == [False] * 3
    for percent in (-0.5, 100.5, float("nan")):
        with pytest.raises(InvalidSampleArgument):
            sample(percent, 1.0, keys, VARCHAR)
