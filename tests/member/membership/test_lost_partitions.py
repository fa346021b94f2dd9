"""Partitions whose every copy is lost: what can be done without them, and how they begin again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from remuda.cluster.next_view import Placement, next_view
from remuda.errors import ActiveTransaction, MemberUnavailable, NotSupported, PartitionsUnreachable

ACCEPT = "ALTER CLUSTER ACCEPT LOST PARTITIONS"


async def until(condition: Callable[[], object]) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.005)


async def filled(cluster: Any) -> tuple[Any, Any]:
    client = await cluster.client(1)
    await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
    schema = await client.schema("t")
    await client.put(schema, *[(k, k) for k in range(300)])
    return client, schema


@pytest.mark.parametrize(("members", "gone", "backups"), [(3, 1, 0), (5, 2, 1)])
def test_an_accepted_loss_leaves_empty_partitions(
    in_cluster: Any, members: int, gone: int, backups: int
) -> None:
    async def scenario(cluster: Any) -> None:
        client, schema = await filled(cluster)
        core = cluster.member(1).core
        assert (await client.run(ACCEPT)).affected == 0
        lost = cluster.members[members - gone :]
        del cluster.members[members - gone :]
        await asyncio.gather(*(member.stop() for member in lost))
        await until(lambda: len(core.view.members) == members - gone)
        empty = len(core.view.absent)
        assert empty
        with pytest.raises(PartitionsUnreachable):
            await client.sql("SELECT count(*) FROM t")
        await until(lambda: not any(m.gauges()["promoting"] for m in cluster.members))
        left = sum(store.rows for m in cluster.members for store in m.core.stores.values())
        result = await client.run(ACCEPT)
        assert (result.affected, result.tag) == (empty, "ALTER CLUSTER")
        assert await client.sql("SELECT count(*) FROM t") == [(left,)]
        assert left < 300
        emptied = await client.sql(
            "SELECT count(*) FROM sys.partitions WHERE emptied_in_view IS NOT NULL"
        )
        assert emptied == [(empty,)]
        # The same keys again, on all copies.
        await client.put(schema, *[(k, k) for k in range(300)])
        assert await client.sql("SELECT count(*), sum(v) FROM t") == [(300, 299 * 150)]
        await until(lambda: all(len(row) == backups + 1 for row in core.view.replicas))
        whole = "SELECT count(*) FROM sys.partitions WHERE state IN ('complete', 'to be moved')"
        assert await client.sql(whole) == [(271,)]

    in_cluster(scenario, members=members, backups=backups, heartbeat_timeout=1.0, lease=0.3)


def test_who_may_and_when(in_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        with pytest.raises(NotSupported, match="ALTER CLUSTER FORGET is not supported"):
            await client.sql("ALTER CLUSTER FORGET")
        member = cluster.member(1)
        # The next heartbeat would take the suspicion back.
        monkeypatch.setattr(member.membership, "_refresh", lambda _machine: None)
        member.core.lost[2] = "it is silent"
        with pytest.raises(MemberUnavailable, match="member 2 is suspected"):
            await client.sql(ACCEPT)
        del member.core.lost[2]
        result = await client.run("BEGIN", transaction="")
        result = await client.run(ACCEPT, transaction=result.tx.transaction)
        assert isinstance(result.error, ActiveTransaction)
        assert "ALTER CLUSTER cannot run inside" in result.error.message

    in_cluster(scenario, members=2)


def test_what_was_left_of_an_earlier_time_is_void(in_cluster: Any) -> None:
    """A member that has missed views finds that it has a partition which was lost meanwhile."""

    async def scenario(cluster: Any) -> None:
        await filled(cluster)
        member = cluster.member(1)
        before = member.core.view
        mine = before.partitions_of(1)
        assert member.core.stores
        lost = replace(
            before, number=before.number + 1,
            replicas=tuple(() if row[0] == 1 else row for row in before.replicas),
        )  # fmt: skip
        after = next_view(lost, (), (), [Placement(p, (), (1,)) for p in mine])
        assert after.emptied_since(before.number) == frozenset(mine)
        assert next_view(after, (), ()).emptied_since(after.number) == frozenset()
        assert next_view(after, (), ()).emptied == after.emptied
        member.lost.on_view(before, after)
        assert sum(store.rows for store in member.core.stores.values()) == 0

    in_cluster(scenario, members=1)
