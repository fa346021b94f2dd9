"""Sorted streams to several receivers (design rule 12), refusals, and what is under way."""

from __future__ import annotations

import random
import tempfile
from collections import Counter

import pyarrow as pa
import pytest

from remuda.datatypes.hashes.keyhash import hash_arrays, partitions_of
from remuda.datatypes.sql import BIGINT, BOOLEAN, VARCHAR
from remuda.datatypes.values import values_to_array
from remuda.errors import DivisionByZero, OutOfMemory, QueryCanceled
from remuda.execution import build
from remuda.execution.exchange.backlog import Backlog
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators import send
from remuda.execution.spill import SpillSpace
from remuda.plan.expression import Call, ColumnRef, Literal, SortKey
from remuda.plan.physical import (
    ExchangeKind,
    FilterRows,
    Fragment,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    Site,
)
from remuda.query.ids import Endpoint
from remuda.query.stream import Grant

MEMBERS = (1, 2)
WINDOW = 4000


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setattr(build, "stream_window", lambda *_: WINDOW)
    monkeypatch.setattr(send, "_SMALL_ROWS", 20)


def space(limit: int = 1 << 30) -> SpillSpace:
    return SpillSpace(tempfile.TemporaryFile, limit)


def skewed(engine):
    """Each sender's rows go to one receiver first and to the other one only then; sender 1 begins
    with the one, sender 2 with the other."""
    table = engine.table([("k", BIGINT), ("v", BIGINT), ("s", VARCHAR)], [])
    keys = list(range(400))
    partitions = partitions_of(hash_arrays([values_to_array(keys, BIGINT)], [BIGINT]))
    ends = {m: [k for k, p in zip(keys, partitions, strict=True) if p % 2 == m] for m in (0, 1)}
    chance = random.Random(3)

    def rows(first: int) -> list[tuple]:
        order = [*((chance.choice(ends[first])) for _ in range(600)),
                 *((chance.choice(ends[1 - first])) for _ in range(600))]  # fmt: skip
        return [(k, v, "x" * 40) for v, k in enumerate(order)]

    table.rows = {1: rows(0), 2: rows(1)}
    return table


def merged_everywhere(engine, table):
    """0 gathers what 1 merges, sorted by v, out of what 2 sends to the owners of k."""
    k, v, _ = table.columns
    order = (SortKey(v.id),)
    ordered = table.scan()  # its rows lie in this order
    rows = Send(ordered.output, engine.traits, ordered, 1, ExchangeKind.UNICAST, 1, (k.id,))
    merge = Receive(ordered.output, engine.traits, 1, 2, order)
    top = Receive(merge.output, engine.traits, 0, 1, order)
    return PhysicalPlan(
        (
            Fragment(0, Root(top.output, engine.traits, top), Site.INITIATOR),
            Fragment(1, Send(merge.output, engine.traits, merge, 0, ExchangeKind.MERGE, 0),
                     Site.DATA_MEMBERS),
            Fragment(2, rows, Site.DATA_MEMBERS),
        ),
        table.columns, (), (),
    )  # fmt: skip


def expected(table) -> list[int]:
    return sorted(row[1] for rows in table.rows.values() for row in rows)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("memory", [None, 120_000], ids=["in memory", "on disk"])
def test_a_sorted_exchange_to_several_receivers_ends(engine, seed, memory):
    table = skewed(engine)
    disk = space()
    grid = engine.Grid(merged_everywhere(engine, table), [table], MEMBERS, seed, batch_rows=50,
                       memory_limit=memory, spill=disk)  # fmt: skip
    assert [row[1] for row in grid.run()] == expected(table)
    assert disk.used == 0
    if memory is not None:
        assert disk.written > 0


def test_without_the_rule_it_deadlocks(engine, monkeypatch):
    """A sender that waits for the credit of one receiver lets the other one wait for its rows."""
    monkeypatch.setattr(Outbox, "starving", ())
    table = skewed(engine)
    plan = merged_everywhere(engine, table)
    grid = engine.Grid(plan, [table], MEMBERS, batch_rows=50, spill=space())
    with pytest.raises(AssertionError, match="the query hangs"):
        grid.run()
    waiting = [i for i in grid.instances if not i.ended]
    assert {i.fragment for i in waiting} == {0, 1, 2}


def test_without_disk_it_fails_with_a_clear_error(engine):
    table = skewed(engine)
    grid = engine.Grid(merged_everywhere(engine, table), [table], MEMBERS, batch_rows=50,
                       memory_limit=30_000)  # fmt: skip
    with pytest.raises(OutOfMemory, match="memory limit"):
        grid.run()
    grid.assert_clean()


def test_cancel_in_the_middle_gives_the_disk_back(engine):
    table = skewed(engine)
    for steps in range(20, 400, 40):
        disk = space()
        grid = engine.Grid(merged_everywhere(engine, table), [table], MEMBERS, steps,
                           batch_rows=50, memory_limit=100_000, spill=disk)  # fmt: skip
        grid.start()
        for _ in range(steps):
            grid.step()
        grid.cancel(QueryCanceled("enough"))
        grid.assert_clean()
        assert disk.used == 0


# --- a backlog ---


@pytest.mark.parametrize("seed", range(20))
def test_a_backlog_is_first_in_first_out_in_memory_and_on_disk(engine, seed):
    chance = random.Random(seed)
    table = engine.table([("v", BIGINT), ("s", VARCHAR)], [])
    form = BatchForm(table.columns)
    disk = space()
    account = MemoryAccount(chance.choice([4_000, 40_000]), disk)
    backlog = Backlog(form, 1000, Reservation(account, "Send"))
    put = taken = 0
    for _ in range(200):
        if chance.random() < 0.55:
            rows = chance.randint(1, 40)
            values = [list(range(put, put + rows)), ["y" * chance.randint(0, 30)] * rows]
            backlog.put(pa.RecordBatch.from_arrays([pa.array(c) for c in values],
                                                   schema=form.schema))  # fmt: skip
            put += rows
        elif backlog.first is not None:
            piece = backlog.popleft()
            assert piece.size <= 1000
            assert piece.batch.column(0).to_pylist() == [
                *range(taken, taken + piece.batch.num_rows)
            ]
            taken += piece.batch.num_rows
    while backlog.first is not None:
        taken += backlog.popleft().batch.num_rows
    assert taken == put
    assert not backlog
    assert account.held == disk.used == 0


# --- flow control ---


def gathered(engine, node):
    top = Receive(node.output, engine.traits, 0, 1)
    return PhysicalPlan(
        (
            Fragment(0, Root(node.output, engine.traits, top), Site.INITIATOR),
            Fragment(1, Send(node.output, engine.traits, node, 0, ExchangeKind.GATHER, 0),
                     Site.DATA_MEMBERS),
        ),
        node.output, (), (),
    )  # fmt: skip


@pytest.mark.parametrize("count", [1, 3])
def test_a_slow_consumer_keeps_each_sender_within_its_window(engine, count):
    """Nobody takes pages: what is under way or waits stays below a window for each stream."""
    rows = [(i, "z" * 50) for i in range(6000)]
    table = engine.table([("v", BIGINT), ("s", VARCHAR)], rows, (1, 2, 5))
    grid = engine.Grid(gathered(engine, table.scan()), [table], (1, 2, 5), batch_rows=20,
                       instances={1: count}, page_rows=10)  # fmt: skip
    grid.start()
    most: Counter[Endpoint] = Counter()

    def watch() -> None:
        for instance in grid.instances:
            for inbox in instance._inboxes.values():
                for stream in inbox._streams.values():
                    assert stream.received_bytes - stream.consumed_bytes <= WINDOW
            if instance._outbox is not None:
                me = Endpoint(instance.profile().member, instance.instance)
                for stream in instance._outbox._streams.values():
                    most[me] = max(most[me], stream.sent_bytes)
                    assert stream.credit >= 0
                    assert stream.granted_bytes - taken(me) <= WINDOW

    def taken(sender: Endpoint) -> int:
        root = next(i for i in grid.instances if i.fragment == 0)
        return root._inboxes[0]._streams[sender].consumed_bytes

    while grid.step():
        watch()
    stuck = dict(most)
    assert len(stuck) == 3 * count
    seen = 0
    while not grid.sink.exhausted:
        page = grid.sink.take()
        if page is not None:
            seen += page.num_rows
        if page is None or grid.chance.random() < 0.5:
            assert grid.step() or page is not None
            watch()
    assert seen == len(rows)
    assert sum(most.values()) > sum(stuck.values()), "they went on when rows were taken"


def test_a_failed_receiver_refuses_data_at_once(engine):
    """Its senders stop; the query still ends with the receiver's own error."""
    rows = [(i, "z" * 50) for i in range(3000)]
    table = engine.table([("v", BIGINT), ("s", VARCHAR)], rows, MEMBERS)
    v = ColumnRef(BIGINT, table.columns[0].id, "v")
    one = Literal(BIGINT, 1)
    bad = Call(BIGINT, "/", (one, Call(BIGINT, "-", (v, Literal(BIGINT, 40)))))
    plan = gathered(engine, table.scan())
    top = plan.fragments[0].root.input
    failing = FilterRows(top.output, engine.traits, top, Call(BOOLEAN, ">", (bad, one)))
    root = Fragment(0, Root(top.output, engine.traits, failing), Site.INITIATOR)
    plan = PhysicalPlan((root, plan.fragments[1]), plan.output, (), ())
    grid = engine.Grid(plan, [table], MEMBERS, batch_rows=20)
    grid.start()
    while grid.step():
        pass
    assert [type(error) for _, error in grid.members[1].errors] == [DivisionByZero]
    senders = [i for i in grid.instances if i.fragment == 1]
    assert not any(i.ended for i in senders), "whoever cancels tells them"
    assert all(i._outbox.held == 0 for i in senders)
    for _ in range(3):
        for instance in senders:
            instance.check_streams()
        while grid.step():
            pass
    assert all(i.ended for i in senders), "nobody cancelled: they ask for it themselves"
    assert [type(error) for _, error in grid.members[2].errors] == [QueryCanceled]
    grid.assert_clean()


def test_a_broadcast_frame_goes_once_to_each_member(engine):
    """Encoded once, addressed to all instances, charged to each stream."""
    table = engine.table([("v", BIGINT)], [])
    sent = []

    class Port:
        def send_batch(self, edge, instance, receivers, batch):
            sent.append((edge, instance, tuple(receivers), batch))

    receivers = tuple(Endpoint(m, i) for m in (2, 3) for i in (0, 1))
    form = BatchForm(table.columns)
    outbox = Outbox(edge=4, sender=Endpoint(1, 1), receivers=receivers, window=WINDOW, form=form,
                    port=Port())  # fmt: skip
    rows = pa.RecordBatch.from_arrays([pa.array(range(30))], schema=form.schema)
    outbox.put_all(rows)
    assert outbox.flush()
    assert [(edge, instance, to) for edge, instance, to, _ in sent] == [(4, 1, receivers)]
    size = sent[0][3].size
    assert outbox.sent_bytes == 2 * size
    assert {stream.sent_bytes for stream in outbox._streams.values()} == {size}
    outbox.on_flow_control(receivers[3], Grant(WINDOW, 0, receiver_finished=True))
    outbox.put_all(rows)
    outbox.end()
    assert outbox.flush()
    rest = [(to, batch.rows, batch.last) for _, _, to, batch in sent[1:]]
    assert rest == [(receivers[:3], 30, False), (receivers[:3], 0, True), (receivers[3:], 0, True)]
    assert all(stream.ended for stream in outbox._streams.values())
