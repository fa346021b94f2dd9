"""INSERT of literals, read from the text: the same as in the general way, or left to it."""

from __future__ import annotations

import pytest

from remuda.errors import RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.logical import Project, Union, Values
from remuda.sql.binder import bind
from remuda.sql.changes import literal_rows
from remuda.sql.changes.literal_rows import literal_insert
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import InsertStatement

COLUMNS = "id, carrier, origin, dep_delay, distance, price, day, at, ok, big, ratio, long_price"
DAY = "'2024-02-29'"
PLAIN = [
    (
        f"insert into flights ({COLUMNS}) values (1, 'UA', 'EWR', -5, 1.5, 12.345, {DAY}, "
        "'2024-02-29 10:00:00.5', true, 9223372036854775807, 0.5, '1234567890.1234')"
    ),
    "insert into flights (origin, id, carrier) values ('it''s', 1, ''), (';-- /* ', 2, 'x')",
    "INSERT INTO Flights(\"id\", carrier, origin) VALUES(+1,'a','b')\n,\n( 2 , 'c' , 'd' )",
    "insert into airlines values ('a', null), ('b', 'x')",
    "insert into public.airlines values ('a', 'b') ; ",
    "insert into stock values (1, 2, 3)",
    (
        "insert into flights (id, carrier, origin, ok, price, ratio, distance) "
        "values (1, 'a', 'b', FALSE, 7, 7, 7), (2, 'a', 'b', 'yes', -7.25, '1e3', '-0')"
    ),
    "insert into \"Mixed\" values (1, '日本 ✓')",
]
LEFT = [
    "insert into airlines values ('a', 'b' || 'c')",
    "insert into airlines values ('a', upper('b'))",
    "insert into airlines values ('a', e'b\\n')",
    "insert into airlines values ('a', 'b') returning carrier",
    "insert into airlines values ('a', 'b') on conflict do nothing",
    "insert into airlines values ('a', 'b'), ('c')",
    "insert into airlines values ('a', 'b', 'c')",
    "insert into airlines values ('a', $1)",
    "insert into airlines values ('a', 1)",
    "insert into airlines values (null, 'a')",
    "insert into airlines values ('a', 'b') -- comment",
    "insert into airlines values ('a', /* b */ 'b')",
    "insert into airlines select 'a', 'b'",
    "insert into airlines (name) values ('a')",
    "insert into airlines (carrier, carrier) values ('a', 'b')",
    "insert into airlines (carrier, nam) values ('a', 'b')",
    "insert into nothing values ('a', 'b')",
    "insert into stock values (1, 2, 2147483648)",
    "insert into stock values (1, 2, 1.5)",
    "insert into stock values (1, 2, 1e2)",
    "insert into stock values (1, 2, '3x')",
    "insert into stock values (1, 2, null)",
    "insert into flights (id, carrier, origin) values (1, 'ABC', 'x')",
    "insert into flights (id, carrier, origin, day) values (1, 'A', 'x', '2024-02-30')",
    "insert into stock values (1, 2, " + "1" * 5000 + ")",
    "insert into airlines values ('a', 'b'",
    "sink into airlines values ('a', 'b')",
]


@pytest.fixture(autouse=True)
def short_texts(monkeypatch):
    monkeypatch.setattr(literal_rows, "LEAST_LENGTH", 0)


def general(statement, catalog):
    bound = bind(parse(statement), catalog)
    assert isinstance(bound, InsertStatement)
    return bound


def rows_of(plan):
    match plan:
        case Values(rows=rows):
            return rows
        case Project(expressions=expressions):
            return (tuple(evaluate_constant(e) for e in expressions),)
        case Union(inputs=inputs):
            return tuple(row for child in inputs for row in rows_of(child))
    raise AssertionError(plan)


@pytest.mark.parametrize("statement", PLAIN)
def test_plain_rows_are_the_same_in_both_ways(statement, catalog):
    found = literal_insert(statement, catalog)
    wanted = general(statement, catalog)
    assert found is not None
    assert isinstance(found.source, Values)
    assert found.source.rows == rows_of(wanted.source)
    assert [(c.name, c.type) for c in found.source.output] == [
        (c.name, c.type) for c in wanted.source.output
    ]
    assert (found.schema, found.mode) == (wanted.schema, wanted.mode)


@pytest.mark.parametrize("statement", LEFT)
def test_everything_else_is_left_to_the_general_way(statement, catalog):
    assert literal_insert(statement, catalog) is None


def test_a_long_text_gives_all_of_its_rows(catalog):
    rows = [(i, i % 7, -i) for i in range(20_000)]
    statement = "insert into stock values " + ", ".join(map(str, rows))
    found = literal_insert(statement, catalog)
    assert found is not None
    assert found.source.rows == tuple(rows)


def test_the_error_of_a_wrong_row_says_where(catalog):
    rows = ", ".join(f"({i}, 1, 1)" for i in range(1000))
    statement = f"insert into stock values {rows}, (1000, 1, 'x')"
    assert literal_insert(statement, catalog) is None
    with pytest.raises(RemudaError) as caught:
        bind(parse(statement), catalog)
    assert caught.value.position.offset == statement.index("'x'")
