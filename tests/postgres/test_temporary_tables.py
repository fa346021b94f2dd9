"""Temporary tables of PostgreSQL's clients. Results and errors are those of PostgreSQL 15."""

from __future__ import annotations

import os
import socket
import time

import psycopg
import pytest
from psycopg import errors

import remuda

pytestmark = pytest.mark.cluster


@pytest.fixture
def permanent(cluster):
    """A table of 100 rows, whose name temporary tables take as well."""
    with cluster.connect() as client:
        client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)")
        client.sql("INSERT INTO t SELECT x, 'p' || x FROM generate_series(1, 100) s(x)")
        yield "t"
        client.sql("DROP TABLE t")


def rows(connection, text, *values):
    return connection.execute(text, values or None).fetchall()


def test_a_temporary_table_hides_a_permanent_one(connect, permanent):
    mine, other = connect(), connect()
    text = "SELECT count(*) FROM t"
    assert rows(mine, text) == rows(other, text) == [(100,)]
    mine.execute("CREATE TEMP TABLE t (id INT PRIMARY KEY, v TEXT DEFAULT 'none')")
    mine.execute("INSERT INTO t VALUES (1, 'a'), (2, DEFAULT)")
    for _ in range(3):  # by cached plans as well
        assert rows(mine, text) == [(2,)]
        assert rows(other, text) == [(100,)]
        assert rows(mine, "SELECT count(*) FROM public.t") == [(100,)]
    assert rows(mine, "SELECT * FROM pg_temp.t ORDER BY id") == [(1, "a"), (2, "none")]
    with pytest.raises(errors.UndefinedTable):
        other.execute("SELECT * FROM pg_temp.t")
    mine.execute("DROP TABLE t")
    assert rows(mine, text) == [(100,)]


def test_joined_with_a_distributed_map(connection, permanent):
    connection.execute(
        "CREATE TEMPORARY TABLE few AS SELECT x AS id FROM generate_series(5, 8) s(x)"
    )
    found = rows(connection, "SELECT t.v FROM t JOIN few USING (id) ORDER BY 1")
    assert found == [("p5",), ("p6",), ("p7",), ("p8",)]
    connection.execute("INSERT INTO few SELECT id FROM t WHERE id > 98")
    assert rows(connection, "SELECT sum(id) FROM few") == [(5 + 6 + 7 + 8 + 99 + 100,)]
    assert connection.execute("UPDATE t SET v = 'x' FROM few WHERE few.id = t.id").rowcount == 6
    assert rows(connection, "SELECT count(*) FROM t WHERE v = 'x'") == [(6,)]


def test_changes(connection):
    run = connection.execute
    run("CREATE TEMP TABLE c (k INT PRIMARY KEY, n INT UNIQUE CHECK (n < 100), s TEXT NOT NULL)")
    run("INSERT INTO c VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c'), (4, NULL, 'd')")
    with pytest.raises(errors.UniqueViolation, match="c_pkey") as refused:
        run("INSERT INTO c VALUES (5, 50, 'e'), (1, 11, 'x')")
    listed = "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()"
    assert rows(connection, listed) == [(refused.value.diag.schema_name,)]
    with pytest.raises(errors.UniqueViolation, match="c_n_key"):
        run("INSERT INTO c VALUES (5, 20, 'e')")
    with pytest.raises(errors.CheckViolation):
        run("UPDATE c SET n = 200 WHERE k = 1")
    with pytest.raises(errors.NotNullViolation) as refused:
        run("UPDATE c SET s = NULL")
    assert refused.value.diag.schema_name.startswith("pg_temp_")
    assert run("UPDATE c SET n = n + 1, k = k + 100 WHERE n IS NOT NULL").rowcount == 2
    assert run("DELETE FROM c WHERE k = 3").rowcount == 1
    upsert = "INSERT INTO c VALUES (4, 44, 'D'), (6, 66, 'f') ON CONFLICT (k) DO UPDATE SET "
    assert rows(connection, upsert + "n = excluded.n RETURNING k, n") == [(4, 44), (6, 66)]
    assert run("INSERT INTO c VALUES (6, 1, 'z') ON CONFLICT DO NOTHING").rowcount == 0
    run(
        "MERGE INTO c USING (VALUES (6), (7)) m(x) ON k = x WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES (x, x, 'm')"
    )
    assert rows(connection, "SELECT * FROM c ORDER BY k") == [
        (4, 44, "d"), (7, 7, "m"), (101, 11, "a"), (102, 21, "b"),
    ]  # fmt: skip
    run("TRUNCATE c")
    assert rows(connection, "SELECT count(*) FROM c") == [(0,)]


def test_truncate_of_several(connect, permanent):
    connection = connect()
    run = connection.execute
    run("CREATE TEMP TABLE a AS SELECT 1 AS n")
    run("CREATE TEMP TABLE b (n INT PRIMARY KEY)")
    run("INSERT INTO b VALUES (1), (2)")
    both = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)"
    run("BEGIN")
    run("TRUNCATE a, pg_temp.b")
    assert rows(connection, both) == [(0, 0)]
    run("ROLLBACK")
    assert rows(connection, both) == [(1, 2)]
    with pytest.raises(errors.FeatureNotSupported):
        run("TRUNCATE a, t")
    run("TRUNCATE a, b")
    assert rows(connection, both) == [(0, 0)]
    run("INSERT INTO b VALUES (1)")
    assert rows(connection, "SELECT count(*) FROM t") == [(100,)]


def test_rows_without_a_key(connection):
    run = connection.execute
    run("CREATE TEMP TABLE log (what TEXT)")
    run("INSERT INTO log VALUES ('a'), ('a'), ('b')")
    assert run("DELETE FROM log WHERE what = 'b'").rowcount == 1
    assert run("UPDATE log SET what = what || '!'").rowcount == 2
    assert rows(connection, "SELECT * FROM log") == [("a!",), ("a!",)]


def test_transactions_and_savepoints(connect, permanent):
    connection = connect(autocommit=False)
    run = connection.execute
    run("CREATE TEMP TABLE w (n INT)")
    run("INSERT INTO w VALUES (1)")
    connection.commit()
    run("INSERT INTO w VALUES (2)")
    run("SAVEPOINT s")
    run("INSERT INTO w VALUES (3)")
    run("UPDATE t SET v = 'new' WHERE id = 1")
    run("CREATE TEMP TABLE later (n INT)")
    assert rows(connection, "SELECT n FROM w ORDER BY n") == [(1,), (2,), (3,)]
    run("ROLLBACK TO s")
    assert rows(connection, "SELECT n FROM w ORDER BY n") == [(1,), (2,)]
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM later")
    connection.rollback()
    assert rows(connection, "SELECT n FROM w ORDER BY n") == [(1,)]
    run("DROP TABLE w")
    connection.rollback()
    assert rows(connection, "SELECT n FROM w ORDER BY n") == [(1,)]
    run("CREATE TEMP TABLE gone AS SELECT 1 AS n")
    connection.rollback()
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM gone")
    connection.rollback()
    run("INSERT INTO w VALUES (4)")
    run("INSERT INTO t VALUES (1000, 'both')")
    connection.commit()
    assert rows(connection, "SELECT n FROM w ORDER BY n") == [(1,), (4,)]
    assert rows(connection, "SELECT v FROM t WHERE id = 1000") == [("both",)]


def test_a_commit_that_fails_takes_the_rows_back(connect, permanent):
    mine, other = connect(autocommit=False), connect()
    mine.execute("CREATE TEMP TABLE w (n INT)")
    mine.commit()
    mine.execute("SELECT * FROM t WHERE id = 1")
    mine.execute("INSERT INTO w VALUES (1)")
    mine.execute("UPDATE t SET v = 'mine' WHERE id = 1")
    other.execute("UPDATE t SET v = 'other' WHERE id = 1")
    with pytest.raises(errors.SerializationFailure):
        mine.commit()
    mine.rollback()
    assert rows(mine, "SELECT * FROM w") == []


def test_on_commit(connect):
    connection = connect(autocommit=False)
    run = connection.execute
    run("CREATE TEMP TABLE a (n INT) ON COMMIT DELETE ROWS")
    run("CREATE TEMP TABLE b (n INT) ON COMMIT DROP")
    run("CREATE TEMP TABLE c ON COMMIT PRESERVE ROWS AS SELECT 7 AS n")
    run("INSERT INTO a VALUES (1)")
    assert rows(connection, "SELECT n FROM a UNION ALL SELECT n FROM c") == [(1,), (7,)]
    connection.commit()
    assert rows(connection, "SELECT n FROM a UNION ALL SELECT n FROM c") == [(7,)]
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM b")


def test_they_outlive_definitions_that_commit(connect):
    """dbt adds columns to a table while its new rows are in a temporary one."""
    mine = connect(autocommit=False, options="-c definitions_in_transactions=commit")
    mine.execute("CREATE TEMP TABLE kept AS SELECT 1 AS id")
    mine.execute("CREATE TEMP TABLE emptied (id INT) ON COMMIT DELETE ROWS")
    mine.execute("INSERT INTO emptied VALUES (1)")
    mine.execute("CREATE TABLE defined (id INT PRIMARY KEY)")
    assert rows(mine, "SELECT id FROM kept") == [(1,)]
    assert rows(mine, "SELECT id FROM emptied") == []
    mine.execute("INSERT INTO kept VALUES (2)")
    mine.rollback()  # to the definition
    assert rows(mine, "SELECT id FROM kept") == [(1,)]
    mine.execute("INSERT INTO kept VALUES (3)")
    with pytest.raises(errors.DuplicateTable):  # bound, it fails the block and commits nothing
        mine.execute("CREATE TABLE defined (id INT PRIMARY KEY)")
    mine.rollback()
    assert rows(mine, "SELECT id FROM kept") == [(1,)]
    mine.execute("DROP TABLE defined")
    mine.rollback()
    mine.execute("DROP TABLE kept, emptied")
    mine.commit()


def test_definitions(connection):
    run = connection.execute
    run("CREATE TEMP TABLE d (n INT)")
    with pytest.raises(errors.DuplicateTable):
        run("CREATE TEMP TABLE d (n INT)")
    run("CREATE TEMP TABLE IF NOT EXISTS d (n INT)")
    run("CREATE TABLE pg_temp.e (LIKE d)")
    with pytest.raises(errors.InvalidTableDefinition, match="non-temporary schema"):
        run("CREATE TEMP TABLE public.x (n INT)")
    with pytest.raises(errors.InvalidTableDefinition, match="ON COMMIT can only be used"):
        run("CREATE TABLE x (n INT) ON COMMIT DROP")
    run("CREATE UNLOGGED TABLE plain (n INT)")
    run("DROP TABLE d, pg_temp.e")
    run("DROP TABLE plain")
    run("CREATE TEMP TABLE d (n INT)")
    run("DISCARD TEMP")
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM d")
    run("CREATE TEMP TABLE d (n INT)")
    run("DISCARD ALL")
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM d")


def test_bytes_are_bounded_and_given_back(cluster_of):
    with cluster_of(members=1, settings={"temporary_memory": "8 MB"}) as small:
        host, port = small.members[0].postgres.split(":")
        options = {"host": host, "port": port, "user": "bob", "autocommit": True}
        with psycopg.connect(**options) as watcher:

            def held():
                return rows(watcher, "SELECT sum(memory_held) FROM sys.members")[0][0]

            fill = "INSERT INTO big SELECT repeat('x', 1000) FROM generate_series(1, 4000)"
            connection = psycopg.connect(**options)
            connection.execute("CREATE TEMP TABLE big (v TEXT)")
            connection.execute(fill)
            assert held() > 4_000_000
            with pytest.raises(errors.OutOfMemory, match="temporary tables of the session"):
                connection.execute(fill.replace("4000", "9000"))
            assert rows(connection, "SELECT count(*) FROM big") == [(4000,)]
            assert 4_000_000 < held() < 5_000_000
            connection.execute("DISCARD TEMP")
            assert held() < 1_000_000
            connection.execute("BEGIN; CREATE TEMP TABLE big (v TEXT)")
            connection.execute(fill)
            assert held() > 4_000_000
            socket.socket(fileno=os.dup(connection.fileno())).shutdown(socket.SHUT_RDWR)
            deadline = time.monotonic() + 60
            while held() > 1_000_000:
                assert time.monotonic() < deadline, "the bytes of a lost session stay"
            connection.close()


def test_the_catalog_lists_them_to_their_session(connect, permanent):
    mine, other = connect(), connect()
    assert rows(mine, "SELECT pg_my_temp_schema()") == [(0,)]
    mine.execute(
        "CREATE TEMP TABLE t (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x' UNIQUE, CHECK (id > 0))"
    )
    mine.execute("CREATE TEMP TABLE plain (n INT)")
    about = (
        "SELECT relname, relkind, relpersistence FROM pg_class "
        "WHERE relnamespace = pg_my_temp_schema() ORDER BY 1"
    )
    assert rows(mine, about) == [
        ("plain", "r", "t"), ("t", "r", "t"), ("t_pkey", "i", "t"), ("t_v_key", "i", "t"),
    ]  # fmt: skip
    assert rows(other, about) == []
    text = "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"
    assert rows(mine, "SELECT 't'::regclass::oid = 'public.t'::regclass::oid") == [(False,)]
    assert rows(mine, "SELECT 't'::regclass::text, 'public.t'::regclass::text") == [
        ("t", "public.t")
    ]
    assert rows(mine, "SELECT 'pg_temp.t'::regclass = 't'::regclass") == [(True,)]
    assert rows(mine, f"{text} ORDER BY attnum") == [("id",), ("v",)]
    ((schema,),) = rows(mine, "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
    assert schema.startswith("pg_temp_")
    assert rows(mine, "SELECT current_schemas(true), current_schemas(false)") == [
        ([schema, "pg_catalog", "public"], ["public"])
    ]
    assert rows(mine, f"SELECT count(*) FROM {schema}.t") == [(0,)]
    assert rows(mine, f"SELECT '{schema}.t'::regclass = 't'::regclass") == [(True,)]
    described = (
        "SELECT column_name, data_type, column_default FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = 't' ORDER BY ordinal_position"
    )
    assert rows(mine, described, schema) == [
        ("id", "integer", None),
        ("v", "character varying", "'x'"),
    ]
    assert rows(other, described, schema) == []
    listed = (
        "SELECT table_name, table_type, commit_action FROM information_schema.tables "
        "WHERE table_schema = %s ORDER BY 1"
    )
    assert rows(mine, listed, schema) == [
        ("plain", "LOCAL TEMPORARY", None), ("t", "LOCAL TEMPORARY", None),
    ]  # fmt: skip
    constraints = (
        "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conrelid = 't'::regclass ORDER BY 1"
    )
    assert rows(mine, constraints) == [
        ("t_id_check", "c", "CHECK ((id > 0))"),
        ("t_pkey", "p", "PRIMARY KEY (id)"),
        ("t_v_key", "u", "UNIQUE (v)"),
    ]
    visible = "SELECT pg_table_is_visible('public.t'::regclass), pg_table_is_visible('t'::regclass)"
    assert rows(mine, visible) == [(False, True)]
    mine.execute("DROP TABLE t")
    assert rows(mine, visible) == [(True, True)]
    assert rows(mine, about) == [("plain", "r", "t")]
    with pytest.raises(errors.UndefinedTable):
        other.execute("SELECT 'plain'::regclass")


def test_other_clients_have_none(cluster):
    with cluster.connect() as client, pytest.raises(remuda.errors.NotSupported, match="session"):
        client.sql("CREATE TEMP TABLE x (n INT)")


def test_a_temporary_table_commits_nothing(connection):
    """Where other definitions commit the transaction."""
    connection.execute("SET definitions_in_transactions = 'commit'")
    connection.execute("CREATE TABLE stays_empty (a INT)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO stays_empty VALUES (1)")
    connection.execute("CREATE TEMPORARY TABLE own AS SELECT a FROM stays_empty")
    assert connection.execute("SELECT a FROM own").fetchall() == [(1,)]
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM stays_empty").fetchone() == (0,)
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT a FROM own")
    connection.execute("DROP TABLE stays_empty")
