"""Who may be in the next view (design rule 13), each as a scenario that fails without the rule;
registered with those of ``sim_rules``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

import pytest
from sim_loop import Node
from sim_network import LOST, Fate, Sent
from sim_rules import ROWS, Play, scenario

from remuda.datatypes.view import MemberInfo
from remuda.errors import MemberUnavailable, RemudaError
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import connect

NOBODY_HEARS = 9


async def ask_to_join(play: Play, through: int, info: MemberInfo) -> control_pb2.Join:
    """Send one request to join to a member, from a process that is no member."""
    sim, member = play.sim, play.sim.members[through]
    stranger = common_pb2.Member(uuid="stranger", host="nowhere")
    hello = control_pb2.ControlHandshake(member=stranger)
    join = control_pb2.Join(member=codec.encode_member(info), cluster=member.core.config.cluster)

    async def ask() -> control_pb2.Join:
        there = member.info
        channel = await connect(there.host, there.control_port, ChannelKind.CONTROL, hello)
        try:
            reply = await channel.request(RpcType.JOIN, join, timeout=20.0)
        finally:
            channel.close()
        return control_pb2.Join.FromString(reply.pbody)

    return await Node("stranger").context.run(sim.loop.create_task, ask())


async def refused(request: Awaitable[control_pb2.Join]) -> RemudaError:
    with pytest.raises(MemberUnavailable) as caught:
        await request
    return caught.value


def members_of(play: Play, number: int) -> set[int]:
    return set(play.sim.members[number].core.view.by_number)


def joiners(play: Play) -> list[MemberInfo]:
    """Those whom a majority of three has met, as the proposer knows."""
    machine = play.sim.members[1].membership._machine
    assert machine is not None
    return [info for info, joiner in machine._joiners._joiners.items() if len(joiner.met) >= 2]


async def serves(play: Play) -> None:
    client = await play.client(2)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]
    await client.run("UPDATE t SET g = g")


@scenario(13)
async def processes_that_are_not_there_do_not_join(play: Play) -> None:
    """Nobody hears their address; another member does; they claim the number of a member; they are
    a member at another address. The request that each of them makes is refused, and says why."""
    sim = play.sim
    two = sim.members[2].info
    phantoms = [
        replace(two, uuid="phantom", number=0, control_port=NOBODY_HEARS),
        replace(two, uuid="phantom", number=0),
        replace(two, uuid="phantom", number=3, control_port=NOBODY_HEARS),
        replace(sim.members[3].info, uuid="phantom"),
    ]
    for _ in range(4):
        for through in sim.members:
            for phantom in phantoms:
                error = await refused(ask_to_join(play, through, phantom))
                assert "does not find the process that asks to join" in error.message
                assert "advertises" in error.hint
            known = replace(two, control_port=NOBODY_HEARS)
            answer = await ask_to_join(play, through, known)
            assert codec.decode_member(answer.member) == two
        await asyncio.sleep(0.5)
    assert {member.core.view.number for member in sim.members.values()} == {1}
    await serves(play)
    joined = await sim.join(through=3)
    assert joined.core.view.number == 2
    assert members_of(play, 1) == {1, 2, 3, 4}


@scenario(13)
async def a_majority_meets_a_process_before_it_joins(play: Play) -> None:
    """Members 2 and 3 cannot reach the process, though member 1 can."""
    sim = play.sim
    joining = sim.loop.create_task(sim.join(through=1))
    await asyncio.sleep(0)
    node = sim.made[-1].node  # type: ignore[attr-defined]
    for number in (2, 3):
        sim.network.silence(sim.nodes[number], node, 12.0)
    await asyncio.sleep(10.0)
    assert {member.core.view.number for member in sim.members.values()} == {1}
    cause = sim.made[-1].membership.forming._cause
    assert "too few members find the process that asks to join: member 2: " in cause
    await joining
    assert members_of(play, 1) == {1, 2, 3, 4}
    await serves(play)


@scenario(13)
async def a_majority_suffices_to_meet_a_process(play: Play) -> None:
    """Member 3 has just lost its power, and is a member of the view yet."""
    sim = play.sim
    sim.crash(3, silently=True)
    views: list[set[int]] = []
    sim.members[1].core.listeners.view.add(lambda _, view: views.append(set(view.by_number)))
    await sim.join(through=2)
    assert views[0] == {1, 2, 3, 4}
    await play.until(lambda: members_of(play, 1) == {1, 2, 4}, 20.0)


@scenario(13)
async def a_meeting_is_with_one_incarnation(play: Play) -> None:
    """A process is met and ends before a view has it; a request names another one at its address,
    where nobody is any more."""
    sim = play.sim
    play.fate("AGREE", LOST)
    joining = sim.loop.create_task(sim.join(through=1))
    await play.until(lambda: bool(joiners(play)), 5.0)
    info = joiners(play)[0]
    joining.cancel()
    sim.network.kill(sim.made[-1].node, silently=False)  # type: ignore[attr-defined]
    later = replace(info, uuid="its next incarnation")
    for through in sim.members:
        await refused(ask_to_join(play, through, later))
    sim.network.rules.clear()
    for _ in range(20):
        await asyncio.sleep(0.2)
        await refused(ask_to_join(play, 1, later))
    views = [member.core.view for member in sim.members.values()]
    assert "its next incarnation" not in {m.uuid for view in views for m in view.members}
    await play.until(lambda: members_of(play, 1) == {1, 2, 3}, 20.0)
    await serves(play)


@scenario(13)
async def processes_that_end_before_the_vote_do_not_stop_the_cluster(play: Play) -> None:
    """Four processes have been met by all three members, and end before a view names them."""
    sim = play.sim
    play.fate("AGREE", LOST)
    joining = [sim.loop.create_task(sim.join(through=1)) for _ in range(4)]
    await play.until(lambda: len(joiners(play)) == 4, 5.0)
    for task, member in zip(joining, sim.made[-4:], strict=True):
        task.cancel()
        sim.network.kill(member.node, silently=False)  # type: ignore[attr-defined]
    sim.network.rules.clear()
    await play.until(lambda: sim.members[1].core.view.number > 1, 5.0)
    await play.until(lambda: members_of(play, 2) == {1, 2, 3}, 20.0)
    await serves(play)


@scenario(14)
async def a_lost_handshake_costs_no_member(play: Play) -> None:
    """As soon as a view names a process that joined, the first handshake in each direction between
    it and the others is lost, and the connection lives."""
    sim = play.sim
    lost: set[tuple[str, str]] = set()

    def rule(sent: Sent) -> Fate | None:
        pair = sent.sender, sent.receiver
        named = any(len(member.core.view.members) == 4 for member in sim.made)
        if sent.name != "HANDSHAKE" or not named or "m4" not in pair or pair in lost:
            return None
        lost.add(pair)
        return LOST

    sim.network.rules.append(rule)
    await sim.join(through=1)
    await asyncio.sleep(8.0)
    assert len(lost) >= 4
    assert {member.core.view.number for member in sim.made} == {sim.made[-1].core.view.number}
    assert members_of(play, 1) == {1, 2, 3, 4}
    await serves(play)
