"""How members leave in order: open work goes on, nothing begins any more, and nobody loses what the
others still need."""

from __future__ import annotations

import asyncio

import pytest
from sim_client import Client
from sim_network import LOST, Fate
from sim_rules import ORDERED, ROWS, SORTED, Play, scenario

from remuda.errors import JobInterrupted, MemberLeaving, NotServed, TransientError
from remuda.rpc.connection import State
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

SLOW = {"leave_timeout": 30.0}


async def begun(client: Client, *, pessimistic: bool = False) -> str:
    """An open transaction."""
    isolation = user_pb2.REPEATABLE_READ if pessimistic else user_pb2.SERIALIZABLE
    message = user_pb2.TransactionBegin(
        isolation=isolation, pessimistic=pessimistic, context=client.context
    )
    reply = await client.channel.request(RpcType.TRANSACTION_BEGIN, message)
    name: str = user_pb2.TransactionStatus.FromString(reply.pbody).transaction
    return name


async def ended(client: Client, name: str) -> None:
    """Commit. Raises how it ended otherwise."""
    message = user_pb2.TransactionEnd(transaction=name, commit=True, context=client.context)
    await client.channel.request(RpcType.TRANSACTION_END, message)


@scenario(14, **SLOW)
async def who_leaves_waits_for_what_is_open(play: Play) -> None:
    """A result that is read slowly, and a transaction."""
    sim = play.sim
    reader, writer = await play.client(2), await play.client(2)
    reader.patience = 1.0
    result = await reader.start(ORDERED, page_rows=10)
    await result.first.wait()
    name = await begun(writer)
    await writer.run("UPDATE t SET g = 100 WHERE id = 7", transaction=name)
    leaving = sim.loop.create_task(sim.leave(2), context=sim.director.context)
    await asyncio.sleep(4.0)
    assert 2 in sim.members[1].core.view.by_number
    await ended(writer, name)
    await result.done.wait()
    assert result.error is None
    assert [row[:2] for row in result.rows] == SORTED
    await leaving
    assert set(sim.members[1].core.view.by_number) == {1, 3}
    assert reader.farewells == writer.farewells == 1
    client = await play.client(1)
    assert await play.gives(client, "SELECT id FROM t WHERE g = 100") == [(7,)]
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, **SLOW)
async def a_slow_reader_elsewhere_survives_a_leave(play: Play) -> None:
    """The member that leaves has sent its part; the reader on member 1 takes it slowly."""
    sim = play.sim
    reader = await play.client(1)
    reader.patience = 1.0
    result = await reader.start(ORDERED, page_rows=10)
    await result.first.wait()
    await sim.leave(2)
    assert not result.done.is_set()
    await result.done.wait()
    assert result.error is None
    assert [row[:2] for row in result.rows] == SORTED


@scenario(14, **SLOW)
async def who_leaves_begins_nothing_new(play: Play) -> None:
    """What is refused was not run, so that clients may ask another member."""
    sim = play.sim
    reader, other = await play.client(2), await play.client(2)
    reader.patience = 1.0
    result = await reader.start(ORDERED, page_rows=10)
    await result.first.wait()
    leaving = sim.loop.create_task(sim.leave(2), context=sim.director.context)
    await asyncio.sleep(1.0)
    for act in (
        lambda: begun(other),
        lambda: other.run("UPDATE t SET g = 1"),
        lambda: other.run("BEGIN"),
    ):
        with pytest.raises(MemberLeaving) as caught:
            await act()
        assert caught.value.retryable
        assert not caught.value.may_have_run
        assert caught.value.member == "2"
    await other.schema("t")  # what is no statement is answered
    await result.done.wait()
    assert result.error is None
    await leaving


@scenario(14, leave_timeout=5.0)
async def what_is_open_at_the_deadline_is_rolled_back(play: Play) -> None:
    sim = play.sim
    reader, writer = await play.client(2), await play.client(2)
    reader.patience = 100.0
    result = await reader.start(ORDERED, page_rows=10)
    await result.first.wait()
    name = await begun(writer)
    await writer.run("UPDATE t SET g = 100 WHERE id = 7", transaction=name)
    leaving = sim.loop.create_task(sim.leave(2), context=sim.director.context)
    await asyncio.sleep(4.0)
    assert not result.done.is_set()
    async with asyncio.timeout(20.0):
        await result.done.wait()
    assert isinstance(result.error, MemberLeaving)
    with pytest.raises(TransientError) as caught:
        await ended(writer, name)
    assert caught.value.retryable
    assert not caught.value.may_have_run
    await leaving
    client = await play.client(1)
    assert await play.gives(client, "SELECT count(*) FROM t WHERE g = 100") == [(0,)]


@scenario(14, backups=0, **SLOW)
async def two_that_leave_at_once_lose_nothing(play: Play) -> None:
    sim = play.sim
    both = [
        sim.loop.create_task(sim.leave(number), context=sim.director.context) for number in (2, 3)
    ]
    await asyncio.wait(both)
    await play.until(lambda: set(sim.members[1].core.view.by_number) == {1}, 5.0)
    client = await play.client(1)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, **SLOW)
async def members_that_all_leave_wait_for_open_work_of_each_other(play: Play) -> None:
    """Nobody is there to take anything: a slow reader on one of them needs the others yet."""
    sim = play.sim
    reader = await play.client(2)
    name = await begun(reader)
    leaving = [
        sim.loop.create_task(sim.leave(number), context=sim.director.context)
        for number in (1, 2, 3)
    ]
    await asyncio.sleep(3.0)
    async with asyncio.timeout(5.0):
        assert len(await reader.run(ORDERED, transaction=name)) == ROWS
    await ended(reader, name)
    began = sim.loop.now
    await asyncio.wait(leaving)
    assert sim.loop.now < began + 5.0, "nobody waits for a handover that is impossible"


@scenario(14, **SLOW)
async def a_client_learns_that_its_request_was_not_received(play: Play) -> None:
    """What is sent after the last answer, and before the connection ends, was not run."""
    sim = play.sim
    client = await play.client(2)
    await sim.leave(2)
    assert client.farewells == 1
    with pytest.raises((NotServed, TransientError)):
        await client.schema("t")


@scenario(14, **SLOW)
async def who_has_not_acknowledged_a_result_hears_no_goodbye(play: Play) -> None:
    """A goodbye says that requests without an answer were not received. A client that has not yet
    read the end of its statement would send that again."""
    sim = play.sim
    idle, slow = await play.client(2), await play.client(2)
    slow.patience = 1000.0
    await slow.run("UPDATE t SET g = g + 1 WHERE id IN (1, 2)")
    assert slow.channel._connection.state is State.OPEN
    await sim.leave(2)
    assert (idle.farewells, slow.farewells) == (1, 0)


@scenario(14, leave_timeout=5.0)
async def whose_statement_runs_to_the_end_hears_no_goodbye(play: Play) -> None:
    """Its commit goes on beyond the deadline of the leave, and takes effect."""
    sim = play.sim
    writer = await play.client(2)
    asked = play.fate("COMMIT_KEEP", LOST, sender=2)
    result = await writer.start("UPDATE t SET g = 100 WHERE id IN (1, 2)")
    await play.until(lambda: asked[0] > 0, 2.0)
    await sim.leave(2)
    assert not writer.farewells
    assert result.error is None or result.error.may_have_run


@scenario(14, members=2, **SLOW)
async def of_two_members_none_goes_before_the_view_without_it(play: Play) -> None:
    """They agree slowly, as on a busy machine. The one that stays would have no majority."""
    sim = play.sim
    asked = play.fate("AGREE", Fate((0.6,)))
    await sim.leave(2)
    assert asked[0] > 0
    assert set(sim.members[1].core.view.by_number) == {1}
    client = await play.client(1)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, **SLOW)
async def nobody_waits_for_the_lease_of_a_member_that_has_left(play: Play) -> None:
    """The others learn late that it has installed the view in which it keeps nothing."""
    sim = play.sim
    late = play.fate("HEARTBEAT", Fate((1.0,)), sender=2)
    clients = [await play.client(1), await play.client(3)]
    longest = 0.0

    async def ask(client: Client) -> None:
        nonlocal longest
        while 2 in sim.members[1].core.view.by_number or not leaving.done():
            began = sim.loop.now
            assert await client.run("SELECT count(*) FROM t") == [(ROWS,)]
            longest = max(longest, sim.loop.now - began)
            await asyncio.sleep(0.02)

    leaving = sim.loop.create_task(sim.leave(2), context=sim.director.context)
    await asyncio.gather(leaving, *(ask(client) for client in clients))
    assert late[0] > 0
    lease = sim.members[1].core.config.lease_seconds
    assert longest < lease / 2, f"a query took {longest:.2f} s"


@scenario(14, backups=1)
async def a_write_that_loses_a_participant_runs_again(play: Play) -> None:
    """Member 3 keeps nothing of the commit, and is lost: nothing has taken effect, so the statement
    is planned again, and takes effect once."""
    sim = play.sim
    client = await play.client(1)
    asked = asyncio.Event()

    def silent(*_: object) -> None:
        asked.set()

    sim.members[3].commits.participants.keep_here = silent  # type: ignore[method-assign]
    updating = sim.loop.create_task(client.run("UPDATE t SET g = g + 1000"))
    await asked.wait()
    sim.crash(3)
    await updating
    found = await play.gives(client, "SELECT count(*) FROM t WHERE g BETWEEN 1000 AND 1999")
    assert found == [(ROWS,)]


@scenario(14, backups=1, leave_timeout=2.0)
async def a_job_whose_coordinator_leaves_is_rolled_back(play: Play) -> None:
    """It has waited for ``leave_timeout``. The error promises that nothing took effect."""
    sim = play.sim
    client = await play.client(3)
    begin = user_pb2.JobBegin(map="t", job=f"3-{'c' * 24}")
    await client.channel.request(RpcType.JOB_BEGIN, begin)
    leaving = sim.loop.create_task(sim.leave(3), context=sim.director.context)
    ends = sim.members[3].jobs._ended
    while not ends:
        await asyncio.sleep(0.01)
        assert 3 in sim.members[1].core.view.by_number, "it has left without a word"
    (error,) = ends.values()
    assert isinstance(error, JobInterrupted)
    assert error.retryable
    await leaving


@scenario(14, backups=1)
async def a_member_that_stops_keeps_nothing_of_its_statements(play: Play) -> None:
    """It is given up while a statement of its client is being committed, which cannot be cancelled:
    as a donor it may live on for long. ``Simulation.held`` counts what is left of its memory."""
    sim = play.sim
    client = await play.client(3)
    member = sim.members[3]
    asked = play.fate("COMMIT_PREPARE", LOST, sender=3)
    await client.start("UPDATE t SET g = g + 1000 RETURNING id")
    await play.until(lambda: asked[0] > 0, 5.0)
    assert member.core.memory.held > 0
    sim.split({3}, 6.0)
    await play.until(lambda: member.core.stopping, 30.0)
    await play.until(lambda: not member.core.tasks, 30.0)
    assert not member.core.memory.held
