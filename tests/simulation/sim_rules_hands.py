"""The hands of operators: statements, transactions and connections are ended from another member,
and members are drained from another one. Each request ends what it names, once, or says why not."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from sim_client import Client, Result
from sim_cluster import Simulation
from sim_network import LOST, Fate
from sim_rules import ORDERED, ROWS, Play, scenario
from sim_rules_leaving import begun, ended

from remuda.errors import (
    ConnectionBroken,
    MemberUnavailable,
    QueryCanceled,
    UndefinedObject,
    WrongState,
)
from remuda.query.wire import decode_query_id
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

SLOW = {"batch_rows": 3, "window": 3000}
"""Fragments wait for a client that takes no page."""
LATE = Fate((0.0, 2.0))
"""The request comes twice, the second time after two seconds."""


def name_of(result: Result) -> str:
    return str(decode_query_id(result.handle))


async def reading(play: Play, number: int) -> tuple[Client, Result]:
    """A client that takes no page of a result to which all members contribute."""
    client = await play.client(number)
    client.patience = 60.0
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    assert not any(play.idle(each) for each in play.sim.members)
    return client, result


async def all_idle(play: Play) -> None:
    here = play.sim.live()
    await play.until(lambda: all(play.idle(number) for number in here), 5.0)


async def pid_of(client: Client) -> int:
    rows = await client.run("SELECT pg_backend_pid()")
    number: int = rows[0][0]
    return number


# ---- cancel ----


@scenario(10, **SLOW)
async def a_statement_is_cancelled_from_another_member(play: Play) -> None:
    """While its fragments run. The connection goes on, and a second request finds it ended."""
    client, result = await reading(play, 1)
    operator = await play.client(2)
    await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    await play.fails(result, QueryCanceled, 1.0)
    await all_idle(play)
    assert len(play.sent("QUERY_CANCEL")) <= 2 * 3
    with pytest.raises(UndefinedObject, match="has ended already"):
        await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    client.patience = 0.0
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(10, **SLOW)
async def a_late_cancel_ends_no_later_statement(play: Play) -> None:
    """It comes a second time, when the client runs its next statement."""
    client, result = await reading(play, 1)
    operator = await play.client(2)
    repeated = play.fate("END_WORK", LATE, times=1)
    await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    await play.fails(result, QueryCanceled, 1.0)
    later = await client.start(ORDERED, page_rows=2)
    await asyncio.sleep(3.0)
    assert repeated == [1]
    assert later.error is None
    assert not later.done.is_set()
    await operator.run(f"CANCEL QUERY '{name_of(later)}'")
    await play.fails(later, QueryCanceled, 1.0)
    await all_idle(play)


@scenario(10)
async def a_late_cancel_ends_no_later_transaction(play: Play) -> None:
    client, operator = await play.client(1), await play.client(2)
    first = await begun(client)
    await client.run("UPDATE t SET g = 100 WHERE id = 7", transaction=first)
    repeated = play.fate("END_WORK", LATE, times=1)
    await operator.run(f"CANCEL TRANSACTION '{first}'")
    with pytest.raises(QueryCanceled, match="it was cancelled by an operator"):
        await client.run("SELECT 1", transaction=first)
    second = await begun(client)
    await client.run("UPDATE t SET g = 200 WHERE id = 7", transaction=second)
    await asyncio.sleep(3.0)
    assert repeated == [1]
    await ended(client, second)
    assert await play.gives(operator, "SELECT g FROM t WHERE id = 7") == [(200,)]


@scenario(10, **SLOW)
async def a_late_signal_ends_no_later_connection(play: Play) -> None:
    """Numbers of connections are given again, but not soon."""
    client, operator = await play.client(1), await play.client(2)
    pid = await pid_of(client)
    repeated = play.fate("END_WORK", LATE, times=1)
    assert await operator.run(f"SELECT pg_terminate_backend({pid})") == [(True,)]
    await play.until(lambda: client.channel.closed, 2.0)
    other, result = await reading(play, 1)
    await asyncio.sleep(3.0)
    assert repeated == [1]
    assert not result.done.is_set()
    other.channel.close()


@scenario(10, **SLOW)
async def a_lost_cancel_is_an_answer_for_its_asker(play: Play) -> None:
    """It may have ended the statement or not, so it is asked for again."""
    _, result = await reading(play, 1)
    operator = await play.client(2)
    play.fate("END_WORK", LOST, times=1)
    async with asyncio.timeout(10.0):
        with pytest.raises(MemberUnavailable) as caught:
            await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    assert not caught.value.retryable
    assert not result.done.is_set()
    await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    await play.fails(result, QueryCanceled, 1.0)
    await all_idle(play)


@scenario(10, **SLOW)
async def a_cancel_survives_the_crash_of_its_asker(play: Play) -> None:
    _, result = await reading(play, 1)
    operator = await play.client(2)
    arrives = play.fate("END_WORK", Fate((0.0,)), to=1)
    play.fate("END_WORK", Fate((1.0,)), sender=1)
    asking = asyncio.ensure_future(operator.run(f"CANCEL QUERY '{name_of(result)}'"))
    await play.until(lambda: arrives == [1], 1.0)
    await asyncio.sleep(0.1)
    play.sim.crash(2)
    with pytest.raises(ConnectionBroken):
        await asking
    error = await play.fails(result, QueryCanceled, 1.0)
    assert "cancelled by an operator" in error.message
    await all_idle(play)


@scenario(10, **SLOW)
async def a_cancel_of_a_crashed_members_statement_ends(play: Play) -> None:
    """The member that has the statement says nothing any more: its client, the fragments elsewhere
    and the operator are told within the time in which it is noticed."""
    _, result = await reading(play, 1)
    operator = await play.client(2)
    arrives = play.fate("END_WORK", LOST, times=1)
    asking = asyncio.ensure_future(operator.run(f"CANCEL QUERY '{name_of(result)}'"))
    await play.until(lambda: arrives == [1], 1.0)
    play.sim.crash(1, silently=True)
    async with asyncio.timeout(6.0):
        with pytest.raises(MemberUnavailable):
            await asking
    await play.until(lambda: play.idle(2) and play.idle(3), 6.0)
    with pytest.raises(UndefinedObject, match="does not run on member 1"):
        await play.until(lambda: 1 not in play.sim.members[2].core.view.by_number, 6.0)
        await operator.run(f"CANCEL QUERY '{name_of(result)}'")


# ---- what commits ----


@scenario(10, backups=1)
async def a_statement_that_commits_is_not_cancelled(play: Play) -> None:
    """Whether the id of the statement is named or the number of its connection: its client hears
    how the commit ends, and nothing else."""
    client, operator = await play.client(1), await play.client(2)
    pid = await pid_of(client)
    held = play.fate("COMMIT_PREPARE", Fate((1.0,)))
    result = await client.start("UPDATE t SET g = g + 1000")
    await play.until(lambda: held[0] > 0, 5.0)
    with pytest.raises(WrongState, match="is being committed and cannot be cancelled"):
        await operator.run(f"CANCEL QUERY '{name_of(result)}'")
    assert await operator.run(f"SELECT pg_cancel_backend({pid})") == [(True,)]
    await result.done.wait()
    assert result.error is None
    found = await play.gives(operator, "SELECT count(*) FROM t WHERE g >= 1000")
    assert found == [(ROWS,)]


@scenario(10, backups=1)
async def a_transaction_that_commits_is_not_cancelled(play: Play) -> None:
    client, operator = await play.client(1), await play.client(2)
    name = await begun(client)
    for number in range(9):
        await client.run(f"UPDATE t SET g = 100 WHERE id = {number}", transaction=name)
    held = play.fate("PARTS", Fate((1.0,)))
    committing = asyncio.ensure_future(ended(client, name))
    await play.until(lambda: held[0] > 0, 5.0)
    with pytest.raises(WrongState, match="is being committed and cannot be cancelled"):
        await operator.run(f"CANCEL TRANSACTION '{name}'")
    await committing
    assert await play.gives(operator, "SELECT count(*) FROM t WHERE g = 100") == [(9,)]
    with pytest.raises(UndefinedObject, match="has ended already"):
        await operator.run(f"CANCEL TRANSACTION '{name}'")


@scenario(10)
async def a_transaction_that_waits_for_a_lock_is_cancelled(play: Play) -> None:
    """It gives up its place: who comes after it gets the lock."""
    clients = [await play.client(number) for number in (1, 2, 3)]
    names = [await begun(client, pessimistic=True) for client in clients]
    text = "UPDATE t SET g = g + 1000 WHERE id = 7"
    await clients[0].run(text, transaction=names[0])
    waiting = []
    for client, name in zip(clients[1:], names[1:], strict=True):
        waiting.append(await client.start(text, transaction=name))
        await asyncio.sleep(0.5)
    operator = await play.client(1)
    await operator.run(f"CANCEL TRANSACTION '{names[1]}'")
    await play.fails(waiting[0], QueryCanceled, 1.0)
    message = user_pb2.TransactionEnd(transaction=names[0], context=clients[0].context)
    await clients[0].channel.request(RpcType.TRANSACTION_END, message)
    async with asyncio.timeout(2.0):
        await waiting[1].done.wait()
    assert waiting[1].error is None
    await ended(clients[2], names[2])
    assert await play.gives(operator, "SELECT g FROM t WHERE id = 7") == [(1007,)]


# ---- drain ----


def obeying(sim: Simulation) -> Counter[int]:
    """Members leave when they are told to, as their processes have them do. How often each was
    told."""
    told: Counter[int] = Counter()

    def leave(number: int) -> None:
        told[number] += 1
        sim.loop.create_task(sim.leave(number), context=sim.director.context)

    for number, member in sim.members.items():
        member.core.departure.on_drain.append(lambda number=number: leave(number))
    return told


@scenario(14, backups=1)
async def a_member_is_drained_once_from_another_one(play: Play) -> None:
    """The first order is lost, the second one comes twice."""
    sim, client = play.sim, await play.client(1)
    told = obeying(sim)
    play.fate("DRAIN", LOST, times=1)
    with pytest.raises(MemberUnavailable):
        await play.gives(client, "ALTER CLUSTER DRAIN MEMBER 2", 10.0)
    assert not told
    repeated = play.fate("DRAIN", Fate((0.0, 0.05)), times=1)
    await play.gives(client, "ALTER CLUSTER DRAIN MEMBER 2", 10.0)
    await play.gives(client, "ALTER CLUSTER DRAIN MEMBER 2", 10.0)
    await play.until(lambda: set(sim.members[1].core.view.by_number) == {1, 3}, 20.0)
    assert repeated == [1]
    assert told == {2: 1}
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, members=2, backups=1)
async def the_last_that_stays_is_not_drained(play: Play) -> None:
    """The order comes right after the other one's, which nobody has heard to leave yet."""
    sim, client = play.sim, await play.client(1)
    told = obeying(sim)
    play.fate("HEARTBEAT", Fate((0.2,)), sender=2)
    await play.gives(client, "ALTER CLUSTER DRAIN MEMBER 2", 10.0)
    with pytest.raises(WrongState, match="is the last one that stays"):
        await play.gives(client, "ALTER CLUSTER DRAIN MEMBER 1", 10.0)
    await play.until(lambda: set(sim.members[1].core.view.by_number) == {1}, 20.0)
    assert told == {2: 1}
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]


@scenario(14, members=2, backups=1)
async def two_that_drain_each_other_do_not_both_leave(play: Play) -> None:
    sim = play.sim
    told = obeying(sim)
    clients = {number: await play.client(number) for number in (1, 2)}
    play.fate("DRAIN", Fate((0.1,)))
    ends = await asyncio.gather(
        *(play.gives(clients[n], f"ALTER CLUSTER DRAIN MEMBER {3 - n}", 10.0) for n in (1, 2)),
        return_exceptions=True,
    )
    assert len(told) < 2
    assert sum(isinstance(end, WrongState) for end in ends) >= 1
    stays = next(number for number in (1, 2) if not told[number])
    await asyncio.sleep(5.0)
    assert await play.gives(clients[stays], "SELECT count(*) FROM t") == [(ROWS,)]
