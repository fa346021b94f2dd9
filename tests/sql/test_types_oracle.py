"""Result types and folded constants against DuckDB, where both dialects define the same."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.sql import Kind
from remuda.plan.expression import Literal
from remuda.plan.logical import Project
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse

COLUMNS = {
    "t": "TINYINT", "s": "SMALLINT", "i": "INTEGER", "b": "BIGINT", "f": "REAL",
    "d": "DOUBLE PRECISION", "n": "DECIMAL(15,2)", "m": "DECIMAL(9,4)",
}  # fmt: skip
NAMES = {"FLOAT": "REAL", "DOUBLE": "DOUBLE PRECISION"}


@pytest.fixture(scope="module")
def numbers(catalog):
    definitions = ", ".join(f"{name} {t}" for name, t in COLUMNS.items())
    other = type(catalog)()
    other.create(f"create table numbers (k int primary key, {definitions})")
    with duckdb.connect() as connection:
        connection.execute(f"create table numbers (k int, {definitions})")
        yield other, connection


def types_of(numbers, expression):
    catalog, connection = numbers
    text = f"select {expression} from numbers"
    ours = str(bind(parse(text), catalog).plan.output[0].type)
    theirs = str(connection.execute(text).description[0][1])
    return ours, NAMES.get(theirs, theirs)


@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_comparisons_bind_for_all_pairs(left, right, numbers):
    assert types_of(numbers, f"{left} < {right}") == ("BOOLEAN", "BOOLEAN")


@pytest.mark.parametrize("operator", ["+", "-"])
@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_sums(operator, left, right, numbers):
    ours, theirs = types_of(numbers, f"{left} {operator} {right}")
    pair = {COLUMNS[left], COLUMNS[right]}
    if "REAL" in pair and len(pair) > 1 and ours == "DOUBLE PRECISION":
        assert theirs in ("REAL", "DOUBLE PRECISION")  # PostgreSQL: real + integer is double
    elif "DECIMAL" in ours and not pair <= {"DECIMAL(15,2)", "DECIMAL(9,4)"}:
        assert "DECIMAL" in theirs  # integers become decimals of other widths in DuckDB
    else:
        assert ours == theirs


@pytest.mark.parametrize("left", ["t", "s", "i", "b", "n", "m", "d"])
@pytest.mark.parametrize("right", ["n", "m", "d"])
def test_common_type_of_coalesce(left, right, numbers):
    ours, theirs = types_of(numbers, f"coalesce({left}, {right})")
    assert ours.split("(")[0] == theirs.split("(")[0]


def folded(text, catalog):
    plan = bind(parse(f"select {text}"), catalog).plan
    assert isinstance(plan, Project)
    literal = plan.expressions[0]
    assert isinstance(literal, Literal)
    return literal


DAYS = st.dates(datetime.date(1600, 1, 1), datetime.date(2400, 1, 1))


@settings(max_examples=60, deadline=None)
@given(day=DAYS, months=st.integers(-500, 500), days=st.integers(-500, 500))
def test_date_plus_interval(day, months, days, oracle_connection, catalog):
    text = f"date '{day}' + interval '{months} months {days} days'"
    expected = oracle_connection.execute(
        f"select date '{day}' + interval ({months}) month + interval ({days}) day"
    ).fetchone()[0]
    micros = folded(text, catalog).value
    assert datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros) == expected  # noqa: DTZ001


@settings(max_examples=60, deadline=None)
@given(value=st.decimals(-(10**9), 10**9, places=4, allow_nan=False), scale=st.integers(0, 4))
def test_decimal_casts(value, scale, oracle_connection, catalog):
    text = f"cast({value:f} as decimal(18,{scale}))"
    expected = oracle_connection.execute(f"select {text}").fetchone()[0]
    found = folded(text, catalog)
    assert found.type.kind is Kind.DECIMAL
    assert Decimal(found.value).scaleb(-scale) == expected


@pytest.fixture(scope="module")
def oracle_connection():
    with duckdb.connect() as connection:
        yield connection
