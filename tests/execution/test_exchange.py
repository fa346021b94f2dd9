"""Distributed plans over a network that delays, reorders and repeats messages, with tiny windows:
answers are right, and at the end no batch, credit or memory is left anywhere."""

# ruff: noqa: E501 - rows and cases read best on one line
from __future__ import annotations

import random
from collections import Counter

import pytest
from seeds import seeds

from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, VARCHAR, decimal
from remuda.errors import ConnectionBroken, DivisionByZero, QueryCanceled
from remuda.execution import build
from remuda.plan.expression import AggregateCall, Call, ColumnRef, Literal, SortKey
from remuda.plan.logical import JoinKind
from remuda.plan.physical import (
    AggregatePhase,
    ExchangeKind,
    FilterRows,
    Fragment,
    HashAggregate,
    HashJoin,
    LimitRows,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    Site,
    SortRows,
)

MEMBERS = (1, 2, 5)
SEEDS = seeds(2, 5)


def ref(column):
    return ColumnRef(column.type, column.id, column.name)


@pytest.fixture(params=[2000, 200_000], ids=["tiny", "wide"])
def window(request, monkeypatch):
    monkeypatch.setattr(build, "stream_window", lambda *_: request.param)
    return request.param


@pytest.fixture(params=[None, {1: 2, 2: 3, 3: 2}], ids=["one", "several"])
def instances(request):
    """How many instances of the fragments each member runs."""
    return request.param


@pytest.fixture
def facts(engine):
    chance = random.Random(4)
    rows = [
        (chance.choice([None, *range(20)]), i, chance.choice("abcdefgh") * 5) for i in range(3000)
    ]
    return engine.table([("k", INTEGER), ("v", BIGINT), ("s", VARCHAR)], rows, MEMBERS)


def all_rows(table):
    return [row for rows in table.rows.values() for row in rows]


def plan_of(engine, *fragments):
    """Fragments from the last to the first; (node, site) pairs, the root first."""
    made = tuple(Fragment(number, node, site) for number, (node, site) in enumerate(fragments))
    return PhysicalPlan(made, made[0].root.output, (), ())


def send(engine, node, edge, kind, to, keys=()):
    return Send(node.output, engine.traits, node, edge, kind, to, tuple(keys))


def receive(engine, node, edge, sender, collation=()):
    return Receive(node.output, engine.traits, edge, sender, tuple(collation))


def root(engine, node):
    return Root(node.output, engine.traits, node)


def gathered(engine, node):
    """Everything of ``node``, in no order."""
    return plan_of(
        engine,
        (root(engine, receive(engine, node, 0, 1)), Site.INITIATOR),
        (send(engine, node, 0, ExchangeKind.GATHER, 0), Site.DATA_MEMBERS),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_gather(engine, facts, window, instances, seed):
    grid = engine.Grid(
        gathered(engine, facts.scan()), [facts], MEMBERS, seed, duplicate=True, instances=instances
    )
    assert Counter(grid.run()) == Counter(all_rows(facts))
    biggest = max(batch.size for _, _, batch in grid.sent)
    assert biggest <= window


@pytest.mark.parametrize("seed", SEEDS)
def test_two_phase_aggregate(engine, facts, window, instances, seed):
    k, v, _ = facts.columns
    calls = (
        AggregateCall("count", None, BIGINT),
        AggregateCall("sum", ref(v), decimal(38, 0)),
        AggregateCall("max", ref(v), BIGINT),
    )
    states = engine.columns(("c", BIGINT), ("s", decimal(38, 0)), ("m", BIGINT))
    results = engine.columns(("c", BIGINT), ("s", decimal(38, 0)), ("m", BIGINT))
    partial = HashAggregate((k, *states), engine.traits, facts.scan(), AggregatePhase.PARTIAL,
                            (k.id,), calls, tuple((c.id,) for c in states))  # fmt: skip
    final = HashAggregate((k, *results), engine.traits, receive(engine, partial, 1, 2),
                          AggregatePhase.FINAL, (k.id,), calls, tuple((c.id,) for c in states))  # fmt: skip
    plan = plan_of(
        engine,
        (root(engine, receive(engine, final, 0, 1)), Site.INITIATOR),
        (send(engine, final, 0, ExchangeKind.GATHER, 0), Site.DATA_MEMBERS),
        (send(engine, partial, 1, ExchangeKind.UNICAST, 1, (k.id,)), Site.DATA_MEMBERS),
    )
    want: dict = {}
    for key, value, _ in all_rows(facts):
        count, total, most = want.get(key, (0, 0, -1))
        want[key] = (count + 1, total + value, max(most, value))
    grid = engine.Grid(
        plan, [facts], MEMBERS, seed, batch_rows=100, duplicate=True, instances=instances
    )
    assert sorted(grid.run(), key=str) == sorted(((k, *v) for k, v in want.items()), key=str)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limit", [None, 7])
def test_merge_keeps_the_order(engine, facts, window, instances, seed, limit):
    k, v, _ = facts.columns
    keys = (SortKey(k.id, descending=True, nulls_first=True), SortKey(v.id))
    ordered = SortRows(facts.columns, engine.traits, facts.scan(), keys)
    top = receive(engine, ordered, 0, 1, keys)
    if limit is not None:
        top = LimitRows(top.output, engine.traits, top, Literal(INTEGER, limit), None)
    plan = plan_of(
        engine,
        (root(engine, top), Site.INITIATOR),
        (send(engine, ordered, 0, ExchangeKind.MERGE, 0), Site.DATA_MEMBERS),
    )
    want = sorted(all_rows(facts), key=lambda r: (r[0] is not None, -(r[0] or 0), r[1]))
    grid = engine.Grid(plan, [facts], MEMBERS, seed, duplicate=True, instances=instances)
    assert grid.run() == want[:limit]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [ExchangeKind.BROADCAST, ExchangeKind.UNICAST])
def test_join_across_members(engine, facts, window, instances, seed, kind):
    names = engine.table([("id", INTEGER), ("n", VARCHAR)],
                         [(i, f"name {i}") for i in range(0, 60, 2)], MEMBERS)  # fmt: skip
    k, n = facts.columns[0], names.columns[0]
    right = receive(engine, names.scan(), 1, 2)
    if kind is ExchangeKind.BROADCAST:
        left, extra = facts.scan(), ()
    else:
        left = receive(engine, facts.scan(), 2, 3)
        extra = ((send(engine, facts.scan(), 2, kind, 1, (k.id,)), Site.DATA_MEMBERS),)
    join = HashJoin((*facts.columns, names.columns[1]), engine.traits, JoinKind.LEFT,
                    left, right, (k.id,), (n.id,), None)  # fmt: skip
    plan = plan_of(
        engine,
        (root(engine, receive(engine, join, 0, 1)), Site.INITIATOR),
        (send(engine, join, 0, ExchangeKind.GATHER, 0), Site.DATA_MEMBERS),
        (send(engine, names.scan(), 1, kind, 1, (n.id,)), Site.DATA_MEMBERS),
        *extra,
    )
    name_of = {row[0]: row[1] for row in all_rows(names)}
    grid = engine.Grid(plan, [facts, names], MEMBERS, seed, duplicate=True, instances=instances)
    want = Counter((*row, name_of.get(row[0])) for row in all_rows(facts))
    assert Counter(grid.run()) == want


@pytest.mark.parametrize("seed", SEEDS)
def test_limit_stops_the_senders(engine, facts, seed, monkeypatch):
    monkeypatch.setattr(build, "stream_window", lambda *_: 2000)
    scan = facts.scan()
    limited = LimitRows(scan.output, engine.traits, receive(engine, scan, 0, 1),
                        Literal(INTEGER, 10), None)  # fmt: skip
    plan = plan_of(
        engine,
        (root(engine, limited), Site.INITIATOR),
        (send(engine, scan, 0, ExchangeKind.GATHER, 0), Site.DATA_MEMBERS),
    )
    grid = engine.Grid(plan, [facts], MEMBERS, seed, batch_rows=10)
    assert len(grid.run()) == 10
    remote = [batch for _, sender, batch in grid.sent]
    assert sum(batch.rows for batch in remote) < 1500
    assert {sender for _, sender, batch in grid.sent if batch.last} == set(MEMBERS[1:])


@pytest.mark.parametrize("seed", seeds(6, 20))
def test_cancel_in_the_middle_frees_everything(engine, facts, window, instances, seed):
    _k, v, _ = facts.columns
    keys = (SortKey(v.id),)
    join = HashJoin(facts.columns, engine.traits, JoinKind.SEMI, facts.scan(),
                    receive(engine, facts.scan(), 1, 2), (v.id,), (v.id,), None)  # fmt: skip
    ordered = SortRows(facts.columns, engine.traits, join, keys)
    plan = plan_of(
        engine,
        (root(engine, receive(engine, ordered, 0, 1, keys)), Site.INITIATOR),
        (send(engine, ordered, 0, ExchangeKind.MERGE, 0), Site.DATA_MEMBERS),
        (send(engine, facts.scan(), 1, ExchangeKind.BROADCAST, 1), Site.DATA_MEMBERS),
    )
    grid = engine.Grid(plan, [facts], MEMBERS, seed, batch_rows=100, instances=instances)
    grid.start()
    for _ in range(grid.chance.randrange(150)):
        grid.step()
    grid.cancel(QueryCanceled("enough"))
    grid.assert_clean()
    for member in grid.members.values():
        assert len(member.profiles) + len(member.errors) == len(member.instances)


def test_failure_is_reported_once_with_its_error(engine, facts):
    _k, v, _ = facts.columns
    bad = Call(BIGINT, "/", (ref(v), Call(BIGINT, "-", (ref(v), Literal(BIGINT, 1500)))))
    scan = facts.scan()
    failing = FilterRows(
        scan.output, engine.traits, scan, Call(BOOLEAN, ">", (bad, Literal(BIGINT, 0)))
    )
    grid = engine.Grid(gathered(engine, failing), [facts], MEMBERS)
    with pytest.raises(DivisionByZero):
        grid.run()
    grid.assert_clean()


def test_lost_batch_fails_the_query(engine, facts, monkeypatch):
    monkeypatch.setattr(build, "stream_window", lambda *_: 2000)
    grid = engine.Grid(gathered(engine, facts.scan()), [facts], MEMBERS, batch_rows=100)
    deliver, lost = grid.deliver, []

    def lossy(message):
        if lost or grid.sent[-1][2].ordinal != 0:
            deliver(message)
        else:
            lost.append(message)

    grid.deliver = lossy
    grid.start()
    while grid.step() or grid.sink.take() is not None:
        pass
    grid.clock.now += 100
    for instance in grid.instances:
        instance.check_streams()
    while grid.step():
        pass
    assert [type(error) for _, error in grid.members[1].errors] == [ConnectionBroken]


def test_profiles_count_rows_per_operator(engine, facts):
    grid = engine.Grid(gathered(engine, facts.scan()), [facts], MEMBERS)
    grid.run()
    profiles = [p for member in grid.members.values() for p in member.profiles]
    scans = [o for p in profiles for o in p.operators if o.operator == "TableScan"]
    assert sum(scan.rows for scan in scans) == 3000
    sends = [o for p in profiles for o in p.operators if o.operator == "Send"]
    assert all(o.index == 0 for o in sends)
    assert sum(o.bytes for o in sends) == sum(batch.size for _, _, batch in grid.sent)
