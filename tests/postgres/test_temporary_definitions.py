"""Sequences, indexes, views and ALTER of temporary tables. Results and errors are those of
PostgreSQL 15."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

pytestmark = pytest.mark.cluster


def rows(connection, text):
    return connection.execute(text).fetchall()


def test_serial_and_identity_columns(connection):
    run = connection.execute
    run("CREATE TEMP TABLE a (id SERIAL PRIMARY KEY, v TEXT)")
    assert rows(connection, "INSERT INTO a (v) VALUES ('x'), ('y') RETURNING id") == [(1,), (2,)]
    assert rows(connection, "SELECT currval('a_id_seq'), lastval()") == [(2, 2)]
    found = rows(connection, "SELECT pg_get_serial_sequence('a', 'id')")
    assert found == [("pg_temp.a_id_seq",)]
    assert rows(connection, "SELECT last_value, is_called FROM a_id_seq") == [(2, True)]
    run("BEGIN")
    assert rows(connection, "INSERT INTO a (v) VALUES ('gone') RETURNING id") == [(3,)]
    run("ROLLBACK")
    assert rows(connection, "INSERT INTO a (v) VALUES ('z') RETURNING id") == [(4,)]
    run("CREATE TEMP TABLE b (id INT GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 5), n INT)")
    assert rows(connection, "INSERT INTO b (n) VALUES (1), (2) RETURNING id") == [(5,), (10,)]
    with pytest.raises(errors.GeneratedAlways):
        run("INSERT INTO b VALUES (1, 1)")
    run("BEGIN")
    run("TRUNCATE b RESTART IDENTITY")
    assert rows(connection, "INSERT INTO b (n) VALUES (1) RETURNING id") == [(5,)]
    run("ROLLBACK")
    assert rows(connection, "INSERT INTO b (n) VALUES (1) RETURNING id") == [(15,)]
    run("TRUNCATE a, b RESTART IDENTITY")
    assert rows(connection, "INSERT INTO b (n) VALUES (1) RETURNING id") == [(5,)]
    assert rows(connection, "INSERT INTO a (v) SELECT 'w' RETURNING id") == [(1,)]
    run("CREATE TEMP TABLE l (LIKE b INCLUDING ALL)")
    assert rows(connection, "INSERT INTO l (n) VALUES (1) RETURNING id") == [(5,)]
    listed = (
        "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname LIKE 'pg_temp%'"
        " ORDER BY 1"
    )
    assert rows(connection, listed) == [("a_id_seq", 1), ("b_id_seq", 5), ("l_id_seq", 5)]
    run("DROP TABLE a, b")
    assert rows(connection, listed) == [("l_id_seq", 5)]


def test_sequences(connect):
    connection, other = connect(), connect()
    run = connection.execute
    run("CREATE TEMP SEQUENCE s START 3 MAXVALUE 5")
    run("CREATE TEMPORARY SEQUENCE IF NOT EXISTS s")
    assert rows(connection, "SELECT nextval('s'), nextval('s')") == [(3, 4)]
    assert rows(connection, "SELECT nextval('pg_temp.s'::text)") == [(5,)]
    ended = 'nextval: reached maximum value of sequence "s" (5)'
    with pytest.raises(errors.SequenceGeneratorLimitExceeded) as told:
        run("SELECT nextval('s')")
    assert told.value.diag.message_primary == ended
    with pytest.raises(errors.UndefinedTable):
        other.execute("SELECT nextval('s')")
    other.execute("CREATE TEMP SEQUENCE s")
    assert rows(other, "SELECT nextval('s')") == [(1,)]
    run("ALTER SEQUENCE s RESTART")
    run("BEGIN")
    run("ALTER SEQUENCE s RESTART WITH 5")
    assert rows(connection, "SELECT nextval('s')") == [(5,)]
    run("ROLLBACK")
    assert rows(connection, "SELECT nextval('s'), setval('s', 4), nextval('s')") == [(3, 4, 5)]
    with pytest.raises(errors.InvalidParameterValue, match="out of bounds"):
        run("SELECT setval('s', 6)")
    run("ALTER SEQUENCE s RENAME TO s2")
    run("CREATE TEMP SEQUENCE s")
    run("CREATE TEMP TABLE own (id INT)")
    run("ALTER SEQUENCE s OWNED BY own.id")
    run("DROP TABLE own")
    with pytest.raises(errors.UndefinedTable):
        run("SELECT nextval('s')")
    assert rows(connection, "SELECT currval('s2')") == [(5,)]
    run("DISCARD TEMP")
    with pytest.raises(errors.UndefinedTable):
        run("SELECT nextval('s2')")


def test_a_permanent_table_does_not_own_a_temporary_sequence(connection, cluster):
    connection.execute("CREATE TABLE p (id INT)")
    message = "sequence must be in same schema as table it is linked to"
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=message):
        connection.execute("CREATE TEMP SEQUENCE s OWNED BY p.id")
    connection.execute("DROP TABLE p")


def test_altered_tables(connection):
    run = connection.execute
    run("CREATE TEMP TABLE a (id SERIAL PRIMARY KEY, v TEXT)")
    run("INSERT INTO a (v) VALUES ('x'), ('y')")
    run("ALTER TABLE a ADD COLUMN n INT DEFAULT 7, ADD COLUMN m INT NOT NULL DEFAULT 8")
    assert rows(connection, "SELECT * FROM a ORDER BY id") == [(1, "x", 7, 8), (2, "y", 7, 8)]
    run("ALTER TABLE a ADD COLUMN k INT")
    for change, error, message in (
        (
            "ALTER COLUMN k SET NOT NULL",
            errors.NotNullViolation,
            'column "k" of relation "a" contains null values',
        ),
        (
            "ADD CHECK (n < 5)",
            errors.CheckViolation,
            'check constraint "a_n_check" of relation "a" is violated by some row',
        ),
        (
            "ADD CONSTRAINT two UNIQUE (m)",
            errors.UniqueViolation,
            'could not create unique index "two"',
        ),
    ):
        with pytest.raises(error) as told:
            run(f"ALTER TABLE a {change}")
        assert told.value.diag.message_primary == message
    run("INSERT INTO a (v, n) VALUES ('k', NULL)")  # none of the three has changed the table
    run("DELETE FROM a WHERE v = 'k'")
    run("ALTER TABLE a ALTER COLUMN n SET NOT NULL")
    run("ALTER TABLE a ADD CONSTRAINT small CHECK (n < 50), ADD CONSTRAINT one UNIQUE (v)")
    with pytest.raises(errors.NotNullViolation, match='"n"'):
        run("INSERT INTO a (v, n) VALUES ('z', NULL)")
    with pytest.raises(errors.CheckViolation, match="small"):
        run("INSERT INTO a (v, n) VALUES ('z', 60)")
    with pytest.raises(errors.UniqueViolation, match="one"):
        run("INSERT INTO a (v) VALUES ('x')")
    run("ALTER TABLE a DROP CONSTRAINT small, DROP COLUMN k, ALTER COLUMN m TYPE BIGINT")
    run("ALTER TABLE a RENAME COLUMN n TO nn")
    run("ALTER TABLE a RENAME TO aa")
    run("INSERT INTO aa (v, nn, m) VALUES ('big', 60, 5000000000)")
    assert rows(connection, "SELECT v, nn, m FROM aa WHERE nn > 7") == [("big", 60, 5000000000)]
    with pytest.raises(errors.FeatureNotSupported, match="into or out of temporary schemas"):
        run("ALTER TABLE aa SET SCHEMA public")
    run("COMMENT ON COLUMN aa.v IS 'text'")
    assert rows(connection, "SELECT col_description('aa'::regclass, 2)") == [("text",)]


def test_generated_columns_of_rows_that_are_there(connection):
    run = connection.execute
    run("CREATE TEMP TABLE g (a INT, b INT GENERATED ALWAYS AS (a * 2) STORED)")
    run("INSERT INTO g VALUES (1), (2)")
    run("ALTER TABLE g ADD COLUMN c INT GENERATED ALWAYS AS (a + 1) STORED")
    run("ALTER TABLE g ADD PRIMARY KEY (a)")
    with pytest.raises(errors.UniqueViolation):
        run("INSERT INTO g (a) VALUES (1)")
    assert rows(connection, "SELECT * FROM g ORDER BY a") == [(1, 2, 2), (2, 4, 3)]


def test_definitions_are_rolled_back(connect):
    connection = connect(autocommit=False)
    run = connection.execute
    run("CREATE TEMP TABLE a (n INT)")
    run("INSERT INTO a VALUES (1)")
    connection.commit()
    run("ALTER TABLE a ADD COLUMN q INT DEFAULT 5 CHECK (q > 4)")
    run("CREATE UNIQUE INDEX i ON a (q)")
    run("SAVEPOINT s")
    run("DROP TABLE a")
    run("ROLLBACK TO s")
    assert rows(connection, "SELECT * FROM a") == [(1, 5)]
    with pytest.raises(errors.CheckViolation):
        run("INSERT INTO a VALUES (2, 2)")
    connection.rollback()
    run("ALTER TABLE a ADD COLUMN q INT DEFAULT 3 CHECK (q < 4)")  # no check of the one before
    run("INSERT INTO a VALUES (2, 2)")
    run("DROP TABLE IF EXISTS nothing")
    run("INSERT INTO a VALUES (3, 2)")
    connection.commit()
    assert rows(connection, "SELECT * FROM a ORDER BY n") == [(1, 3), (2, 2), (3, 2)]


def test_indexes(connection):
    run = connection.execute
    run("CREATE TEMP TABLE a (n INT, m INT)")
    run("INSERT INTO a VALUES (1, 1), (2, 1)")
    run("CREATE INDEX ON a (n)")
    with pytest.raises(errors.UniqueViolation):
        run("CREATE UNIQUE INDEX u ON a (m)")
    run("CREATE UNIQUE INDEX u ON a (n, m)")
    run("CREATE INDEX IF NOT EXISTS u ON a (n)")
    with pytest.raises(errors.UniqueViolation):
        run("INSERT INTO a VALUES (1, 1)")
    text = "SELECT indexname FROM pg_indexes WHERE tablename = 'a' ORDER BY 1"
    assert rows(connection, text) == [("a_n_idx",), ("u",)]
    run("ALTER INDEX a_n_idx RENAME TO i")
    run("DROP INDEX i, u")
    run("DROP INDEX IF EXISTS u")
    assert rows(connection, text) == []
    run("INSERT INTO a VALUES (1, 1)")


def test_views(connect):
    connection, other = connect(), connect()
    run = connection.execute
    run("CREATE TABLE p (n INT)")
    run("INSERT INTO p VALUES (1)")
    told = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    run("CREATE TEMP VIEW over_p AS SELECT n + 1 AS m FROM p")
    run("CREATE TEMP TABLE t AS SELECT 5 AS n")
    assert told == []
    run("CREATE VIEW v AS SELECT t.n FROM t, p")
    assert told == ['view "v" will be a temporary view']
    assert rows(connection, "SELECT * FROM v, over_p") == [(5, 2)]
    run("CREATE OR REPLACE TEMP VIEW over_p AS SELECT n + 2 AS m FROM p")
    assert rows(connection, "SELECT m FROM pg_temp.over_p") == [(3,)]
    for name in ("v", "over_p"):
        with pytest.raises(errors.UndefinedTable):
            other.execute(f"SELECT * FROM {name}")
    listed = "SELECT table_name FROM information_schema.views WHERE table_schema LIKE 'pg_temp%'"
    assert sorted(rows(connection, listed)) == [("over_p",), ("v",)]
    assert rows(other, listed) == []
    kinds = "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('v', 'p', 't')"
    kinds += " ORDER BY 1"
    assert rows(connection, kinds) == [("p", "p"), ("t", "t"), ("v", "t")]
    for text in ("CREATE TEMP VIEW public.x AS SELECT 1", "CREATE VIEW public.x AS TABLE t"):
        with pytest.raises(errors.InvalidTableDefinition, match="non-temporary schema"):
            run(text)
    with pytest.raises(errors.DependentObjectsStillExist):
        run("DROP TABLE t")
    run("DROP TABLE t CASCADE")
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM v")
    run("ALTER VIEW over_p RENAME TO w")
    with pytest.raises(errors.DependentObjectsStillExist):
        run("DROP TABLE p")
    run("DROP TABLE p CASCADE")  # a definition for all, and one for the session
    with pytest.raises(errors.UndefinedTable):
        run("SELECT * FROM w")


def test_on_commit_drop_takes_sequences_and_views_along(connect):
    connection = connect()
    run = connection.execute
    run("CREATE TEMP TABLE at_once (id SERIAL) ON COMMIT DROP")
    run("BEGIN")
    run("CREATE TEMP TABLE t (id SERIAL, x INT) ON COMMIT DROP")
    run("CREATE TEMP VIEW v AS SELECT * FROM t")
    run("CREATE TEMP VIEW vv AS SELECT * FROM v")
    run("INSERT INTO t (x) VALUES (1)")
    assert rows(connection, "SELECT * FROM vv") == [(1, 1)]
    run("COMMIT")
    for name in ("at_once", "t", "v", "vv", "t_id_seq", "at_once_id_seq"):
        with pytest.raises(errors.UndefinedTable):
            run(f"SELECT * FROM {name}")


def test_select_into(connection):
    run = connection.execute
    assert run("CREATE TEMP TABLE f (x, y) AS VALUES (1, 2), (3, 4)").statusmessage == "SELECT 2"
    made = run("CREATE TEMP TABLE e ON COMMIT PRESERVE ROWS AS TABLE f WITH NO DATA")
    assert made.statusmessage == "CREATE TABLE AS"
    made = run("CREATE TEMP TABLE IF NOT EXISTS e AS TABLE f")
    assert made.statusmessage == "CREATE TABLE AS"
    assert rows(connection, "SELECT * FROM e") == []
    assert run("SELECT x INTO TEMP t1 FROM f WHERE x > 1").statusmessage == "SELECT 1"
    run("SELECT x, y INTO TEMPORARY TABLE t2 FROM f UNION ALL SELECT 9, 9 ORDER BY 1")
    assert rows(connection, "SELECT * FROM t2 ORDER BY 1") == [(1, 2), (3, 4), (9, 9)]
    run("WITH w AS (SELECT 1 AS a) SELECT a INTO pg_temp.t3 FROM w")
    assert rows(connection, "SELECT * FROM t1, t3") == [(3, 1)]
    run('SELECT * INTO "Lasting" FROM f')
    with psycopg.connect(connection.info.dsn, autocommit=True) as other:
        assert rows(other, 'SELECT count(*) FROM "Lasting"') == [(2,)]
    run('DROP TABLE "Lasting"')
    with pytest.raises(errors.DuplicateTable):
        run("SELECT 1 INTO TEMP t1")
    for text in (
        "SELECT * FROM (SELECT 1 INTO q) x",
        "SELECT 1 UNION SELECT 2 INTO q",
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1 INTO q",
    ):
        with pytest.raises(errors.SyntaxError) as told:
            run(text)
        assert told.value.diag.message_primary == "SELECT ... INTO is not allowed here"
