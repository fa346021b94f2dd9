"""Definitions in transactions, by psycopg. Results and errors are those of PostgreSQL 15."""

from __future__ import annotations

import time

import psycopg
import pytest
from psycopg import errors

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def nothing_stays(connect):
    yield
    connection = connect()
    for name in ("made", "kept"):
        connection.execute(f"DROP TABLE IF EXISTS {name} CASCADE")


def tables(connection: psycopg.Connection) -> set[str]:
    found = connection.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    return {name for (name,) in found}


def test_rollback_leaves_nothing_and_commit_all(connect):
    own, other = connect(), connect()
    for ends, left in (("ROLLBACK", set()), ("COMMIT", {"made", "seen"})):
        own.execute("BEGIN")
        own.execute("CREATE TABLE made (id SERIAL PRIMARY KEY, v TEXT UNIQUE)")
        with own.cursor() as cursor:
            cursor.executemany("INSERT INTO made (v) VALUES (%s)", [("a",), ("b",)])
            with cursor.copy("COPY made (v) FROM STDIN") as copy:
                copy.write_row(("c",))
        own.execute("CREATE VIEW seen AS SELECT v FROM made")
        assert own.execute("SELECT v FROM seen ORDER BY v").fetchall() == [("a",), ("b",), ("c",)]
        assert tables(own) == {"made", "seen"}
        assert tables(other) == set()
        with pytest.raises(errors.UndefinedTable):
            other.execute("SELECT * FROM made")
        own.execute(ends)
        assert tables(own) == tables(other) == left
    assert other.execute("SELECT count(*) FROM made").fetchone() == (3,)
    with pytest.raises(errors.UniqueViolation) as told:
        other.execute("INSERT INTO made (v) VALUES ('a')")
    assert told.value.diag.table_name == "made"
    assert told.value.diag.constraint_name == "made_v_key"


def test_statements_that_are_sent_together_are_one_transaction(connect):
    own = connect()
    with pytest.raises(errors.DivisionByZero):
        own.execute("CREATE TABLE made (id INT PRIMARY KEY); SELECT 1 / 0")
    assert tables(own) == set()
    own.execute("CREATE TABLE made (id INT PRIMARY KEY); INSERT INTO made VALUES (1)")
    assert own.execute("SELECT id FROM made").fetchall() == [(1,)]


def test_the_second_of_two_transactions_fails(connect):
    one, other = connect(), connect()
    one.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
    for connection in (one, other):
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    one.execute("COMMIT")
    with pytest.raises(errors.DuplicateTable) as told:
        other.execute("INSERT INTO made VALUES (1)")
    assert told.value.diag.message_primary == 'relation "made" already exists'
    other.execute("ROLLBACK")
    for connection in (one, other):
        connection.execute("BEGIN")
        connection.execute("COMMENT ON TABLE kept IS 'x'")
    other.execute("COMMIT")
    with pytest.raises(errors.SerializationFailure):
        one.execute("COMMIT")


def test_a_plan_belongs_to_its_transaction(connect):
    own, other = connect(), connect()
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
    own.execute("INSERT INTO kept VALUES (1)")
    text = "SELECT * FROM kept WHERE id >= 0"
    for connection in (own, other):
        assert connection.execute(text, prepare=True).fetchall() == [(1,)]
    own.execute("BEGIN")
    own.execute("DROP TABLE kept")
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY, v TEXT)")
    own.execute("INSERT INTO kept VALUES (2, 'x')")
    own.execute("PREPARE own AS SELECT * FROM kept WHERE id >= 0")
    for _ in range(3):
        assert own.execute("EXECUTE own").fetchall() == [(2, "x")]
        assert own.execute("SELECT id FROM kept").fetchall() == [(2,)]
        assert other.execute(text).fetchall() == [(1,)]
        assert other.execute("SELECT id FROM kept").fetchall() == [(1,)]
    own.execute("ROLLBACK")
    assert own.execute("SELECT id FROM kept").fetchall() == [(1,)]
    assert other.execute(text).fetchall() == [(1,)]


def test_a_connection_that_is_lost_leaves_nothing(connect):
    own, other = connect(), connect()
    own.execute("BEGIN")
    own.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    own.execute("INSERT INTO made VALUES (1)")
    own.close()
    other.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    assert other.execute("SELECT count(*) FROM made").fetchone() == (0,)


def test_rows_and_notifications_go_with_definitions(connect):
    own, other = connect(), connect()
    other.execute("LISTEN news")
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
    for number, ends in ((1, "ROLLBACK"), (2, "COMMIT")):
        own.execute("BEGIN")
        own.execute(f"INSERT INTO kept VALUES ({number})")
        own.execute("SELECT pg_notify('news', %s)", (f"before {number}",))
        own.execute("CREATE TABLE made (id INT PRIMARY KEY)")
        own.execute(f"NOTIFY news, 'behind {number}'")
        own.execute("INSERT INTO made SELECT id FROM kept")
        assert other.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        own.execute(ends)
    assert other.execute("SELECT * FROM kept, made").fetchall() == [(2, 2)]
    told = [each.payload for each in other.notifies(timeout=30, stop_after=2)]
    assert told == ["before 2", "behind 2"]


def test_a_name_that_is_taken_keeps_the_rows_out(connect):
    own, other = connect(), connect()
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
    own.execute("BEGIN")
    own.execute("INSERT INTO kept VALUES (1)")
    own.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    other.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    with pytest.raises(errors.DuplicateTable):
        own.execute("COMMIT")
    assert own.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    own.execute("INSERT INTO kept VALUES (1)")


def test_rows_that_others_write_beside_an_altered_table_are_a_conflict(connect):
    own, other = connect(), connect()
    for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        own.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
        for values in ((), ("(1)",)):  # an empty table is no exception
            for value in values:
                own.execute(f"INSERT INTO kept VALUES {value}")
            own.execute(f"BEGIN ISOLATION LEVEL {level}")
            own.execute("ALTER TABLE kept ADD COLUMN more INT")
            assert own.execute("SELECT * FROM kept").fetchall() == [(1, None)] * len(values)
            other.execute("INSERT INTO kept VALUES (2)")
            with pytest.raises(errors.SerializationFailure):
                own.execute("COMMIT")
            assert other.execute("DELETE FROM kept WHERE id = 2 RETURNING *").fetchall() == [(2,)]
        own.execute("DROP TABLE kept")


def test_rows_that_break_a_new_constraint_beside_it_are_a_conflict(connect):
    own, other = connect(), connect()
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY, v INT)")
    for definition in (
        "ALTER TABLE kept ADD CHECK (v > 0)",
        "ALTER TABLE kept ALTER COLUMN v SET NOT NULL",
        "ALTER TABLE kept ADD UNIQUE (v)",
        "ALTER TABLE kept ADD FOREIGN KEY (v) REFERENCES kept",
    ):
        own.execute("BEGIN")
        own.execute(definition)
        other.execute("INSERT INTO kept VALUES (1, -1), (2, -1), (3, NULL)")
        with pytest.raises(errors.SerializationFailure):
            own.execute("COMMIT")
        other.execute("DELETE FROM kept")
        own.execute("BEGIN")
        own.execute(definition)
        own.execute("ROLLBACK")


def test_plans_use_an_index_that_a_transaction_has_made(connect):
    own, other = connect(), connect()
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY, v INT)")
    own.execute("INSERT INTO kept SELECT id, id FROM generate_series(1, 100) AS r (id)")
    own.execute("BEGIN")
    own.execute("CREATE INDEX kept_v ON kept (v)")
    assert own.execute("SELECT id FROM kept WHERE v = 5").fetchall() == [(5,)]
    own.execute("COMMIT")
    ready = "SELECT indisready FROM pg_index WHERE indexrelid = 'kept_v'::regclass"
    deadline = time.monotonic() + 30
    while other.execute(ready).fetchone() != (True,):
        assert time.monotonic() < deadline
    assert other.execute("SELECT id FROM kept WHERE v = 5").fetchall() == [(5,)]


def test_a_parent_that_goes_beside_a_new_child_is_a_conflict(connect):
    own, other = connect(), connect()
    own.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
    own.execute("INSERT INTO kept VALUES (1), (2)")
    own.execute("BEGIN")
    own.execute("CREATE TABLE made (id INT REFERENCES kept)")
    own.execute("INSERT INTO made VALUES (1)")
    other.execute("DELETE FROM kept WHERE id = 1")
    with pytest.raises(errors.SerializationFailure):
        own.execute("COMMIT")
    assert tables(own) == {"kept"}
    other.execute("DELETE FROM kept")
