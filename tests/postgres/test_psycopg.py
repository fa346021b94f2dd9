"""psycopg 3 on real sockets, against real members."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest
from psycopg.pq import TransactionStatus

VALUES = {
    "BOOLEAN": [True, False],
    "SMALLINT": [-5, 2**15 - 1],
    "INTEGER": [-(2**31), 7],
    "BIGINT": [2**63 - 1, 0],
    "REAL": [1.5, -0.25],
    "DOUBLE PRECISION": [0.1, 1e300],
    "DECIMAL(12,3)": [Decimal("-1234.500"), Decimal("0.001")],
    "DECIMAL(38,10)": [Decimal("12345678901234567890.0123456789")],
    "VARCHAR": ["", "a'b\\cé\U0001f600"],
    "BYTEA": [b"", b"\0\xff\\"],
    "DATE": [dt.date(1, 1, 1), dt.date(2024, 2, 29)],
    "TIME": [dt.time(23, 59, 59, 999999)],
    "TIMESTAMP": [dt.datetime(1969, 12, 31, 23, 59, 59, 1)],  # noqa: DTZ001 (without a zone)
    "TIMESTAMPTZ": [dt.datetime(2024, 1, 31, 12, 0, tzinfo=dt.UTC)],
    "INTERVAL": [dt.timedelta(days=3, seconds=-1)],
    "UUID": [uuid.UUID(int=2**127 + 1)],
    "JSON": [psycopg.types.json.Json({"a": [1, None]})],
    "INTEGER[]": [[1, None, 3], []],
    "VARCHAR[]": [["a b", 'x"y', None]],
}


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_of_all_types_come_back(connection, binary):
    place = "%b" if binary else "%t"
    cursor = connection.cursor(binary=binary)
    for sql_type, values in VALUES.items():
        for value in values:
            text = f"SELECT {place}::{sql_type}, {place}::{sql_type} IS NULL"
            row = cursor.execute(text, (value, None)).fetchone()
            expected = value.obj if hasattr(value, "obj") else value
            assert row == (expected, True), (sql_type, value)


def test_the_session_says_what_it_is(connection):
    info = connection.info
    assert info.server_version >= 150000
    assert info.parameter_status("client_encoding") == "UTF8"
    assert info.parameter_status("TimeZone") == "UTC"
    assert info.transaction_status is TransactionStatus.IDLE
    assert info.backend_pid > 0
    connection.execute("SET application_name = 'books'")
    assert info.parameter_status("application_name") == "books"


def test_settings_of_the_startup_packet_count(connect):
    options = r"-c default_transaction_isolation=read\ committed -c statement_timeout=5s"
    connection = connect(options=options, application_name="till")
    shown = connection.execute("SHOW default_transaction_isolation").fetchone()
    assert shown == ("read committed",)
    assert connection.execute("SHOW statement_timeout").fetchone() == ("5s",)
    assert connection.execute("SHOW application_name").fetchone() == ("till",)
    with pytest.raises(psycopg.OperationalError, match="unrecognized configuration parameter"):
        connect(options="-c nosuch=1")


def test_a_prepared_read_by_key_from_both_members(connect, numbers):
    for member in (0, 1):
        connection = connect(member)
        for binary in (False, True):
            for key in (1, 2, 3, 2999, 4000):
                row = connection.execute(
                    "SELECT id, name, half FROM numbers WHERE id = %s",
                    (key,),
                    prepare=True,
                    binary=binary,
                ).fetchone()
                assert row == ((key, f"n{key}", key / 2) if key <= 3000 else None)


def test_a_prepared_read_by_an_index_from_both_members(connect, cluster):
    with cluster.connect() as client:
        client.sql("CREATE TABLE named (id BIGINT PRIMARY KEY, name VARCHAR)")
        client.sql("INSERT INTO named SELECT x, 'n' || x / 3 FROM generate_series(1, 3000) t(x)")
        client.sql("CREATE INDEX named_name ON named (name)")
    for member in (0, 1):
        connection = connect(member)
        for binary in (False, True):
            for name, count in (("n7", 3), ("n8", 3), ("none", 0), (None, 0)):
                found = connection.execute(
                    "SELECT id, name FROM named WHERE name = %s",
                    (name,),
                    prepare=True,
                    binary=binary,
                ).fetchall()
                assert len(found) == count
                assert {text for _, text in found} <= {name}
    with connect() as connection, connection.transaction():
        connection.execute("UPDATE named SET name = 'n8' WHERE id = 1")
        text = "SELECT id FROM named WHERE name = %s"
        assert (1,) in connection.execute(text, ("n8",), prepare=True).fetchall()


def test_rows_of_a_large_result(connection, numbers):
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        rows = cursor.execute("SELECT id, name, half FROM numbers ORDER BY id").fetchall()
        assert rows == [(x, f"n{x}", x / 2) for x in range(1, 3001)]
        assert cursor.rowcount == 3000


def test_rows_one_by_one_stop_the_query(connection):
    text = "SELECT x FROM generate_series(1, 10000000) t(x)"
    with connection.cursor() as cursor:
        for row in cursor.stream(text):
            if row == (3,):
                break
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_transactions(connect):
    connection, other = connect(autocommit=False), connect()
    other.execute("CREATE TABLE tx (id BIGINT PRIMARY KEY)")
    connection.execute("INSERT INTO tx VALUES (1)")
    assert connection.info.transaction_status is TransactionStatus.INTRANS
    assert other.execute("SELECT count(*) FROM tx").fetchone() == (0,)
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0")
    assert connection.info.transaction_status is TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    connection.rollback()
    with connection.transaction():
        connection.execute("INSERT INTO tx VALUES (2)")
        with pytest.raises(psycopg.errors.UniqueViolation) as failed, connection.transaction():
            connection.execute("INSERT INTO tx VALUES (2)")
        assert failed.value.diag.constraint_name == "tx_pkey"
        assert failed.value.diag.table_name == "tx"
    connection.commit()
    assert other.execute("SELECT id FROM tx").fetchall() == [(2,)]


def test_statements_of_one_query_take_effect_together(connection):
    connection.execute("CREATE TABLE together (id BIGINT PRIMARY KEY)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO together VALUES (1); INSERT INTO together VALUES (1)")
    assert connection.execute("SELECT count(*) FROM together").fetchone() == (0,)
    cursor = connection.execute("INSERT INTO together VALUES (1); SELECT id FROM together; ;")
    assert cursor.nextset()
    assert cursor.fetchall() == [(1,)]
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.execute("INSERT INTO together VALUES (2); SELEC 1")
    assert connection.execute("SELECT count(*) FROM together").fetchone() == (1,)


def test_a_pipeline_takes_effect_as_a_whole(connection):
    connection.execute("CREATE TABLE piped (id BIGINT PRIMARY KEY)")
    with connection.pipeline():
        for key in range(20):
            connection.execute("INSERT INTO piped VALUES (%s)", (key,))
    assert connection.execute("SELECT count(*) FROM piped").fetchone() == (20,)
    with pytest.raises(psycopg.errors.UniqueViolation), connection.pipeline():
        connection.execute("INSERT INTO piped VALUES (%s)", (100,))
        connection.execute("INSERT INTO piped VALUES (%s)", (0,))
    assert connection.execute("SELECT count(*) FROM piped").fetchone() == (20,)


def test_a_place_in_a_statement_is_told(connection):
    text = "SELECT 1; SELECT é FROM nosuch"
    with pytest.raises(psycopg.errors.UndefinedTable) as failed:
        connection.execute(text)
    assert failed.value.diag.statement_position == str(text.index("nosuch") + 1)
    assert failed.value.diag.severity_nonlocalized == "ERROR"


def test_cancel(connection):
    timer = threading.Timer(0.3, connection.cancel_safe)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
        connection.execute(
            "SELECT count(*) FROM generate_series(1, 1000000000) a(x) WHERE x % 7 = 1 AND x > 3"
        )
    timer.join()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_prepared_statements_are_deallocated(connection):
    for text in ("SELECT 1 + %s", "SELECT 2 + %s"):
        assert connection.execute(text, (1,), prepare=True).fetchone()
    connection.prepared_max = 0
    connection.execute("SELECT 3 + %s", (1,), prepare=True)
    connection.execute("DEALLOCATE ALL")
    assert connection.execute("SELECT 4").fetchone() == (4,)


def test_empty_and_comment_queries(connection):
    assert connection.execute("").statusmessage is None
    assert connection.execute("-- nothing").statusmessage is None


def test_tags(connection):
    def tag(text):
        return connection.execute(text).statusmessage

    assert tag("CREATE TABLE tags (id BIGINT PRIMARY KEY, v INT)") == "CREATE TABLE"
    assert tag("INSERT INTO tags VALUES (1, 1), (2, 2)") == "INSERT 0 2"
    assert tag("UPDATE tags SET v = 3") == "UPDATE 2"
    assert tag("DELETE FROM tags WHERE id = 1") == "DELETE 1"
    assert tag("SELECT * FROM tags") == "SELECT 1"
    assert tag("BEGIN") == "BEGIN"
    assert tag("COMMIT") == "COMMIT"
    assert tag("SET jit = off") == "SET"
    assert tag("DROP TABLE tags") == "DROP TABLE"


def test_explain_has_the_name_of_postgresql(connection, numbers):
    for prepare in (False, True):
        cursor = connection.execute("EXPLAIN SELECT * FROM numbers", prepare=prepare)
        assert [column.name for column in cursor.description] == ["QUERY PLAN"]


def test_a_numeric_parameter_keeps_its_digits(connection):
    connection.execute("CREATE TABLE prices (id BIGINT PRIMARY KEY, price DECIMAL(10,2))")
    connection.execute("INSERT INTO prices VALUES (1, 1.55)")
    found = connection.execute("SELECT id FROM prices WHERE price < %s", (Decimal("1.551"),))
    assert found.fetchall() == [(1,)]
    assert connection.execute("SELECT %s", (Decimal("1.5510"),)).fetchone() == (Decimal("1.5510"),)


@pytest.mark.parametrize("form", ["%s", "%b", "%t"])
def test_a_numeric_parameter_with_too_many_digits_is_rounded(connection, form):
    connection.execute(
        "CREATE TABLE IF NOT EXISTS rounded (id BIGINT PRIMARY KEY, n DECIMAL(20,4))"
    )
    third = Decimal("0." + "3" * 60)
    for value, stored in ((third, "0.3333"), (-third, "-0.3333"), (Decimal("1E-50"), "0.0000")):
        connection.execute("DELETE FROM rounded")
        connection.execute(f"INSERT INTO rounded VALUES (1, {form})", (value,))
        (found,) = connection.execute("SELECT n FROM rounded").fetchone()
        assert str(found) == stored
        below = connection.execute(f"SELECT n <= {form} FROM rounded", (value,)).fetchone()
        assert below == (Decimal(stored) <= value,)
    long = Decimal("12345678901234567890123456789.12345678951234567890")
    (found,) = connection.execute(f"SELECT {form}", (long,)).fetchone()
    assert str(found) == "12345678901234567890123456789.123456790"
    numbers = [third, Decimal(10) ** 30]
    (found,) = connection.execute(f"SELECT {form}", (numbers,)).fetchone()
    assert found == [Decimal("0.3333333"), Decimal(10) ** 30]
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        connection.execute(f"SELECT {form}", (Decimal("9" * 38 + ".5"),))


def test_a_table_that_changes_under_a_prepared_statement(connect):
    connection, other = connect(), connect()  # psycopg forgets what it has prepared after DDL
    connection.execute("CREATE TABLE alters (id BIGINT PRIMARY KEY)")
    text = "SELECT * FROM alters WHERE id = %s"
    assert connection.execute(text, (1,), prepare=True).fetchall() == []
    other.execute("ALTER TABLE alters ADD COLUMN name VARCHAR")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan"):
        connection.execute(text, (1,), prepare=True)


def test_operators_see_the_session(connection):
    pid = connection.info.backend_pid
    row = connection.execute(
        "SELECT application, state FROM sys.clients WHERE pid = %s", (pid,)
    ).fetchone()
    assert row is not None
    assert row[1] == "active"


def test_a_statement_that_sleeps_is_cancelled(connect, connection):
    """By a CancelRequest, by pg_cancel_backend through another member, and by its timeout."""
    sleeper = connect(member=1)
    pid = sleeper.info.backend_pid
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'"
    for end in (
        sleeper.cancel_safe,
        lambda: connection.execute("SELECT pg_cancel_backend(%s)", (pid,)),
    ):
        with ThreadPoolExecutor(1) as threads:
            asleep = threads.submit(sleeper.execute, "SELECT pg_sleep(600)")
            while connection.execute(asked).fetchone() == (0,):
                pass
            end()
            with pytest.raises(psycopg.errors.QueryCanceled):
                asleep.result(60)
        assert sleeper.execute("SELECT 1").fetchone() == (1,)
    sleeper.execute("SET statement_timeout = 50")
    with pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
        sleeper.execute("SELECT pg_sleep(600)")
    sleeper.execute("SET statement_timeout = 0")
    assert sleeper.execute("SELECT pg_sleep(0.01), 1").fetchone() == ("", 1)


def test_columns_of_items_that_act_are_told_before_they_run(connection):
    """A prepared pg_cancel_backend gives a BOOLEAN, and pg_sleep an empty text."""
    row = connection.execute("SELECT pg_cancel_backend(%s), 1", (7,)).fetchone()
    assert row == (False, 1)
    row = connection.execute("SELECT pg_sleep(%s), %s::int", (0.0, 2)).fetchone()
    assert row == ("", 2)
