"""pg_prepared_statements lists those of PREPARE and those of Parse messages that have names."""

from __future__ import annotations

import psycopg
import pytest

LISTED = (
    "SELECT name, statement, parameter_types::text, from_sql, prepare_time <= now() "
    "FROM pg_prepared_statements ORDER BY from_sql, name"
)


def test_statements_of_messages_and_of_prepare(connect):
    first, other = connect(), connect()
    assert first.execute(LISTED).fetchall() == []
    first.execute("PREPARE summed (int, text) AS SELECT $1 + 1, $2")
    first.execute("SELECT %s::int, %s", (1, "a"), prepare=True)
    sent, prepared = first.execute(LISTED).fetchall()
    assert sent[0].startswith("_pg3_")
    assert sent[1:] == ("SELECT $1::int, $2", "{smallint,text}", False, True)
    assert prepared == ("summed", "SELECT $1 + 1, $2", "{integer,text}", True, None)
    first.execute("DEALLOCATE summed")
    assert [row[0] for row in first.execute(LISTED)] == [sent[0]]
    assert other.execute(LISTED).fetchall() == []


def named(connection, name: bytes, text: bytes) -> psycopg.pq.abc.PGresult:
    """The answer to a Parse message with this name."""
    return connection.pgconn.prepare(name, text)


def test_execute_of_a_message_runs_what_a_message_has_prepared(connection):
    """A driver that prepares EXECUTE, too, is told the columns of the statement behind it."""
    named(connection, b"told", b"SELECT id * 2 AS twice FROM generate_series(1, $1::int) t(id)")
    cursor = connection.execute("EXECUTE told (3)", prepare=True)
    assert cursor.fetchall() == [(2,), (4,), (6,)]
    assert [column.name for column in cursor.description] == ["twice"]
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        connection.execute("EXECUTE nobody", prepare=True)
    connection.execute("DEALLOCATE told", prepare=True)
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        connection.execute("EXECUTE told (3)")


def test_a_name_stands_for_one_statement_however_it_was_prepared(connection):
    connection.execute("PREPARE by_text AS SELECT 1")
    refused = named(connection, b"by_text", b"SELECT 2")
    assert b'prepared statement "by_text" already exists' in refused.error_message
    named(connection, b"by_message", b"SELECT 3")
    with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
        connection.execute("PREPARE by_message AS SELECT 4")
    assert connection.execute("EXECUTE by_text").fetchone() == (1,)
    assert connection.execute("EXECUTE by_message").fetchone() == (3,)
    connection.execute("DEALLOCATE ALL")
    named(connection, b"by_text", b"SELECT 5")
    assert connection.execute("EXECUTE by_text").fetchone() == (5,)
