"""LOCK TABLE of psycopg's connections to several members. Where a writer that takes no lock would
wait in PostgreSQL, the transaction with the lock fails at its commit (decision 0094)."""

from __future__ import annotations

import threading

import pytest
from psycopg import errors

STRONG = ("SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")
WEAK = ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE")


@pytest.fixture(scope="module")
def jobs(cluster):
    with cluster.connect() as client:
        client.sql("CREATE TABLE jobs (id BIGINT PRIMARY KEY, state VARCHAR)")
        client.sql("CREATE INDEX jobs_state ON jobs (state)")
        client.sql("CREATE TABLE log (id BIGINT PRIMARY KEY)")
        client.sql("CREATE VIEW waiting AS SELECT * FROM jobs WHERE state = 'waits'")
        client.sql("CREATE SEQUENCE numbers_of_jobs")
    return "jobs"


@pytest.fixture
def pair(connect, jobs):
    one, other = connect(0), connect(1)
    one.execute("DELETE FROM jobs")
    return one, other


def test_two_that_lock_a_table_come_one_after_the_other(pair):
    one, other = pair
    begun = threading.Event()
    seen = []

    def second():
        with other.transaction():
            begun.set()
            other.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
            seen.extend(other.execute("SELECT count(*) FROM jobs").fetchone())
            other.execute("INSERT INTO jobs VALUES (2, 'second')")

    with one.transaction():
        assert one.execute("LOCK TABLE jobs").statusmessage == "LOCK TABLE"
        thread = threading.Thread(target=second)
        thread.start()
        begun.wait()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted"
        while one.execute(waits).fetchone() != (1,):
            pass
        held = one.execute(
            "SELECT relation::regclass::text, mode FROM pg_locks"
            " WHERE locktype = 'relation' AND granted"
        ).fetchall()
        assert held == [("jobs", "ExclusiveLock")]
        one.execute("INSERT INTO jobs VALUES (1, 'first')")
    thread.join()
    assert seen == [1]


@pytest.mark.parametrize("mode", STRONG)
def test_a_writer_without_a_lock_fails_the_one_who_has_it(pair, mode):
    """It does not wait, so it must not stay unnoticed."""
    one, other = pair
    one.execute("BEGIN")
    one.execute(f"LOCK TABLE jobs IN {mode} MODE")
    one.execute("INSERT INTO log VALUES (1)")
    other.execute("INSERT INTO jobs VALUES (7, 'from others')")
    with pytest.raises(errors.SerializationFailure):
        one.execute("COMMIT")
    assert one.execute("SELECT count(*) FROM log").fetchone() == (0,)


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_it_holds_at_every_level(pair, level):
    one, other = pair
    one.execute(f"BEGIN ISOLATION LEVEL {level}")
    one.execute("LOCK TABLE jobs IN SHARE MODE")
    one.execute("INSERT INTO log VALUES (2)")
    other.execute("INSERT INTO jobs VALUES (8, 'from others')")
    with pytest.raises(errors.SerializationFailure):
        one.execute("COMMIT")


@pytest.mark.parametrize("mode", [*WEAK, "SHARE UPDATE EXCLUSIVE"])
def test_weak_modes_let_writers_pass(pair, mode):
    one, other = pair
    with one.transaction():
        one.execute(f"LOCK TABLE ONLY jobs, log IN {mode} MODE NOWAIT")
        other.execute("INSERT INTO jobs VALUES (9, 'from others')")
        one.execute("INSERT INTO log VALUES (9)")
    one.execute("DELETE FROM log")


def test_nowait_and_modes_that_go_together(pair):
    one, other = pair
    with one.transaction():
        one.execute("LOCK jobs IN SHARE MODE")
        with other.transaction():
            other.execute("LOCK TABLE jobs IN SHARE MODE NOWAIT")
        with pytest.raises(errors.LockNotAvailable) as caught, other.transaction():
            other.execute("LOCK TABLE jobs IN EXCLUSIVE MODE NOWAIT")
        assert caught.value.diag.message_primary == 'could not obtain lock on relation "jobs"'
    with other.transaction():
        other.execute("LOCK TABLE jobs IN EXCLUSIVE MODE NOWAIT")


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("LOCK TABLE nosuch", errors.UndefinedTable, 'relation "nosuch" does not exist'),
        ("LOCK TABLE jobs_state", errors.WrongObjectType, 'cannot lock relation "jobs_state"'),
        (
            "LOCK TABLE numbers_of_jobs",
            errors.WrongObjectType,
            'cannot lock relation "numbers_of_jobs"',
        ),
        ("LOCK TABLE waiting", errors.FeatureNotSupported, '"waiting" is a view'),
        ("LOCK TABLE jobs IN FOO MODE", errors.SyntaxError, 'syntax error at or near "FOO"'),
    ],
)
def test_what_cannot_be_locked(pair, statement, kind, message):
    one, _ = pair
    with pytest.raises(kind) as caught, one.transaction():
        one.execute(statement)
    assert caught.value.diag.message_primary == message


def test_outside_of_a_transaction(pair):
    with pytest.raises(errors.NoActiveSqlTransaction) as caught:
        pair[0].execute("LOCK TABLE jobs")
    expected = "LOCK TABLE can only be used in transaction blocks"
    assert caught.value.diag.message_primary == expected
