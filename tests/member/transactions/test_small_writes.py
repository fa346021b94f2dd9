"""Puts, removes and transactions of real members with backups."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import remuda.aio
from remuda.datatypes import sql
from remuda.errors import (
    DivisionByZero,
    InputError,
    OutcomeUnknown,
    RemudaError,
    SchemaChanged,
    SerializationFailure,
    TransientError,
    ViewChanged,
)
from remuda.member.maps.writes import Gathered
from remuda.member.state.transaction_sets import ReadSet, Scan, Write
from remuda.plan.expression import Call, ColumnRef, Literal
from remuda.rpc.messages import user_pb2

InCluster = Callable[..., None]


async def table(cluster: Any, name: str = "m") -> tuple[Any, Any]:
    client = await cluster.client(1)
    await client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT)")
    return client, await client.schema(name)


def rows_in(store: Any, partition: int, at: int) -> list[tuple[Any, ...]]:
    cursor = store.scan(at, range(len(store.schema.columns)), frozenset({partition}))
    rows: list[tuple[Any, ...]] = []
    while (batch := cursor.next()) is not None:
        rows += [tuple(row.values()) for row in batch.to_pylist()]
    return sorted(rows)


def copies(cluster: Any, schema: Any) -> dict[int, list[list[tuple[Any, ...]]]]:
    """What each copy of each partition holds, the primary's first."""
    view = cluster.members[0].core.view
    found: dict[int, list[list[tuple[Any, ...]]]] = {}
    for partition, members in enumerate(view.replicas):
        for number in members:
            core = cluster.member(number).core
            store = core.copy_of(schema.map_id, partition)
            found.setdefault(partition, []).append(rows_in(store, partition, core.clock.last))
    return found


@pytest.mark.parametrize("backups", [1, 2])
def test_backups_have_what_was_acknowledged(in_cluster: InCluster, backups: int) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        assert await client.put(schema, (1, 10)) == [None]
        assert await client.put(schema, (1, 11)) == [(1, 10)]
        await asyncio.gather(*(client.put(schema, (k % 7, k)) for k in range(70)))
        await client.put(schema, *[(k, 100 + k) for k in range(20)])
        olds = await client.remove(schema, 3, 4, 1000)
        assert olds == [(3, 103), (4, 104), None]
        absent = user_pb2.PutRequest.IF_ABSENT
        olds = await client.put(schema, (5, 1), (3, 2), condition=absent)
        assert olds == [(5, 105), None]
        present = user_pb2.PutRequest.IF_PRESENT
        olds = await client.put(schema, (5, 3), (4, 4), condition=present)
        assert olds == [(5, 105), None]
        assert await client.get(schema, 3, 4, 5) == [(3, 2), None, (5, 3)]
        await cluster.settled()
        found = copies(cluster, schema)
        assert all(len(each) == backups + 1 for each in found.values())
        assert all(each == each[:1] * len(each) for each in found.values())
        assert sum(len(each[0]) for each in found.values()) == 19
        while any(m.transactions.shell.remembered for m in cluster.members):
            await asyncio.sleep(0.01)

    in_cluster(scenario, members=3, backups=backups)


def test_readers_wait_for_what_they_read(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put that is not on its backup yet makes its own key and SQL wait, other keys not."""

    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        await client.put(schema, *[(k, 0) for k in range(30)])
        primary = cluster.member(1)
        router = primary.maps.open("m").router
        mine = [k for k in range(30) if primary.core.view.owners[router.key_partition((k,))] == 1]
        key, other = mine[:2]
        by_key = "SELECT v FROM m WHERE id = ?"
        assert await client.sql(by_key, other) == [(0,)]  # planned now, read by key from now on
        held: list[tuple[int, Any]] = []
        shell = primary.transactions.shell
        with monkeypatch.context() as patched:
            keep = lambda to, frame: held.append((to, frame))  # noqa: E731
            patched.setattr(shell.outgoing, "send_frame", keep)
            put = asyncio.ensure_future(client.put(schema, (key, 1)))
            while not len(shell.pending):
                await asyncio.sleep(0.001)
            again = asyncio.ensure_future(client.put(schema, (key, 2)))
            get = asyncio.ensure_future(client.get(schema, key))
            counted = asyncio.ensure_future(client.sql("SELECT sum(v) FROM m"))
            assert await client.get(schema, other) == [(other, 0)]
            assert await client.sql(by_key, other) == [(0,)]
            await asyncio.sleep(0.05)
            assert not put.done()
            assert not again.done()
            assert not get.done()
            assert not counted.done()
        for to, frame in held:
            shell.outgoing.send_frame(to, frame)
        assert await put == [(key, 0)]
        assert await again == [(key, 1)]
        assert (await get)[0][1] in {1, 2}
        assert (await counted)[0][0] in {1, 2}

    in_cluster(scenario, members=2, backups=1)


def test_writes_wait_for_a_partition_that_is_held(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        transactions = cluster.member(1).transactions
        partition = transactions.router(schema.map_id).key_partition((1,))
        await transactions.hold([partition])
        put = asyncio.ensure_future(client.put(schema, (1, 1)))
        commit = asyncio.ensure_future(
            transactions.commit([Write(schema.map_id, schema.version, (1,), (1, 2))], None, 20)
        )
        await client.put(schema, (2, 2))
        await asyncio.sleep(0.05)
        assert not put.done()
        assert not commit.done()
        transactions.release([partition])
        await put
        await commit

    in_cluster(scenario, members=1)


def test_a_bulk_write_and_small_ones_take_turns(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        await client.put(schema, *[(k, 0) for k in range(50)])
        puts = [client.put(schema, (k, 1)) for k in range(50)]
        updates = [client.sql("UPDATE m SET v = v + 100") for _ in range(2)]
        await asyncio.gather(*puts, *updates)
        found = dict(await client.sql("SELECT id, v FROM m"))
        assert set(found.values()) <= {1, 101, 201}
        await cluster.settled()
        assert all(each == each[:1] * 2 for each in copies(cluster, schema).values())

    in_cluster(scenario, members=2, backups=1)


def test_a_write_that_fails_fails_alone(in_cluster: InCluster) -> None:
    """Among others of the same turn, whose messages to the backup it would have shared."""

    async def scenario(cluster: Any) -> None:
        addresses = [(member.info.host, member.info.user_port) for member in cluster.members]
        client, schema = await table(cluster)
        await client.put(schema, *[(key, key % 8) for key in range(16)])
        async with remuda.aio.connect(addresses) as user:
            entries = user.map("m")
            found = await asyncio.gather(
                *(entries.compute(key, "v = 100 / v") for key in range(16)), return_exceptions=True
            )
            for key, outcome in enumerate(found):
                assert isinstance(outcome, DivisionByZero) == (key % 8 == 0), outcome
            for key in range(16):
                expected = 100 // (key % 8) if key % 8 else 0
                assert (await entries.get(key)).v == expected
        for rows in copies(cluster, schema).values():
            assert rows[0] == rows[1]
        await cluster.idle()

    in_cluster(scenario, members=2, backups=1)


@pytest.mark.parametrize("backups", [0, 1])
def test_commits_are_validated_against_keys_and_conditions(
    in_cluster: InCluster, backups: int
) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        await client.put(schema, *[(k, k % 2) for k in range(20)])
        core, transactions = cluster.member(2).core, cluster.member(2).transactions
        await cluster.member(2).membership.clocks((1, 3))
        at = core.timestamp()
        odd = Call(sql.BOOLEAN, "=", (ColumnRef(sql.BIGINT, 1, "v"), Literal(sql.BIGINT, 1)))
        scan = Scan(schema.map_id, schema.version, odd, ((1, 1),))

        def write(key: int, value: int) -> Write:
            return Write(schema.map_id, schema.version, (key,), (key, value))

        read = ReadSet(at, {schema.map_id: {(2,), (99,)}}, [scan])
        await client.put(schema, (4, 6))  # not read, does not match
        committed = await transactions.commit([write(2, 8), write(40, 8)], read, 20)
        assert committed > at
        assert await client.get(schema, 2, 40) == [(2, 8), (40, 8)]
        for change in ((6, 1), (7, 0), (99, 0)):  # one comes to match, one ceases to, one appears
            at = core.timestamp()
            read = ReadSet(at, {schema.map_id: {(99,)}}, [scan])
            await client.put(schema, change)
            with pytest.raises(SerializationFailure, match='map "m"'):
                await transactions.commit([write(50, 0)], read, 20)
        with pytest.raises(SchemaChanged):
            await transactions.commit([Write(schema.map_id, 77, (1,), (1, 1))], ReadSet(at), 20)
        assert await client.get(schema, 50) == [None]
        await cluster.settled()
        assert all(each == each[:1] * len(each) for each in copies(cluster, schema).values())

    in_cluster(scenario, members=3, backups=backups)


def test_replicated_maps_take_part(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE r (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        _, schema = await table(cluster)
        r = await client.schema("r")
        writes = [
            Write(r.map_id, r.version, (1,), (1, 7)),
            Write(schema.map_id, schema.version, (1,), (1, 7)),
        ]
        at = cluster.member(1).core.timestamp()
        read = ReadSet(at, {r.map_id: {(1,)}}, [Scan(r.map_id, r.version)])
        await cluster.member(1).transactions.commit(writes, read, 20)
        for number in (1, 2, 3):
            other = await cluster.client(number)
            assert await other.get(r, 1) == [(1, 7)]
        with pytest.raises(SerializationFailure):
            await cluster.member(1).transactions.commit(writes, read, 20)

    in_cluster(scenario, members=3, backups=1)


def test_a_lost_member_takes_no_acknowledged_write_with_it(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await table(cluster)
        acknowledged: set[int] = set()
        stop = asyncio.Event()

        async def writer(first: int) -> None:
            key = first
            while not stop.is_set():
                key += 10
                try:
                    await client.put(schema, (key, key))
                    acknowledged.add(key)
                except RemudaError:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.001)

        writers = [asyncio.ensure_future(writer(n)) for n in range(4)]
        while len(acknowledged) < 40:
            await asyncio.sleep(0.005)
        lost = cluster.member(3)
        cluster.members.remove(lost)
        await lost.stop("a test")
        before = len(acknowledged)
        while cluster.member(1).core.view.number == 1 or len(acknowledged) < before + 40:
            await asyncio.sleep(0.01)
        stop.set()
        await asyncio.gather(*writers)
        keys = sorted(acknowledged)
        rows = None
        while rows is None:
            with contextlib.suppress(TransientError):  # the lease of a busy machine may lapse
                rows = await client.get(schema, *keys)
        assert [row and row[0] for row in rows] == keys
        while len({member.core.view.number for member in cluster.members}) > 1:
            await asyncio.sleep(0.01)
        await cluster.settled()
        found = copies(cluster, schema)
        assert len(found) == len(cluster.member(1).core.view.replicas)
        assert [each for each in found.values() if each != each[:1] * len(each)] == []

    in_cluster(scenario, members=3, backups=1)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([ViewChanged("moved"), ViewChanged("moved")], ViewChanged),
        ([ViewChanged("moved"), OutcomeUnknown("silent")], OutcomeUnknown),
        ([OutcomeUnknown("silent"), ViewChanged("moved")], OutcomeUnknown),
        ([[None], ViewChanged("moved")], TransientError),
        ([SchemaChanged("altered"), [None]], TransientError),
        ([[None], InputError("no number")], InputError),
    ],
)
def test_what_was_written_in_part_is_not_repeated(
    answers: list[list[None] | RemudaError], told: type[RemudaError]
) -> None:
    """The error of some partitions is repeated by nobody when others have, or may have, written."""
    heard: list[object] = []
    gathered = Gathered(len(answers), len(answers), heard.append)
    for place, answer in enumerate(answers):
        gathered.part([place])(answer)
    assert [type(answer) for answer in heard] == [told]
