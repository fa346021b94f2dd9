"""What PEP 249 leaves open, and our extensions of it."""

from __future__ import annotations

import threading
import warnings
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pytest

import remuda
from remuda import dbapi

pytestmark = pytest.mark.cluster


def test_rows_have_names_and_descriptions_have_types(cursor):
    cursor.execute("INSERT INTO t VALUES (?, ?, ?)", (1, "one", Decimal("1.50")))
    assert cursor.rowcount == 1
    assert cursor.description is None
    assert cursor.rownumber is None
    cursor.execute(
        "SELECT id, name, price, id > 0 AS f, DATE '2024-02-29' AS d, '\\x00'::bytea AS b FROM t"
    )
    found = {entry[0]: entry[1:] for entry in cursor.description}
    assert found["id"][0] == dbapi.NUMBER != dbapi.STRING
    assert found["name"][0] == dbapi.STRING
    assert found["name"][2] == 20
    assert found["price"][0] == dbapi.NUMBER
    assert found["price"][3:5] == (10, 2)
    assert found["f"][0] == dbapi.NUMBER
    assert found["d"][0] == dbapi.DATETIME
    assert found["b"][0] == dbapi.BINARY
    assert found["id"][5] is False
    assert found["name"][5] is True
    row = cursor.fetchone()
    assert (row.id, row.name, row[2]) == (1, "one", Decimal("1.50"))
    assert cursor.rownumber == 1
    assert list(cursor) == []


def test_arrow_and_pandas(cursor):
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(i, f"n{i}") for i in range(9)])
    cursor.execute("SELECT id, name FROM t ORDER BY id")
    assert cursor.fetch_arrow_table().column("id").to_pylist() == list(range(9))
    cursor.execute("SELECT id FROM t ORDER BY id")
    assert list(cursor.fetch_df()["id"]) == list(range(9))
    cursor.execute("SELECT id FROM t ORDER BY id")
    assert isinstance(cursor.fetch_record_batch(), pa.RecordBatchReader)


def test_pandas_writes_and_reads_tables(connection, cursor):
    cursor.execute("DROP TABLE IF EXISTS frame")
    days = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02 03:04:05")]
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, None], "d": days})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas says that it does not know us
        assert frame.to_sql("frame", connection, index=False) == 2
        frame.to_sql("frame", connection, index=False, if_exists="append")
        with pytest.raises(ValueError, match="already exists"):
            frame.to_sql("frame", connection)
        text = "SELECT DISTINCT * FROM frame WHERE a < ? ORDER BY a"
        read = pd.read_sql(text, connection, params=(3,))
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    cursor.execute("DROP TABLE frame")


def test_pandas_writes_bools_as_whole_numbers(connection, cursor):
    cursor.execute("DROP TABLE IF EXISTS flags")
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": [True, None, False]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas says that it does not know us
        assert frame.astype({"c": object}).to_sql("flags", connection, index=False) == 3
    cursor.execute("SELECT a, b, c FROM flags ORDER BY a")
    assert [tuple(row)[1] for row in cursor] == [1, 0, 1]
    cursor.execute("DROP TABLE flags")
    cursor.execute("CREATE TABLE flags (a INTEGER, b BOOLEAN, d TEXT)")
    cursor.executemany("INSERT INTO flags VALUES (?, ?, ?)", [(True, False, "x"), (2, True, "y")])
    cursor.execute("SELECT a, b FROM flags ORDER BY a")
    assert [tuple(row) for row in cursor] == [(1, False), (2, True)]
    with pytest.raises(dbapi.ProgrammingError, match='row 1: column "b" is of type boolean'):
        cursor.executemany("INSERT INTO flags VALUES (?, ?, ?)", [(1, 2, "z")])
    connection.rollback()
    cursor.execute("DROP TABLE flags")


def test_pandas_writes_bools_with_one_insert_of_many_rows(connection, cursor):
    cursor.execute("DROP TABLE IF EXISTS flags")
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": [True, None, False]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas says that it does not know us
        for data in (frame, frame.astype({"c": object})):
            data.to_sql("flags", connection, index=False, if_exists="replace", method="multi")
            cursor.execute("SELECT a, b FROM flags ORDER BY a")
            assert [tuple(row) for row in cursor] == [(1, 1), (2, 0), (3, 1)]
    cursor.execute("DROP TABLE flags")


def test_parameters_whose_type_says_little(cursor):
    cursor.execute("INSERT INTO t VALUES (1, 'a', 2.5)")
    for text, parameters, found in (
        ("SELECT ?", (None,), None),
        ("SELECT ? IS NULL", (None,), True),
        ("SELECT id FROM t WHERE name = ? OR ? IS NULL", ("b", None), 1),
        ("SELECT id FROM t WHERE price = ? AND id = ?", ("2.50", "1"), 1),
        ("SELECT DATE '2024-01-31' = ?", ("2024-01-31",), True),
    ):
        cursor.execute(text, parameters)
        assert cursor.fetchone() == (found,), text


@pytest.mark.parametrize(
    ("style", "text", "parameters"),
    [
        ("qmark", "SELECT ?::varchar, ? || '?'", ("a", "b")),
        ("numeric", "SELECT :1::varchar, :2 || ':1'", ("a", "b")),
        ("named", "SELECT :x::varchar, :y || '?'", {"x": "a", "y": "b", "unused": 1}),
        ("format", "SELECT %s::varchar, %s || '%%' -- %%s", ("a", "b")),
        ("pyformat", "SELECT %(x)s::varchar, %(y)s || '%%'", {"x": "a", "y": "b"}),
    ],
)
def test_parameter_styles(cluster, style, text, parameters):
    with (
        dbapi.connect(cluster.addresses, paramstyle=style) as connection,
        connection.cursor() as cursor,
    ):
        row = cursor.execute(text, parameters).fetchone()
        assert row[0] == "a"
        assert row[1] == "b" + text.split("'")[1].replace("%%", "%")
        assert cursor.execute("SELECT '%s', 7 % 4").fetchone() == ("%s", 3)


class TestMany:
    def test_an_insert_of_many_rows_of_every_type(self, cursor):
        cursor.execute("DROP TABLE IF EXISTS wide")
        cursor.execute(
            "CREATE TABLE wide (id BIGINT PRIMARY KEY, b BOOLEAN, d DOUBLE PRECISION, t TEXT,"
            " u UUID, j JSON, x BYTEA, day DATE, at TIMESTAMP WITH TIME ZONE, p DECIMAL(20,3),"
            " extra INTEGER DEFAULT 7)"
        )
        rows = [
            (
                number,
                number % 2 == 0,
                number / 4,
                f"ü{number}" if number % 3 else None,
                UUID(int=number),
                {"n": number},
                bytes([number % 256]),
                date(2024, 2, 29),
                datetime(2024, 2, 29, 1, tzinfo=UTC),
                Decimal(number) / 8,
            )
            for number in range(25_000)
        ]
        cursor.executemany(
            "INSERT INTO wide (id, b, d, t, u, j, x, day, at, p)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        assert cursor.rowcount == 25_000
        cursor.execute("SELECT * FROM wide WHERE id = ?", (24_999,))
        assert tuple(cursor.fetchone()) == (*rows[-1], 7)
        assert cursor.execute("SELECT count(*), count(t) FROM wide").fetchone() == (25_000, 16_666)
        cursor.execute("DROP TABLE wide")

    def test_other_statements_run_one_after_the_other(self, cursor):
        cursor.executemany("INSERT INTO t (id, name) VALUES (?, upper(?))", [(1, "a"), (2, "b")])
        assert cursor.rowcount == 2
        cursor.executemany("UPDATE t SET name = ? WHERE id = ?", [("x", 1), ("y", 2), ("z", 3)])
        assert cursor.rowcount == 2
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
                           [(1, "q", 1), (3, "r", 2)])  # fmt: skip
        assert cursor.rowcount == 1
        cursor.execute("SELECT id, name FROM t ORDER BY id")
        assert cursor.fetchall() == [(1, "x"), (2, "y"), (3, "r")]
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [])
        assert cursor.rowcount == 0

    def test_parameters_in_any_order(self, cluster, cursor):
        with dbapi.connect(cluster.addresses, paramstyle="named") as connection:
            named = connection.cursor()
            named.executemany(
                "insert into t (name, id) values (:name, :id);",
                ({"id": n, "name": f"n{n}"} for n in range(3)),
            )
            assert named.rowcount == 3
            connection.commit()
        cursor.execute("SELECT id, name FROM t ORDER BY id")
        assert cursor.fetchall() == [(0, "n0"), (1, "n1"), (2, "n2")]

    def test_what_is_wrong_names_the_row_and_leaves_its_part_out(self, cursor):
        with pytest.raises(dbapi.ProgrammingError, match='row 2: column "id" is of type bigint'):
            cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(1, "a"), ("x", "b")])
        cursor.connection.rollback()
        with pytest.raises(dbapi.ProgrammingError, match="row 1: the statement takes 2 parameters"):
            cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(1,)])
        with pytest.raises(dbapi.IntegrityError):
            cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(1, "a"), (1, "b")])
        cursor.connection.rollback()
        with pytest.raises(dbapi.DataError):
            cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(1, "a" * 30)])
        cursor.connection.rollback()
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "kind", "sqlstate"),
        [
            ("SELEC 1", dbapi.ProgrammingError, "42601"),
            ("SELECT * FROM nowhere", dbapi.ProgrammingError, "42P01"),
            ("SELECT 1 / 0", dbapi.DataError, "22012"),
            ("SELECT CAST('x' AS BIGINT)", dbapi.DataError, "22P02"),
            ("INSERT INTO t (id) VALUES (NULL)", dbapi.IntegrityError, "23502"),
            ("SELECT ?", dbapi.ProgrammingError, "42P18"),
        ],
    )
    def test_by_sqlstate(self, cursor, text, kind, sqlstate):
        with pytest.raises(kind) as caught:
            cursor.execute(text).fetchall()
        assert type(caught.value) is kind
        assert caught.value.sqlstate == sqlstate
        assert isinstance(caught.value.__cause__, remuda.RemudaError)
        cursor.connection.rollback()
        assert cursor.execute("SELECT 1").fetchone() == (1,)

    def test_of_a_broken_constraint_name_it(self, cursor):
        cursor.execute("CREATE TABLE named (id INT PRIMARY KEY, a INT NOT NULL CHECK (a > 0))")
        try:
            for row, names in (
                ("(1, NULL)", ("named", "a", "")),
                ("(1, -1)", ("named", "", "named_a_check")),
                ("(1, 1), (1, 2)", ("named", "", "named_pkey")),
            ):
                with pytest.raises(dbapi.IntegrityError) as caught:
                    cursor.execute(f"INSERT INTO named VALUES {row}")
                found = caught.value
                assert (found.table_name, found.column_name, found.constraint_name) == names
                cursor.connection.rollback()
        finally:
            cursor.execute("DROP TABLE named")

    def test_of_wrong_use(self, cluster, cursor):
        with pytest.raises(dbapi.ProgrammingError, match="no result"):
            cursor.connection.cursor().fetchone()
        with pytest.raises(dbapi.InterfaceError, match="a statement is text"):
            cursor.execute(7, ())
        with pytest.raises(dbapi.ProgrammingError, match="sequence of values, not str"):
            cursor.execute("SELECT ?", "a")
        with pytest.raises(dbapi.ProgrammingError, match="not dict"):
            cursor.execute("SELECT ?", {"a": 1})
        with pytest.raises(dbapi.ProgrammingError, match="not NoneType"):
            cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", None)
        with pytest.raises(dbapi.InterfaceError, match="paramstyle is one of"):
            dbapi.connect(cluster.addresses, paramstyle="dollar")
        with pytest.raises(dbapi.OperationalError, match="is not reachable"):
            dbapi.connect("127.0.0.1:1")
        cursor.close()
        cursor.close()
        with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
            cursor.execute("SELECT 1")

    def test_a_closed_connection(self, cluster):
        with dbapi.connect(cluster.addresses) as connection:
            cursor = connection.cursor()
            connection.close()
        for use in (connection.cursor, connection.commit, connection.rollback, cursor.fetchone):
            with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
                use()
        cursor.close()


class TestTransactions:
    def count(self, cluster):
        with dbapi.connect(cluster.addresses) as other:
            return other.cursor().execute("SELECT count(*) FROM t").fetchone()[0]

    def test_commit_and_rollback(self, cluster, connection, cursor):
        assert connection.autocommit is False
        connection.commit()
        connection.rollback()
        cursor.execute("INSERT INTO t (id) VALUES (1)")
        assert self.count(cluster) == 0
        connection.commit()
        assert self.count(cluster) == 1
        cursor.execute("DELETE FROM t")
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
        connection.rollback()
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (1,)

    def test_autocommit(self, cluster, connection, cursor):
        cursor.execute("INSERT INTO t (id) VALUES (1)")
        connection.autocommit = True
        assert self.count(cluster) == 1
        cursor.execute("INSERT INTO t (id) VALUES (2)")
        assert self.count(cluster) == 2
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t (id) VALUES (3)")
        connection.rollback()
        assert self.count(cluster) == 2

    def test_a_failed_one_is_never_committed(self, cluster, connection, cursor):
        cursor.execute("INSERT INTO t (id) VALUES (1)")
        with pytest.raises(dbapi.IntegrityError):
            cursor.execute("INSERT INTO t (id) VALUES (1)")
        with pytest.raises(dbapi.ProgrammingError, match="aborted") as caught:
            cursor.execute("SELECT 1")
        assert caught.value.sqlstate == "25P02"
        with pytest.raises(dbapi.ProgrammingError, match="everything was rolled back"):
            connection.commit()
        assert self.count(cluster) == 0
        cursor.execute("INSERT INTO t (id) VALUES (1)")
        connection.commit()
        assert self.count(cluster) == 1

    def test_definitions_take_effect_at_once(self, cluster, connection, cursor):
        cursor.execute("INSERT INTO t (id) VALUES (1)")
        cursor.execute("CREATE TABLE other (id BIGINT PRIMARY KEY)")
        cursor.execute("INSERT INTO other VALUES (1)")
        connection.rollback()
        assert cursor.execute("SELECT count(*) FROM other").fetchone() == (0,)
        cursor.execute("DROP TABLE other")
        assert self.count(cluster) == 0

    def test_a_closed_connection_has_rolled_back(self, cluster):
        with dbapi.connect(cluster.addresses) as connection:
            connection.cursor().execute("INSERT INTO t (id) VALUES (1)")
        assert self.count(cluster) == 0

    def test_a_conflict_is_an_operational_error(self, cluster, connection, cursor):
        cursor.execute("INSERT INTO t (id, name) VALUES (1, 'a')")
        connection.commit()
        assert cursor.execute("SELECT name FROM t WHERE id = 1").fetchone() == ("a",)
        with dbapi.connect(cluster.addresses, autocommit=True) as other:
            other.cursor().execute("UPDATE t SET name = 'b' WHERE id = 1")
        cursor.execute("UPDATE t SET name = 'c' WHERE id = 1")
        with pytest.raises(dbapi.OperationalError) as caught:
            connection.commit()
        assert caught.value.sqlstate == "40001"
        assert cursor.execute("SELECT name FROM t").fetchone() == ("b",)


def test_threads_share_a_connection(cursor, connection):
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(n, str(n)) for n in range(100)])
    found = []

    def read(start):
        with connection.cursor() as own:
            for number in range(start, start + 25):
                own.execute("SELECT name FROM t WHERE id = ?", (number,))
                found.append(own.fetchone()[0])

    threads = [threading.Thread(target=read, args=(start,)) for start in range(0, 100, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=int) == [str(n) for n in range(100)]


def test_an_unread_result_is_given_up_by_the_next_statement(cursor):
    cursor.executemany("INSERT INTO t (id) VALUES (?)", [(n,) for n in range(10_000)])
    cursor.execute("SELECT a.id FROM t a, t b")
    assert len(cursor.fetchmany(10)) == 10
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (10_000,)
