"""``remuda queries`` and ``remuda drain``, and the methods of clients, against members that run."""

from __future__ import annotations

import asyncio

import pytest
from transacting import Session

import remuda
import remuda.aio
from remuda.cli.main import main
from remuda.errors import UndefinedObject, WrongState

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"


def address(cluster, number=1):
    info = cluster.member(number).info
    return f"{info.host}:{info.user_port}"


def test_queries_are_listed_and_cancelled_by_command(in_cluster, capsys):
    async def scenario(cluster):
        client, other = await cluster.client(2), Session(await cluster.client(1))
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await other.sql("SET application_name = 'till 7'")
        await other.sql("BEGIN PESSIMISTIC")
        await other.sql("INSERT INTO t VALUES (1)")
        running = await client.start(ENDLESS)
        row = "SELECT query FROM sys.queries WHERE text LIKE 'WITH%' AND state = 'running'"
        asking = await cluster.client(1)
        while not (rows := await asking.sql(row)):
            await asyncio.sleep(0.005)

        async def command(*words):
            return await asyncio.to_thread(main, [*words, "--connect", address(cluster)])

        assert await command("queries") == 0
        said = capsys.readouterr().out
        for part in (rows[0][0], "WITH RECURSIVE", other.transaction, "till 7", "1 key", "active"):
            assert part in said
        assert await command("queries", "cancel", rows[0][0]) == 0
        await running.done.wait()
        assert running.error.sqlstate == "57014"
        assert await command("queries", "cancel", other.transaction) == 0
        assert await command("queries") == 0
        assert capsys.readouterr().out.endswith("nothing runs\n")
        assert await command("queries", "cancel", rows[0][0]) == 1
        assert "has ended already" in capsys.readouterr().err
        before = ["queries", "--connect", address(cluster), "cancel", rows[0][0]]
        assert await asyncio.to_thread(main, before) == 1
        assert "has ended already" in capsys.readouterr().err

    in_cluster(scenario)


def test_clients_see_and_end_work_by_methods(in_cluster):
    async def scenario(cluster):
        running = await (await cluster.client(2)).start(ENDLESS)
        session = Session(await cluster.client(2))
        await session.sql("BEGIN")
        client = await remuda.aio.connect(address(cluster), application="on call")
        activity = client.activity
        while not (rows := [r for r in await activity.queries() if r.text == ENDLESS]):
            await asyncio.sleep(0.005)
        assert (rows[0].member, rows[0].user_name) == (2, "remuda")
        assert ("on call", "native") in {
            (row.application, row.protocol) for row in await activity.clients()
        }
        await activity.cancel_query(rows[0].query)
        await running.done.wait()
        assert [row.transaction for row in await activity.transactions()] == [session.transaction]
        await activity.cancel_transaction(session.transaction)
        assert not await activity.transactions()
        assert not await activity.locks() + await activity.lock_waits()
        pids = {row.pid for row in await activity.clients()}
        mine = await client.sql("SELECT pg_backend_pid()")
        assert (await mine.fetchone())[0] in pids
        victim = next(r.pid for r in await activity.clients() if r.member == 2)
        assert await activity.terminate(victim)
        assert not await activity.terminate(0)
        await client.close()

        def blocking():
            with remuda.connect(address(cluster), application="blocking") as plain:
                found = {row.application for row in plain.activity.clients()}
                with pytest.raises(UndefinedObject):
                    plain.activity.cancel_query(rows[0].query)
                return found

        assert "blocking" in await asyncio.to_thread(blocking)

    in_cluster(scenario)


def test_a_member_is_drained_by_command(in_cluster, capsys):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await client.sql("INSERT INTO t SELECT n FROM generate_series(1, 1000) g(n)")
        with pytest.raises(UndefinedObject, match="there is no member 9"):
            await client.sql("ALTER CLUSTER DRAIN MEMBER 9")
        leaving, ended = cluster.member(2), asyncio.Event()

        async def leave():  # as the process of a member does
            await leaving.leave()
            await leaving.stop()
            ended.set()

        leaving.core.departure.on_drain.append(lambda: asyncio.ensure_future(leave()))
        words = ["drain", "2", "--timeout", "60", "--connect", address(cluster)]
        assert await asyncio.to_thread(main, words) == 0
        said = capsys.readouterr().out.splitlines()
        await ended.wait()
        assert said[0] == "member 2 is leaving"
        assert said[-1].startswith("member 2 has left: view ")
        assert said[-1].endswith(" has 1 member")
        assert await client.sql("SELECT count(*) FROM t") == [(1000,)]
        with pytest.raises(WrongState, match="is the last one that stays"):
            await client.sql("ALTER CLUSTER DRAIN MEMBER 1")

    in_cluster(scenario, 2)
