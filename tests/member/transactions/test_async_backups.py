"""Maps whose writes are answered before their backups have them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import remuda.aio
from remuda.errors import InvalidDefinition, SerializationFailure
from remuda.rpc.messages import user_pb2
from remuda.transaction import states as tx

InCluster = Callable[..., None]


def test_the_answer_comes_before_the_backup_has_it(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for name, options in (("quick", " WITH (async_backups = true)"), ("safe", "")):
            await client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT){options}")
        quick, safe = await client.schema("quick"), await client.schema("safe")
        assert quick.options.async_backups
        primary = cluster.member(1)
        router = primary.maps.open("quick").router
        mine = [k for k in range(30) if primary.core.view.owners[router.key_partition((k,))] == 1]
        key, other = mine[:2]
        held: list[tuple[int, Any]] = []
        shell = primary.transactions.shell
        with monkeypatch.context() as patched:
            keep = lambda to, frame: held.append((to, frame))  # noqa: E731
            patched.setattr(shell.outgoing, "send_frame", keep)
            assert await client.put(quick, (key, 1)) == [None]
            waits = asyncio.ensure_future(client.put(safe, (other, 1)))
            # The writer sees its own write: the read waits for what the answer did not.
            get = asyncio.ensure_future(client.get(quick, key))
            again = asyncio.ensure_future(
                client.put(quick, (key, 2), condition=user_pb2.PutRequest.IF_PRESENT)
            )
            await asyncio.sleep(0.05)
            assert not waits.done()
            assert not get.done()
            assert not again.done()
            assert primary.maps.writes.small.backup_lag() > 0
        for to, frame in held:
            shell.outgoing.send_frame(to, frame)
        assert await again == [(key, 1)]
        assert (await get)[0] in {(key, 1), (key, 2)}
        assert await waits == [None]
        assert primary.maps.writes.small.backup_lag() == 0
        assert await client.sql("SELECT id, v FROM quick") == [(key, 2)]
        await client.remove(quick, key)
        await cluster.member(1).stop()
        cluster.members.pop(0)
        again_client = await cluster.client(2)
        assert await again_client.sql("SELECT count(*) FROM quick") == [(0,)]

    in_cluster(scenario, members=3, backups=1, heartbeat_timeout=1.0, lease=0.3)


def test_a_write_that_was_lost_after_its_answer_is_not_written_later(
    in_cluster: InCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client may have written the key once more meanwhile."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE q (id BIGINT PRIMARY KEY) WITH (async_backups = true)")
        schema = await client.schema("q")
        member = cluster.member(1)
        shell, small = member.transactions.shell, member.maps.writes.small
        ends: list[Any] = []
        shell.begin_alone = lambda _partition, _work, ended: ends.append(ended) or True
        router, owners = member.maps.open("q").router, member.core.view.owners
        key = next(k for k in range(30) if owners[router.key_partition((k,))] == 1)
        assert await client.put(schema, (key,)) == [None]
        assert len(small) == 1
        cause = SerializationFailure("another one was first")
        ends[0](tx.Report(tx.TransactionId(1, 1), tx.State.ROLLED_BACK, cause=cause))
        assert len(small) == 0
        await asyncio.sleep(0.05)
        assert len(ends) == 1
        assert "lost after its answer" in caplog.text

    in_cluster(scenario, members=2, backups=1)


def test_contended_writes_are_answered_when_they_are_decided(
    in_cluster: InCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Entries that expire are validated like those of transactions, perhaps in a later step."""

    async def scenario(cluster: Any) -> None:
        addresses = [(m.info.host, m.info.user_port) for m in cluster.members]
        options = "async_backups = true, ttl = '1 h'"
        async with remuda.aio.connect(addresses) as client:
            await client.sql(f"CREATE TABLE n (id INT PRIMARY KEY, v INT) WITH ({options})")
            found = client.map("n")
            await found.put(1, {"v": 0})
            seen = [found.compute(1, "v = v + 1") for _ in range(60)]
            values = sorted(value.v for value in await asyncio.gather(*seen))
            assert values == list(range(1, 61))
            absent = await asyncio.gather(*(found.put_if_absent(2, {"v": 0}) for _ in range(20)))
            assert absent.count(True) == 1
        assert "lost after its answer" not in caplog.text

    in_cluster(scenario, members=2, backups=1)


def test_where_it_cannot_be(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for options, said in (
            ("async_backups = 1", "invalid value for option async_backups: 1"),
            ("async_backups = true, replicated = true", "a replicated map has no backups"),
        ):
            with pytest.raises(InvalidDefinition, match=said):
                await client.sql(f"CREATE TABLE t (id INT PRIMARY KEY) WITH ({options})")
        await client.sql("CREATE TABLE t (id INT PRIMARY KEY)")
        await client.sql("ALTER TABLE t SET (async_backups = 'true')")
        assert (await client.schema("t")).options.async_backups
        await client.sql("ALTER TABLE t RESET (async_backups)")
        assert not (await client.schema("t")).options.async_backups

    in_cluster(scenario, members=1)
