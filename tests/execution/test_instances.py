"""Several instances of a fragment on a member: who owns what, how scans are shared, how many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.sql import BIGINT
from remuda.execution.instances import Sites
from remuda.execution.parallel import (
    Cover,
    Split,
    cover_of,
    exchange_kinds,
    instance_counts,
    split_of,
)
from remuda.limits import PARTITIONS
from remuda.plan.expression import AggregateCall
from remuda.plan.logical import JoinKind
from remuda.plan.physical import (
    AggregatePhase,
    Distribution,
    ExchangeKind,
    Fragment,
    HashAggregate,
    HashJoin,
    KeyLookup,
    PhysicalPlan,
    Placement,
    Receive,
    Root,
    Send,
    Site,
    SortRows,
    Traits,
    UnionRows,
    WindowRows,
)
from remuda.query.ids import Endpoint

MEMBERS = st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True).map(tuple)


@given(data=st.data(), members=MEMBERS, count=st.integers(1, 5))
def test_every_partition_has_one_place_and_members_keep_theirs(data, members, count):
    owner = st.sampled_from((*members, 77))
    owners = data.draw(st.lists(owner, min_size=PARTITIONS, max_size=PARTITIONS))
    sites = Sites({3: members}, {3: count})
    endpoints = sites.endpoints(3)
    places = sites.places(3, owners)
    assert len(places) == PARTITIONS
    assert int(places.max()) < len(endpoints)
    for partition, who in enumerate(owners):
        if who in members:
            assert endpoints[places[partition]].member == who
    for member in members:
        mine = [sites.owned(3, Endpoint(member, i), owners) for i in range(count)]
        assert sorted(p for each in mine for p in each) == [
            p for p, who in enumerate(owners) if who == member
        ]
        sizes = [len(each) for each in mine]
        assert max(sizes) - min(sizes) <= 1


def test_endpoints_of_a_member_are_next_to_each_other():
    sites = Sites({0: (4,), 1: (4, 2)}, {1: 2})
    assert sites.endpoints(0) == (Endpoint(4),)
    assert [str(e) for e in sites.endpoints(1)] == ["4", "4.1", "2", "2.1"]
    assert sites.runs(1, 2)
    assert not sites.runs(0, 2)
    assert not sites.runs(9, 2)


# --- how a fragment may be split ---


@pytest.fixture
def nodes(engine):
    left = engine.table([("k", BIGINT), ("v", BIGINT)], [])
    right = engine.table([("k", BIGINT), ("w", BIGINT)], [])
    return left, right


def joined(engine, left, right, kind=JoinKind.INNER):
    keys = (left.output[0].id,), (right.output[0].id,)
    return HashJoin((*left.output, *right.output), engine.traits, kind, left, right, *keys, None)


def counted(engine, node, phase):
    call = AggregateCall("count", None, BIGINT)
    column = engine.columns(("c", BIGINT))
    states = () if phase is AggregatePhase.SINGLE else ((column[0].id,),)
    output = (node.output[0], *column)
    group = (node.output[0].id,)
    return HashAggregate(output, engine.traits, node, phase, group, (call,), states)


def received(engine, node, edge=5):
    return Receive(node.output, engine.traits, edge, 9)


def cover(node, kind=ExchangeKind.UNICAST):
    return cover_of(node, {5: kind})


def test_a_scan_may_be_dealt_out_in_any_way(engine, nodes):
    left, _ = nodes
    assert cover(left.scan()) is Cover.DEALT
    assert cover(counted(engine, left.scan(), AggregatePhase.PARTIAL)) is Cover.DEALT
    assert cover(SortRows(left.columns, engine.traits, left.scan(), ())) is Cover.DEALT


def test_rows_of_a_group_or_a_window_stay_together(engine, nodes):
    left, _ = nodes
    assert cover(counted(engine, left.scan(), AggregatePhase.SINGLE)) is Cover.OWNED
    assert cover(WindowRows(left.columns, engine.traits, left.scan(), (), (), ())) is Cover.OWNED
    assert cover(left.scan(partitioned_replica=True)) is Cover.OWNED


def test_collocated_joins_go_by_partition_and_broadcast_ones_by_chunk(engine, nodes):
    left, right = nodes
    assert cover(joined(engine, left.scan(), right.scan())) is Cover.OWNED
    there = joined(engine, left.scan(), received(engine, right.scan()))
    assert cover(there, ExchangeKind.BROADCAST) is Cover.DEALT
    assert cover(there, ExchangeKind.UNICAST) is Cover.OWNED
    assert cover(received(engine, right.scan()), ExchangeKind.BROADCAST) is Cover.WHOLE


def test_unions_and_lookups(engine, nodes):
    left, right = nodes
    both = (left.scan(), right.scan())
    assert cover(UnionRows(left.columns, engine.traits, both)) is Cover.DEALT
    mixed = (left.scan(), received(engine, right.scan()))
    assert cover(UnionRows(left.columns, engine.traits, mixed)) is Cover.OWNED
    lookup = KeyLookup(left.columns, engine.traits, "t", 1, 1, "t", (0, 1), (), None)
    assert cover(lookup) is Cover.ALONE
    assert cover(UnionRows(left.columns, engine.traits, (left.scan(), lookup))) is Cover.ALONE


def three(engine, node):
    """Fragments 0 at the initiator, 1 that aggregates what 2 sends by hash."""
    final = counted(engine, received(engine, node), AggregatePhase.FINAL)
    return PhysicalPlan(
        (
            Fragment(0, Root(final.output, engine.traits, received(engine, final, 6)),
                     Site.INITIATOR),
            Fragment(1, Send(final.output, engine.traits, final, 6, ExchangeKind.GATHER, 0),
                     Site.DATA_MEMBERS),
            Fragment(2, Send(node.output, engine.traits, node, 5, ExchangeKind.UNICAST, 1,
                             (node.output[0].id,)), Site.DATA_MEMBERS),
        ),
        final.output, (), (),
    )  # fmt: skip


def test_what_runs_at_the_initiator_runs_once(engine, nodes):
    plan = three(engine, nodes[0].scan())
    kinds = exchange_kinds(plan)
    assert [split_of(f, kinds) for f in plan.fragments] == [None, Split.PARTITIONS, Split.CHUNKS]


@pytest.mark.parametrize(
    ("stored", "workers", "counts"),
    [
        (999, 4, {}),
        (2_000, 4, {2: 2}),
        (3_999, 4, {2: 3}),
        (90_000, 4, {2: 4}),
        (90_000, 1, {}),
        (90_000, 0, {}),
    ],
)
def test_instances_grow_with_the_rows_up_to_the_workers(engine, nodes, stored, workers, counts):
    plan = three(engine, nodes[0].scan())
    found = instance_counts(plan, lambda _: stored, workers=workers, members=2, rows_each=1000)
    assert found == counts


def test_rows_that_arrive_count_as_the_optimizer_expects(engine, nodes):
    scan = nodes[0].scan()
    final = counted(engine, scan, AggregatePhase.FINAL)
    many = Receive(scan.output, Traits(Distribution(Placement.PARTITIONED), (), 9_000), 5, 2)
    final = HashAggregate(final.output, final.traits, many, final.phase, final.group, final.calls,
                          final.states)  # fmt: skip
    send = Send(final.output, engine.traits, final, 6, ExchangeKind.GATHER, 0)
    plan = three(engine, scan)
    plan = PhysicalPlan((plan.fragments[0], Fragment(1, send, Site.DATA_MEMBERS),
                         plan.fragments[2]), plan.output, (), ())  # fmt: skip
    found = instance_counts(plan, lambda _: 10, workers=8, members=3, rows_each=1000)
    assert found == {1: 3}
