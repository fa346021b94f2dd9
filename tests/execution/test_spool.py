"""A stored result read by several fragments: every reader gets all rows, nobody waits for another
reader, and the rows are freed at the end, however the query ends."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from remuda.datatypes.sql import BIGINT, INTEGER
from remuda.errors import QueryCanceled
from remuda.execution import build
from remuda.plan.expression import Literal
from remuda.plan.logical import JoinKind
from remuda.plan.physical import (
    ExchangeKind,
    Fragment,
    HashJoin,
    LimitRows,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    Site,
    SpoolScan,
    Store,
)

MEMBERS = (1, 2, 5)


@pytest.fixture(params=[2000, 200_000], ids=["tiny", "wide"], autouse=True)
def window(request, monkeypatch):
    monkeypatch.setattr(build, "stream_window", lambda *_: request.param)


@pytest.fixture
def facts(engine):
    chance = random.Random(4)
    rows = [(chance.choice([None, *range(40)]), i) for i in range(2000)]
    return engine.table([("k", INTEGER), ("v", BIGINT)], rows, MEMBERS)


def plan_of(engine, facts, top):
    """``top(read, receive)`` builds the root's input from a read of the spool at every member,
    gathered over edge 0 or 1."""
    scan = facts.scan()
    k, v = scan.output
    store = Store(scan.output, engine.traits, scan, 3)

    def read(columns, positions):
        return SpoolScan(columns, engine.traits, 3, positions)

    other = tuple(column.__class__(column.id + 10, column.name, column.type) for column in (k, v))
    first = read((k, v), (0, 1))
    second = read(other[::-1], (1, 0))
    sends = [
        Send(node.output, engine.traits, node, edge, ExchangeKind.GATHER, 0)
        for edge, node in enumerate((first, second))
    ]
    receives = [
        Receive(send.output, engine.traits, edge, edge + 1) for edge, send in enumerate(sends)
    ]
    node = top(*receives)
    root = Root(node.output, engine.traits, node)
    fragments = (
        Fragment(0, root, Site.INITIATOR),
        Fragment(1, sends[0], Site.DATA_MEMBERS),
        Fragment(2, sends[1], Site.DATA_MEMBERS),
        Fragment(3, store, Site.DATA_MEMBERS),
    )
    return PhysicalPlan(fragments, root.output, (), ())


def joined(engine):
    """Builds the whole second read before it reads the first: with one stream for both, the
    windows of the first would fill up and hold the second."""

    def top(left, right):
        output = (*left.output, *right.output)
        value, other = left.output[1].id, right.output[0].id
        return HashJoin(
            output, engine.traits, JoinKind.INNER, left, right, (value,), (other,), None
        )

    return top


@pytest.mark.parametrize("seed", range(8))
def test_both_readers_get_all_rows(engine, facts, seed, monkeypatch):
    engine.interrupt_scans(monkeypatch, seed)
    plan = plan_of(engine, facts, joined(engine))
    rows = engine.Grid(plan, [facts], MEMBERS, seed=seed, batch_rows=100).run()
    stored = [row for part in facts.rows.values() for row in part]
    assert Counter(rows) == Counter((k, v, v, k) for k, v in stored)


def test_an_empty_spool(engine):
    empty = engine.table([("k", INTEGER), ("v", BIGINT)], [], MEMBERS)
    plan = plan_of(engine, empty, joined(engine))
    assert engine.Grid(plan, [empty], MEMBERS).run() == []


@pytest.mark.parametrize("seed", range(8))
def test_a_reader_that_stops_early_frees_the_rows(engine, facts, seed):
    def top(left, right):
        limited = LimitRows(left.output, engine.traits, left, Literal(BIGINT, 3), None)
        return HashJoin(
            (*limited.output, *right.output),
            engine.traits,
            JoinKind.INNER,
            limited,
            right,
            (limited.output[1].id,),
            (right.output[0].id,),
            None,
        )

    grid = engine.Grid(plan_of(engine, facts, top), [facts], MEMBERS, seed=seed, batch_rows=50)
    assert len(grid.run()) == 3


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 60, 150])
def test_cancel_frees_the_rows(engine, facts, steps):
    plan = plan_of(engine, facts, joined(engine))
    grid = engine.Grid(plan, [facts], MEMBERS, seed=steps, batch_rows=50)
    grid.start()
    for _ in range(steps):
        grid.step()
    grid.cancel(QueryCanceled("query was cancelled"))
    for member in grid.members.values():
        assert member.memory.held == 0
