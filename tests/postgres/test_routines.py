"""Functions and operators as psql's \\df, \\sf, \\da and \\do ask for them. PostgreSQL 15 gives the
expected answers."""

from __future__ import annotations

import psycopg
import pytest

from remuda.catalog.pg_routines import oid_of, pg_operators
from remuda.sql.scope.routines import routines

DF = """
SELECT pg_catalog.pg_get_function_result(p.oid), pg_catalog.pg_get_function_arguments(p.oid),
  CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' ELSE 'func' END
FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.proname OPERATOR(pg_catalog.~) %s COLLATE pg_catalog.default
  AND pg_catalog.pg_function_is_visible(p.oid)
ORDER BY 1, 2
"""


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("abs", [(t, t, "func") for t in (
            "bigint", "double precision", "integer", "numeric", "real", "smallint")]),
        ("concat", [("text", 'VARIADIC "any"', "func")]),
        ("row_number", [("bigint", "", "window")]),
        ("json_each", [("SETOF record", "from_json json, OUT key text, OUT value json", "func")]),
        ("string_agg", [("bytea", "bytea, bytea", "agg"), ("text", "text, text", "agg")]),
        ("make_date", [("date", "year integer, month integer, day integer", "func")]),
        ("generate_subscripts", [
            ("SETOF integer", "anyarray, integer", "func"),
            ("SETOF integer", "anyarray, integer, boolean", "func")]),
        ("numeric_in", [("numeric", "cstring, oid, integer", "func")]),
    ],
)  # fmt: skip
def test_functions_are_listed_with_their_signatures(connection, name, rows):
    assert connection.execute(DF, (f"^({name})$",)).fetchall() == rows


def test_the_definition_of_a_function_is_shown(connection):
    text = "SELECT pg_get_functiondef('generate_series(int, int4)'::regprocedure)"
    (found,) = connection.execute(text).fetchone()
    assert found == (
        "CREATE OR REPLACE FUNCTION pg_catalog.generate_series(integer, integer)\n"
        " RETURNS SETOF integer\n LANGUAGE internal\n"
        " IMMUTABLE PARALLEL SAFE STRICT SUPPORT generate_series_int4_support\n"
        "AS $function$generate_series_int4$function$\n"
    )
    text = "SELECT pg_get_function_identity_arguments('make_interval'::regproc)"
    (found,) = connection.execute(text).fetchone()
    assert found == (
        "years integer, months integer, weeks integer, days integer, hours integer, mins integer,"
        " secs double precision"
    )


@pytest.mark.parametrize("asked", ["2147", "2147::oid", "'max(int4)'::regprocedure"])
def test_an_aggregate_has_no_definition(connection, asked):
    name = "max" if "max" in asked else "count"
    with pytest.raises(psycopg.errors.WrongObjectType, match=f'^"{name}" is an aggregate function'):
        connection.execute(f"SELECT pg_get_functiondef({asked})")


def test_objects_with_types_in_their_names(connection):
    found = connection.execute(
        "SELECT 'abs(int4)'::regprocedure::text, 'pg_catalog.lower( text )'::regprocedure::oid,"
        " '+(int4,int4)'::regoperator::text, '-(none, integer)'::regoperator::oid,"
        " 551::regoper::text, 1397::regproc::text, 177::regproc::text, to_regproc('abs'),"
        " to_regprocedure('abs(text)'), 'max(timestamp with time zone)'::regprocedure::oid"
    ).fetchone()
    assert found == (
        "abs(integer)", 870, "+(integer,integer)", 558, "pg_catalog.+", "pg_catalog.abs", "int4pl",
        None, None, 2127,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("SELECT 'abs'::regproc", "42725", 'more than one function named "abs"'),
        ("SELECT '+'::regoper", "42725", 'more than one operator named "+"'),
        ("SELECT 'abs(text)'::regprocedure", "42883", 'function "abs(text)" does not exist'),
        ("SELECT 'abs'::regprocedure", "22P02", "expected a left parenthesis"),
        ("SELECT 'abs(int'::regprocedure", "22P02", "expected a right parenthesis"),
    ],
)
def test_names_that_are_none_of_a_function_are_refused(connection, text, state, message):
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(text)
    assert (refused.value.sqlstate, refused.value.diag.message_primary) == (state, message)


def test_operators_are_listed_with_their_types(connection):
    found = connection.execute(
        "SELECT format_type(oprleft, NULL), format_type(oprright, NULL),"
        " format_type(oprresult, NULL), oprcode::text, oprcom = oid FROM pg_operator"
        " WHERE oprname = '#' ORDER BY oid"
    ).fetchall()
    assert found == [
        ("smallint", "smallint", "smallint", "int2xor", True),
        ("integer", "integer", "integer", "int4xor", True),
        ("bigint", "bigint", "bigint", "int8xor", True),
    ]


def test_every_listed_object_has_types_of_the_catalog_and_a_number_of_its_own():
    listed = routines()
    assert len({each.oid for each in listed}) == len(listed)
    for each in listed:
        assert [oid_of(name) for name in (each.result, *each.arguments)]
    operators = {each.oid: each for each in pg_operators()}
    assert len(operators) == len(pg_operators())
    for each in operators.values():
        assert {each.commutator, each.negator} <= operators.keys() | {0}
