"""Operators end the work of others: statements of clients that have vanished, blocked
transactions, connections; from any member, and only if they may."""

from __future__ import annotations

import asyncio

import pytest
from transacting import Session
from users_of_cluster import OWNER, known_users, prepared, refused

from remuda.errors import (
    InvalidText,
    QueryCanceled,
    RemudaError,
    SessionTerminated,
    UndefinedObject,
    ViewChanged,
    WrongState,
)
from remuda.query.ids import parse_query_id
from remuda.rpc.messages.control_pb2 import RpcType

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
MANY = "(SELECT k FROM t) a, (SELECT k FROM t) b, (SELECT k FROM t) c, (SELECT k FROM t) d"
RUNAWAYS = {
    "recursion": ENDLESS,
    "nested loop": f"SELECT count(*) FROM {MANY} WHERE a.k + b.k < c.k - d.k - 1000000",
    "sort": f"SELECT a.k FROM {MANY} ORDER BY a.k * b.k, c.k, d.k",
    "unread result": f"SELECT a.k, b.k, c.k FROM {MANY}",
    "write": f"INSERT INTO u SELECT ((a.k * 1000 + b.k) * 1000 + c.k) * 1000 + d.k FROM {MANY}",
}


async def filled(client, rows=300):
    await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    await client.sql("CREATE TABLE u (k BIGINT PRIMARY KEY)")
    await client.sql("INSERT INTO t VALUES " + ", ".join(f"({k})" for k in range(rows)))


async def shown(client, text, wanted=bool):
    """The rows of a query when they are as wanted."""
    while not wanted(rows := await client.sql(text)):
        await asyncio.sleep(0.005)
    return rows


class Hands:
    """Each way to end a statement that runs, from the connection of an operator."""

    @staticmethod
    async def cancel_query(operator, query, _pid):
        await operator.sql(f"CANCEL QUERY '{query}'")

    @staticmethod
    async def cancel_backend(operator, _query, pid):
        assert await operator.sql(f"SELECT pg_cancel_backend({pid})") == [(True,)]

    @staticmethod
    async def terminate_backend(operator, _query, pid):
        assert await operator.sql(f"SELECT pg_terminate_backend({pid})") == [(True,)]


@pytest.mark.parametrize("members", [1, 3])
def test_a_runaway_statement_of_a_dead_client_is_ended_by_each_of_the_hands(in_cluster, members):
    """The client takes no page and says nothing, as one whose machine hangs."""

    async def scenario(cluster):
        operator = await cluster.client(members)
        await filled(operator)
        hands = [Hands.cancel_query, Hands.cancel_backend, Hands.terminate_backend]
        for number, text in enumerate(RUNAWAYS.values()):
            hand = hands[(number + members) % 3]
            dead = await cluster.client(1)
            dead.hold = True
            result = await dead.start(text)
            running = "SELECT query, pid FROM sys.queries WHERE text = ? AND state = 'running'"
            while not (rows := await operator.sql(running, text)):
                await asyncio.sleep(0.005)
            await hand(operator, *rows[0])
            await result.done.wait()
            terminated = hand is Hands.terminate_backend
            assert result.error.sqlstate == ("57P01" if terminated else "57014"), text
            assert isinstance(result.error, SessionTerminated if terminated else QueryCanceled)
            while dead.channel.closed is not terminated:
                await asyncio.sleep(0.005)
            dead.release()
            await cluster.idle()
        assert await operator.sql("SELECT count(*) FROM u") == [(0,)]

    in_cluster(scenario, members)


@pytest.mark.parametrize("members", [1, 3])
def test_a_blocked_transaction_is_found_and_freed_by_sql_alone(in_cluster, members):
    async def scenario(cluster):
        operator = await cluster.client(members)
        await filled(operator)
        await operator.sql("CREATE TABLE seats (row_no INT, seat TEXT, PRIMARY KEY (row_no, seat))")
        holder, waiter = [Session(await cluster.client(1)) for _ in range(2)]
        for session, name in ((holder, "till 1"), (waiter, "till 2")):
            await session.sql(f"SET application_name = '{name}'")
            await session.sql("BEGIN PESSIMISTIC")
        await holder.sql("INSERT INTO seats VALUES (7, 'b')")
        blocked = asyncio.ensure_future(waiter.run("INSERT INTO seats VALUES (7, 'b')"))
        waits = await shown(
            operator,
            "SELECT application, map, key, mode, blocking_application, blocking_state,"
            " blocking_transaction, blocking_pid, pid, text FROM sys.lock_waits",
        )
        assert waits[0][:6] == (
            "till 2", "seats", "Key (row_no, seat)=(7, b)", "exclusive", "till 1",
            "idle in transaction",
        )  # fmt: skip
        transaction, blocking, pid, text = waits[0][6:]
        assert text == "INSERT INTO seats VALUES (7, 'b')"
        assert await operator.sql(f"SELECT pg_blocking_pids({pid})") == [([blocking],)]
        rows = await operator.sql(
            "SELECT a.pid, pg_blocking_pids(a.pid), a.wait_event_type, a.wait_event"
            " FROM pg_stat_activity a WHERE cardinality(pg_blocking_pids(a.pid)) > 0"
        )
        assert rows == [(pid, [blocking], "Lock", "tuple")]
        locks = await operator.sql(
            "SELECT application, granted, kind, waits_for, transaction, seconds >= 0 FROM sys.locks"
            " WHERE map = 'seats' ORDER BY granted"
        )
        assert locks[0] == ("till 2", False, "row", transaction, waiter.transaction, True)
        assert locks[1] == ("till 1", True, "row", None, transaction, True)
        pg = "SELECT pid, mode, granted, relation::regclass::text FROM pg_locks ORDER BY granted"
        assert await operator.sql(pg) == [
            (pid, "ExclusiveLock", False, "seats"), (blocking, "ExclusiveLock", True, "seats")
        ]  # fmt: skip
        await operator.sql(f"CANCEL TRANSACTION '{transaction}'")
        assert (await blocked).error is None
        with pytest.raises(QueryCanceled, match="it was cancelled by an operator"):
            await holder.sql("SELECT 1")
        await waiter.sql("COMMIT")
        assert await operator.sql("SELECT * FROM seats") == [(7, "b")]
        assert await operator.sql("SELECT count(*) FROM sys.lock_waits") == [(0,)]

    in_cluster(scenario, members)


def test_a_statement_that_waits_for_a_lock_or_a_turn_is_cancelled(in_cluster):
    async def scenario(cluster):
        operator = await cluster.client(2)
        await filled(operator)
        holder, waiter = [Session(await cluster.client(1)) for _ in range(2)]
        for session in (holder, waiter):
            await session.sql("BEGIN PESSIMISTIC")
        await holder.sql("UPDATE t SET k = k WHERE k = 3")
        waiting = asyncio.ensure_future(waiter.run("DELETE FROM t WHERE k = 3"))
        await shown(operator, "SELECT * FROM sys.lock_waits")
        pid = (await operator.sql("SELECT pid FROM sys.lock_waits"))[0][0]
        assert await operator.sql(f"SELECT pg_cancel_backend({pid}) AS done") == [(True,)]
        assert (await waiting).error.sqlstate == "57014"
        assert (await waiter.told("SELECT 1")).startswith("25P02")  # as PostgreSQL has it
        await waiter.sql("ROLLBACK")
        await holder.sql("ROLLBACK")
        # Two atomic writes of one map: the second one waits for its turn.
        commits, map_id = cluster.member(1).commits, (await operator.schema("t")).map_id
        await commits.turn(map_id, job := commits.new_job())
        for text in (
            "INSERT INTO t VALUES (900), (901)",
            "UPDATE t SET k = k WHERE k IN (1, 2)",
            "TRUNCATE t",
        ):
            client = await cluster.client(3)
            result = await client.start(text)
            rows = await shown(operator, "SELECT pid, map, kind, waits_for FROM sys.locks"
                                         " WHERE NOT granted AND pid IS NOT NULL")  # fmt: skip
            assert rows[0][1:] == ("t", "map", job)
            query = (await operator.sql("SELECT query FROM sys.queries WHERE text = ?", text))[0][0]
            await operator.sql(f"CANCEL QUERY '{query}'")
            await result.done.wait()
            assert result.error.sqlstate == "57014", text
            await shown(operator, "SELECT count(*) FROM sys.locks", lambda rows: rows == [(1,)])
        commits.end_turn(map_id, job)
        assert await operator.sql("SELECT count(*) FROM t") == [(300,)]
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize("home", ["here", "elsewhere"])
def test_a_turn_that_comes_while_its_statement_is_cancelled_is_given_back(in_cluster, home):
    """The cancellation comes so many steps of the loop after the turn before it has ended."""

    async def scenario(cluster):
        operator = await cluster.client(2)
        await filled(operator, 3)
        map_id = (await operator.schema("t")).map_id
        place = cluster.member(1).commits.turns._home(map_id)
        member = cluster.member(place if home == "here" else place % 3 + 1)
        commits, statements = member.commits, member.statements
        client = await cluster.client(member.info.number)
        texts = (
            "INSERT INTO t VALUES ({0}), (-{0})",
            "UPDATE t SET k = k WHERE k IN ({0}, -{0})",
            "TRUNCATE t",
        )
        for steps in range(18):
            await commits.turn(map_id, job := commits.new_job())
            result = await client.start(texts[steps % 3].format(1000 + steps))
            while sum(len(each.commits.turns) for each in cluster.members) < 2:
                await asyncio.sleep(0)
            (query,) = [statement.query for statement, _, _ in statements.running()]
            commits.end_turn(map_id, job)
            for _ in range(steps // 3):
                await asyncio.sleep(0)
            statements.cancel(query, QueryCanceled("enough"))
            await result.done.wait()
            assert result.error is None or result.error.sqlstate == "57014"
            await cluster.idle()

    in_cluster(scenario)


def test_a_statement_that_waits_for_another_turn_can_be_cancelled_again(in_cluster):
    """Its first commit was given up, as partitions had moved: it commits nothing any more."""

    async def scenario(cluster):
        operator, client = await cluster.client(2), await cluster.client(1)
        await filled(operator, 3)
        map_id = (await operator.schema("t")).map_id
        commits = cluster.member(1).commits
        commit = commits.commit_in_turn
        for text in ("INSERT INTO t VALUES (9), (10)", "TRUNCATE t"):
            others = []

            async def moved(*_given, others=others, **_named):
                others.append(commits.new_job())
                others.append(asyncio.ensure_future(commits.turn(map_id, others[0])))
                while sum(len(each.commits.turns) for each in cluster.members) < 2:
                    await asyncio.sleep(0)
                commits.commit_in_turn = commit
                raise ViewChanged("partitions were moved")

            commits.commit_in_turn = moved
            result = await client.start(text)
            waits = "SELECT query FROM sys.locks WHERE NOT granted AND kind = 'map'"
            while not others or not others[1].done():
                await asyncio.sleep(0)
            query = (await shown(operator, waits, lambda rows: rows and rows[0][0]))[0][0]
            await operator.sql(f"CANCEL QUERY '{query}'")
            await result.done.wait()
            assert result.error.sqlstate == "57014", text
            assert not result.error.may_have_run
            commits.end_turn(map_id, others[0])
            await cluster.idle()
        assert await operator.sql("SELECT count(*) FROM t") == [(3,)]

    in_cluster(scenario)


def test_errors_name_the_key_and_who_holds_it(in_cluster, monkeypatch):
    monkeypatch.setattr("remuda.member.sessions.session.LOCK_TIMEOUT", 0.05)

    async def scenario(cluster):
        operator = await cluster.client(2)
        await filled(operator)
        holder, waiter, loser = [Session(await cluster.client(n)) for n in (1, 2, 3)]
        await holder.sql("SET application_name = 'till 1'")
        for key in range(4):  # of several members
            await holder.sql("BEGIN PESSIMISTIC")
            await holder.sql(f"UPDATE t SET k = k WHERE k = {key}")
            await waiter.sql("BEGIN PESSIMISTIC")
            whose = f"Key (k)=({key}) is locked by transaction {holder.transaction} of 'till 1' at "
            result = await waiter.run(f"DELETE FROM t WHERE k = {key}")
            assert result.error.sqlstate == "55P03"
            assert f'Key (k)=({key}) of map "t"\n{whose}' in result.error.detail
            await loser.sql("BEGIN")
            await loser.sql(f"UPDATE t SET k = k WHERE k = {key}")
            result = await loser.run("COMMIT")
            assert result.error.sqlstate == "40001"
            assert result.error.detail.startswith(whose)
            await waiter.sql("ROLLBACK")
            await holder.sql("ROLLBACK")

    in_cluster(scenario)


def test_what_cannot_be_ended_is_an_error(in_cluster):
    async def scenario(cluster):
        client = await cluster.client(1)
        await filled(client)
        await client.run("SELECT count(*) FROM t a JOIN t b ON a.k = b.k")
        name = str(parse_query_id("00000000-0000-0000-0000-000000000000"))
        assert name == "00000000-0000-0000-0000-000000000000"
        history = "SELECT query FROM sys.query_history WHERE text LIKE '%a JOIN t b%'"
        known = (await client.sql(history))[0][0]
        for other in (client, await cluster.client(2)):
            with pytest.raises(UndefinedObject, match="has ended already") as caught:
                await other.sql(f"CANCEL QUERY '{known}'")
            assert caught.value.detail == "state: finished"
            with pytest.raises(UndefinedObject, match="does not run on member 0"):
                await other.sql(f"CANCEL QUERY '{name}'")
            with pytest.raises(UndefinedObject, match="transaction 1:5 does not run on member 1"):
                await other.sql("CANCEL TRANSACTION '1:5'")
            for text in ("QUERY 'x'", "TRANSACTION 'x'", "TRANSACTION '1-2'"):
                with pytest.raises(InvalidText, match="is not the id of a"):
                    await other.sql(f"CANCEL {text}")
            assert await other.sql(
                "SELECT pg_cancel_backend(p) FROM (VALUES (0), (-1), (65), (99999999), (NULL)) v(p)"
            ) == [(False,), (False,), (False,), (False,), (None,)]
        session = Session(client)
        await session.sql("BEGIN")
        transaction = session.transaction
        await session.sql("COMMIT")
        with pytest.raises(UndefinedObject, match="has ended already"):
            await client.sql(f"CANCEL TRANSACTION '{transaction}'")
        with pytest.raises(QueryCanceled):
            await client.sql("SELECT pg_cancel_backend(pg_backend_pid())")
        assert await client.sql("SELECT 1") == [(1,)]

    in_cluster(scenario)


@pytest.mark.parametrize("text", ["INSERT INTO u SELECT k FROM t", "DELETE FROM t", "COMMIT"])
def test_a_commit_that_has_begun_is_not_cancelled(in_cluster, text):
    async def scenario(cluster):
        operator, writer = await cluster.client(2), Session(await cluster.client(1))
        await filled(operator)
        if text == "COMMIT":
            await writer.sql("BEGIN")
            await writer.sql("DELETE FROM t")
        transaction = writer.transaction
        # The votes of another member wait: the commit is neither decided nor given up.
        held = []
        routes = cluster.member(3)._member_routes.control
        served = {kind: routes[kind] for kind in (RpcType.COMMIT_PREPARE, RpcType.PARTS)}
        for kind in served:
            routes[kind] = held.append
        running = asyncio.ensure_future(writer.run(text))
        while not held:
            await asyncio.sleep(0.005)
        query = (await operator.sql("SELECT query FROM sys.queries WHERE text = ?", text))[0][0]
        with pytest.raises(WrongState, match="is being committed and cannot be cancelled"):
            await operator.sql(f"CANCEL QUERY '{query}'")
        if text == "COMMIT":
            with pytest.raises(WrongState, match="is being committed and cannot be cancelled"):
                await operator.sql(f"CANCEL TRANSACTION '{transaction}'")
        routes.update(served)
        for request in held:
            served[request.rpc_type](request)
        assert (await running).error is None
        left = "SELECT count(*) FROM t"
        assert await operator.sql(left) == [(300,) if text.startswith("INSERT") else (0,)]

    in_cluster(scenario)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


def test_only_the_owner_and_administrators_end_and_see_work(in_cluster, settings):
    async def scenario(cluster):
        root, reader, writer, owner, _ = await prepared(cluster)
        session = Session(owner)
        await session.sql("BEGIN PESSIMISTIC")
        await session.sql("UPDATE t SET v = 'mine' WHERE k = 7")
        pid = "SELECT pid FROM sys.clients WHERE transaction IS NOT NULL"
        number = (await root.sql(pid))[0][0]
        for text in (
            f"CANCEL TRANSACTION '{session.transaction}'",
            f"SELECT pg_cancel_backend({number})",
            f"SELECT pg_terminate_backend({number})",
            "ALTER CLUSTER DRAIN MEMBER 2",
        ):
            for who in (reader, writer):
                with refused("lacks the role admin on"):
                    await who.sql(text)
        text = "SELECT map, key, user_name FROM sys.locks"
        assert await root.sql(text) == [("t", "Key (k)=(7)", "owner")]
        assert await reader.sql(text) == [("t", "Key (k)=(7)", "owner")]
        hidden = "<insufficient privilege>"
        await session.sql("ROLLBACK")
        await session.sql("BEGIN PESSIMISTIC")
        await root.sql("CREATE TABLE secret (k TEXT PRIMARY KEY)")
        boss = Session(root)
        await boss.sql("BEGIN PESSIMISTIC")
        await boss.sql("INSERT INTO secret VALUES ('classified')")
        assert await reader.sql(text) == [(hidden, hidden, "root")]
        running = await root.start(ENDLESS)
        seen = "SELECT text FROM sys.clients WHERE user_name = 'root' AND statements > 0"
        assert await shown(reader, seen) == [(hidden,)]
        seen = "SELECT query FROM pg_stat_activity WHERE usename = 'root' AND query <> ''"
        assert await reader.sql(seen) == [(hidden,)]
        await root.cancel(running)
        await running.done.wait()
        other = await cluster.client(3, OWNER)  # the same user, from elsewhere
        await other.sql(f"CANCEL TRANSACTION '{session.transaction}'")
        with pytest.raises(RemudaError, match="cancelled by user owner"):
            await session.sql("SELECT 1")
        await boss.sql("ROLLBACK")

    in_cluster(scenario, **settings)
