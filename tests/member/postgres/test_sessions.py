"""Sessions of PostgreSQL's clients on members: cancels that come to another member, a member that
leaves, clients that do not read, and what operators see."""

from __future__ import annotations

import asyncio
import socket
import struct

import psycopg
import pytest

from remuda.member.member import Member
from remuda.member.metrics.families import exposition
from remuda.member.postgres.connection import WRITE_BUFFER_HIGH
from remuda.postgres.login import CANCEL_REQUEST

LONG = "SELECT count(*) FROM generate_series(1, 1000000000) a(x) WHERE x % 7 = 1 AND x > 3"
MANY = 1_000_000


def place(cluster, member=1):
    host, port = cluster.member(member).postgres.address.split(":")
    return host, int(port)


async def connect(cluster, member=1, **options):
    host, port = place(cluster, member)
    given = {"host": host, "port": port, "user": "bob", "dbname": "shop", "autocommit": True}
    return await psycopg.AsyncConnection.connect(**given | options)


async def one(connection, text, *values):
    return await (await connection.execute(text, values or None)).fetchone()


async def until(condition):
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0)


def backends(member: Member):
    return member.postgres.backends


def test_a_cancel_reaches_the_session_from_every_member(in_cluster):
    async def scenario(cluster):
        connection = await connect(cluster, 2)
        (backend,) = backends(cluster.member(2))
        pid = connection.info.backend_pid
        for member, secret in ((1, backend.secret), (2, backend.secret), (3, backend.secret)):
            await until(lambda: not backend.client.statements)
            running = asyncio.create_task(connection.execute(LONG))
            await until(lambda: backend.client.statements)
            for wrong in (secret ^ 1, secret):
                reader, writer = await asyncio.open_connection(*place(cluster, member))
                writer.write(struct.pack("!iiII", 16, CANCEL_REQUEST, pid, wrong))
                assert await reader.read() == b""
                writer.close()
                if wrong != secret:
                    assert not running.done()
            with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
                await running
        nowhere = struct.pack("!iiII", 16, CANCEL_REQUEST, 9 << 16 | 1, backend.secret)
        reader, writer = await asyncio.open_connection(*place(cluster))
        writer.write(nowhere)
        assert await reader.read() == b""
        writer.close()
        assert await one(connection, "SELECT 1") == (1,)
        await connection.close()
        await cluster.idle()

    in_cluster(scenario, 3)


def test_operators_see_what_a_session_is(in_cluster):
    async def scenario(cluster):
        connection = await connect(cluster, 1, application_name="till")
        other = await connect(cluster, 2)
        pid = connection.info.backend_pid
        mine = socket.fromfd(connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
        address = "{}:{}".format(*mine.getsockname())
        mine.close()
        columns = "address, application, user_name, member, protocol"
        asked = f"SELECT {columns} FROM sys.clients WHERE pid = %s"
        assert await one(other, asked, pid) == (address, "till", "remuda", 1, "postgres")
        await connection.execute("SET application_name = 'books'")
        assert (await one(other, asked, pid))[1] == "books"
        for each in (connection, other):
            await each.close()
        await cluster.idle()

    in_cluster(scenario, 2)


def test_statements_of_the_door_are_counted_by_kind_and_outcome(in_cluster):
    async def scenario(cluster):
        connection = await connect(cluster)
        await connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await connection.execute("INSERT INTO t VALUES (1), (2)")
        for key in range(1, 5):
            await connection.execute("SELECT * FROM t WHERE k = %s", (key,), prepare=True)
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.execute("select 1 / (k - 1) from t")
        measures = cluster.member(1).core.measures
        page = exposition(measures.postgres.families()).decode()
        for line in (
            "remuda_postgres_sessions 1",
            "remuda_postgres_sessions_total 1",
            'remuda_postgres_statements_total{kind="create",outcome="ok"} 1',
            'remuda_postgres_statements_total{kind="insert",outcome="ok"} 1',
            'remuda_postgres_statements_total{kind="select",outcome="22012"} 1',
            'remuda_postgres_statements_total{kind="select",outcome="ok"} 4',
            'remuda_postgres_statement_duration_seconds_count{kind="select"} 5',
        ):
            assert line in page.splitlines(), page
        assert page in exposition(measures.families()).decode()
        await connection.close()
        none = b"remuda_postgres_sessions 0\n"
        await until(lambda: none in exposition(measures.postgres.families()))
        await cluster.idle()

    in_cluster(scenario, 1)


def test_a_member_that_leaves_sends_its_sessions_away(in_cluster):
    """Sessions that rest hear 57P01. An open transaction goes on, and is rolled back at the
    deadline: the client hears a code that it may retry."""

    async def scenario(cluster):
        maker = await connect(cluster, 1)
        await maker.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        idle, open_one = await connect(cluster, 2), await connect(cluster, 2)
        await open_one.execute("BEGIN")
        await open_one.execute("INSERT INTO t VALUES (1)")
        member = cluster.member(2)
        leaving = asyncio.create_task(member.leave())
        await until(lambda: len(backends(member)) <= 1)
        with pytest.raises(psycopg.errors.AdminShutdown):
            await idle.execute("SELECT 1")
        assert idle.closed
        assert await one(open_one, "SELECT count(*) FROM t") == (1,)
        machine = member._leaving._machine
        machine._until = machine._deadline = 0.0  # leave_timeout is over, not before
        await until(lambda: not backends(member))
        with pytest.raises(psycopg.errors.AdminShutdown) as lost:
            await open_one.execute("INSERT INTO t VALUES (2)")
        assert "was rolled back: member 2 is leaving" in lost.value.diag.message_detail
        await leaving
        assert await one(maker, "SELECT count(*) FROM t") == (0,)
        for each in (idle, open_one, maker):
            await each.close()

    in_cluster(scenario, 3, leave_timeout=3600.0)


@pytest.mark.parametrize("check", ["", ";", "-- ping", "SELECT 1"])
def test_a_session_that_was_checked_serves_until_it_is_checked_again(in_cluster, check):
    """A pool hands a connection out after a check. A member that begins to leave in between serves
    the work all the same, and says no to the next check."""

    async def scenario(cluster):
        maker = await connect(cluster, 1)
        await maker.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        pooled = await connect(cluster, 2)
        await pooled.execute(check)
        leaving = asyncio.create_task(cluster.member(2).leave())
        await until(lambda: cluster.member(2).core.departure.dismissing)
        with pytest.raises(psycopg.OperationalError, match="shutting down"):
            await connect(cluster, 2)
        for key in range(3):
            await pooled.execute("INSERT INTO t VALUES (%s)", (key,))
        async with pooled.transaction():
            assert await one(pooled, "SELECT count(*) FROM t") == (3,)
            await pooled.execute("SELECT 1")  # in a transaction: work, not a check
            await pooled.execute("DELETE FROM t WHERE k = 0")
        assert not cluster.member(2).core.departure.refusing
        with pytest.raises(psycopg.errors.AdminShutdown):
            await pooled.execute(check)
        await leaving
        assert await one(maker, "SELECT count(*) FROM t") == (2,)
        for each in (pooled, maker):
            await each.close()

    in_cluster(scenario, 3)


def test_a_client_that_does_not_read_costs_a_few_pages(in_cluster):
    """A million rows for a client that reads nothing: the member keeps no more of them than the
    buffer of the connection and the pages that wait behind it."""

    async def scenario(cluster):
        host, port = place(cluster)
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, (host, port))
        body = struct.pack("!i", 3 << 16) + b"user\0bob\0\0"
        await loop.sock_sendall(slow, struct.pack("!i", len(body) + 4) + body)
        text = f"SELECT x, repeat('r', 100) FROM generate_series(1, {MANY}) t(x)\0".encode()
        await until(lambda: backends(cluster.member(1)))
        (door,) = cluster.member(1).postgres.connections
        await loop.sock_sendall(slow, b"Q" + struct.pack("!i", len(text) + 4) + text)
        await until(lambda: not door.writable and door.pages_held)
        most, before = 0, -1
        for _ in range(200):  # the query goes on as far as it may
            await asyncio.sleep(0)
            most = max(most, door.unsent)
        assert most < 4 * WRITE_BUFFER_HIGH
        statement = next(iter(door.backend.client.statements.values()))
        cursor = door.backend.client.cursors[statement.query]
        assert cursor.results.rows < MANY / 2
        before = cursor.results.rows
        for _ in range(200):
            await asyncio.sleep(0)
        assert cursor.results.rows == before
        received = 0
        while True:
            data = await loop.sock_recv(slow, 1 << 20)
            received += len(data)
            most = max(most, door.unsent)
            if data.endswith(b"Z\0\0\0\5I"):
                break
        assert received > MANY * 100
        assert most < 4 * WRITE_BUFFER_HIGH
        slow.close()
        await cluster.idle()

    in_cluster(scenario, 1)
