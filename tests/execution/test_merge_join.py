"""Merge joins against hash joins over the same rows, for every kind, key type and direction."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from seeds import seeds

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    UUID,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.merge_join import MergeJoinOperator, MergeSide
from remuda.execution.operators.ordering import BoundKey
from remuda.plan.expression import Call, ColumnRef, SortKey
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import HashJoin, MergeJoin, SortRows

sys.path.insert(0, str(Path(__file__).parent))

from spilling import Given, drained

KINDS = [kind for kind in JoinKind if kind is not JoinKind.MARK]
ALONE = (JoinKind.SEMI, JoinKind.ANTI)

VALUES: list[tuple[SqlType, list[Any]]] = [
    (SMALLINT, [-3, 0, 2, 9]),
    (INTEGER, [-(2**31), -1, 0, 7, 2**31 - 1]),
    (BIGINT, [-(2**63), -5, 0, 2**62, 2**63 - 1]),
    (REAL, [float("-inf"), -0.0, 0.0, 1.5, float("nan")]),
    (DOUBLE, [float("-inf"), -0.0, 0.0, 1e300, float("nan")]),
    (VARCHAR, ["", "a", "B", "ä", "zz", "a longer text", "\U0001f600"]),
    (decimal(10, 2), [-150, 0, 1, 10**9]),
    (decimal(30, 4), [-(10**28), -1, 0, 10**28, 10**29]),
    (BOOLEAN, [False, True]),
    (DATE, [-400, 0, 19_000]),
    (TIMESTAMP, [-(10**15), 0, 10**15]),
    (UUID, [bytes(16), b"\x01" * 16, b"\xff" * 16]),
]


def ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)


@pytest.fixture(params=[(1, False), (3, True), (1000, False)], ids=["one", "waits", "whole"])
def run(request: Any, engine: Any, monkeypatch: Any) -> Any:
    batch_rows, waits = request.param
    if waits:
        engine.interrupt_scans(monkeypatch, 7)
    return lambda node, *tables, **more: engine.run(node, *tables, batch_rows=batch_rows, **more)


def seen(rows: list[tuple[Any, ...]]) -> Counter[str]:
    """Rows that may hold NaN."""
    return Counter(repr(row) for row in rows)


def sides(
    engine: Any, seed: object, types: list[tuple[SqlType, list[Any]]], by: list[SortKey]
) -> list[Any]:
    """Two tables of key columns and a number, sorted by ``by`` (the ids are places of columns)."""
    chance = random.Random(str(seed))
    specs = [(f"k{i}", type_) for i, (type_, _) in enumerate(types)] + [("v", INTEGER)]
    found = []
    for size in (chance.randrange(60), chance.randrange(30)):
        nulls = chance.choice([0.0, 0.2])
        rows = [
            (
                *(None if chance.random() < nulls else chance.choice(v) for _, v in types),
                chance.randrange(10),
            )
            for _ in range(size)
        ]
        table = engine.table(specs, rows)
        keys = tuple(
            SortKey(table.columns[key.column].id, key.descending, key.nulls_first) for key in by
        )
        node = SortRows(table.columns, engine.traits, table.scan(), keys)
        # Physical values, in the order of the operator that sorts.
        batches = engine.Grid(engine.single(node), [table])
        batches.run()
        rows = engine.rows_of(batches.pages, [type_ for _, type_ in specs])
        found.append((engine.table(specs, rows), keys))
    return found


def joins(
    engine: Any, kind: JoinKind, left: Any, right: Any, keys: int, residual: bool, by: Any
) -> tuple[HashJoin, MergeJoin]:
    condition = None
    if residual:
        condition = Call(BOOLEAN, "<", (ref(left.columns[keys]), ref(right.columns[keys])))
    output = left.columns if kind in ALONE else left.columns + right.columns
    order = tuple(
        SortKey(column.id, key.descending, key.nulls_first)
        for column, key in zip(left.columns[:keys], by, strict=True)
    )
    both = (
        output, engine.traits, kind, left.scan(), right.scan(),
        tuple(c.id for c in left.columns[:keys]), tuple(c.id for c in right.columns[:keys]),
        condition, False,
    )  # fmt: skip
    return HashJoin(*both), MergeJoin(*both, order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", range(len(VALUES)), ids=[str(t) for t, _ in VALUES])
@pytest.mark.parametrize("residual", [False, True])
def test_one_key(run: Any, engine: Any, kind: JoinKind, type_: int, residual: bool) -> None:
    for descending in (False, True):  # both, with and without the residual: all four orders
        by = [SortKey(0, descending, nulls_first=descending != residual)]
        seed = (kind, type_, residual, descending)
        (left, _), (right, _) = sides(engine, seed, [VALUES[type_]], by)
        by_hash, by_merge = joins(engine, kind, left, right, 1, residual, by)
        assert seen(run(by_merge, left, right)) == seen(run(by_hash, left, right))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(4, 12))
def test_several_keys(run: Any, engine: Any, kind: JoinKind, seed: int) -> None:
    chance = random.Random(seed)
    types = chance.sample(VALUES, chance.choice([2, 3]))
    by = [
        SortKey(place, chance.random() < 0.5, chance.random() < 0.5) for place in range(len(types))
    ]
    (left, _), (right, _) = sides(engine, (kind, seed), types, by)
    residual = chance.random() < 0.5
    by_hash, by_merge = joins(engine, kind, left, right, len(types), residual, by)
    assert seen(run(by_merge, left, right)) == seen(run(by_hash, left, right))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI, JoinKind.LEFT, JoinKind.ANTI])
def test_rows_come_in_the_order_of_the_left_side(run: Any, engine: Any, kind: JoinKind) -> None:
    specs = [("k", INTEGER), ("v", INTEGER)]
    left = engine.table(specs, [(i // 3, i) for i in range(60)])
    right = engine.table(specs, [(i // 2, i) for i in range(2, 60) if i % 7])
    _, node = joins(engine, kind, left, right, 1, False, [SortKey(0)])
    rows = run(node, left, right)
    assert rows
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


# --- blocks of one key ---------------------------------------------------------------------------

TYPES = (INTEGER, INTEGER)


def operator(
    kind: JoinKind, left: Any, right: Any, memory: Reservation, batch_rows: int = 100
) -> MergeJoinOperator:
    keys = [BoundKey(0, INTEGER)]
    return MergeJoinOperator(
        kind=kind,
        left=MergeSide(Given(left, TYPES, batch_rows), keys, TYPES),
        right=MergeSide(Given(right, TYPES, batch_rows), keys, TYPES),
        residual=None,
        output=[0, 1] if kind in ALONE else [0, 1, 2, 3],
        memory=memory,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_of_one_key_on_both_sides(kind: JoinKind) -> None:
    left = [(0, 0)] + [(1, i) for i in range(300)] + [(3, 1)]
    right = [(1, i) for i in range(230)] + [(2, 5), (3, 6)]
    account = MemoryAccount()
    made = operator(kind, left, right, Reservation(account, "MergeJoin"))
    columns = 2 if kind in ALONE else 4
    rows = Counter(drained(made, (INTEGER,) * columns))
    nothing = (None, None)
    want: Counter[tuple[Any, ...]] = Counter()
    for row in left:
        found = [other for other in right if other[0] == row[0]]
        if kind is JoinKind.SEMI:
            want.update([row] if found else [])
        elif kind is JoinKind.ANTI:
            want.update([] if found else [row])
        else:
            want.update([row + other for other in found])
            if not found and kind in (JoinKind.LEFT, JoinKind.FULL):
                want.update([row + nothing])
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        want.update([(*nothing, 2, 5)])
    assert rows == want
    assert account.held == 0


def test_the_left_side_streams_and_the_right_one_is_held_by_key() -> None:
    """A million left rows of one key take no memory, a long block on the right is accounted for."""
    account = MemoryAccount(limit=100_000)
    many = [(1, i) for i in range(50_000)]
    made = operator(
        JoinKind.INNER, many, [(0, 1), (1, 2), (2, 3)], Reservation(account, "MergeJoin")
    )
    assert len(drained(made, (INTEGER,) * 4)) == 50_000
    assert account.peak < 50_000
    account = MemoryAccount(limit=100_000)
    made = operator(JoinKind.INNER, [(1, 2)], many, Reservation(account, "MergeJoin"))
    with pytest.raises(OutOfMemory, match="memory limit"):
        drained(made, (INTEGER,) * 4)
    made.close()
    assert account.held == 0


def test_first_rows_come_before_the_inputs_end() -> None:
    many = [(i, i) for i in range(10_000)]
    left, right = Given(many, TYPES, 100), Given(many, TYPES, 100)
    keys = [BoundKey(0, INTEGER)]
    made = MergeJoinOperator(
        kind=JoinKind.INNER,
        left=MergeSide(left, keys, TYPES),
        right=MergeSide(right, keys, TYPES),
        residual=None,
        output=[1, 3],
        memory=Reservation(MemoryAccount(), "MergeJoin"),
    )
    while not made.current_batch().rows:
        made.advance()
    assert made.current_batch().rows == 99  # a second batch may begin with the last key
    assert len(left._batches) == len(right._batches) == 99
    made.close()
    assert left.closed == right.closed == 1


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT])
def test_the_rest_is_not_read_when_nothing_can_match(kind: JoinKind) -> None:
    left = Given([(i, i) for i in range(10_000)], TYPES, 100)
    keys = [BoundKey(0, INTEGER)]
    made = MergeJoinOperator(
        kind=kind,
        left=MergeSide(left, keys, TYPES),
        right=MergeSide(Given([(5, 5)], TYPES, 100), keys, TYPES),
        residual=None,
        output=[0, 1],
        memory=Reservation(MemoryAccount(), "MergeJoin"),
    )
    assert drained(made, TYPES) == [(5, 5)]
    assert len(left._batches) > 95
