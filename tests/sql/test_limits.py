"""Hostile and huge statements: an answer or a clear error, never a crash."""

from __future__ import annotations

import pytest

from remuda.errors import LimitExceeded, RemudaError, SqlSyntaxError, UndefinedFunction
from remuda.limits import STATEMENT_LENGTH_MAX
from remuda.plan.expression import InList, Literal
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse, split_script

DEPTH = 5000

NESTED = {
    "parentheses": "select " + "(" * DEPTH + "1" + ")" * DEPTH,
    "calls": "select " + "abs(" * DEPTH + "1" + ")" * DEPTH,
    "minus": "select " + "- " * DEPTH + "1",
    "not": "select " + "not " * DEPTH + "true",
    "case": "select " + "case when true then " * DEPTH + "1" + " end" * DEPTH,
    "sum": "select " + "1 + " * DEPTH + "1",
    "subqueries": "select * from " + "(" * DEPTH + "select 1" + ")" * DEPTH,
    "concatenation": "select 'a'" + " || 'a'" * DEPTH,
    "brackets": "select " + "[" * DEPTH,
    "casts": "select 1" + "::int" * DEPTH,
}


@pytest.mark.parametrize("name", list(NESTED))
def test_deep_nesting_is_refused(name, catalog):
    with pytest.raises((LimitExceeded, SqlSyntaxError)) as caught:
        bind(parse(NESTED[name]), catalog)
    assert caught.value.statement == NESTED[name]


@pytest.mark.parametrize("depth", [10, 60, 100])
def test_moderate_nesting_is_fine(depth, catalog):
    bind(parse("select " + "(" * depth + "1" + ")" * depth), catalog)
    bind(parse("select " + "abs(" * depth + "1" + ")" * depth), catalog)
    bind(parse("select " + "1 + " * depth + "1"), catalog)


def test_long_chains_are_not_deep(catalog):
    ands = " and ".join(f"id <> {n}" for n in range(3000))
    bind(parse(f"select id from flights where {ands}"), catalog)
    unions = " union all ".join(["select 1"] * 500)
    bind(parse(unions), catalog)


def test_in_list_of_10000(catalog):
    values = ", ".join(map(str, range(10_000)))
    bound = bind(parse(f"select id from flights where id in ({values})"), catalog)
    condition = bound.plan.input.condition
    assert isinstance(condition, InList)
    assert len(condition.values) == 10_000
    assert all(
        isinstance(v, Literal) and v.type == condition.operand.type for v in condition.values
    )


def test_one_megabyte_of_text(catalog):
    bound = bind(parse("select '" + "x" * 1_000_000 + "'"), catalog)
    assert len(bound.plan.expressions[0].value) == 1_000_000


def test_too_long():
    with pytest.raises(LimitExceeded, match="the limit is"):
        parse("select '" + "x" * STATEMENT_LENGTH_MAX + "'")


def test_common_tables_cannot_explode(catalog):
    parts = ["a0 as (select 1 x)"]
    parts += [f"a{n} as (select a.x from a{n - 1} a, a{n - 1} b)" for n in range(1, 40)]
    with pytest.raises(LimitExceeded, match="relations"):
        bind(parse("with " + ", ".join(parts) + " select * from a39"), catalog)


@pytest.mark.parametrize(
    "statement",
    ["\x00", "select \x01upper(1)", ";", "", "  -- nothing", "/* */", "select \ufffe", "\u202e",
     "select $$x", "select 1 from \"\"", "``", "$", "?", "(", ")", "select (", "explain",
     "sink", "insert", "with", "create", "drop", "show", "values", "select * from (values) x",
     "select 1 where", "insert into", "create table", "select extract(", "select cast(1 as",
     "select interval", "select case", "select 1 limit 99999999999999999999", "select 1e999999999"],
)  # fmt: skip
def test_hostile_text(statement, catalog):
    with pytest.raises(RemudaError) as caught:
        bind(parse(statement), catalog)
    assert caught.value.sqlstate != "XX000"
    assert str(caught.value)


def test_quoted_names_may_be_anything(catalog):
    bound = bind(parse('select 1 as "a""b; drop table x --", 2 as "ünï", 3 as "SELECT"'), catalog)
    assert bound.names == ('a"b; drop table x --', "ünï", "SELECT")


def test_script():
    script = "select 1; ; show tables; -- only a comment\n select ';' ; explain select 2;"
    statements = split_script(script)
    assert [text for _, text in statements] == [
        "select 1",
        "show tables",
        "-- only a comment\n select ';'",
        "explain select 2",
    ]
    assert all(script[start:].startswith(text) for start, text in statements)
    assert [parse(text).reads_only for _, text in statements] == [True] * 4


def test_split_does_not_parse():
    assert split_script("selec 1; select 2") == [(0, "selec 1"), (9, "select 2")]


def test_only_one_statement():
    with pytest.raises(SqlSyntaxError, match="only one statement"):
        parse("select 1; select 2")
    assert parse("select 1;").parameters == 0


def test_parameters_are_numbered_as_written(catalog):
    bound = bind(
        parse("select id from flights where dest = ? and price < ?::decimal(5,1) limit ?"), catalog
    )
    assert [str(t) for t in bound.parameter_types] == ["VARCHAR", "DECIMAL(5,1)", "BIGINT"]


def test_known_parameter_types_win(catalog):
    from remuda.datatypes.sql import INTEGER  # noqa: PLC0415

    bound = bind(parse("select ?"), catalog, [INTEGER])
    assert bound.parameter_types == (INTEGER,)


def test_function_names_are_not_reserved(catalog):
    bound = bind(parse("with upper (sum) as (select 1) select sum from upper"), catalog)
    assert bound.names == ("sum",)
    with pytest.raises(UndefinedFunction, match=r"function s.upper\(integer\) does not exist"):
        bind(parse("select s.upper(1)"), catalog)
