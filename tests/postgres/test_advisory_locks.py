"""Advisory locks of psycopg's connections to several members. The answers are PostgreSQL's."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import errors


def one(connection, text, *values):
    return connection.execute(text, values or None).fetchone()[0]


def until_waiting(connection, key):
    """Until somebody waits for the lock."""
    text = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
    )
    while not one(connection, text, key):
        pass


@pytest.fixture
def pair(connect):
    return connect(0), connect(1)


def test_a_lock_excludes_other_sessions(pair):
    one_of, other = pair
    assert one(one_of, "SELECT pg_advisory_lock(1)") == ""
    assert one(one_of, "SELECT pg_advisory_lock(1)") == ""
    assert one(other, "SELECT pg_try_advisory_lock(1)") is False
    assert one(one_of, "SELECT pg_advisory_unlock(1)") is True
    assert one(other, "SELECT pg_try_advisory_lock(1)") is False
    assert one(one_of, "SELECT pg_advisory_unlock(1)") is True
    assert one(other, "SELECT pg_try_advisory_lock(1)") is True
    told = []
    one_of.add_notice_handler(lambda notice: told.append((notice.sqlstate, notice.message_primary)))
    assert one(one_of, "SELECT pg_advisory_unlock(1)") is False
    assert told == [("01000", "you don't own a lock of type ExclusiveLock")]


def test_shared_locks_and_keys_of_two_numbers(pair):
    one_of, other = pair
    row = one_of.execute("SELECT pg_advisory_lock_shared(2), pg_advisory_lock(3, 4)").fetchone()
    assert row == ("", "")
    assert one(other, "SELECT pg_try_advisory_lock_shared(2)") is True
    assert one(other, "SELECT pg_try_advisory_lock(2)") is False
    assert one(other, "SELECT pg_try_advisory_lock(3, 4)") is False
    assert one(other, "SELECT pg_try_advisory_lock(12884901892)") is True  # 3 * 2^32 + 4
    listed = other.execute(
        "SELECT classid::BIGINT, objid::BIGINT, objsubid, mode, granted FROM pg_locks"
        " WHERE locktype = 'advisory' ORDER BY 1, 2, 3"
    ).fetchall()
    assert listed == [
        (0, 2, 1, "ShareLock", True),
        (0, 2, 1, "ShareLock", True),
        (3, 4, 1, "ExclusiveLock", True),
        (3, 4, 2, "ExclusiveLock", True),
    ]
    assert one(other, "SELECT pg_advisory_unlock_shared(2)") is True
    assert one(one_of, "SELECT pg_try_advisory_lock(2)") is True
    assert one(other, "SELECT pg_try_advisory_lock_shared(2)") is False
    assert one(one_of, "SELECT pg_advisory_unlock_all()") == ""
    assert one(other, "SELECT pg_try_advisory_lock_shared(2)") is True


def test_locks_of_a_transaction_end_with_it(pair):
    one_of, other = pair
    for end in ("COMMIT", "ROLLBACK"):
        one_of.execute("BEGIN")
        assert one(one_of, "SELECT pg_advisory_xact_lock(7)") == ""
        assert one(one_of, "SELECT pg_advisory_unlock(7)") is False
        assert one(other, "SELECT pg_try_advisory_xact_lock(7)") is False
        one_of.execute(end)
        assert one(other, "SELECT pg_try_advisory_xact_lock(7)") is True
    assert one(one_of, "SELECT pg_try_advisory_lock(7)") is True


def test_a_lock_is_waited_for_and_ends_with_its_connection(pair, connect):
    one_of, other = pair
    one(one_of, "SELECT pg_advisory_lock(5)")
    got = []
    waiting = threading.Thread(target=lambda: got.append(one(other, "SELECT pg_advisory_lock(5)")))
    waiting.start()
    until_waiting(connect(2), 5)
    assert got == []
    one_of.close()
    waiting.join()
    assert got == [""]
    other.execute("DISCARD ALL")
    assert one(connect(), "SELECT pg_try_advisory_lock(5)") is True


def test_sessions_that_would_wait_for_each_other(pair, connect):
    one_of, other = pair
    one(one_of, "SELECT pg_advisory_lock(10)")
    one(other, "SELECT pg_advisory_lock(11)")
    got = []
    waiting = threading.Thread(
        target=lambda: got.append(one(one_of, "SELECT pg_advisory_lock(11)"))
    )
    waiting.start()
    until_waiting(connect(2), 11)
    with pytest.raises(errors.DeadlockDetected, match="deadlock detected"):
        one(other, "SELECT pg_advisory_lock(10)")
    other.close()
    waiting.join()
    assert got == [""]


def test_a_wait_that_takes_too_long_leaves_no_lock(pair):
    one_of, other = pair
    one(one_of, "SELECT pg_advisory_lock(12)")
    other.execute("SET statement_timeout = '50ms'")
    with pytest.raises(errors.QueryCanceled):
        one(other, "SELECT pg_advisory_lock(12)")
    other.execute("RESET statement_timeout")
    assert one(one_of, "SELECT pg_advisory_unlock(12)") is True
    assert one(one_of, "SELECT pg_try_advisory_lock(12)") is True


def test_keys_of_rows_parameters_and_nulls(connection):
    rows = connection.execute("SELECT pg_try_advisory_lock(x) FROM generate_series(20, 22) t(x)")
    assert rows.fetchall() == [(True,)] * 3
    assert one(connection, "SELECT pg_try_advisory_lock(%s, %s)", -5, 6) is True
    assert one(connection, "SELECT pg_advisory_lock(NULL)") is None
    assert one(connection, "SELECT pg_try_advisory_lock(NULL, 1)") is None
    with pytest.raises(errors.UndefinedFunction):
        connection.execute("SELECT pg_advisory_lock(1, 2, 3)")
    with pytest.raises(errors.InvalidTextRepresentation):
        connection.execute("SELECT pg_advisory_lock('x')")
    with pytest.raises(errors.FeatureNotSupported, match="cannot stand here"):
        connection.execute("SELECT 1 WHERE pg_try_advisory_lock(1)")


def test_clients_of_remuda_have_locks_of_transactions(cluster, connection):
    with cluster.connect() as client:
        with client.transaction() as transaction:
            transaction.sql("SELECT pg_advisory_xact_lock(30)")
            assert one(connection, "SELECT pg_try_advisory_lock(30)") is False
        assert one(connection, "SELECT pg_try_advisory_lock(30)") is True
        with pytest.raises(Exception, match="does not keep a session") as caught:
            client.sql("SELECT pg_advisory_lock(31)")
    assert caught.value.sqlstate == "0A000"
    assert isinstance(connection, psycopg.Connection)
