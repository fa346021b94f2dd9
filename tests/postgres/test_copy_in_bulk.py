"""A COPY that is too much for the write set of its transaction: staged until the COMMIT."""

from __future__ import annotations

import psycopg
import pytest

ROWS = 5_000
MORE = "more rows into map"


@pytest.fixture(scope="module")
def connect(cluster_of):
    with cluster_of(2, {"transaction_memory": 200_000}) as cluster:
        host, port = cluster.members[0].postgres.split(":")
        opened = []

        def one(**settings):
            opened.append(psycopg.connect(host=host, port=port, user="bob", **settings))
            return opened[-1]

        yield one
        for each in opened:
            each.close()


@pytest.fixture
def own(connect):
    """A session with transactions, over empty tables."""
    connection = connect()
    connection.autocommit = True
    connection.execute("DROP TABLE IF EXISTS big, other")
    connection.execute("CREATE TABLE big (id INT PRIMARY KEY, n INT UNIQUE, t TEXT)")
    connection.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    connection.autocommit = False
    return connection


@pytest.fixture
def all_of(connect):
    connection = connect(autocommit=True)
    return lambda: connection.execute("SELECT count(*), sum(id), sum(n) FROM big").fetchone()


EMPTY = (0, None, None)
FULL = (ROWS, sum(range(ROWS)), -sum(range(ROWS)))


def load(connection, first=0, rows=ROWS):
    data = "".join(f"{n}\t-{n}\t{'x' * 40}\n" for n in range(first, first + rows))
    with connection.cursor() as cursor:
        with cursor.copy("COPY big FROM STDIN") as copy:
            copy.write(data)
        return cursor.rowcount


def test_it_is_committed_with_its_transaction(own, all_of):
    assert load(own) == ROWS
    assert own.execute("SELECT 1 + 1").fetchone() == (2,)
    own.execute("SAVEPOINT s")
    own.execute("ROLLBACK TO s")
    assert all_of() == EMPTY
    own.commit()
    assert all_of() == FULL


def test_a_rollback_and_a_broken_connection_drop_it(own, all_of, connect):
    load(own)
    own.rollback()
    other = connect()
    load(other)
    other.close()
    assert all_of() == EMPTY
    load(own)  # no turn and no memory is left taken
    own.commit()
    assert all_of() == FULL


def test_duplicates_are_told_at_the_commit(own, all_of):
    for first in (0, ROWS - 1):
        load(own, first)
        if first:
            with pytest.raises(psycopg.errors.UniqueViolation):
                own.commit()
        else:
            own.commit()
    assert own.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert all_of() == FULL


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO other VALUES (1)",
        "UPDATE big SET n = 1 WHERE id = 1",
        "SELECT * FROM big WHERE id = 1",
        "SELECT count(*) FROM big",
        "SELECT count(*) FROM other",
        "LOCK TABLE other IN SHARE MODE",
        "NOTIFY news",
    ],
)
def test_nothing_else_may_follow(own, all_of, statement):
    load(own)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=MORE) as caught:
        own.execute(statement)
    assert "COMMIT first" in caught.value.diag.message_hint
    own.rollback()
    assert all_of() == EMPTY


def test_other_tables_may_be_read_where_the_commit_looks_at_no_reads(own, all_of):
    own.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    own.execute("SELECT count(*) FROM other")
    load(own)
    assert own.execute("SELECT count(*) FROM other").fetchone() == (0,)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=MORE):
        own.execute("SELECT count(*) FROM big")
    own.rollback()
    load(own)
    own.commit()
    assert all_of() == FULL


@pytest.mark.parametrize(
    "before", ["INSERT INTO other VALUES (1)", "SELECT count(*) FROM other", "SAVEPOINT s"]
)
def test_nothing_may_have_come_before(own, all_of, before):
    own.execute(before)
    with pytest.raises(psycopg.errors.ProgramLimitExceeded) as caught:
        load(own)
    assert "in one that does nothing else" in caught.value.diag.message_hint
    own.rollback()
    assert all_of() == EMPTY


def test_few_rows_are_a_part_of_the_write_set(own, all_of):
    assert load(own, 0, 10) == 10
    assert own.execute("SELECT count(*) FROM big").fetchone() == (10,)
    own.rollback()
    assert all_of() == EMPTY
