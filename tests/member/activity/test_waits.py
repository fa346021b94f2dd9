"""The time that statements wait for locks and turns: while they wait, and after their end."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from transacting import Session

from remuda.member.metrics.families import exposition

BLOCKED = "UPDATE t SET a = a + 1 WHERE k IN (1, 2)"
NOTES = "remuda.member.statements.query_history"


async def behind_a_lock(cluster: Any) -> tuple[Any, Callable[[], Awaitable[Any]]]:
    holder, waiter = [Session(await cluster.client(1)) for _ in range(2)]
    for session in (holder, waiter):
        await session.sql("BEGIN PESSIMISTIC")
    await holder.sql("UPDATE t SET a = 5 WHERE k = 1")
    return asyncio.ensure_future(waiter.run(BLOCKED)), lambda: holder.sql("ROLLBACK")


async def behind_a_turn(cluster: Any) -> tuple[Any, Callable[[], Awaitable[Any]]]:
    commits, client = cluster.member(1).commits, await cluster.client(1)
    map_id = (await client.schema("t")).map_id
    await commits.turn(map_id, job := commits.new_job())

    async def free() -> None:
        commits.end_turn(map_id, job)

    return asyncio.ensure_future(client.run(BLOCKED)), free


async def behind_its_own_transaction(cluster: Any) -> tuple[Any, Callable[[], Awaitable[Any]]]:
    """Another request of the same transaction writes."""
    session = Session(await cluster.client(1))
    await session.sql("BEGIN")
    await session.sql("SELECT 1 FROM t")
    [transaction] = cluster.member(1).open.sessions
    await transaction.turn.acquire()

    async def free() -> None:
        transaction.turn.release()

    return asyncio.ensure_future(session.run(BLOCKED)), free


@pytest.mark.parametrize("block", [behind_a_lock, behind_a_turn, behind_its_own_transaction])
def test_a_blocked_statement_shows_its_wait(in_cluster: Any, caplog: Any, block: Any) -> None:
    async def scenario(cluster: Any) -> None:
        operator = await cluster.client(3)
        await operator.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await operator.sql("INSERT INTO t VALUES (1, 1)")
        blocked, free = await block(cluster)
        now = f"SELECT waited FROM sys.queries WHERE text = '{BLOCKED}' AND state = 'waiting'"
        while not (rows := await operator.sql(now)) or not rows[0][0] > 0:
            assert not blocked.done()
        seen = rows[0][0]
        profile = (
            "SELECT CAST(profile ->> 'waited' AS DOUBLE) FROM sys.query_profiles "
            f"WHERE profile ->> 'text' = '{BLOCKED}'"
        )
        [(running,)] = await operator.sql(profile)
        assert running >= round(seen, 6)
        await free()
        assert (await blocked).error is None
        [(state, whole)] = await operator.sql(
            f"SELECT state, waited FROM sys.query_history WHERE text = '{BLOCKED}'"
        )
        assert (state, whole >= running) == ("finished", True)
        [(calls, waited, rest)] = await operator.sql(
            "SELECT calls, wait_seconds, total_seconds - wait_seconds - planning_seconds"
            " FROM sys.statement_statistics WHERE text LIKE 'UPDATE t SET a = a + $1%'"
        )
        assert (calls, waited) == (1, whole)
        assert rest >= 0
        page = exposition(cluster.member(1).core.measures.families()).decode()
        [metric] = re.findall(r"^remuda_statement_wait_seconds_total (\S+)", page, re.MULTILINE)
        assert float(metric) >= whole

    with caplog.at_level(logging.WARNING, NOTES):
        in_cluster(scenario, 3, log_statements=1e-9)
    [noted] = [
        record.remuda_fields for record in caplog.records
        if record.msg == "slow statement" and record.remuda_fields["text"] == BLOCKED
    ]  # fmt: skip
    assert 0 <= noted["waited"] <= noted["seconds"]


def test_a_statement_that_nobody_blocks_waits_for_no_lock(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("SELECT g FROM generate_series(1, 10) g(g)")
        found = "SELECT waited FROM sys.query_history WHERE text LIKE 'SELECT g FROM%'"
        assert await client.sql(found) == [(0.0,)]

    in_cluster(scenario, 1)


def key_of(cluster: Any, home: str) -> int:
    """A key that member 1 owns ("here"), or another member ("there")."""
    member = cluster.member(1)
    partition, owners = member.maps.open("t").router.key_partition, member.core.view.owners
    return next(k for k in range(1, 30) if (owners[partition((k,))] == 1) == (home == "here"))


@pytest.mark.parametrize("home", ["here", "there"])
def test_a_statement_that_waits_at_the_owner_of_its_key_is_found(
    in_cluster: Any, home: str
) -> None:
    async def scenario(cluster: Any) -> None:
        operator = await cluster.client(3)
        await operator.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await operator.sql("INSERT INTO t SELECT g, 1 FROM generate_series(1, 30) g")
        blocked = f"UPDATE t SET a = a + 1 WHERE k = {key_of(cluster, home)}"
        holder, client = Session(await cluster.client(2)), await cluster.client(1)
        await holder.sql("BEGIN PESSIMISTIC")
        await holder.sql(f"UPDATE t SET a = 5 WHERE k = {key_of(cluster, home)}")
        waiting = asyncio.ensure_future(client.run(blocked))
        now = f"SELECT pid FROM sys.queries WHERE text = '{blocked}' AND state = 'waiting'"
        while not (rows := await operator.sql(now)):
            assert not waiting.done()
        [(pid,)] = rows
        [(waiter, text, blocking)] = await operator.sql(
            "SELECT pid, text, blocking_pid FROM sys.lock_waits"
        )
        assert (waiter, text) == (pid, blocked)
        assert await operator.sql(f"SELECT pg_blocking_pids({pid})") == [([blocking],)]
        seen = f"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {pid}"
        assert await operator.sql(seen) == [("Lock", "tuple")]
        await holder.sql("ROLLBACK")
        assert (await waiting).error is None
        [(calls, waited)] = await operator.sql(
            "SELECT calls, wait_seconds FROM sys.statement_statistics"
            " WHERE text LIKE 'UPDATE t SET a = a + $1%'"
        )
        assert (calls, waited > 0) == (1, True)
        [(held,)] = await operator.sql("SELECT count(*) FROM sys.lock_waits")
        assert held == 0

    in_cluster(scenario, 3)
