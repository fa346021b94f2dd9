"""How INTERVAL, UUID, JSON, ARRAY and ROW are bound; errors with their SQLSTATE and place."""

from __future__ import annotations

import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Namespace
from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.intervals import pack
from remuda.errors import RemudaError
from remuda.plan.expression import Call, Expression, Literal, Parameter
from remuda.plan.logical import Project
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery


class NoMaps:
    version = 1
    namespaces: tuple[Namespace, ...] = ()
    types = ()

    def find(self, _: str) -> None:
        return None

    def find_view(self, _: str) -> None:
        return None

    def names(self) -> list[str]:
        return []

    def view_names(self) -> list[str]:
        return []


def bound(text: str) -> Expression:
    statement = bind(parse(f"SELECT {text}"), NoMaps())
    assert isinstance(statement, BoundQuery)
    assert isinstance(statement.plan, Project)
    (expression,) = statement.plan.expressions
    return expression


TYPES = [
    ("interval '1 day'", sql.INTERVAL),
    ("cast('1 day 2:03' as interval hour)", sql.INTERVAL),
    ("interval '1 day' * 2", sql.INTERVAL),
    ("date '2020-01-01' + interval '1 day'", sql.TIMESTAMP),
    ("time '10:00' - time '09:00'", sql.INTERVAL),
    ("uuid '00000000-0000-0000-0000-000000000000'", sql.UUID),
    ("json '{}' -> 'a'", sql.JSON),
    ("json '{}' ->> 0", sql.VARCHAR),
    ("json '{}' ? 'a'", sql.BOOLEAN),
    ("json '{}' ? ?", sql.BOOLEAN),
    ("array[1, 2.5]", sql.array(sql.decimal(11, 1))),
    ("array[1, null]", sql.array(sql.INTEGER)),
    ("array[]::text[]", sql.array(sql.VARCHAR)),
    ("'{}'::integer array", sql.array(sql.INTEGER)),
    ("null::varchar(3)[]", sql.array(sql.varchar(3))),
    ("(array[1])[1]", sql.INTEGER),
    ("(array[1])[1:2]", sql.array(sql.INTEGER)),
    ("array[1] || 2::bigint", sql.array(sql.BIGINT)),
    ("row(1, 'a')", sql.row([("f1", sql.INTEGER), ("f2", sql.VARCHAR)])),
    ("(row(1, 'a')).f2", sql.VARCHAR),
    ("1 = any(array[1])", sql.BOOLEAN),
    ("timestamp '2020-01-01' at time zone 'UTC'", sql.TIMESTAMPTZ),
]


@pytest.mark.parametrize(("text", "expected"), TYPES, ids=[text for text, _ in TYPES])
def test_types(text: str, expected: SqlType) -> None:
    assert bound(text).type == expected


def test_literals_are_constants() -> None:
    assert bound("interval '1-2' year to month") == Literal(sql.INTERVAL, pack(14, 0, 0))
    assert bound("- interval '1 day'") == Literal(sql.INTERVAL, pack(0, -1, 0))
    assert bound("array[1, null]") == Literal(sql.array(sql.INTEGER), (1, None))
    assert bound('json \'{"b":1,"a":2}\'') == Literal(sql.JSON, '{"a": 2, "b": 1}')


def test_a_question_mark_is_an_operator_between_operands_only() -> None:
    both = bound("(?::json) ? ?")
    assert isinstance(both, Call)
    assert both.function == "?"
    parameters = [part for part in both.arguments if isinstance(part, Parameter)]
    assert [parameter.index for parameter in parameters][-1] == 1
    assert bound("? || 'a'").type == sql.VARCHAR


def test_concatenation_of_arrays_says_what_it_does() -> None:
    names = [
        call.function
        for text in ("array[?::int] || 1", "1 || array[?::int]", "array[?::int] || array[1]")
        if isinstance(call := bound(text), Call)
    ]
    assert names == ["array_append", "array_prepend", "array_cat"]


ERRORS = [
    ("interval 'x'", "22007", "'x'"),
    ("interval '99999999999 days'", "22015", "'9"),
    ("uuid 'x'", "22P02", "'x'"),
    ("json '{'", "22P02", "'{'"),
    ("'{1,x}'::int[]", "22P02", "'{1"),
    ("'{{1}}'::int[]", "0A000", "'{{1"),
    ("array[]", "42P18", ""),
    ("array[array[1]]", "0A000", ""),
    ("array[1, 'x']", "22P02", "'x'"),
    ("array[1, true]", "42804", ""),
    ("(5)[1]", "42804", "5"),
    ("(row(1)).f2", "42703", ""),
    ("(5).f1", "42809", ""),
    ("1 = any(2)", "42809", "2"),
    ("interval '1 day' + 1", "42883", ""),
    ("interval '1 day' * interval '1 day'", "42883", ""),
    ("json '1' + 1", "42883", ""),
    ("make_interval(weks => 1)", "42883", "1"),
    ("interval '1' month to year", "42601", ""),
    ("null::int[][]", "0A000", ""),
    ("json_build_array(*)", "42601", "*"),
]


@pytest.mark.parametrize(("text", "state", "at"), ERRORS, ids=[text for text, *_ in ERRORS])
def test_errors(text: str, state: str, at: str) -> None:
    with pytest.raises(RemudaError) as raised:
        bound(text)
    error = raised.value
    assert error.sqlstate == state
    if at:
        assert error.position is not None
        assert f"SELECT {text}"[error.position.offset :].startswith(at)
