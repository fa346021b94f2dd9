"""Notices and warnings about statements that succeed. PostgreSQL 15 gives the expected ones."""

from __future__ import annotations

import psycopg
import pytest

CASES = [
    ("COMMIT", [("WARNING", "25P01", "there is no transaction in progress")]),
    ("ROLLBACK", [("WARNING", "25P01", "there is no transaction in progress")]),
    ("BEGIN; BEGIN", [("WARNING", "25001", "there is already a transaction in progress")]),
    ("DROP TABLE IF EXISTS a, b", [
        ("NOTICE", "00000", 'table "a" does not exist, skipping'),
        ("NOTICE", "00000", 'table "b" does not exist, skipping')]),
    ("DROP VIEW IF EXISTS a", [("NOTICE", "00000", 'view "a" does not exist, skipping')]),
    ("DROP INDEX IF EXISTS a", [("NOTICE", "00000", 'index "a" does not exist, skipping')]),
    ("ALTER TABLE IF EXISTS a ADD COLUMN b INT", [
        ("NOTICE", "00000", 'relation "a" does not exist, skipping')]),
    ("CREATE TABLE IF NOT EXISTS items (id INT PRIMARY KEY)", [
        ("NOTICE", "42P07", 'relation "items" already exists, skipping')]),
    ("CREATE TABLE IF NOT EXISTS items AS SELECT 1 AS id", [
        ("NOTICE", "42P07", 'relation "items" already exists, skipping')]),
    ("CREATE INDEX IF NOT EXISTS items_name ON items (name)", [
        ("NOTICE", "42P07", 'relation "items_name" already exists, skipping')]),
    ("SELECT 1", []),
]  # fmt: skip


@pytest.fixture
def heard(connection):
    """The notices that come."""
    found = []
    connection.add_notice_handler(
        lambda d: found.append((d.severity, d.sqlstate, d.message_primary))
    )
    return found


@pytest.mark.parametrize(("text", "notices"), CASES)
def test_clients_hear_of_what_was_skipped(connection, items, heard, text, notices):
    connection.execute(text)
    assert heard == notices


def test_clients_choose_the_notices_that_they_want(connection, heard):
    connection.execute("SET client_min_messages = warning")
    connection.execute("DROP TABLE IF EXISTS a")
    connection.execute("COMMIT")
    assert [state for _, state, _ in heard] == ["25P01"]
    connection.execute("SET client_min_messages = error")
    connection.execute("COMMIT")
    assert len(heard) == 1


def test_a_notice_comes_in_front_of_the_end_of_its_statement(connection, heard):
    """In a pipeline, too, where others follow."""
    with connection.pipeline():
        connection.execute("DROP TABLE IF EXISTS a")
        row = connection.execute("SELECT 6 * 7").fetchone()
    assert (row, len(heard)) == ((42,), 1)


def test_a_terminated_session_ends_with_a_fatal_error(connect):
    """Nothing comes behind it, whether its statement runs or it is idle."""
    own, idle, other = connect(), connect(), connect()
    with pytest.raises(psycopg.errors.AdminShutdown) as ended:
        own.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    diag = ended.value.diag
    assert diag.severity == "FATAL"
    assert diag.message_primary == "terminating connection due to administrator command"
    assert own.closed
    text = "SELECT pg_terminate_backend(%s)"
    assert other.execute(text, (idle.info.backend_pid,)).fetchone() == (True,)
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    assert idle.closed


def test_a_definition_tells_that_it_commits_its_transaction(connection, heard):
    connection.execute("SET definitions_in_transactions = 'commit'")
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE noticed (a INT)")
    connection.execute("ALTER TABLE noticed ADD COLUMN b INT")
    assert [(severity, text.split(" takes ")[0]) for severity, _, text in heard] == [
        ("NOTICE", "CREATE TABLE")
    ]
    connection.execute("INSERT INTO noticed VALUES (1, 2)")
    connection.execute("ROLLBACK")
    assert heard[1][:2] == ("WARNING", "01000")
    assert connection.execute("SELECT count(*) FROM noticed").fetchone() == (0,)
    connection.execute("BEGIN")
    connection.execute("ROLLBACK")
    connection.execute("DROP TABLE noticed")
    assert len(heard) == 2


def test_a_statement_about_constraints_warns_outside_of_a_transaction(connection, heard):
    connection.execute("SET CONSTRAINTS ALL DEFERRED")
    text = "SET CONSTRAINTS can only be used in transaction blocks"
    assert heard == [("WARNING", "25P01", text)]
    connection.execute("BEGIN")
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    connection.execute("COMMIT")
    assert len(heard) == 1
