"""COPY by drivers other than psycopg, and the ends of a COPY that nobody wanted."""

from __future__ import annotations

import asyncio
import csv
import io
import select
from decimal import Decimal

import asyncpg
import pandas as pd
import psycopg
import psycopg2
import pytest
import sqlalchemy as sa

ROWS = [(1, "saw", Decimal("19.50")), (2, None, None), (3, 'a "b",\\\n', Decimal("-0.01"))]


@pytest.fixture
def table(connection):
    connection.execute("DROP TABLE IF EXISTS carried")
    connection.execute(
        "CREATE TABLE carried (id BIGINT PRIMARY KEY, name VARCHAR, price DECIMAL(10,2))"
    )
    yield "carried"
    connection.execute("DROP TABLE carried")


def rows_of(connection):
    return connection.execute("SELECT * FROM carried ORDER BY id").fetchall()


def test_asyncpg_copies_records_queries_and_files(door, connection, table):
    async def work():
        client = await asyncpg.connect(**door, ssl=False)
        assert await client.copy_records_to_table(table, records=ROWS) == "COPY 3"
        text = io.BytesIO()
        done = await client.copy_from_query(
            f"SELECT * FROM {table} WHERE id > $1 ORDER BY id", 1, output=text, format="csv"
        )
        assert done == "COPY 2"
        await client.execute(f"DELETE FROM {table} WHERE id > 1")
        text.seek(0)
        assert await client.copy_to_table(table, source=text, format="csv") == "COPY 2"
        await client.close()

    asyncio.run(asyncio.wait_for(work(), 60))
    assert rows_of(connection) == ROWS


def test_psycopg2_copies_files(door, connection, table):
    with psycopg2.connect(**door) as client, client.cursor() as cursor:
        source = io.StringIO("id,name\n1,saw\n2,\n")
        cursor.copy_expert(f"COPY {table} (id, name) FROM STDIN WITH CSV HEADER", source)
        target = io.StringIO()
        cursor.copy_expert(f"COPY (SELECT id, name FROM {table} ORDER BY id) TO STDOUT", target)
    client.close()
    assert target.getvalue() == "1\tsaw\n2\t\\N\n"
    assert rows_of(connection) == [(1, "saw", None), (2, None, None)]


def test_pandas_writes_a_frame_by_copy(door, connection, table):
    """By the method that the documentation of pandas shows."""

    def by_copy(target, engine, keys, rows):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        with engine.connection.cursor() as cursor:
            statement = f"COPY {target.name} ({', '.join(keys)}) FROM STDIN WITH CSV"
            with cursor.copy(statement) as copy:
                copy.write(text.getvalue())

    url = f"postgresql+psycopg://{door['user']}@{door['host']}:{door['port']}/{door['database']}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    frame = pd.DataFrame({"id": range(1000), "name": [f"n{i}" for i in range(1000)]})
    frame.to_sql(table, engine, index=False, if_exists="append", method=by_copy)
    engine.dispose()
    assert len(rows_of(connection)) == 1000


def test_a_broken_connection_leaves_nothing(connect, connection, table):
    other = connect()
    other.pgconn.send_query(f"COPY {table} FROM STDIN".encode())
    assert other.pgconn.get_result().status == psycopg.pq.ExecStatus.COPY_IN
    other.pgconn.put_copy_data(b"1\ta\t1\n" * 1)
    other.pgconn.flush()
    other.close()
    assert rows_of(connection) == []
    connection.execute(f"INSERT INTO {table} (id) VALUES (1)")  # nobody holds the map's turn


def test_a_copy_that_waits_for_rows_is_cancelled(connect, connection, table):
    other = connect()
    other.pgconn.send_query(f"COPY {table} FROM STDIN".encode())
    assert other.pgconn.get_result().status == psycopg.pq.ExecStatus.COPY_IN
    other.pgconn.put_copy_data(b"1\ta\t1\n")
    other.cancel()
    result = other.pgconn.get_result()
    while result.status == psycopg.pq.ExecStatus.COPY_IN:  # libpq sees the error when it sends
        other.pgconn.put_copy_data(b"2\ta\t1\n")
        other.pgconn.put_copy_end()
        result = other.pgconn.get_result()
    assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57014"
    while other.pgconn.get_result() is not None:
        pass
    assert rows_of(connection) == []
    assert other.execute("SELECT 1").fetchone() == (1,)


def test_a_timeout_ends_a_copy_that_waits_for_rows(connect, connection, table):
    other = connect()
    other.execute("SET statement_timeout = '300 ms'")
    other.pgconn.send_query(f"COPY {table} FROM STDIN".encode())
    assert other.pgconn.get_result().status == psycopg.pq.ExecStatus.COPY_IN
    select.select([other.pgconn.socket], [], [], 60)  # the error comes unasked
    other.pgconn.consume_input()
    other.pgconn.put_copy_end()
    result = other.pgconn.get_result()
    assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57014"
    while other.pgconn.get_result() is not None:
        pass
    assert other.execute("SELECT 1").fetchone() == (1,)


def test_unique_values_and_keys_are_checked(connection, table):
    connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT one_name UNIQUE (name)")
    with connection.cursor().copy(f"COPY {table} (id, name) FROM STDIN") as copy:
        copy.write(b"1\ta\n2\tb\n3\t\\N\n4\t\\N\n")
    again = connection.cursor().copy(f"COPY {table} (id, name) FROM STDIN")
    with pytest.raises(psycopg.errors.UniqueViolation), again as copy:
        copy.write(b"5\tc\n6\ta\n")
    assert len(rows_of(connection)) == 4
