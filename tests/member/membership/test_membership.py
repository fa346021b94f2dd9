"""Members that come and go, on real sockets. More, and worse, happens in tests/simulation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.config import MemberConfig
from remuda.errors import (
    InputError,
    MemberNotReady,
    MemberUnavailable,
    NoLease,
    PartitionsUnreachable,
    ViewChanged,
)
from remuda.member.member import Member
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.world import system_world

InCluster = Callable[..., None]
FAST = {"heartbeat_interval": 0.05, "heartbeat_timeout": 5.0, "join_timeout": 20.0}


async def until(condition: Callable[[], object]) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.002)


async def joined(cluster: Any, through: int, **settings: Any) -> Member:
    seed = cluster.member(through).addresses()["control"]
    member = Member(MemberConfig(join=seed, **FAST | settings), system_world())
    cluster.members.append(member)
    await member.start()
    return member


async def filled(cluster: Any) -> Any:
    client = await cluster.client(1)
    await client.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, v BIGINT)")
    await client.sql("CREATE TABLE r (id INTEGER PRIMARY KEY) WITH (replicated = true)")
    await client.sql("INSERT INTO r VALUES (7)")
    await client.put(await client.schema("t"), *[(i, i) for i in range(300)])
    return client


def test_a_process_joins_through_any_member_and_gets_its_share(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await client.sql("CREATE VIEW w AS SELECT v FROM t")
        member = await joined(cluster, through=2)
        assert member.info.number == 4
        assert member.core.view.number >= 2
        other = await cluster.client(4)
        assert await other.sql("SELECT count(*), sum(v) FROM w") == [(300, 300 * 299 // 2)]
        assert await other.sql("SELECT id FROM r") == [(7,)]
        await until(lambda: len(member.core.view.partitions_of(4)) > 60)
        assert await client.sql("SELECT count(*), sum(v) FROM w") == [(300, 300 * 299 // 2)]
        rows = await client.sql("SELECT member, state, partitions FROM sys.members")
        assert sum(partitions for _, _, partitions in rows) == 271
        assert {state for _, state, _ in rows} == {"alive"}

    in_cluster(scenario, members=3)


def test_copies_go_to_another_rack_when_there_is_one(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await joined(cluster, through=1, labels="rack=b")
        view = cluster.member(1).core.view
        assert [dict(member.labels) for member in view.members] == [
            {"rack": "a"}, {"rack": "a"}, {"rack": "b"},
        ]  # fmt: skip
        core = cluster.member(1).core
        await until(lambda: all((row[0] == 3) != (row[1] == 3) for row in core.view.replicas))
        await cluster.member(3).leave()
        await until(lambda: 3 not in core.view.by_number)
        assert await client.sql("SELECT count(*), sum(v) FROM t") == [(300, 300 * 299 // 2)]
        found = await client.sql("SELECT DISTINCT labels FROM sys.members")
        assert found == [("rack=a",)]

    in_cluster(scenario, members=2, backups=1, labels="rack=a")


def test_a_member_alone_takes_another_one_in(in_cluster: InCluster) -> None:
    """From one to two: the lease of the first goes on."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await joined(cluster, through=1)
        assert await client.sql("SELECT count(*) FROM t") == [(300,)]
        await until(lambda: len(cluster.member(1).core.view.partitions_of(2)) > 130)
        await cluster.member(2).leave()
        await cluster.member(2).stop()
        await until(lambda: set(cluster.member(1).core.view.by_number) == {1})
        assert await client.sql("SELECT count(*) FROM t") == [(300,)]

    in_cluster(scenario, members=1)


def test_a_lost_member_is_dropped_and_its_backups_take_over(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await cluster.member(3).stop()
        await until(lambda: cluster.member(1).core.view.number > 1)
        assert set(cluster.member(1).core.view.by_number) == {1, 2}
        assert await client.sql("SELECT count(*), sum(v) FROM t") == [(300, 300 * 299 // 2)]
        await client.put(await client.schema("t"), *[(i, 0) for i in range(300)])
        assert await client.sql("SELECT count(*), sum(v) FROM t") == [(300, 0)]

    in_cluster(scenario, members=3, backups=1, heartbeat_timeout=1.0)


def test_without_backups_what_a_dropped_member_has_is_unreachable(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await cluster.member(3).stop()
        await until(lambda: cluster.member(1).core.view.number > 1)
        with pytest.raises(PartitionsUnreachable, match="90 of 271 partitions cannot be reached"):
            await client.sql("SELECT count(*) FROM t")
        states = dict(await client.sql("SELECT state, count(*) FROM sys.partitions GROUP BY 1"))
        assert states == {"complete": 181, "unreachable": 90}
        ((awaited,),) = await client.sql("SELECT min(awaited) FROM sys.partitions")
        assert awaited.startswith("member 3 (")
        assert await client.sql("SELECT id FROM r") == [(7,)]
        await client.sql("CREATE TABLE u (id INTEGER PRIMARY KEY)")

    in_cluster(scenario, members=3, backups=0)


def test_of_two_members_none_goes_on_alone(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await cluster.member(2).stop()
        core = cluster.member(1).core
        await until(lambda: 2 in core.lost and not core.ready)
        with pytest.raises(NoLease, match="is not heard by a majority of the 2 members"):
            await client.sql("SELECT count(*) FROM t")
        with pytest.raises(NoLease):
            await client.put(await client.schema("t"), (1, 1))
        with pytest.raises(MemberUnavailable, match="no majority"):
            await client.sql("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert await client.sql("SELECT member, state FROM sys.members ORDER BY 1") == [
            (1, "alive"),
            (2, "suspected"),
        ]
        with pytest.raises(MemberUnavailable, match="no view from") as caught:
            await joined(cluster, through=1, join_timeout=0.5)
        assert "majority" in caught.value.detail

    in_cluster(scenario, members=2, heartbeat_timeout=1.0, join_timeout=1.0)


def test_with_fewer_than_minimum_members_nobody_serves(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.member.state.readiness.READY_TIMEOUT", 0.1)

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await cluster.member(3).stop()
        core = cluster.member(1).core
        await until(lambda: core.view.number > 1)
        with pytest.raises(MemberNotReady, match="minimum_members is 3"):
            core.require_lease()
        await joined(cluster, through=1, minimum_members=3)
        await until(lambda: core.ready)
        assert await client.sql("SELECT count(*) FROM t") == [(300,)]

    in_cluster(scenario, members=3, minimum_members=3, backups=1, heartbeat_timeout=1.0)


def test_a_suspicion_that_was_wrong_ends(in_cluster: InCluster) -> None:
    """Of two members: nobody can decide that the other is gone, and it is not."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        cluster.member(1).membership.lose(2, "a mistake")
        assert cluster.member(1).core.lost == {2: "a mistake"}
        await until(lambda: not cluster.member(1).core.lost)
        assert cluster.member(1).core.view.number == 1
        assert await client.sql("SELECT count(*) FROM t") == [(300,)]

    in_cluster(scenario, members=2)


def test_a_message_of_another_view_is_refused_and_told(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        core = cluster.member(1).core
        told: list[tuple[int, int]] = []
        core.listeners.other_view.add(lambda *message: told.append(message))
        context = core.context()
        context.view, context.sender = 9, 2
        with pytest.raises(ViewChanged, match="in view 1, the message comes from view 9"):
            core.observe_member(context)
        assert told == [(2, 9)]
        core.observe_peer(context)
        forward = control_pb2.Forward(context=context, rpc_type=user_pb2.RpcType.MAP_SIZE)
        with pytest.raises(ViewChanged):
            await cluster.member(2).peers.request(1, control_pb2.RpcType.FORWARD, forward)

    in_cluster(scenario, members=2)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"backups": 7}, "backups must be 0 to 6"),
        ({"backups": -1}, "backups must be 0 to 6"),
        ({"minimum_members": 2}, "minimum_members must be 1 to 1"),
        ({"labels": "rack"}, "labels are NAME=VALUE"),
        ({"labels": "rack=a,"}, "labels are NAME=VALUE"),
        ({"labels": "rack=a, rack=b"}, "label rack is given twice"),
        ({"lease": 0.5}, "lease must lie between"),
        ({"lease": 20.0}, "lease must lie between"),
        ({"lease": -1.0}, "lease"),
        ({"heartbeat_timeout": 1.0}, "heartbeat_timeout (1.0) must be above"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as caught:
        MemberConfig(**settings)
    assert part in str(caught.value)


def test_the_lease_follows_from_the_heartbeats() -> None:
    assert MemberConfig().lease_seconds == 3.0
    assert MemberConfig(lease=5.0).lease_seconds == 5.0
    assert 1.0 < MemberConfig(heartbeat_timeout=2.0).lease_seconds < 2.0
