"""Drill's dialect is rewritten into PostgreSQL's, and nothing else is touched."""

from __future__ import annotations

import pytest

from remuda.catalog.catalog import Catalog
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema, ViewDefinition
from remuda.errors import NotSupported, RemudaError, SqlSyntaxError, UndefinedMap, UndefinedSchema
from remuda.sql.drill.dialect import in_postgres
from remuda.sql.drill.words import pieces_of
from remuda.sql.parsing.parser import parse

CATALOG = Catalog(
    1,
    (
        MapSchema(
            "flights",
            (Column("id", sql.BIGINT, nullable=False), Column("Delay", sql.DOUBLE)),
            ("id",),
            ("id",),
        ),
        MapSchema("a b", (Column("k", sql.BIGINT), Column("K", sql.BIGINT)), ("k",), ("k",)),
    ),
    (ViewDefinition("late", "SELECT 1", (), (), ()),),
)


def translated(text: str) -> str:
    return in_postgres(text, CATALOG)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        'SELECT id, \'a `b` "c\', "Delay" FROM flights -- `x`\nWHERE id = ?',
        "SELECT /* `a` */ a.b.c, x::text, a[1], $1 FROM t",
        "INSERT INTO flights VALUES (1, 2)",
        "SELECT * FROM information_schema.nothing",
        "SELECT * FROM (SELECT 1) AS t",
        "SELECT * FROM (SELECT 1) t, (VALUES (1)) u(x) WHERE x IN (SELECT 1)",
        "SELECT (SELECT 1), f(SELECT), x FROM sys.members",
        "",
        " ;",
    ],
)
def test_what_is_not_drills_stays(text: str) -> None:
    assert translated(text) == text
    assert "".join(piece.text for piece in pieces_of(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT `id` FROM `flights`", 'SELECT "id" FROM "flights"'),
        ("SELECT `ID`, `DELAY` FROM `Flights`", 'SELECT "id", "Delay" FROM "flights"'),
        ("SELECT `k`, `K` FROM `A B`", 'SELECT "k", "K" FROM "a b"'),
        ("SELECT id AS `ID` FROM flights ORDER BY `ID`",
         'SELECT id AS "ID" FROM flights ORDER BY "ID"'),
        ("SELECT `what``ever` , `a\"b`", 'SELECT "what`ever" , "a""b"'),
        ("SELECT * FROM (SELECT 1)", 'SELECT * FROM (SELECT 1) AS "_0"'),
        ("SELECT 1 FROM (values(1)) WHERE 1=1", 'SELECT 1 FROM (values(1)) AS "_0" WHERE 1=1'),
        ("SELECT 1 FROM t JOIN (SELECT 1) ON true JOIN (SELECT 2 FROM (SELECT 3)) u ON true",
         ('SELECT 1 FROM t JOIN (SELECT 1) AS "_0" ON true JOIN (SELECT 2 FROM (SELECT 3) AS "_1") '
          "u ON true")),
        ("EXPLAIN PLAN FOR SELECT `id` FROM flights", 'EXPLAIN  SELECT "id" FROM flights'),
        ("explain plan with implementation for SELECT 1", "EXPLAIN  SELECT 1"),
        ("USE public", "SET search_path = public"),
        ("use `remuda`.`public`;", "SET search_path = public"),
        ("USE `remuda.public`", "SET search_path = public"),
        ("ALTER SESSION SET `a.b` = 'x y'", "SET a.b = 'x y'"),
        ("ALTER SYSTEM SET a.b = true", "SET a.b = true"),
        ("ALTER SESSION RESET ALL", "RESET ALL"),
        ("ALTER SESSION RESET `a.b`", "RESET a.b"),
    ],
)  # fmt: skip
def test_rewritten(text: str, expected: str) -> None:
    assert translated(text) == expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SHOW SCHEMAS", ['SELECT "SCHEMA_NAME"', "schemata", "ORDER BY"]),
        ("SHOW DATABASES LIKE 'p%'", ['WHERE "SCHEMA_NAME" LIKE \'p%\'']),
        ("SHOW TABLES", ['"TABLE_SCHEMA" = current_schema()']),
        ("SHOW TABLES IN sys LIKE 'm%'", ["LIKE 'm%' AND \"TABLE_SCHEMA\" = 'sys'"]),
        ("DESCRIBE flights", ["\"TABLE_NAME\" = 'flights'", '"ORDINAL_POSITION"']),
        ("DESC TABLE `public`.`FLIGHTS` `DELAY`", ["= 'flights'", "= 'delay'"]),
        ("DESCRIBE late", ["= 'late'"]),
        ("DESCRIBE sys.members", ["\"TABLE_SCHEMA\" = 'sys'"]),
        ("SELECT table_name FROM INFORMATION_SCHEMA.`TABLES`",
         ['SELECT "TABLE_NAME" FROM', 'AS "TABLES"']),
        ("SELECT t.`TYPE` FROM information_schema.schemata t", ['SELECT t."TYPE"', ") t"]),
        ("SELECT version FROM sys.drillbits", ["sys.members", "AS drillbits"]),
        ("SELECT * FROM SYS.`Version` AS v", ["'1.21.0'", "AS v"]),
    ],
)  # fmt: skip
def test_rewritten_into_queries(text: str, parts: list[str]) -> None:
    made = translated(text)
    for part in parts:
        assert part in made
    parse(made)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT `a", SqlSyntaxError, "does not end"),
        ("SELECT 'a", SqlSyntaxError, "does not end"),
        ("SHOW FILES FROM dfs", NotSupported, "no files"),
        ("SHOW TABLES WHERE x", SqlSyntaxError, "WHERE"),
        ("USE", SqlSyntaxError, "name is missing"),
        ("USE dfs.tmp", UndefinedSchema, "dfs.tmp"),
        ("USE sys", NotSupported, "default schema"),
        ("USE public x", SqlSyntaxError, "'x'"),
        ("DESCRIBE nope", UndefinedMap, "nope"),
        ("DESCRIBE", SqlSyntaxError, "name is missing"),
        ("DESCRIBE nope.t", UndefinedSchema, "nope"),
        ("DESCRIBE SCHEMA x", NotSupported, "SCHEMA"),
        ("EXPLAIN PLAN x", SqlSyntaxError, "EXPLAIN PLAN"),
        ("ALTER SESSION SET", SqlSyntaxError, "name is missing"),
        ("ALTER SESSION x", SqlSyntaxError, "ALTER SESSION"),
    ],
)
def test_refused(text: str, error: type[RemudaError], message: str) -> None:
    with pytest.raises(error, match=message):
        translated(text)
