"""asyncpg, pg8000, psycopg2 and psycopg's pool, against real members."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from decimal import Decimal

import asyncpg
import pg8000.dbapi
import pg8000.native
import psycopg
import psycopg2.extras
import pytest
from psycopg_pool import ConnectionPool

# --- asyncpg -----------------------------------------------------------------------------------

VALUES = {
    "BOOLEAN": True,
    "SMALLINT": -5,
    "INTEGER": 7,
    "BIGINT": 2**62,
    "REAL": 1.5,
    "DOUBLE PRECISION": 0.1,
    "NUMERIC(12,3)": Decimal("1.500"),
    "TEXT": "aé\U0001f600",
    "BYTEA": b"\0a",
    "DATE": dt.date(2024, 2, 29),
    "TIME": dt.time(1, 2, 3, 4),
    "TIMESTAMP": dt.datetime(2020, 1, 1, 1),  # noqa: DTZ001 (without a zone)
    "TIMESTAMPTZ": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "INTERVAL": dt.timedelta(days=3, seconds=1),
    "UUID": uuid.UUID(int=7),
    "JSON": '{"a": 1}',
    "JSONB": '{"a": 1}',
    "TEXT[]": ["a", None, 'x"y'],
}


@pytest.fixture
def asynchronous(door, items):
    """Runs a test's work with a connection of asyncpg."""

    def run(work):
        async def session():
            connection = await asyncpg.connect(**door)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(asyncio.wait_for(session(), 60))

    return run


def test_asyncpg_sends_and_reads_values_of_all_types(asynchronous):
    async def work(connection):
        for sql_type, value in VALUES.items():
            row = await connection.fetchrow(f"SELECT $1::{sql_type}, $1::{sql_type} IS NULL", value)
            assert tuple(row) == (value, False), sql_type
            assert await connection.fetchval(f"SELECT $1::{sql_type}", None) is None, sql_type

    asynchronous(work)


def test_asyncpg_looks_up_types_of_arrays(asynchronous):
    """It asks the catalog for them, whose own types (oid, name, "char") must be PostgreSQL's."""

    async def work(connection):
        for kind, values in (("bigint", [1, None]), ("oid", [1, 4_000_000_000]), ("uuid", [])):
            assert await connection.fetchval(f"SELECT $1::{kind}[]", values) == values
        assert await connection.fetchval("SELECT $1::xid", 7) == 7
        assert await connection.fetchval("SELECT (-1)::bigint::oid") == 4_294_967_295
        found = "SELECT oid, typname, typtype FROM pg_type WHERE typname = $1"
        assert tuple(await connection.fetchrow(found, "int4")) == (23, "int4", b"b")

    asynchronous(work)


def test_asyncpg_reads_rows_by_portions(asynchronous):
    async def work(connection):
        query = "SELECT x FROM generate_series(1, 1000) t(x)"
        async with connection.transaction():
            cursor = await connection.cursor(query)
            assert [row["x"] for row in await cursor.fetch(10)] == list(range(1, 11))
            assert (await cursor.fetchrow())["x"] == 11
            found = [row["x"] async for row in connection.cursor(query, prefetch=37)]
            assert found == list(range(1, 1001))
        prepared = await connection.prepare("SELECT * FROM items WHERE id >= $1 ORDER BY id")
        assert [t.name for t in prepared.get_parameters()] == ["int8"]
        names = [(a.name, a.type.name) for a in prepared.get_attributes()]
        assert names == [
            ("id", "int8"), ("name", "varchar"), ("price", "numeric"), ("born", "timestamptz"),
        ]  # fmt: skip
        assert [row["name"] for row in await prepared.fetch(1)] == ["saw", "nail"]
        assert (await prepared.fetchrow(2))["price"] == Decimal("0.10")

    asynchronous(work)


def test_asyncpg_has_transactions(asynchronous):
    async def work(connection):
        for level in ("serializable", "repeatable_read", "read_committed"):
            async with connection.transaction(isolation=level):
                shown = await connection.fetchval("SHOW transaction_isolation")
                assert shown == level.replace("_", " ")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with connection.transaction(readonly=True):
                await connection.execute("DELETE FROM items")
        async with connection.transaction():
            rows = [(key, f"item {key}") for key in range(20, 40)]
            await connection.executemany("INSERT INTO items (id, name) VALUES ($1, $2)", rows)
            with pytest.raises(asyncpg.UniqueViolationError) as failed:
                async with connection.transaction():
                    await connection.execute("INSERT INTO items (id, name) VALUES (20, 'x')")
            assert failed.value.constraint_name == "items_pkey"
            tag = await connection.execute("DELETE FROM items WHERE id BETWEEN $1 AND $2", 20, 39)
            assert tag == "DELETE 20"

    asynchronous(work)


def test_a_pool_of_asyncpg_resets_its_connections(door, items):
    """With CLOSE ALL, UNLISTEN *, RESET ALL and pg_advisory_unlock_all()."""

    async def work():
        async with asyncpg.create_pool(**door, min_size=1, max_size=2) as pool:

            async def one(number):
                async with pool.acquire() as connection:
                    await connection.execute("SET application_name = 'worker'")
                    return await connection.fetchval("SELECT $1::int", number)

            assert await asyncio.gather(*map(one, range(10))) == list(range(10))
            assert await pool.fetchval("SHOW application_name") == ""

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_listener_of_asyncpg_hears_of_notifications(asynchronous):
    async def work(connection):
        heard = asyncio.Queue()
        await connection.add_listener("news", lambda _, *told: heard.put_nowait(told))
        await connection.execute("SELECT pg_notify($1, $2)", "news", "one")
        async with connection.transaction():
            await connection.execute("NOTIFY news, 'two'")
            await connection.fetchval("SELECT 1")
        pid = connection.get_server_pid()
        assert [await heard.get() for _ in range(2)] == [
            (pid, "news", "one"),
            (pid, "news", "two"),
        ]
        await connection.remove_listener("news", print)

    asynchronous(work)


# --- pg8000 ------------------------------------------------------------------------------------


def test_pg8000_by_the_db_api(door, items):
    with pg8000.dbapi.connect(**door) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT id, name, price, born FROM items WHERE id = %s", (1,))
        born = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
        assert cursor.fetchall() == ([1, "saw", Decimal("19.50"), born],)
        rows = [(10, "awl"), (11, "file")]
        cursor.executemany("INSERT INTO items (id, name) VALUES (%s, %s)", rows)
        connection.rollback()
        cursor.execute("SELECT count(*) FROM items")
        assert cursor.fetchone() == [2]


def test_pg8000_by_its_own_interface(door, items):
    with pg8000.native.Connection("bob", **{k: door[k] for k in ("host", "port", "database")}) as c:
        when = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        row = c.run(
            "SELECT :a + 1, CAST(:b AS INT[]), CAST(:c AS JSON), CAST(:d AS TIMESTAMPTZ)",
            a=1, b=[1, None], c={"a": 1}, d=when,
        )  # fmt: skip
        assert row == [[2, [1, None], {"a": 1}, when]]
        prepared = c.prepare("SELECT name FROM items WHERE id = :i")
        assert [prepared.run(i=1), prepared.run(i=2)] == [[["saw"]], [["nail"]]]
        prepared.close()
        with pytest.raises(pg8000.native.DatabaseError) as failed:
            c.run("INSERT INTO items (id, name) VALUES (1, 'x')")
        assert failed.value.args[0]["C"] == "23505"
        assert failed.value.args[0]["n"] == "items_pkey"


# --- psycopg2 ----------------------------------------------------------------------------------


@pytest.fixture
def psycopg2_connection(door, items):
    connection = psycopg2.connect(**door)
    yield connection
    connection.close()


def test_psycopg2_reads_and_writes(psycopg2_connection):
    cursor = psycopg2_connection.cursor()
    cursor.execute("SELECT id, name, price FROM items WHERE id = %s", (1,))
    assert cursor.fetchone() == (1, "saw", Decimal("19.50"))
    cursor.execute("SELECT ARRAY[1, NULL], '{\"a\": 1}'::json, INTERVAL '1 day'")
    assert cursor.fetchone() == ([1, None], {"a": 1}, dt.timedelta(days=1))
    rows = [(10, "awl"), (11, "file")]
    psycopg2.extras.execute_values(cursor, "INSERT INTO items (id, name) VALUES %s", rows)
    assert cursor.rowcount == 2
    psycopg2_connection.rollback()
    psycopg2_connection.set_session(isolation_level="READ COMMITTED")
    cursor.execute("SHOW transaction_isolation")
    assert cursor.fetchone() == ("read committed",)
    with psycopg2_connection.cursor("named") as named:
        named.execute("SELECT 1")
        assert named.fetchall() == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO items (id, name) VALUES (77, 'x')",
        "DELETE FROM items WHERE id = 77",
        "EXPLAIN ANALYZE DELETE FROM items WHERE id = 77",
        "CREATE TABLE unwanted (id BIGINT PRIMARY KEY)",
        "TRUNCATE items",
        "DROP VIEW cheap",
    ],
)
def test_a_session_that_only_reads_changes_nothing_without_begin(psycopg2_connection, text):
    """psycopg2 sets default_transaction_read_only, and in autocommit sends no BEGIN."""
    psycopg2_connection.set_session(autocommit=True, readonly=True)
    cursor = psycopg2_connection.cursor()
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        cursor.execute(text)
    cursor.execute("EXPLAIN DELETE FROM items")
    cursor.execute("SELECT count(*) FROM items")
    assert cursor.fetchone() == (2,)
    psycopg2_connection.set_session(readonly=False)
    cursor.execute("DELETE FROM items WHERE id = 77")


# --- psycopg's pool ----------------------------------------------------------------------------


def test_a_pool_of_psycopg(door, items):
    conninfo = psycopg.conninfo.make_conninfo(
        host=door["host"], port=door["port"], user="bob", dbname="shop"
    )
    check = ConnectionPool.check_connection
    with ConnectionPool(conninfo, min_size=2, max_size=3, check=check, open=True) as pool:
        with pool.connection() as connection, connection.pipeline():
            first = connection.execute("SELECT name FROM items WHERE id = %s", (1,))
            second = connection.execute("SELECT name FROM items WHERE id = %s", (2,))
            assert first.fetchone() + second.fetchone() == ("saw", "nail")
        with pytest.raises(ZeroDivisionError), pool.connection() as connection:
            connection.execute("INSERT INTO items (id, name) VALUES (12, 'x')")
            raise ZeroDivisionError
        with pool.connection() as connection:
            assert connection.execute("SELECT count(*) FROM items").fetchone() == (2,)


def test_psycopg_binds_on_the_client_too(connect, items):
    connection = connect(cursor_factory=psycopg.ClientCursor)
    row = connection.execute("SELECT name, %s FROM items WHERE id = %s", ("a'b", 1)).fetchone()
    assert row == ("saw", "a'b")
    with connect(autocommit=False).cursor(name="named") as named:
        assert named.execute("SELECT 1").fetchall() == [(1,)]
