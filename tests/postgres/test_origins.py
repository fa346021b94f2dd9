"""The tables and columns that RowDescription names, from which drivers tell which table a column of
a result belongs to. PostgreSQL 15 gives the expected answers."""

from __future__ import annotations

import pytest

BASE = [
    "CREATE TABLE origin_a (id INT PRIMARY KEY, price NUMERIC(10, 2), name TEXT)",
    "CREATE TABLE origin_b (a INT, name TEXT)",
    "CREATE VIEW origin_v AS SELECT name, id + 1 AS x FROM origin_a",
]
EXPRESSION = ("", 0)
A = [("origin_a", 1), ("origin_a", 2), ("origin_a", 3)]
B = [("origin_b", 1), ("origin_b", 2)]
ID, PRICE, NAME = A

UPSERT = """
INSERT INTO origin_a VALUES (1, 2, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name
RETURNING name, id
"""
UPDATE = """
UPDATE origin_b SET name = s.name FROM origin_a s WHERE s.id = a RETURNING origin_b.name, a, s.id
"""


@pytest.fixture(scope="module")
def tables(cluster):
    client = cluster.connect()
    for text in BASE:
        client.sql(text)


@pytest.fixture
def link(tables, connection):
    return connection


def told(cursor):
    """The relation and the number of each column of a result."""
    answer = cursor.pgresult
    numbers = [(answer.ftable(i), answer.ftablecol(i)) for i in range(answer.nfields)]
    names = dict(cursor.connection.execute("SELECT oid, relname FROM pg_class").fetchall())
    return [(names.get(oid, ""), column) for oid, column in numbers]


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT name, price, 42, price + 1, id::bigint FROM origin_a",
         [NAME, PRICE, *[EXPRESSION] * 3]),
        ("SELECT name, name FROM origin_a WHERE id = 1", [NAME, NAME]),
        ("SELECT * FROM origin_v", [("origin_v", 1), ("origin_v", 2)]),
        ("SELECT x FROM (SELECT x, name FROM origin_v) s", [("origin_v", 2)]),
        ("SELECT * FROM origin_a LEFT JOIN origin_b ON id = a", [*A, *B]),
        ("SELECT * FROM origin_a JOIN origin_b USING (name)", [NAME, ID, PRICE, B[0]]),
        ("SELECT * FROM origin_a FULL JOIN origin_b USING (name)", [EXPRESSION, ID, PRICE, B[0]]),
        ("WITH c AS (SELECT id, name FROM origin_a) SELECT p.name, q.id FROM c p, c q", [NAME, ID]),
        ("WITH c AS MATERIALIZED (SELECT id FROM origin_a) SELECT * FROM c", [ID]),
        ("SELECT name FROM origin_a UNION SELECT name FROM origin_b", [EXPRESSION]),
        ("SELECT name FROM origin_a EXCEPT SELECT name FROM origin_b", [EXPRESSION]),
        ("SELECT name, max(id) FROM origin_a GROUP BY name ORDER BY 1 LIMIT 3", [NAME, EXPRESSION]),
        ("SELECT DISTINCT name FROM origin_a", [NAME]),
        ("SELECT id, row_number() OVER (ORDER BY name) FROM origin_a", [ID, EXPRESSION]),
        ("SELECT (SELECT name FROM origin_a WHERE id = 1), id FROM origin_a", [EXPRESSION, ID]),
        ("SELECT q.* FROM origin_a t, LATERAL (SELECT t.id i, a FROM origin_b) q", [ID, B[0]]),
        ("SELECT n FROM (VALUES (1)) v (n)", [EXPRESSION]),
        ("SELECT relname, oid FROM pg_class LIMIT 1", [("pg_class", 2), ("pg_class", 1)]),
        ("INSERT INTO origin_b VALUES (1, 'x') RETURNING name, a, a + 1", [*B[::-1], EXPRESSION]),
        (UPSERT, [NAME, ID]),
        (UPDATE, [*B[::-1], ID]),
        ("DELETE FROM origin_b WHERE a < 0 RETURNING *", B),
        ("EXPLAIN SELECT 1", [EXPRESSION]),
        ("SHOW search_path", [EXPRESSION]),
    ],
)  # fmt: skip
def test_results_name_tables_and_columns(link, text, columns, prepare):
    assert told(link.execute(text, prepare=prepare)) == columns


def test_temporary_tables_and_renamed_columns(link):
    link.execute("CREATE TEMP TABLE origin_t (z INT, y TEXT)")
    assert told(link.execute("SELECT y, z FROM origin_t")) == [("origin_t", 2), ("origin_t", 1)]
    link.execute("ALTER TABLE origin_b RENAME COLUMN a TO c")
    try:
        assert told(link.execute("SELECT c FROM origin_b")) == [B[0]]
    finally:
        link.execute("ALTER TABLE origin_b RENAME COLUMN c TO a")


def test_cursors_name_them_too(link):
    with link.transaction():
        link.execute("DECLARE origins CURSOR FOR SELECT name FROM origin_a")
        assert told(link.execute("FETCH 1 FROM origins")) == [NAME]
