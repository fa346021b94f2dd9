"""Requests that would wait for a transaction or a bulk write in doubt, because it has a part in
partitions that are unreachable: they are told so, instead of waiting."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, simulation
from sim_network import LOST, Fate, Sent
from sim_users import connected, users_of
from test_donors import SPLIT, Work, load, until

from remuda.errors import OutcomeUnknown, PartitionsUnreachable, SerializationFailure
from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.member.state.maps_in_doubt import Doubts
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Write
from remuda.member.transactions.transactions import Transactions

AWAY = {4, 5}
SOON = 1.0
"""Simulated seconds: far less than any timeout."""


def keys_of(sim: Simulation) -> tuple[int, int]:
    """A key that only members 4 and 5 have, and one that they do not have."""
    core = sim.members[1].core
    router = Router(core.schema("t"))
    rows = {key: core.view.replicas[router.key_partition((key,))] for key in range(300)}
    there = next(key for key, row in rows.items() if AWAY.issuperset(row))
    here = next(key for key, row in rows.items() if AWAY.isdisjoint(row))
    return there, here


def votes_vanish(sim: Simulation) -> None:
    """Members 4 and 5 prepare, and nobody hears it."""
    silent = {str(sim.nodes[number]) for number in AWAY}

    def rule(sent: Sent) -> Fate | None:
        return LOST if sent.name == "PARTS" and sent.sender in silent else None

    sim.network.rules.append(rule)


async def leave_in_doubt(sim: Simulation) -> int:
    """A transaction over both keys is prepared when the split begins; the key that is here."""
    there, here = keys_of(sim)
    votes_vanish(sim)
    one = sim.members[1]
    schema = one.core.schema("t")
    writes = [Write(schema.map_id, schema.version, (key,), (key, 2), None) for key in (there, here)]
    committing = one.transactions.commit(writes, None)
    writing = one.node.context.run(sim.loop.create_task, committing)  # type: ignore[attr-defined]
    await asyncio.sleep(0.5)
    sim.split(AWAY, SPLIT)
    core = one.core
    await until(lambda: set(core.view.by_number) == {1, 2, 3} and core.ready)
    assert core.view.unreachable
    with pytest.raises(OutcomeUnknown):
        await writing
    return here


async def ask(sim: Simulation, key: int) -> None:
    for number in (1, 2, 3):
        client = await sim.client(number)
        for text in (
            f"SELECT v FROM t WHERE id = {key}",
            f"SELECT v + 1 FROM t WHERE id IN ({key}, {key})",
            f"UPDATE t SET v = 7 WHERE id = {key}",
        ):
            with pytest.raises(PartitionsUnreachable) as caught:
                async with asyncio.timeout(SOON):
                    await client.run(text)
            assert caught.value.retryable, text
        with pytest.raises(PartitionsUnreachable) as caught:
            async with asyncio.timeout(SOON):
                await client.put(sim.members[1].core.schema("t"), key, 9)
        assert "whose end is not known: it has a part in partition" in str(caught.value)
        assert not caught.value.may_have_run
        client.channel.close()


async def refused(work: Awaitable[object], what: str = "whose end is not known") -> None:
    with pytest.raises(PartitionsUnreachable) as caught:
        async with asyncio.timeout(SOON):
            await work
    assert what in str(caught.value)
    assert caught.value.retryable
    assert not caught.value.may_have_run


async def ask_transactions(sim: Simulation, key: int) -> None:
    """Locks, commits, and bulk writes that would wait for the keys in doubt."""
    there, _ = keys_of(sim)
    with users_of(sim):
        user = await connected(sim, "user")
        for number, lost in ((key, "whose end is not known"), (there, "cannot be reached")):
            tx = user.transaction(concurrency="pessimistic", isolation="repeatable read")
            await tx.begin()
            await refused(tx.sql(f"SELECT v FROM t WHERE id = {number} FOR UPDATE"), lost)
            await tx.rollback()
            tx = user.transaction()
            await tx.begin()
            await tx.map("t").put(number, {"v": 5})
            await refused(tx.commit(), lost)
        # A commit of two parts would hold its other key while it waits.
        free = next(n for n in range(300) if n not in {key, there} and here(sim, n))
        tx = user.transaction()
        await tx.begin()
        for number in (key, free):
            await tx.map("t").put(number, {"v": 5})
        await refused(tx.commit())
        await user.map("t").put(free, {"v": 6})
        await user.close()


def here(sim: Simulation, key: int) -> bool:
    core = sim.members[1].core
    return bool(core.view.owners[Router(core.schema("t")).key_partition((key,))])


async def work(sim: Simulation) -> None:
    key = await leave_in_doubt(sim)
    await ask(sim, key)
    await ask_transactions(sim, key)
    sim.network.rules.clear()
    one = sim.members[1].core
    await until(lambda: not one.view.absent)
    client = await sim.client(1)
    ((value,),) = await client.run(f"SELECT v FROM t WHERE id = {key}")
    assert value in {1, 2}
    client.channel.close()


async def leave_bulk_write_in_doubt(sim: Simulation) -> None:
    """A bulk write is prepared everywhere when its coordinator, which nobody hears any more, is cut
    off with a part of it."""
    coordinator = str(sim.nodes[4])

    def rule(sent: Sent) -> Fate | None:
        told = {"COMMIT_KEEP", "COMMIT_FINISH"}
        return LOST if sent.name in told and sent.sender == coordinator else None

    sim.network.rules.append(rule)
    client = await sim.client(4)
    await client.start("INSERT INTO t SELECT g, 1 FROM generate_series(1000, 6000) AS s(g)")
    one = sim.members[1]
    await until(lambda: one.commits.participants.prepared)
    sim.split(AWAY, SPLIT)
    await until(lambda: set(one.core.view.by_number) == {1, 2, 3} and one.core.ready)
    assert one.core.view.unreachable
    await until(lambda: one.commits.participants.in_doubt)


async def ask_behind_bulk_write(sim: Simulation) -> None:
    key = next(n for n in range(300) if here(sim, n))
    core = sim.members[1].core
    fragment = f"SELECT v FROM t WHERE id IN ({key}, {key})"
    for number in (1, 2, 3):
        client = await sim.client(number)
        for text in (fragment, f"UPDATE t SET v = 7 WHERE id = {key}"):
            await refused(client.run(text))
        await refused(client.put(core.schema("t"), key, 9))
        await refused(client.run(f"INSERT INTO t VALUES ({9000 + number}, 1)"), "cannot be reached")
        client.channel.close()


async def work_behind_bulk_write(sim: Simulation) -> None:
    await leave_bulk_write_in_doubt(sim)
    await ask_behind_bulk_write(sim)
    sim.network.rules.clear()
    one = sim.members[1].core
    await until(lambda: not one.view.absent)
    client = await sim.client(1)
    ((rows,),) = await client.run("SELECT count(*) FROM t WHERE id >= 1000 AND id <= 6000")
    assert rows in {0, 5001}
    client.channel.close()


def play(work: Work = work) -> None:
    with simulation(1, 5, backups=1) as sim:
        sim.form()
        sim.complete(load(sim))
        sim.complete(work(sim))
        sim.settle(60.0)
        sim.verdict()


def test_they_are_told_that_partitions_are_unreachable() -> None:
    play()


def test_without_that_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transactions, "require_decidable", lambda *_: None)
    monkeypatch.setattr(Doubts, "at_or_below", lambda *_: False)
    with pytest.raises(TimeoutError):
        play()


def test_without_their_doubts_commits_wait_or_are_told_to_try_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Transactions, "_doubt", lambda *_: None)
    with pytest.raises((TimeoutError, SerializationFailure)):
        play()


def test_what_waits_for_a_bulk_write_is_told() -> None:
    play(work_behind_bulk_write)


def test_without_its_doubts_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitsInDoubt, "note", lambda *_: None)
    with pytest.raises(TimeoutError):
        play(work_behind_bulk_write)
