"""The column ``tableoid``, and vectors, which count from 0. PostgreSQL 15 gives the expected
answers."""

from __future__ import annotations

import psycopg
import pytest

DD = """
SELECT DISTINCT tt.name, tt.object, d.description FROM (
  SELECT pgc.oid AS oid, pgc.tableoid AS tableoid, n.nspname AS nspname,
    CAST(pgc.conname AS pg_catalog.text) AS name, CAST('constraint' AS pg_catalog.text) AS object
  FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_class c ON c.oid = pgc.conrelid
    LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
) AS tt JOIN pg_catalog.pg_description d
  ON (tt.oid = d.objoid AND tt.tableoid = d.classoid AND d.objsubid = 0)
"""
"""A part of psql's \\dd."""


OUTER = """
SELECT i.id, j.tableoid::regclass::text FROM items i LEFT JOIN items j ON j.id = i.id AND j.id = 2
ORDER BY 1
"""
CORRELATED = """
SELECT count(*) FROM items i WHERE EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = i.tableoid)
"""


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT tableoid::regclass::text FROM items", [("items",), ("items",)]),
        ("SELECT i.tableoid = 'items'::regclass FROM items i WHERE id = 1", [(True,)]),
        ("SELECT DISTINCT tableoid::regclass::text FROM pg_class", [("pg_class",)]),
        (OUTER, [(1, None), (2, "items")]),
        (CORRELATED, [(2,)]),
        ("SELECT * FROM (SELECT id FROM items WHERE tableoid > 0) t ORDER BY 1", [(1,), (2,)]),
        (DD, []),
    ],
)
def test_rows_know_their_table(connection, items, text, rows):
    assert connection.execute(text).fetchall() == rows


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT tableoid FROM items i, items j", "42702"),
        ("SELECT ctid FROM items", "0A000"),
        ("UPDATE items i SET name = 'x' WHERE i.ctid = '(0,1)'", "0A000"),
        ("DELETE FROM items WHERE xmin = 3", "0A000"),
        ("SELECT ctid FROM (SELECT 1) t", "42703"),
        ("SELECT tableoid FROM (SELECT 1) t", "42703"),
        ("SELECT tableoid FROM cheap", "42703"),
        ("SELECT t.tableoid FROM generate_series(1, 2) t", "42703"),
    ],
)
def test_other_relations_have_no_table(connection, items, text, state):
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(text)
    assert refused.value.sqlstate == state


def test_vectors_count_from_0(connection, items):
    found = connection.execute(
        "SELECT k, indkey[k] FROM pg_index, generate_subscripts(indkey, 1) AS k"
        " WHERE indrelid = 'items'::regclass ORDER BY 2"
    ).fetchall()
    assert found == [(0, 1), (0, 2)]
    found = connection.execute(
        "SELECT generate_subscripts('7 8 9'::int2vector, 1, true), '7 8'::oidvector::text"
    ).fetchall()
    assert found == [(2, "7 8"), (1, "7 8"), (0, "7 8")]
    assert connection.execute("SELECT generate_subscripts(ARRAY[7, 8], 1)").fetchall() == [
        (1,),
        (2,),
    ]


CATALOGS = (
    "SELECT DISTINCT table_catalog FROM information_schema.tables",
    "SELECT DISTINCT constraint_catalog FROM information_schema.table_constraints",
    "SELECT catalog_name FROM information_schema.information_schema_catalog_name",
    "SELECT datname FROM pg_database",
    "SELECT datname FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    "SELECT current_catalog",
)


@pytest.mark.parametrize("name", ["shop", "remuda", "Ünder Score"])
def test_the_database_has_the_name_that_the_client_gave(connect, items, name):
    connection = connect(dbname=name)
    assert connection.execute("SELECT current_database()").fetchone() == (name,)
    for text in CATALOGS:
        assert connection.execute(text).fetchall() == [(name,)], text
    found = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'items'"
    where = " AND table_catalog = current_database()"
    assert connection.execute(found + where).fetchone() == (4,)


def test_names_may_begin_with_the_name_of_the_database(connect):
    """dbt writes all of them so."""
    shop, other = connect(dbname="shop"), connect(dbname="Other")
    shop.execute("SET application_name = 'changed'")
    shop.execute('CREATE TABLE "shop"."public"."named" (id BIGINT PRIMARY KEY)')
    with shop.transaction():
        shop.execute("INSERT INTO shop.public.named VALUES (1), (2)")
        shop.execute("DELETE FROM shop.public.named AS n WHERE n.id = 2")
    shop.execute("CREATE VIEW shop.public.seen AS SELECT id FROM shop.public.named")
    read = 'SELECT id FROM "{}".public.named'
    for connection, own, others in ((shop, "shop", "Other"), (other, "Other", "shop")):
        for _ in range(2):  # planned, and from the cache
            assert connection.execute(read.format(own)).fetchall() == [(1,)]
            assert connection.execute(read.format("remuda")).fetchall() == [(1,)]
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cross-database"):
                connection.execute(read.format(others))
        assert connection.execute("SELECT id FROM public.seen").fetchall() == [(1,)]
        named = f"SELECT '\"{own}\".public.named'::regclass::text"
        assert connection.execute(named).fetchone() == ("named",)
        for text in ("DROP TABLE {}.public.named", "COMMENT ON TABLE {}.public.named IS 'x'"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cross-database"):
                connection.execute(text.format(f'"{others}"'))
    assert "shop" not in shop.execute("SELECT pg_get_viewdef('seen'::regclass)").fetchone()[0]
    shop.execute("DROP VIEW shop.public.seen")
    shop.execute("DROP TABLE shop.public.named")


def test_one_plan_serves_sessions_with_other_names(connect):
    text = "SELECT current_database(), count(*) FROM pg_database WHERE datname = current_database()"
    for name in ("one", "other", "one"):
        connection = connect(dbname=name)
        connection.prepare_threshold = 0
        assert connection.execute(text).fetchone() == (name, 1)


@pytest.mark.parametrize("name", ["items", '"items"', '"public" . "items"', "remuda.public.ITEMS"])
def test_a_parameter_names_a_relation_as_a_literal_does(connection, items, name):
    """ADBC's get_table_schema asks so."""
    row = connection.execute("SELECT relname FROM pg_class WHERE oid = %s::regclass::oid", (name,))
    assert row.fetchone() == ("items",)
    assert connection.execute("SELECT to_regclass(%s)::text", (name,)).fetchone() == ("items",)


def test_a_parameter_that_names_no_relation_is_an_error(connection):
    for text in ("SELECT %s::regclass", "SELECT 1 FROM pg_class WHERE oid = %s::regclass::oid"):
        with pytest.raises(psycopg.errors.UndefinedTable, match='relation "none" does not exist'):
            connection.execute(text, ("none",))
    with pytest.raises(psycopg.errors.InvalidName):
        connection.execute("SELECT %s::regclass", ('"open',))
    assert connection.execute("SELECT to_regclass(%s)", ("none",)).fetchone() == (None,)
    assert connection.execute("SELECT %s::regclass::oid", ("-",)).fetchone() == (0,)
