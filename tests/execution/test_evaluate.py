"""The evaluator: expected values, PostgreSQL's errors, and DuckDB as the oracle."""

# ruff: noqa: E501, DTZ001 - cases read best on one line; TIMESTAMP has no zone
from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda import errors
from remuda.datatypes.arrow import to_external
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
    varchar,
)
from remuda.datatypes.values import array_to_values, to_physical, values_to_array
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import FUNCTIONS, Compiler, evaluate_constant
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.evaluate.volatile import VOLATILE
from remuda.plan.expression import Call, Case, Cast, ColumnRef, InList, Literal, Parameter
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS


def lit(value: object, type_: SqlType) -> Literal:
    return Literal(type_, None if value is None else to_physical(value, type_))


def value_of(expression, *parameters):
    return evaluate_constant(expression, parameters)


def call(name: str, type_: SqlType, *arguments) -> Call:
    return Call(type_, name, arguments)


def evaluate(expression, *columns: tuple[SqlType, list]):
    """Physical values of the expression over columns 0, 1, ..."""
    arrays = [values_to_array([None if v is None else to_physical(v, t) for v in vs], t)
              for t, vs in columns]  # fmt: skip
    compiler = Compiler({i: i for i in range(len(columns))})
    result = compiler.column(expression)(Batch(arrays, len(arrays[0])))
    return array_to_values(canonical(result, expression.type), expression.type)


def col(place: int, type_: SqlType) -> ColumnRef:
    return ColumnRef(type_, place, f"c{place}")


def test_every_function_of_the_catalog_is_here():
    folded_by_the_session = {name for name, f in SCALAR_FUNCTIONS.items() if not f.folds}
    assert set(SCALAR_FUNCTIONS) - folded_by_the_session <= FUNCTIONS


D2, D4 = decimal(15, 2), decimal(31, 4)
BIG = decimal(38, 0)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call("/", INTEGER, lit(-7, INTEGER), lit(2, INTEGER)), -3),
        (call("%", INTEGER, lit(-7, INTEGER), lit(2, INTEGER)), -1),
        (call("/", decimal(38, 16), lit(Decimal(1), D2), lit(Decimal(3), D2)), 3333333333333333),
        (call("/", decimal(38, 16), lit(Decimal(-2), D2), lit(Decimal(3), D2)), -6666666666666667),
        (call("*", BIG, lit(10**18, BIG), lit(-(10**19), BIG)), -(10**37)),
        (call("+", DATE, lit(dt.date(2024, 2, 28), DATE), lit(2, INTEGER)), 19783),
        (call("-", INTEGER, lit(dt.date(2024, 3, 1), DATE), lit(dt.date(2024, 2, 1), DATE)), 29),
        (call("round", decimal(14, 0), lit(Decimal("-2.50"), D2)), -3),
        (call("round", DOUBLE, lit(2.5, DOUBLE)), 2.0),
        (call("trunc", decimal(15, 1), lit(Decimal("-2.59"), D2), lit(1, INTEGER)), -25),
        (call("ceil", decimal(14, 0), lit(Decimal("-2.5"), D2)), -2),
        (call("floor", decimal(14, 0), lit(Decimal("-2.5"), D2)), -3),
        (call("substring", VARCHAR, lit("añb", VARCHAR), lit(2, INTEGER), lit(1, INTEGER)), "ñ"),
        (call("substring", VARCHAR, lit("abc", VARCHAR), lit(-1, INTEGER), lit(3, INTEGER)), "a"),
        (call("length", INTEGER, lit("añb", VARCHAR)), 3),
        (call("octet_length", INTEGER, lit("añb", VARCHAR)), 4),
        (call("lpad", VARCHAR, lit("7", VARCHAR), lit(3, INTEGER), lit("ab", VARCHAR)), "ab7"),
        (call("initcap", VARCHAR, lit("hI tHERE", VARCHAR)), "Hi There"),
        (call("split_part", VARCHAR, lit("a,b,c", VARCHAR), lit(",", VARCHAR), lit(-1, INTEGER)), "c"),
        (call("right", VARCHAR, lit("abcd", VARCHAR), lit(-1, INTEGER)), "bcd"),
        (call("concat", VARCHAR, lit("a", VARCHAR), lit(None, VARCHAR), lit("b", VARCHAR)), "ab"),
        (call("||", VARCHAR, lit("a", VARCHAR), lit(None, VARCHAR)), None),
        (call("like", BOOLEAN, lit("50%", VARCHAR), lit("50!%", VARCHAR), lit("!", VARCHAR)), True),
        (call("like", BOOLEAN, lit("50x", VARCHAR), lit("50!%", VARCHAR), lit("!", VARCHAR)), False),
        (call("like", BOOLEAN, lit("a\nb", VARCHAR), lit("a_b", VARCHAR)), True),
        (call("ilike", BOOLEAN, lit("HELLO", VARCHAR), lit("h%o", VARCHAR)), True),
        (call("greatest", INTEGER, lit(1, INTEGER), lit(None, INTEGER), lit(3, INTEGER)), 3),
        (call("coalesce", INTEGER, lit(None, INTEGER), lit(3, INTEGER), call("/", INTEGER, lit(1, INTEGER), lit(0, INTEGER))), 3),
        (call("nullif", INTEGER, lit(3, INTEGER), lit(3, INTEGER)), None),
        (call("is_distinct_from", BOOLEAN, lit(None, INTEGER), lit(3, INTEGER)), True),
        (InList(BOOLEAN, lit(1, INTEGER), (lit(2, INTEGER), lit(None, INTEGER))), None),
        (InList(BOOLEAN, lit(2, INTEGER), (lit(2, INTEGER), lit(None, INTEGER))), True),
        (call("extract", decimal(8, 6), lit("second", VARCHAR), lit(dt.datetime(2024, 1, 1, 1, 2, 3, 450000), TIMESTAMP)), 3450000),
        (call("extract", BIGINT, lit("week", VARCHAR), lit(dt.date(2021, 1, 3), DATE)), 53),
        (call("extract", BIGINT, lit("dow", VARCHAR), lit(dt.date(2024, 9, 1), DATE)), 0),
        (call("date_trunc", TIMESTAMP, lit("quarter", VARCHAR), lit(dt.date(2024, 5, 31), DATE)),
         to_physical(dt.datetime(2024, 4, 1), TIMESTAMP)),
        (call("add_interval", TIMESTAMP, lit(dt.date(2024, 1, 31), DATE), lit(1, BIGINT), lit(0, BIGINT), lit(0, BIGINT)),
         to_physical(dt.datetime(2024, 2, 29), TIMESTAMP)),
        (call("add_interval", TIME, lit(dt.time(23, 0), TIME), lit(0, BIGINT), lit(0, BIGINT), lit(7_200_000_000, BIGINT)), 3_600_000_000),
        (Cast(INTEGER, lit(2.5, DOUBLE)), 2),
        (Cast(INTEGER, lit(Decimal("2.50"), D2)), 3),
        (Cast(decimal(5, 2), lit(1.005, DOUBLE)), 101),
        (Cast(decimal(5, 1), lit(Decimal("-1.25"), D2)), -13),
        (Cast(INTEGER, lit(" 42 ", VARCHAR)), 42),
        (Cast(VARCHAR, lit(Decimal("-0.05"), D2)), "-0.05"),
        (Cast(VARCHAR, lit(1e15, DOUBLE)), "1e+15"),
        (Cast(VARCHAR, lit(0.1, REAL)), "0.1"),
        (Cast(VARCHAR, lit(dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), TIMESTAMPTZ)), "2024-01-02 03:04:05+00"),
        (Cast(varchar(2), lit("añb", VARCHAR)), "añ"),
        (Cast(VARCHAR, lit(b"\x01\xff", BYTEA)), "\\x01ff"),
        (Cast(DATE, lit("2024-02-29", VARCHAR)), 19782),
        (Cast(INTEGER, Literal(NULL, None)), None),
        (Parameter(BIG, 0), 10**30),
    ],
)  # fmt: skip
def test_value(expression, expected):
    assert value_of(expression, 10**30) == expected


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (call("+", INTEGER, lit(2**31 - 1, INTEGER), lit(1, INTEGER)), errors.NumericOverflow, "integer out of range"),
        (call("*", BIGINT, lit(2**62, BIGINT), lit(2, BIGINT)), errors.NumericOverflow, "bigint out of range"),
        (call("/", BIGINT, lit(-(2**63), BIGINT), lit(-1, BIGINT)), errors.NumericOverflow, "bigint out of range"),
        (call("neg", SMALLINT, lit(-(2**15), SMALLINT)), errors.NumericOverflow, "smallint out of range"),
        (call("*", BIG, lit(10**20, BIG), lit(10**20, BIG)), errors.NumericOverflow, "numeric field overflow"),
        (call("*", DOUBLE, lit(1e300, DOUBLE), lit(1e300, DOUBLE)), errors.NumericOverflow, "value out of range: overflow"),
        (call("/", INTEGER, lit(1, INTEGER), lit(0, INTEGER)), errors.DivisionByZero, "division by zero"),
        (call("/", decimal(38, 16), lit(1, D2), lit(0, D2)), errors.DivisionByZero, "division by zero"),
        (call("/", DOUBLE, lit(1.0, DOUBLE), lit(0.0, DOUBLE)), errors.DivisionByZero, "division by zero"),
        (Cast(INTEGER, lit("abc", VARCHAR)), errors.InvalidText, 'invalid input syntax for type integer: "abc"'),
        (Cast(SMALLINT, lit(40000, INTEGER)), errors.NumericOverflow, "smallint out of range"),
        (Cast(INTEGER, lit(float("nan"), DOUBLE)), errors.NumericOverflow, "integer out of range"),
        (Cast(decimal(3, 1), lit(Decimal("99.95"), D2)), errors.NumericOverflow, "numeric field overflow"),
        (Cast(DATE, lit("2024-02-30", VARCHAR)), errors.InvalidDatetime, "2024-02-30"),
        (call("like", BOOLEAN, lit("a", VARCHAR), lit("a\\", VARCHAR)), errors.DataError, "must not end with escape"),
        (call("sqrt", DOUBLE, lit(-1.0, DOUBLE)), errors.DataError, "square root of a negative"),
        (call("ln", DOUBLE, lit(0.0, DOUBLE)), errors.DataError, "logarithm of zero"),
    ],
)  # fmt: skip
def test_error(expression, error, message):
    with pytest.raises(error, match=None) as caught:
        value_of(expression)
    assert message in caught.value.message


def test_division_by_zero_counts_only_where_both_sides_have_values():
    divided = call("/", INTEGER, col(0, INTEGER), col(1, INTEGER))
    assert evaluate(divided, (INTEGER, [None, 4]), (INTEGER, [0, 2])) == [None, 2]
    with pytest.raises(errors.DivisionByZero):
        evaluate(divided, (INTEGER, [1, 4]), (INTEGER, [0, 2]))


def test_case_and_logic_evaluate_only_rows_that_reach_them():
    x = col(0, INTEGER)
    inverse = call("/", INTEGER, lit(12, INTEGER), x)
    not_zero = call("<>", BOOLEAN, x, lit(0, INTEGER))
    guarded = Case(INTEGER, ((not_zero, inverse),), lit(-1, INTEGER))
    assert evaluate(guarded, (INTEGER, [0, 3, None, 4])) == [-1, 4, -1, 3]
    large = call(">", BOOLEAN, inverse, lit(3, INTEGER))
    assert evaluate(call("and", BOOLEAN, not_zero, large), (INTEGER, [0, 3, None, 4])) == [
        False, True, None, False]  # fmt: skip
    zero = call("=", BOOLEAN, x, lit(0, INTEGER))
    assert evaluate(call("or", BOOLEAN, zero, large), (INTEGER, [0, 3, None, 4])) == [
        True, True, None, False]  # fmt: skip
    batch = Batch([pa.array([0, 3, None, 4], pa.int32())], 4)
    predicate = Predicate(call("and", BOOLEAN, not_zero, large), Compiler({0: 0}))
    assert predicate.select(batch).tolist() == [1]


def test_long_decimals_stay_64_bit_while_they_fit():
    product = call("*", D4, col(0, D2), col(1, D2))
    arrays = [pa.array([10**9, None, 5]), pa.array([100, 7, -3])]
    result = Compiler({0: 0, 1: 1}).column(product)(Batch(arrays, 3))
    assert result.type == pa.int64()
    assert result.to_pylist() == [10**11, None, -15]
    wide = Compiler({0: 0, 1: 1}).column(product)(
        Batch([pa.array([10**14]), pa.array([10**14])], 1)
    )
    assert pa.types.is_decimal128(wide.type)
    assert array_to_values(canonical(wide, D4), D4) == [10**28]


# --- DuckDB as the oracle --------------------------------------------------------------------

INTS = st.one_of(st.none(), st.integers(-100, 100), st.sampled_from([-(2**31), 2**31 - 1]))
FLOATS = st.one_of(st.none(), st.floats(allow_infinity=False, width=32), st.just(float("nan")))
DECIMALS = st.one_of(st.none(), st.decimals(-(10**9), 10**9, places=2, allow_nan=False))
TEXTS = st.one_of(st.none(), st.text("aAbñ%_ ", max_size=6))
DATES = st.one_of(st.none(), st.dates(dt.date(1600, 1, 1), dt.date(2400, 1, 1)))

SQL_OPERATORS = {
    "is_distinct_from": "is distinct from",
    "is_not_distinct_from": "is not distinct from",
}
ORACLE = duckdb.connect(config={"threads": 1})


def duck(sql: str, columns) -> list:
    arrays = [
        to_external(values_to_array([None if v is None else to_physical(v, t) for v in vs], t), t)
        for t, vs in columns
    ]
    data = pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
    ORACLE.register("data", data)
    try:
        return [row[0] for row in ORACLE.execute(f"select {sql} from data").fetchall()]
    finally:
        ORACLE.unregister("data")


def same(ours: list, theirs: list, type_: SqlType) -> None:
    expected = [None if v is None else to_physical(v, type_) for v in theirs]
    for left, right in zip(ours, expected, strict=True):
        if isinstance(left, float) and isinstance(right, float):
            assert np.isclose(left, right, equal_nan=True, rtol=1e-6), (ours, expected)
        else:
            assert left == right, (ours, expected)


def pairs(values):
    return st.lists(st.tuples(values, values), min_size=1, max_size=12)


def check(expression, sql, *columns):
    same(evaluate(expression, *columns), duck(sql, columns), expression.type)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["=", "<>", "<", "<=", ">", ">=", *SQL_OPERATORS]),
    st.one_of(
        *(pairs(v).map(lambda rows, t=t: (t, rows))
          for t, v in [(INTEGER, INTS), (DOUBLE, FLOATS), (D2, DECIMALS), (VARCHAR, TEXTS), (DATE, DATES)])
    ),
)  # fmt: skip
def test_comparisons_as_duckdb(name, typed):
    type_, rows = typed
    columns = [(type_, [row[i] for row in rows]) for i in (0, 1)]
    expression = call(name, BOOLEAN, col(0, type_), col(1, type_))
    sql = f"c0 {SQL_OPERATORS.get(name, name)} c1"
    check(expression, sql, *columns)
    constant = call(name, BOOLEAN, col(0, type_), lit(columns[1][1][0], type_))
    assert evaluate(constant, columns[0]) == [
        evaluate(expression, (type_, [v]), (type_, columns[1][1][:1]))[0] for v in columns[0][1]
    ]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from("+-*"), pairs(DECIMALS))
def test_decimal_arithmetic_as_duckdb(name, rows):
    columns = [(D2, [row[i] for row in rows]) for i in (0, 1)]
    type_ = decimal(30, 4) if name == "*" else decimal(16, 2)
    if name == "*":  # DuckDB refuses products beyond 18 digits that fit our type
        rows = [(a and round(a / 10**4, 2), b and round(b / 10**4, 2)) for a, b in rows]
        columns = [(D2, [row[i] for row in rows]) for i in (0, 1)]
    sql = f"c0 {name} c1"
    check(call(name, type_, col(0, D2), col(1, D2)), sql, *columns)


@settings(deadline=None, max_examples=60)
@given(pairs(st.decimals(-(10**9), 10**9, places=2, allow_nan=False).filter(bool)))
def test_decimal_division_is_exact(rows):
    columns = [(D2, [row[i] for row in rows]) for i in (0, 1)]
    ours = evaluate(call("/", decimal(38, 16), col(0, D2), col(1, D2)), *columns)
    for (left, right), got in zip(rows, ours, strict=True):
        a, b = int(left * 100) * 10**16, int(right * 100)
        quotient = (2 * abs(a) + abs(b)) // (2 * abs(b))
        assert got == (quotient if (a < 0) == (b < 0) else -quotient)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["and", "or"]), pairs(st.sampled_from([None, True, False])))
def test_logic_as_duckdb(name, rows):
    columns = [(BOOLEAN, [row[i] for row in rows]) for i in (0, 1)]
    check(call(name, BOOLEAN, col(0, BOOLEAN), col(1, BOOLEAN)), f"c0 {name} c1", *columns)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([
        ("like", "c0 like c1", BOOLEAN), ("starts_with", "starts_with(c0, c1)", BOOLEAN),
        ("||", "c0 || c1", VARCHAR), ("concat", "concat(c0, c1)", VARCHAR),
        ("coalesce", "coalesce(c0, c1)", VARCHAR), ("nullif", "nullif(c0, c1)", VARCHAR),
        ("greatest", "greatest(c0, c1)", VARCHAR), ("least", "least(c0, c1)", VARCHAR),
        ("trim", "trim(c0, c1)", VARCHAR), ("position", "strpos(c1, c0)", INTEGER),
    ]),
    pairs(TEXTS),
)  # fmt: skip
def test_text_as_duckdb(function, rows):
    name, sql, type_ = function
    columns = [(VARCHAR, [row[i] for row in rows]) for i in (0, 1)]
    check(call(name, type_, col(0, VARCHAR), col(1, VARCHAR)), sql, *columns)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "decade",
                     "century", "isoyear"]),
    st.lists(DATES, min_size=1, max_size=12),
)  # fmt: skip
def test_extract_as_duckdb(field, values):
    expression = call("extract", BIGINT, lit(field, VARCHAR), col(0, DATE))
    check(expression, f"extract('{field}' from c0)", (DATE, values))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["year", "quarter", "month", "week", "day", "decade"]),
    st.integers(-50, 50),
    st.lists(DATES, min_size=1, max_size=12),
)
def test_date_arithmetic_as_duckdb(field, months, values):
    truncated = call("date_trunc", TIMESTAMP, lit(field, VARCHAR), col(0, DATE))
    check(truncated, f"date_trunc('{field}', c0)::timestamp", (DATE, values))
    moved = call(
        "add_interval", TIMESTAMP, col(0, DATE), lit(months, BIGINT), lit(1, BIGINT), lit(0, BIGINT)
    )
    check(moved, f"c0 + interval ({months}) month + interval 1 day", (DATE, values))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_processes_forked_from_one_have_random_numbers_of_their_own() -> None:
    found = set()
    for _ in range(2):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writer, VOLATILE["random"](1)[0].as_py().hex().encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as answer:
            found.add(answer.read())
        assert os.waitpid(child, 0)[1] == 0
    assert b"" not in found
    assert len(found) == 2
