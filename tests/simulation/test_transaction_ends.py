"""Ends of transactions on simulated clusters: timeouts, lost locks, modes of SQL's BEGIN."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import simulation
from sim_rules import Play
from sim_rules_commits import key_of, rows, users

from remuda.client.blocking.tool_access import core_of
from remuda.errors import (
    ActiveTransaction,
    NotSupported,
    PartitionsUnreachable,
    RemudaError,
    SerializationFailure,
    TransactionTimeout,
)
from remuda.member.sessions.session import TransactionSessions

Work = Callable[[Play, Any], Any]


def play(work: Work, members: int = 3, backups: int = 1) -> None:
    with simulation(1, members, backups=backups) as sim:
        sim.form()
        scene = Play(sim)
        sim.complete(scene.load())
        sim.complete(users(work)(scene))
        sim.settle(60.0)
        sim.verdict()


def test_a_timeout_ends_the_select_that_runs() -> None:
    async def work(scene: Play, client: Any) -> None:
        tx = client.transaction(timeout=1.0)
        await tx.begin()
        text = "SELECT g.i FROM generate_series(1, 60000) AS g(i), t WHERE t.id = 1"
        cursor = await tx.sql(text)  # pages are to come
        running = [member.gauges()["queries"] for member in scene.sim.members.values()]
        assert sum(running) > 0
        await asyncio.sleep(2.0)
        assert not any(member.gauges()["queries"] for member in scene.sim.members.values())
        with pytest.raises(TransactionTimeout):
            [row async for row in cursor]
        await tx.rollback()

    play(work)


async def _locks_lost(scene: Play, client: Any, *, writes: bool) -> None:
    """Others change what was locked, and what is read next, after the primary was lost."""
    sim = scene.sim
    here, gone = key_of(scene, 1), key_of(scene, 3)
    tx = client.transaction(concurrency="pessimistic", isolation="repeatable read")
    await tx.begin()
    if tx.core.held.member == 3:
        return  # the transaction itself would be lost
    old = (await tx.map("t").get(gone)).g
    sim.crash(3)
    await scene.until(lambda: sim.members[1].core.view.number > 1, 20.0)
    await client.map("t").put_all({here: {"g": 77, "s": ""}, gone: {"g": 77, "s": ""}})
    assert old != 77
    assert (await tx.map("t").get(here)).g == 77
    if writes:
        await tx.map("t").put(200, {"g": old, "s": ""})
    await tx.commit()


@pytest.mark.parametrize("writes", [False, True])
def test_locks_that_are_lost_end_their_transaction(writes: bool) -> None:
    """Key locks are on primaries alone: who has lost one must not commit as if it had it."""

    async def work(scene: Play, client: Any) -> None:
        with pytest.raises(SerializationFailure, match="was changed by others since it was read"):
            await _locks_lost(scene, client, writes=writes)

    play(work)


def test_lost_locks_are_noticed_by_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unchanged(_self: TransactionSessions, _transaction: Any) -> int:
        return 0

    monkeypatch.setattr(TransactionSessions, "_unchanged_until", unchanged)

    async def work(scene: Play, client: Any) -> None:
        await _locks_lost(scene, client, writes=False)

    play(work)


def test_a_put_that_meets_lost_partitions_says_so() -> None:
    """A second try would meet a transaction that the first one has failed."""

    async def work(scene: Play, client: Any) -> None:
        sim, gone = scene.sim, key_of(scene, 3)
        sim.crash(3)
        await scene.until(lambda: sim.members[1].core.view.absent, 20.0)
        tx = client.transaction(concurrency="pessimistic", isolation="repeatable read")
        await tx.begin()
        with pytest.raises(PartitionsUnreachable):
            await tx.map("t").put(gone, {"g": 1, "s": ""})
        await tx.rollback()

    play(work, backups=0)


def test_begin_may_be_pessimistic() -> None:
    async def work(scene: Play, client: Any) -> None:
        await client.sql("BEGIN TRANSACTION PESSIMISTIC")
        assert await rows(client, "SHOW transaction_isolation") == [("repeatable read",)]
        await client.sql("UPDATE t SET g = 50 WHERE id = 1")
        other = type(client)(core_of(client).outside())
        putting = asyncio.get_running_loop().create_task(other.map("t").put(1, {"g": 60, "s": ""}))
        await asyncio.sleep(0.5)
        assert not putting.done()  # it waits for the lock
        await client.sql("COMMIT")
        await putting
        assert await rows(client, "SELECT g FROM t WHERE id = 1") == [(60,)]

        with pytest.raises(NotSupported, match="READ COMMITTED or REPEATABLE READ"):
            await client.sql("BEGIN PESSIMISTIC, ISOLATION LEVEL SERIALIZABLE")
        await client.sql("BEGIN")
        await client.sql("SET TRANSACTION PESSIMISTIC")
        await client.sql("SELECT count(*) FROM t")
        with pytest.raises(ActiveTransaction, match="PESSIMISTIC must be set before"):
            await client.sql("SET TRANSACTION OPTIMISTIC")
        await client.sql("ROLLBACK")
        with pytest.raises(RemudaError, match="of one transaction"):
            await client.sql("SET SESSION CHARACTERISTICS AS TRANSACTION PESSIMISTIC")

    play(work)
