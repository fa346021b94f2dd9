"""``lock_timeout`` of psycopg's connections: for advisory locks as in PostgreSQL, and for the rows
of transactions that lock."""

from __future__ import annotations

import pytest
from psycopg import errors


def one(connection, text):
    return connection.execute(text).fetchone()[0]


@pytest.fixture
def pair(connect):
    return connect(0), connect(1)


def test_a_session_waits_for_a_lock_as_long_as_lock_timeout_says(pair):
    one_of, other = pair
    one(one_of, "SELECT pg_advisory_lock(77)")
    other.execute("SET lock_timeout = '50ms'")
    assert one(other, "SHOW lock_timeout") == "50ms"
    with pytest.raises(errors.LockNotAvailable, match="canceling statement due to lock timeout"):
        other.execute("SELECT pg_advisory_lock(77)")
    other.execute("SET statement_timeout = '40ms'")
    other.execute("SET lock_timeout = '1h'")
    with pytest.raises(errors.QueryCanceled):
        other.execute("SELECT pg_advisory_lock(77)")
    other.execute("RESET ALL")
    other.execute("BEGIN")
    other.execute("SET LOCAL lock_timeout = '50ms'")
    with pytest.raises(errors.LockNotAvailable):
        other.execute("SELECT pg_advisory_xact_lock(77)")
    other.execute("ROLLBACK")
    assert one(other, "SHOW lock_timeout") == "0"
    one(one_of, "SELECT pg_advisory_unlock(77)")
    assert one(other, "SELECT pg_try_advisory_lock(77)") is True
    one(other, "SELECT pg_advisory_unlock(77)")


def test_a_pessimistic_transaction_waits_for_a_row_as_long_as_lock_timeout_says(pair, numbers):
    one_of, other = pair
    update = "UPDATE numbers SET name = 'x' WHERE id = 7"
    one_of.execute("BEGIN TRANSACTION PESSIMISTIC")
    one_of.execute(update)
    other.execute("SET lock_timeout = '50ms'")
    other.execute("BEGIN TRANSACTION PESSIMISTIC")
    with pytest.raises(errors.LockNotAvailable):
        other.execute(update)
    other.execute("ROLLBACK")
    other.execute("RESET ALL")
    other.execute("BEGIN TRANSACTION PESSIMISTIC")
    other.execute("SET LOCAL lock_timeout = '50ms'")
    with pytest.raises(errors.LockNotAvailable):
        other.execute(update)
    other.execute("ROLLBACK")
    one_of.execute("ROLLBACK")


def test_a_timeout_that_is_set_within_a_transaction_counts_for_its_rows(pair, numbers):
    one_of, other = pair
    update = "UPDATE numbers SET name = 'x' WHERE id = 8"
    one_of.execute("BEGIN TRANSACTION PESSIMISTIC")
    one_of.execute(update)
    other.execute("SET lock_timeout = '1h'")
    for local in ("", "SET LOCAL lock_timeout = '1h'"):
        other.execute("BEGIN TRANSACTION PESSIMISTIC")
        if local:
            other.execute(local)
        other.execute("SET lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):
            other.execute(update)
        other.execute("ROLLBACK")
        assert one(other, "SHOW lock_timeout") == "1h"
    one_of.execute("ROLLBACK")
