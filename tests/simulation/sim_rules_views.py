"""The rules of views, leases and fencing (design rules 13 and 14), each as a scenario that fails
without the rule; registered with those of ``sim_rules``.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from sim_network import LOST
from sim_rules import ORDERED, ROWS, SORTED, Play, scenario

import remuda.member.sessions.replanning as planned_again_module
from remuda.cluster.membership import LeaveAsked
from remuda.errors import (
    MemberNotReady,
    MemberUnavailable,
    NoLease,
    NotSupported,
    RemudaError,
    TransientError,
    ViewChanged,
)
from remuda.member.state.routing import Router
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType


def primaries(play: Play, partition: int) -> list[int]:
    """Who serves the partition right now."""
    return [
        number
        for number, member in play.sim.live().items()
        if member.core.ready and member.core.view.owners[partition] == number
    ]


@scenario(13)
async def a_minority_gets_no_view(play: Play) -> None:
    """Member 3 alone stays where it was, and stops when it learns that the others went on."""
    members = play.sim.members
    play.sim.split({3}, 12.0)
    await play.until(lambda: members[1].core.view.number == 2, 8.0)
    assert set(members[1].core.view.by_number) == {1, 2}
    await asyncio.sleep(3.0)
    assert members[3].core.view.number == 1
    assert not members[3].core.ready
    await play.until(lambda: members[3].core.stopping, 30.0)
    assert members[1].core.view == members[2].core.view


@scenario(13)
async def a_refused_handshake_says_that_it_was_given_up(play: Play) -> None:
    """Member 3 counts the others as lost when the network heals, and hears nothing but refusals of
    the connections that it opens."""
    sim = play.sim
    three = sim.members[3].core
    three.config = replace(three.config, join="")
    play.fate("AGREE", LOST, to=3)
    sim.split({3}, 12.0)
    await play.until(lambda: sim.members[1].core.view.number == 2, 8.0)
    await play.until(lambda: set(three.lost) == {1, 2}, 2.0)
    for number in (1, 2):
        for kind in ("control", "data"):
            sim.network.break_connections(sim.nodes[3], sim.nodes[number], kind)
            sim.network.break_connections(sim.nodes[number], sim.nodes[3], kind)
    await play.until(lambda: three.stopping, 30.0)


@scenario(13)
async def a_member_asks_again_where_it_joined(play: Play) -> None:
    """All members that member 3 knows were replaced by others while it was cut off."""
    sim = play.sim
    sim.split({3}, 60.0)
    await play.until(lambda: sim.members[1].core.view.number == 2, 8.0)
    four = await sim.join(through=1)
    for number in (1, 2):
        await sim.leave(number)
    await play.until(lambda: set(four.core.view.by_number) == {4}, 20.0)
    three = sim.members[3].core
    address = four.addresses()["control"]
    three.config = replace(three.config, join=address)
    await play.until(lambda: three.stopping, 60.0)


@scenario(13, members=2)
async def two_members_that_lose_one_stop_writing(play: Play) -> None:
    client = await play.client(1)
    schema = await client.schema("t")
    play.sim.crash(2)
    await asyncio.sleep(4.0)
    owners = play.sim.members[1].core.view.owners
    router = Router(play.sim.members[1].core.catalog.get("t"))
    here = next(n for n in range(ROWS, 1000) if owners[router.partition([n])] == 1)
    with pytest.raises(NoLease, match="is not heard by a majority"):
        await client.put(schema, here, 1, "")
    with pytest.raises(MemberUnavailable):
        await client.run("CREATE TABLE u (id INT PRIMARY KEY)")


@scenario(13)
async def a_catalog_change_needs_a_majority(play: Play) -> None:
    """Member 1 does not know yet that it is alone."""
    client = await play.client(1)
    play.sim.split({1}, 20.0)
    with pytest.raises(TransientError):
        await client.run("CREATE TABLE u (id INT PRIMARY KEY)")
    assert play.sim.members[1].core.catalog.find("u") is None


@scenario(13)
async def a_joiner_has_the_catalog(play: Play) -> None:
    joined = await play.sim.join(through=2)
    assert joined.core.catalog.find("t") is not None  # with the view; news would bring it later
    client = await play.client(joined.core.number)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]
    await client.run("CREATE TABLE u (id INT PRIMARY KEY)")
    assert play.sim.members[2].core.catalog.find("u") is not None


@scenario(14, batch_rows=3, window=3000)
async def a_query_goes_on_in_the_next_view(play: Play) -> None:
    client = await play.client(1)
    client.patience = 0.05
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    joined = await play.sim.join(through=1)
    assert not result.done.is_set()
    assert joined.core.view.number == 2
    client.patience = 0.0
    await result.done.wait()
    assert result.error is None
    assert [row[:2] for row in result.rows] == SORTED


@scenario(14)
async def a_message_of_a_lower_view_is_refused(play: Play) -> None:
    """Member 3 has not heard of the view with member 4; what it asks for tells it."""
    members = play.sim.members
    for name in ("AGREE", "HEARTBEAT"):
        play.fate(name, LOST, to=3)
    await play.sim.join(through=1)
    assert members[1].core.view.number == 2
    assert members[3].core.view.number == 1
    three = members[3]
    schema = codec.encode_schema(three.core.catalog.get("t"))
    message = user_pb2.KeysRequest(map="t", map_id=schema.map_id, schema_version=schema.version)
    forward = control_pb2.Forward(
        context=three.core.context(),
        rpc_type=user_pb2.RpcType.MAP_GET,
        body=message.SerializeToString(),
    )
    with pytest.raises(ViewChanged):
        await three.peers.request(1, control_pb2.RpcType.FORWARD, forward)
    play.sim.network.rules.clear()
    await play.until(lambda: three.core.view.number == 2, 3.0)


@scenario(14, backups=1)
async def a_backup_takes_over_when_the_lease_is_over(play: Play) -> None:
    """Member 3 cannot be heard: nobody serves its partitions before it has stopped to."""
    sim = play.sim
    partition = sim.members[1].core.view.partitions_of(3)[0]
    backup = sim.members[1].core.view.replicas[partition][1]
    assert primaries(play, partition) == [3]
    sim.split({3}, 60.0)
    for number in (1, 2):  # dropped at once, though its heartbeats were just answered
        step, context = sim.members[number].membership.step, sim.nodes[number].context
        sim.loop.call_soon(step, LeaveAsked(3), context=context)
    deadline = sim.loop.now + 20.0
    while primaries(play, partition) != [backup]:
        assert sim.loop.now < deadline
        assert len(primaries(play, partition)) <= 1
        await asyncio.sleep(0.02)
    assert sim.members[backup].core.view.number == 2


@scenario(14, backups=1)
async def a_member_whose_connections_are_reset_stays(play: Play) -> None:
    """Its process lives, and its port refuses for half a second: it is suspected, not dropped."""
    sim = play.sim
    suspected: set[int] = set()
    for number in (1, 2):
        sim.members[number].core.listeners.lost.add(lambda lost, _: suspected.add(lost))
    for seconds in (0.15, 0.3, 0.5):
        suspected.clear()
        sim.network.reset(sim.nodes[3], sim.nodes.values(), seconds)
        await asyncio.sleep(seconds / 2)
        assert 3 in suspected
        await play.until(lambda: not any(m.core.lost for m in sim.members.values()), 3.0)
        await asyncio.sleep(1.0)
    assert {member.core.view.number for member in sim.members.values()} == {1}
    client = await play.client(3)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, backups=1, heartbeat_interval=0.25, heartbeat_timeout=2.5)
async def a_member_with_short_heartbeats_stays_after_resets(play: Play) -> None:
    """Its lease is 0.75 s. At any moment between two heartbeats its connections may break, and its
    port refuse for most of that lease."""
    sim = play.sim
    config = sim.members[1].core.config
    beat, lease = config.heartbeat_interval, config.lease_seconds
    for turn in range(8):
        victim = sim.random.choice((1, 2, 3))
        seconds = sim.random.uniform(0.1, lease - beat)
        sim.network.reset(sim.nodes[victim], sim.nodes.values(), seconds)
        await asyncio.sleep(seconds + lease + sim.random.uniform(0, beat))
        assert {member.core.view.number for member in sim.members.values()} == {1}, turn
        await play.until(lambda: not any(m.core.lost for m in sim.members.values()), lease)


@scenario(14, backups=1)
async def a_crash_is_found_by_its_closed_port(play: Play) -> None:
    """Nobody listens there any more: its partitions are served when its lease is over, which is
    counted from the last heartbeat that others have answered."""
    sim = play.sim
    partition = sim.members[1].core.view.partitions_of(3)[0]
    backup = sim.members[1].core.view.replicas[partition][1]
    began, lease = sim.loop.now, sim.members[1].core.config.lease_seconds
    sim.crash(3)
    await play.until(lambda: primaries(play, partition) == [backup], lease + 0.4)
    assert sim.loop.now - began >= lease - sim.members[1].core.config.heartbeat_interval
    assert "Connection refused" in sim.members[backup].core.view.cause_of_departure(3)


@scenario(14, backups=1)
async def statements_wait_until_a_crashed_member_is_dropped(play: Play) -> None:
    """They begin when the others miss it, and no view has dropped it yet."""
    sim = play.sim
    cores = [sim.members[number].core for number in (1, 2)]
    client = await play.client(1)
    await client.run("CREATE TABLE u (id BIGINT PRIMARY KEY, g INT)")
    await client.run("CREATE TABLE r (id BIGINT PRIMARY KEY) WITH (replicated = true)")
    begun = [await play.client(number) for number in (1, 2) for _ in STATEMENTS]
    sim.crash(3)
    await play.until(lambda: all(3 in core.lost for core in cores), 2.0)
    assert all(3 in core.view.by_number for core in cores)
    results = [
        await client.start(text)
        for client, text in zip(begun, [*STATEMENTS, *reversed(STATEMENTS)], strict=True)
    ]
    await asyncio.sleep(0.2)
    assert all(3 in core.view.by_number for core in cores)
    async with asyncio.timeout(15.0):
        for result in results:
            await result.done.wait()
    assert [result.error for result in results] == [None] * len(results)
    assert await play.gives(client, "SELECT count(*) FROM u") == [(ROWS,)]
    assert await play.gives(client, "SELECT count(*) FROM r") == [(ROWS,)]


STATEMENTS = (
    "SELECT count(*) FROM t",
    ORDERED,
    "UPDATE t SET g = g",
    "INSERT INTO u SELECT id, g FROM t ON CONFLICT (id) DO NOTHING",
    "INSERT INTO r SELECT id FROM t ON CONFLICT (id) DO NOTHING",
    "DELETE FROM t WHERE g = -1",
    "INSERT INTO u VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5) ON CONFLICT (id) DO NOTHING",
    "WITH RECURSIVE w(n) AS (SELECT 1 UNION SELECT n + 1 FROM w WHERE n < 3) SELECT 1 FROM w, t",
    *(f"SELECT g FROM t WHERE id = {key}" for key in range(9)),
)


@scenario(14, backups=1)
async def a_dropped_member_is_told_the_true_cause(play: Play) -> None:
    """By a member that has not suspected it itself, too."""
    sim = play.sim
    sim.split({3}, 12.0)
    cores = [sim.members[number].core for number in (1, 2)]
    await play.until(lambda: all(core.view.number == 2 for core in cores), 8.0)
    for core in cores:
        assert "no heartbeat" in core.view.cause_of_departure(3)
        assert "has left" not in core.lost[3]
    reasons: list[str] = []
    sim.members[3].on_given_up.append(reasons.append)
    await play.until(lambda: sim.members[3].core.stopping, 30.0)
    assert "no heartbeat" in reasons[0]


@scenario(14, backups=0)
async def who_leaves_is_let_go(play: Play) -> None:
    """By agreement, after it has given away what it keeps, though there are no backups."""
    sim = play.sim
    await sim.leave(2)
    assert sim.members[2].core.stopping
    await play.until(lambda: sim.members[1].core.view == sim.members[3].core.view, 1.0)
    assert set(sim.members[1].core.view.by_number) == {1, 3}
    client = await play.client(1)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14)
async def a_query_that_has_told_nothing_is_run_again_in_the_next_view(play: Play) -> None:
    """Member 1 is a view ahead for two seconds: its clock rounds are refused as long."""
    client = await play.client(1)
    core = play.sim.members[1].core
    view = core.view
    core.view = replace(view, number=view.number + 1)
    result = await client.start(ORDERED)
    await asyncio.sleep(2.0)
    assert not result.done.is_set()
    core.view = view
    async with asyncio.timeout(5.0):
        await result.done.wait()
    assert result.error is None
    assert [row[:2] for row in result.rows] == SORTED


@scenario(14)
async def another_view_is_not_waited_for_without_end(play: Play) -> None:
    client = await play.client(1)
    core = play.sim.members[1].core
    view = core.view
    core.view = replace(view, number=view.number + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planned_again_module, "PATIENCE", 0.5)
        await play.fails(await client.start(ORDERED), ViewChanged, 2.0)
    core.view = view


async def _told(play: Play, refusal: type[RemudaError], seconds: float) -> tuple[int, list[None]]:
    """Member 1 tells member 3 something, which member 3 refuses with this error for so long: how
    often it was told, and an item for each time that member 1 takes it as heard."""
    sim = play.sim
    control = sim.members[3]._member_routes.control
    route, asked, heard = control[RpcType.COMMIT_TURN_END], list[float](), list[None]()

    def refuse(_request: object) -> None:
        asked.append(sim.loop.now)
        raise refusal("not today")

    control[RpcType.COMMIT_TURN_END] = refuse
    message = partial(control_pb2.CommitTurn, context=sim.members[1].core.context())
    sim.members[1].peers.tell(3, RpcType.COMMIT_TURN_END, message, lambda: heard.append(None))
    await asyncio.sleep(seconds)
    control[RpcType.COMMIT_TURN_END] = route
    return len(asked), heard


@scenario(14)
async def nothing_is_told_again_to_a_member_that_refuses_it_for_good(play: Play) -> None:
    asked, heard = await _told(play, NotSupported, 20.0)
    assert asked == len(heard) == 1


@scenario(14)
async def what_is_not_heard_is_told_again_ever_more_rarely(play: Play) -> None:
    """Until the member takes it."""
    asked, heard = await _told(play, MemberNotReady, 20.0)
    assert 5 <= asked <= 10
    assert not heard
    await play.until(lambda: len(heard) == 1, 5.0)
