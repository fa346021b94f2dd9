"""Locks on keys between members: waiting, deadlocks, and what they mean for writes of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from remuda.errors import DeadlockDetected, LockNotAvailable, SerializationFailure
from remuda.member.state.transaction_sets import ReadSet, Write
from remuda.transaction.states import TransactionId

InCluster = Callable[..., None]


async def prepared(cluster: Any) -> tuple[Any, Any, dict[int, int]]:
    """A client, the schema of a map with rows, and for each member a key that it is primary of."""
    client = await cluster.client(1)
    await client.sql("CREATE TABLE m (id BIGINT PRIMARY KEY, v BIGINT)")
    schema = await client.schema("m")
    await client.put(schema, *[(k, 0) for k in range(60)])
    core, router = cluster.member(1).core, cluster.member(1).transactions.router(schema.map_id)
    keys: dict[int, int] = {}
    for key in range(60):
        keys.setdefault(core.view.owners[router.key_partition((key,))], key)
    return client, schema, keys


def name(cluster: Any, number: int) -> TransactionId:
    return TransactionId(cluster.member(number).core.timestamp(), number)


@pytest.mark.parametrize("backups", [0, 1])
def test_locks_are_waited_for_and_given_on(in_cluster: InCluster, backups: int) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema, keys = await prepared(cluster)
        first, second = name(cluster, 1), name(cluster, 2)
        one, two = (cluster.member(n).transactions for n in (1, 2))
        at_3 = [(keys[3],)]
        await one.locks.lock(first, schema.map_id, [*at_3, (keys[1],)])
        waits = asyncio.ensure_future(two.locks.lock(second, schema.map_id, at_3))
        put = asyncio.ensure_future(client.put(schema, (keys[3], 5)))
        await asyncio.sleep(0.3)
        assert not waits.done()
        assert not put.done()
        assert await client.get(schema, keys[3]) == [(keys[3], 0)]  # readers do not wait

        change = [Write(schema.map_id, schema.version, at_3[0], (keys[3], 7))]
        read = ReadSet(cluster.member(2).core.timestamp())
        with pytest.raises(SerializationFailure, match='has locked a row of map "m"'):
            await two.commit(change, read, 20)
        read = ReadSet(cluster.member(1).core.timestamp())
        await one.commit(change, read, 20, owner=first)
        one.locks.release(first)
        await waits
        assert not put.done()
        two.locks.release(second)
        assert await put == [(keys[3], 7)]
        while any(len(m.transactions.locks) for m in cluster.members):
            await asyncio.sleep(0.01)

    in_cluster(scenario, members=3, backups=backups)


def test_a_key_is_read_where_it_is_locked(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema, keys = await prepared(cluster)
        locks, owner = cluster.member(1).transactions.locks, name(cluster, 1)
        absent = 1_000
        wanted = [(key,) for key in (*keys.values(), absent)]
        await client.put(schema, (keys[3], 5))
        found = await locks.lock_and_read(owner, schema, wanted)
        rows = {key: row for key, (_, row) in found.items()}
        assert rows == {
            (keys[1],): (keys[1], 0),
            (keys[2],): (keys[2], 0),
            (keys[3],): (keys[3], 5),
            (absent,): None,
        }
        for number in (2, 3):  # at the clocks of their primaries, which others pass from then on
            assert found[(keys[number],)][0] < cluster.member(number).core.timestamp()
            assert found[(keys[number],)][0] < cluster.member(1).core.timestamp()
        altered = replace(schema, version=schema.version + 1)
        assert await locks.lock_and_read(owner, altered, wanted) == {}  # only locked
        locks.release(owner)

    in_cluster(scenario, members=3)


def test_keys_are_checked_since_each_was_read(in_cluster: InCluster) -> None:
    """A lock that was lost, or passed by, between two reads."""

    async def scenario(cluster: Any) -> None:
        client, schema, keys = await prepared(cluster)
        one, two = (keys[1],), (keys[2],)
        transactions, held = cluster.member(3).transactions, (schema.map_id, one)
        early = cluster.member(3).core.timestamp()
        await client.put(schema, (keys[1], 1))
        late = cluster.member(1).core.timestamp()
        change = [Write(schema.map_id, schema.version, two, (keys[2], 7))]
        read = {schema.map_id: {one}}
        with pytest.raises(SerializationFailure, match="changed by others since it was read"):
            await transactions.commit(change, ReadSet(late, read, since={held: early}), 20)
        await transactions.commit(change, ReadSet(late, read), 20)

    in_cluster(scenario, members=3, backups=1)


def test_shared_locks_are_shared(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        _, schema, keys = await prepared(cluster)
        locks = [cluster.member(n).transactions.locks for n in (1, 2)]
        owners = [name(cluster, n) for n in (1, 2)]
        for lock, owner in zip(locks, owners, strict=True):
            await lock.lock(owner, schema.map_id, [(keys[2],)], shared=True)
        with pytest.raises(LockNotAvailable):
            await locks[0].lock(owners[0], schema.map_id, [(keys[2],)], timeout=0.05)
        locks[1].release(owners[1])
        await locks[0].lock(owners[0], schema.map_id, [(keys[2],)])
        locks[0].release(owners[0])

    in_cluster(scenario, members=2)


def test_a_deadlock_over_three_members_names_its_circle(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        _, schema, keys = await prepared(cluster)
        locks = {n: cluster.member(n).transactions.locks for n in (1, 2, 3)}
        owners = {n: name(cluster, n) for n in (1, 2, 3)}
        for n in (1, 2, 3):
            await locks[n].lock(owners[n], schema.map_id, [(keys[n],)])

        async def closing(n: int) -> None:
            try:
                await locks[n].lock(owners[n], schema.map_id, [(keys[n % 3 + 1],)])
            finally:
                locks[n].release(owners[n])

        ends = await asyncio.gather(*(closing(n) for n in (1, 2, 3)), return_exceptions=True)
        youngest = max(owners.values())
        errors = [(owners[n], end) for n, end in zip((1, 2, 3), ends, strict=True) if end]
        assert [owner for owner, _ in errors] == [youngest]
        error = errors[0][1]
        assert isinstance(error, DeadlockDetected)
        assert error.sqlstate == "40P01"
        assert all(str(owner) in error.detail for owner in owners.values())
        awaited = next(keys[n % 3 + 1] for n in owners if owners[n] == youngest)
        assert error.detail.splitlines()[1:] == [f'Key (id)=({awaited}) of map "m"']

    in_cluster(scenario, members=3)


def test_a_lost_member_gives_its_locks_up(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        _, schema, keys = await prepared(cluster)
        lost = cluster.member(3)
        await lost.transactions.locks.lock(name(cluster, 3), schema.map_id, [(keys[1],)])
        mine = name(cluster, 2)
        locks = cluster.member(2).transactions.locks
        waits = asyncio.ensure_future(locks.lock(mine, schema.map_id, [(keys[1],)]))
        await asyncio.sleep(0.05)
        cluster.members.remove(lost)
        await lost.stop("a test")
        await waits
        locks.release(mine)

    in_cluster(scenario, members=3, backups=1)
