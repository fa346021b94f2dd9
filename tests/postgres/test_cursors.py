"""Cursors of SQL and portals, by PostgreSQL's own clients. What is expected is what PostgreSQL 15
gives to the same calls."""

from __future__ import annotations

import asyncio

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy as sa
from psycopg import errors

ALL = "SELECT id, name FROM numbers ORDER BY id"


def row(number):
    return (number, f"n{number}")


@pytest.fixture
def transaction(connect, numbers):
    """A connection on which psycopg begins transactions by itself."""
    return connect(autocommit=False)


def test_psycopg_named_cursor(transaction):
    with transaction.cursor("named") as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT id, name FROM numbers WHERE id > %s ORDER BY id", (5,))
        assert [column.name for column in cursor.description] == ["id", "name"]
        assert cursor.fetchone() == row(6)
        assert cursor.fetchmany(3) == [row(7), row(8), row(9)]
        assert [found[0] for found in cursor] == [*range(10, 3001)]


def test_psycopg_scrolls(transaction):
    for binary in (False, True):
        with transaction.cursor("scrolled", scrollable=True, binary=binary) as cursor:
            cursor.execute(ALL)
            cursor.scroll(10)
            assert cursor.fetchone() == row(11)
            cursor.scroll(-2)
            assert cursor.fetchone() == row(10)
            cursor.scroll(2999, mode="absolute")
            assert cursor.fetchall() == [row(3000)]
            cursor.scroll(0, mode="absolute")
            assert len(cursor.fetchall()) == 3000


def test_psycopg_holds_a_cursor(connect, transaction):
    with transaction.cursor("held", withhold=True) as cursor:
        cursor.execute(ALL)
        cursor.fetchmany(5)
        with connect() as other:
            other.execute("UPDATE numbers SET name = 'x' WHERE id = 6")
            other.execute("UPDATE numbers SET name = 'n6' WHERE id = 6")
        transaction.commit()
        assert cursor.fetchone() == row(6)
        listed = transaction.execute(
            "SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors"
        ).fetchall()
        assert listed == [("held", True, False, True)]
        transaction.rollback()
        assert cursor.fetchone() == row(7)
    transaction.commit()
    assert transaction.execute("SELECT name FROM pg_cursors").fetchall() == []


def test_a_held_cursor_ends_with_discard_and_does_not_outlive_a_rollback(connect, numbers):
    connection = connect()
    connection.execute(f"DECLARE kept CURSOR WITH HOLD FOR {ALL}")
    assert connection.execute("FETCH 2 FROM kept").fetchall() == [row(1), row(2)]
    connection.execute("BEGIN")
    connection.execute(f"DECLARE gone CURSOR WITH HOLD FOR {ALL}")
    with pytest.raises(errors.DuplicateCursor):
        connection.execute(f"DECLARE kept CURSOR FOR {ALL}")
    connection.execute("ROLLBACK")
    with pytest.raises(errors.InvalidCursorName):
        connection.execute("FETCH 1 FROM gone")
    connection.execute("DISCARD ALL")
    with pytest.raises(errors.InvalidCursorName):
        connection.execute("FETCH 1 FROM kept")


def test_nothing_is_committed_if_a_held_cursor_fails(connect, numbers):
    connection = connect()
    connection.execute("BEGIN")
    connection.execute("DELETE FROM numbers WHERE id = 1")
    connection.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1 / (id - 9) FROM numbers")
    with pytest.raises(errors.DivisionByZero):
        connection.execute("COMMIT")
    assert connection.execute("SELECT count(*) FROM numbers WHERE id = 1").fetchone() == (1,)
    with pytest.raises(errors.InvalidCursorName):
        connection.execute("FETCH 1 FROM c")


def test_declared_and_fetched_in_one_pipeline(transaction):
    with transaction.pipeline():
        transaction.execute(f"DECLARE c CURSOR FOR {ALL}")
        first = transaction.execute("FETCH 2 FROM c")
        second = transaction.execute("FETCH 1 FROM c")
    assert (first.fetchall(), second.fetchall()) == ([row(1), row(2)], [row(3)])


def test_several_statements_of_one_query(connect, numbers):
    connection = connect()
    cursor = connection.execute(f"DECLARE c CURSOR FOR {ALL}; MOVE 3 FROM c; FETCH c; CLOSE c")
    tags = [cursor.statusmessage]
    while cursor.nextset():
        tags.append(cursor.statusmessage)
        if cursor.description:
            assert cursor.fetchall() == [row(4)]
    assert tags == ["DECLARE CURSOR", "MOVE 3", "FETCH 1", "CLOSE CURSOR"]
    with pytest.raises(errors.NoActiveSqlTransaction):
        connection.execute(f"DECLARE c CURSOR FOR {ALL}")


def test_a_binary_cursor_sends_binary_values(transaction):
    transaction.execute("DECLARE c BINARY CURSOR FOR SELECT 258::INTEGER AS a")
    found = transaction.pgconn.exec_(b"FETCH c")
    assert (found.fformat(0), found.get_value(0, 0)) == (1, b"\0\0\1\2")
    described = transaction.pgconn.describe_portal(b"c")
    assert (described.nfields, described.fname(0)) == (1, b"a")
    missing = transaction.pgconn.describe_portal(b"nosuch")
    assert b'portal "nosuch" does not exist' in missing.error_message


def test_rows_of_a_large_fetch_wait_for_the_client(transaction):
    """The rows of the whole FETCH would not fit into the memory of a statement."""
    transaction.execute(
        "DECLARE c CURSOR FOR SELECT x, repeat('y', 1000) FROM generate_series(1, 300000) t(x)"
    )
    count = 0
    for _ in transaction.cursor().stream("FETCH 50000 FROM c"):
        count += 1
    assert count == 50000
    assert transaction.execute("MOVE 2 FROM c").statusmessage == "MOVE 2"
    assert transaction.execute("FETCH c").fetchone()[0] == 50003


def test_psycopg2_named_cursors(door, numbers):
    connection = psycopg2.connect(**door)
    cursor = connection.cursor("plain")
    cursor.itersize = 700
    cursor.execute(ALL)
    assert sum(found[0] for found in cursor) == 3000 * 3001 // 2
    cursor.close()
    cursor = connection.cursor("scrolled", scrollable=True)
    cursor.execute(ALL)
    cursor.fetchmany(10)
    cursor.scroll(-5)
    assert cursor.fetchone() == row(6)
    cursor.scroll(100, mode="absolute")
    assert cursor.fetchone() == row(101)
    cursor.close()
    cursor = connection.cursor("held", withhold=True)
    cursor.execute(ALL)
    connection.commit()
    assert cursor.fetchmany(2) == [row(1), row(2)]
    cursor.close()
    cursor = connection.cursor("plain", scrollable=False)
    cursor.execute(ALL)
    cursor.fetchone()
    with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="only scan forward"):
        cursor.scroll(-1)
    connection.close()


def test_asyncpg_moves_its_portals(door, numbers):
    async def scenario():
        connection = await asyncpg.connect(**door)
        async with connection.transaction():
            found = [r["id"] async for r in connection.cursor(ALL, prefetch=77)]
            assert found == [*range(1, 3001)]
            cursor = await connection.cursor(ALL)
            assert await cursor.forward(10) == 10
            assert tuple(await cursor.fetchrow()) == row(11)
            assert len(await cursor.fetch(5)) == 5
            assert await cursor.forward(3) == 3
            assert tuple(await cursor.fetchrow()) == row(20)
            listed = await connection.fetch("SELECT * FROM pg_cursors WHERE name <> ''")
            assert [r["statement"] for r in listed] == [ALL]
            name = listed[0]["name"]
            by_sql = await connection.fetch(f'FETCH 2 FROM "{name}"')
            assert [tuple(r) for r in by_sql] == [row(21), row(22)]
            assert await cursor.forward(5000) == 2978
            assert await cursor.fetchrow() is None
            other = await connection.cursor(ALL)
            with pytest.raises(asyncpg.DuplicateCursorError):
                async with connection.transaction():
                    await connection.execute(f'DECLARE "{other._portal_name}" CURSOR FOR {ALL}')
            await connection.execute(f'CLOSE "{other._portal_name}"')
            with pytest.raises(asyncpg.InvalidCursorNameError):
                await other.fetchrow()
        await connection.close()

    asyncio.run(scenario())


def test_asyncpg_hears_of_an_error_of_a_portal_that_is_moved(door, numbers):
    async def scenario():
        connection = await asyncpg.connect(**door)
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with connection.transaction():
                cursor = await connection.cursor("SELECT 1 / (id - 9) FROM numbers")
                await cursor.forward(100)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy_streams_results(door, numbers, driver):
    url = sa.URL.create(
        f"postgresql+{driver}", "bob", None, door["host"], door["port"], door["database"]
    )
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        options = {"stream_results": True, "max_row_buffer": 50}
        result = connection.execution_options(**options).execute(sa.text(ALL))
        assert sum(1 for _ in result) == 3000
    engine.dispose()


def test_queries_of_cursors_end_with_their_transactions(connect, transaction):
    watching = connect()

    def running():
        count = "SELECT sum(queries) FROM sys.members"
        return watching.execute(count).fetchone()[0]

    before = running()
    for end in ("ROLLBACK", "COMMIT", "CLOSE c"):
        transaction.execute("DECLARE c CURSOR FOR SELECT a.id FROM numbers a, numbers b")
        assert transaction.execute("FETCH 3 FROM c").rowcount == 3
        assert running() > before
        transaction.execute(end)
        transaction.rollback()
        while running() > before:
            pass
    other = connect(autocommit=False)
    other.execute("DECLARE c CURSOR FOR SELECT a.id FROM numbers a, numbers b")
    other.close()
    while running() > before:
        pass


def test_a_fetch_can_be_cancelled(connect, transaction):
    endless = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id <> b.id + c.id"
    transaction.execute(f"DECLARE c CURSOR FOR {endless}")
    transaction.execute("SET LOCAL statement_timeout = '50ms'")
    with pytest.raises(errors.QueryCanceled):
        transaction.execute("FETCH c")
    with pytest.raises(errors.InFailedSqlTransaction):
        transaction.execute("FETCH c")
    transaction.rollback()


def test_where_current_of_is_refused(transaction):
    transaction.execute(f"DECLARE c CURSOR FOR {ALL}")
    with pytest.raises(errors.FeatureNotSupported, match="WHERE CURRENT OF") as caught:
        transaction.execute("UPDATE numbers SET name = 'x' WHERE CURRENT OF c")
    assert "key" in caught.value.diag.message_hint
    transaction.rollback()
    with pytest.raises(errors.FeatureNotSupported):
        transaction.execute("DELETE FROM numbers WHERE CURRENT OF c")


def test_psycopg_hears_what_is_wrong(transaction):
    with pytest.raises(psycopg.errors.InvalidCursorName, match='cursor "nosuch" does not exist'):
        transaction.execute("FETCH ALL FROM nosuch")
