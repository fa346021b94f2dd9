"""COPY of psycopg and psql, on real sockets, against real members."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import uuid
from decimal import Decimal

import psycopg
import pytest

from remuda.errors import NotSupported

ROWS = [
    (1, "saw", Decimal("19.50"), True, dt.date(2024, 2, 29)),
    (2, 'a "quoted", text\\ with\ttabs\nand lines', None, False, None),
    (3, "", Decimal("-0.01"), None, dt.date(1, 1, 1)),
]
COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR, price DECIMAL(10,2), used BOOLEAN, born DATE"


@pytest.fixture
def table(connection):
    """Makes an empty table of these columns; it is dropped with the test."""
    made = []

    def make(columns=COLUMNS):
        name = f"copied{len(made)}"
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({columns})")
        made.append(name)
        return name

    yield make
    connection.rollback()
    for name in made:
        connection.execute(f"DROP TABLE {name}")


def sent(connection, statement, data):
    """Sends all of ``data`` at once. The number of rows by the command tag."""
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            copy.write(data)
        return cursor.rowcount


def received(connection, statement):
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        return b"".join(bytes(data) for data in copy)


def rows_of(connection, table):
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_rows_go_in_and_come_out_in_every_format(connection, table, form):
    source, target = table(), table()
    types = ["int8", "text", "numeric", "bool", "date"]
    statement = f"COPY {source} FROM STDIN (FORMAT {'text' if form == 'csv' else form})"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in ROWS:
            copy.write_row(row)
    assert rows_of(connection, source) == ROWS
    data = received(connection, f"COPY {source} TO STDOUT (FORMAT {form})")
    assert sent(connection, f"COPY {target} FROM STDIN (FORMAT {form})", data) == 3
    assert rows_of(connection, target) == ROWS


@pytest.mark.parametrize("form", ["text", "binary"])
def test_a_client_reads_row_by_row(connection, table, form):
    source = table()
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {source} VALUES (%s, %s, %s, %s, %s)", ROWS)
        with cursor.copy(f"COPY (SELECT * FROM {source} ORDER BY id) TO STDOUT ({form})"
                         .replace("(text)", "(FORMAT text)")
                         .replace("(binary)", "(FORMAT binary)")) as copy:  # fmt: skip
            copy.set_types(["int8", "text", "numeric", "bool", "date"])
            assert list(copy.rows()) == ROWS
        assert cursor.rowcount == 3


def test_defaults_numbers_and_conditions_apply(connection, table):
    name = table(
        "id SERIAL PRIMARY KEY, name VARCHAR DEFAULT upper('x') || 'y', size INT DEFAULT 7,"
        " made TIMESTAMP DEFAULT now(), CHECK (size < 100)"
    )
    found = sent(
        connection, f"COPY {name} (size) FROM STDIN WHERE size > 1 AND id < 4", b"1\n2\n3\n4\n"
    )
    assert found == 2
    assert connection.execute(f"SELECT id, name, size FROM {name} ORDER BY id").fetchall() == [
        (2, "Xy", 2),
        (3, "Xy", 3),
    ]
    with pytest.raises(psycopg.errors.CheckViolation):
        sent(connection, f"COPY {name} (size) FROM STDIN", b"5\n100\n")
    assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (2,)


@pytest.mark.parametrize(
    ("data", "state", "context"),
    [
        (b"1\ta\t1\tt\t\\N\n2\tb\tx\tt\t\\N\n", "22P02", 'line 2, column price: "x"'),
        (b"1\ta\n", "22P04", 'line 1: "1\ta"'),
        (b"1\ta\t1\tt\t\\N\t5\n", "22P04", 'line 1: "1\ta\t1\tt\t\\N\t5"'),
        (b"1\t\xff\t1\tt\t\\N\n", "22021", "line 1"),
        (b"1\ta\t1\tt\t\\N\n\\N\ta\t1\tt\t\\N\n", "23502", ""),
        (b"1\ta\t1\tt\t\\N\n1\ta\t1\tt\t\\N\n", "23505", ""),
        (b"1\ta\t123456789\tt\t\\N\n", "22003", 'line 1, column price: "123456789"'),
    ],
)
def test_wrong_data_leaves_nothing_and_says_where(connection, table, data, state, context):
    name = table()
    with pytest.raises(psycopg.Error) as caught:
        sent(connection, f"COPY {name} FROM STDIN", data)
    assert caught.value.sqlstate == state
    if context:
        assert caught.value.diag.context == f"COPY {name}, {context}"
    assert rows_of(connection, name) == []
    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_a_copy_is_a_part_of_its_transaction(connect, table, connection):
    name = table()
    other = connect(autocommit=False)
    sent(other, f"COPY {name} FROM STDIN", b"1\ta\t1\tt\t\\N\n")
    assert len(rows_of(other, name)) == 1
    assert rows_of(connection, name) == []
    other.rollback()
    assert rows_of(connection, name) == []
    sent(other, f"COPY {name} FROM STDIN", b"1\ta\t1\tt\t\\N\n")
    other.commit()
    assert len(rows_of(connection, name)) == 1
    with pytest.raises(psycopg.errors.BadCopyFileFormat):
        sent(other, f"COPY {name} FROM STDIN", b"2\n")
    assert other.info.transaction_status is psycopg.pq.TransactionStatus.INERROR
    other.rollback()


def test_a_client_gives_up(connection, table):
    name = table()
    statement = f"COPY {name} FROM STDIN"
    with pytest.raises(ZeroDivisionError), connection.cursor().copy(statement) as copy:
        copy.write(b"1\ta\t1\tt\t\\N\n" * 3)
        raise ZeroDivisionError
    assert rows_of(connection, name) == []
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_rows_that_fit_no_type_are_left_out(connection, table):
    name, heard = table("id INT PRIMARY KEY, size INT"), []
    connection.add_notice_handler(lambda diag: heard.append(diag.message_primary))
    statement = f"COPY {name} FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose)"
    assert sent(connection, statement, b"1\t1\nx\t2\n3\ty\n4\t4\n") == 2
    assert rows_of(connection, name) == [(1, 1), (4, 4)]
    assert heard == [
        'skipping row due to data type incompatibility at line 2 for column id: "x"',
        'skipping row due to data type incompatibility at line 3 for column size: "y"',
        "2 rows were skipped due to data type incompatibility",
    ]


def test_large_loads_are_read_in_pieces(connection, table):
    name = table("id BIGINT PRIMARY KEY, name VARCHAR, price DECIMAL(10,2)")
    count = 150_000
    data = b"".join(b"%d\tname %d\t%d.%02d\n" % (i, i, i % 1000, i % 100) for i in range(count))
    assert sent(connection, f"COPY {name} FROM STDIN", data) == count
    assert connection.execute(f"SELECT count(*), sum(price) FROM {name}").fetchone() == (
        count,
        sum(Decimal(i % 1000) + Decimal(i % 100) / 100 for i in range(count)),
    )
    out = received(connection, f"COPY (SELECT * FROM {name} ORDER BY id) TO STDOUT")
    assert out == data


def test_statements_around_a_copy_run_in_order(connection, table):
    """In one query of the simple protocol, which is one transaction."""
    name = table("id INT PRIMARY KEY")
    pgconn = connection.pgconn
    text = f"INSERT INTO {name} VALUES (1); COPY {name} FROM STDIN; SELECT count(*) FROM {name}"
    pgconn.send_query(text.encode())
    states = []
    while (result := pgconn.get_result()) is not None:
        states.append(psycopg.pq.ExecStatus(result.status).name)
        if states[-1] == "COPY_IN":
            pgconn.put_copy_data(b"2\n3\n")
            pgconn.put_copy_end()
    assert states == ["COMMAND_OK", "COPY_IN", "COMMAND_OK", "TUPLES_OK"]
    assert rows_of(connection, name) == [(1,), (2,), (3,)]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize("form", ["text", "csv header", "binary"])
def test_psql_copies_files(cluster, connection, table, tmp_path, form):
    source, target = table(), table()
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {source} VALUES (%s, %s, %s, %s, %s)", ROWS)
    host, port = cluster.members[0].postgres.split(":")
    file = tmp_path / "rows"
    option = "" if form == "text" else form
    script = f"\\copy {source} to '{file}' {option}\n\\copy {target} from '{file}' {option}\n"
    done = subprocess.run(
        ["psql", "-X", "-h", host, "-p", port, "-U", "bob", "shop"],
        input=script, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["COPY", "3", "COPY", "3"], done.stderr
    assert rows_of(connection, target) == ROWS


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("COPY items TO '/tmp/items'", "42501"),
        ("COPY items FROM PROGRAM 'ls'", "42501"),
        ("COPY cheap TO STDOUT", "42809"),
        ("COPY cheap FROM STDIN", "42809"),
        ("COPY nowhere TO STDOUT", "42P01"),
        ("COPY items (id, id) TO STDOUT", "42701"),
        ("COPY items (zz) FROM STDIN", "42703"),
        ("COPY items TO STDOUT WHERE id = 1", "42601"),
        ("COPY items FROM STDIN WHERE (SELECT true)", "0A000"),
        ("COPY items FROM STDIN WHERE sum(id) > 1", "42803"),
        ("COPY (DELETE FROM items) TO STDOUT", "0A000"),
        ("COPY items TO STDOUT (FORMAT x)", "22023"),
        ("COPY items TO STDOUT (FORCE_QUOTE (id))", "0A000"),
        ("COPY items (id) TO STDOUT (FORMAT csv, FORCE_QUOTE (name))", "42P10"),
        ("COPY items FROM STDIN (DELIMITER 'ab')", "0A000"),
        ("COPY items", "42601"),
        ("COPY (SELECT $1) TO STDOUT", "42P02"),
    ],
)
def test_refusals_are_postgresqls(connection, items, statement, state):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    assert caught.value.sqlstate == state


def test_values_of_all_types(connection, table):
    columns = (
        "id INT PRIMARY KEY, a SMALLINT, b REAL, c DOUBLE PRECISION, d DECIMAL(38,10), e BYTEA,"
        " f TIME, g TIMESTAMP, h TIMESTAMPTZ, i INTERVAL, j UUID, k JSON, l INTEGER[], m VARCHAR[],"
        " n CHAR(5), o TIMESTAMP(2), p DECIMAL(6,2)[]"
    )
    source = table(columns)
    connection.execute(
        f"INSERT INTO {source} VALUES (1, -5, 1.5, 1e300, 12345678901234567890.0123456789,"
        r" '\x00ff5c', '23:59:59.999999', '1969-12-31 23:59:59.000001', '2024-01-31 12:00+00',"
        f" '3 days -1 second', '{uuid.UUID(int=2**127 + 1)}', '{{\"a\": [1, null]}}',"
        " '{1,NULL,3}', ARRAY['a b', 'x\"y', NULL], 'ab', '2024-01-01 00:00:00.127',"
        " '{1.50,NULL}')"
    )
    connection.execute(f"INSERT INTO {source} (id) VALUES (2)")
    for form in ("text", "csv", "binary"):
        target = table(columns)
        data = received(connection, f"COPY {source} TO STDOUT (FORMAT {form})")
        assert sent(connection, f"COPY {target} FROM STDIN (FORMAT {form})", data) == 2
        assert rows_of(connection, target) == rows_of(connection, source), form


def test_clients_without_messages_for_copy_are_told(cluster, items):
    with cluster.connect() as client:
        for statement in ("COPY items TO STDOUT", "COPY items FROM STDIN"):
            with pytest.raises(NotSupported, match="a client that carries their data"):
                client.sql(statement)
        assert client.sql("SELECT 1").fetchall() == [(1,)]


def test_generated_columns_are_computed_and_left_out(connection):
    connection.execute(
        "CREATE TABLE made (id INT PRIMARY KEY, twice INT GENERATED ALWAYS AS (id * 2) STORED)"
    )
    with connection.cursor() as cursor:
        with cursor.copy("COPY made FROM STDIN") as copy:
            copy.write("1\n2\n")
        with cursor.copy("COPY made (id) FROM STDIN") as copy:
            copy.write("3\n")
        with cursor.copy("COPY made TO STDOUT") as copy:
            assert sorted(copy.rows()) == [("1",), ("2",), ("3",)]
    found = connection.execute("SELECT * FROM made ORDER BY id").fetchall()
    assert found == [(1, 2), (2, 4), (3, 6)]
    for statement in ("COPY made (id, twice) FROM STDIN", "COPY made (twice) TO STDOUT"):
        with (
            pytest.raises(psycopg.errors.InvalidColumnReference, match="is a generated column"),
            connection.cursor().copy(statement),
        ):
            pass
    connection.execute("DROP TABLE made")


def test_one_message_may_be_longer_than_what_is_read_ahead(connection, table):
    """ADBC sends a whole batch as one CopyData."""
    name, count = table("id BIGINT, name VARCHAR"), 200_000
    data = b"".join(b"%d\tname %d\n" % (number, number) for number in range(count))
    assert len(data) > 2 * 2**20
    pgconn = connection.pgconn
    pgconn.exec_(f"COPY {name} FROM STDIN".encode())
    assert pgconn.put_copy_data(data) == 1
    assert pgconn.put_copy_end() == 1
    assert pgconn.get_result().command_tuples == count
    assert pgconn.get_result() is None
