"""Python objects and physical values."""
# ruff: noqa: DTZ001 (TIMESTAMP has no zone)

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.intervals import Interval
from remuda.datatypes.values import (
    array_to_values,
    from_physical,
    infer_type,
    to_physical,
    values_to_array,
)
from remuda.errors import (
    DataError,
    InvalidDatetime,
    InvalidText,
    NumericOverflow,
    ObjectMismatch,
    StringTooLong,
    UndefinedType,
)

MONEY = sql.decimal(10, 2)

FITTING: list[tuple[object, SqlType, object]] = [
    (None, sql.BIGINT, None),
    (5, sql.BIGINT, 5),
    (np.int32(5), sql.SMALLINT, 5),
    (Decimal("5.0"), sql.INTEGER, 5),
    (1, sql.DOUBLE, 1.0),
    (0.1, sql.REAL, 0.10000000149011612),
    (Decimal("1.5"), MONEY, 150),
    (Decimal("-1.50000"), MONEY, -150),
    (Decimal("1e3"), MONEY, 100_000),
    (7, MONEY, 700),
    (10**35, sql.decimal(38, 2), 10**37),
    (True, sql.BOOLEAN, True),
    ("äb", sql.varchar(2), "äb"),
    (bytearray(b"a"), sql.BYTEA, b"a"),
    (dt.date(1970, 1, 2), sql.DATE, 1),
    (dt.datetime(1970, 1, 2), sql.DATE, 1),
    (dt.time(0, 0, 1, 5), sql.TIME, 1_000_005),
    (dt.datetime(1969, 12, 31, 23, 59, 59), sql.TIMESTAMP, -1_000_000),
    (dt.date(1970, 1, 2), sql.TIMESTAMP, 86_400_000_000),
    (dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), sql.TIMESTAMPTZ, 0),
]


@pytest.mark.parametrize(("value", "sql_type", "expected"), FITTING)
def test_fitting(value: object, sql_type: SqlType, expected: object) -> None:
    found = to_physical(value, sql_type)
    assert found == expected
    assert type(found) is type(expected)


UNFIT: list[tuple[object, SqlType, type[DataError]]] = [
    (1.0, sql.INTEGER, ObjectMismatch),
    (True, sql.BIGINT, ObjectMismatch),
    ("1", sql.BIGINT, ObjectMismatch),
    (2**63, sql.BIGINT, NumericOverflow),
    (-129, sql.TINYINT, NumericOverflow),
    (Decimal("1.5"), sql.BIGINT, DataError),
    (Decimal("NaN"), sql.BIGINT, DataError),
    (1.5, MONEY, ObjectMismatch),
    (Decimal("1.005"), MONEY, DataError),
    (Decimal("Infinity"), MONEY, DataError),
    (10**8, MONEY, NumericOverflow),
    (Decimal("1e999999"), MONEY, NumericOverflow),
    (1e39, sql.REAL, NumericOverflow),
    (10**400, sql.DOUBLE, NumericOverflow),
    ("abc", sql.varchar(2), StringTooLong),
    (b"a", sql.VARCHAR, ObjectMismatch),
    ("a", sql.BYTEA, ObjectMismatch),
    (1, sql.BOOLEAN, ObjectMismatch),
    (dt.datetime(2020, 1, 1, 1), sql.DATE, ObjectMismatch),
    (dt.datetime(2020, 1, 1), sql.TIMESTAMPTZ, ObjectMismatch),
    (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), sql.TIMESTAMP, ObjectMismatch),
    (dt.time(1, tzinfo=dt.UTC), sql.TIME, InvalidDatetime),
    ([1], sql.BIGINT, ObjectMismatch),
]


@pytest.mark.parametrize(("value", "sql_type", "error"), UNFIT)
def test_unfit(value: object, sql_type: SqlType, error: type[DataError]) -> None:
    with pytest.raises(error) as caught:
        to_physical(value, sql_type)
    assert str(sql_type) in caught.value.message


def test_a_mismatch_names_both_types() -> None:
    with pytest.raises(ObjectMismatch, match="expected BIGINT, found VARCHAR"):
        to_physical("x", sql.BIGINT)
    with pytest.raises(ObjectMismatch, match=r"expected BIGINT, found VARCHAR\[\]"):
        to_physical([], sql.BIGINT)
    with pytest.raises(ObjectMismatch, match="expected BIGINT, found set"):
        to_physical({1}, sql.BIGINT)


ROUND_TRIPS: dict[SqlType, st.SearchStrategy[Any]] = {
    sql.BOOLEAN: st.booleans(),
    sql.TINYINT: st.integers(-128, 127),
    sql.BIGINT: st.integers(-(2**63), 2**63 - 1),
    sql.REAL: st.floats(width=32, allow_nan=False),
    sql.DOUBLE: st.floats(allow_nan=False),
    MONEY: st.decimals("-99999999.99", "99999999.99", places=2),
    sql.decimal(38, 10): st.decimals(-(10**20), 10**20, places=10),
    sql.VARCHAR: st.text(),
    sql.BYTEA: st.binary(),
    sql.DATE: st.dates(),
    sql.TIME: st.times(),
    sql.TIMESTAMP: st.datetimes(),
    sql.TIMESTAMPTZ: st.datetimes(timezones=st.just(dt.UTC)),
    sql.INTERVAL: st.builds(
        Interval, st.integers(-99, 99), st.integers(-99, 99), st.integers(-(2**60), 2**60)
    ),
    sql.UUID: st.uuids(),
    sql.JSON: st.recursive(
        st.booleans() | st.integers() | st.text(st.characters(exclude_characters="\x00")),
        lambda inner: st.lists(inner) | st.dictionaries(st.just("k"), inner),
    ),
    sql.array(sql.BIGINT): st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    sql.array(sql.VARCHAR): st.lists(st.none() | st.text()),
    sql.array(sql.decimal(38, 10)): st.lists(st.decimals(-(10**20), 10**20, places=10)),
    sql.array(sql.UUID): st.lists(st.none() | st.uuids()),
    sql.row([("a", sql.DATE), ("b", sql.array(sql.BOOLEAN))]): st.tuples(
        st.none() | st.dates(), st.none() | st.lists(st.booleans())
    ),
}


@given(data=st.data(), sql_type=st.sampled_from(list(ROUND_TRIPS)), cut=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_objects_survive_the_way_through_arrow(
    data: st.DataObject, sql_type: SqlType, cut: int
) -> None:
    objects = data.draw(st.lists(st.none() | ROUND_TRIPS[sql_type], max_size=10))
    array = values_to_array([to_physical(o, sql_type) for o in objects], sql_type)
    array.validate(full=True)
    back = [from_physical(v, sql_type) for v in array_to_values(array[cut:], sql_type)]
    assert back == objects[cut:]


def test_inferred_types() -> None:
    for value, sql_type in (
        (1, sql.BIGINT), (True, sql.BOOLEAN), (1.5, sql.DOUBLE), ("a", sql.VARCHAR),
        (b"a", sql.BYTEA), (Decimal("1.25"), sql.decimal(38, 2)), (dt.date.min, sql.DATE),
        (dt.datetime(2020, 1, 1), sql.TIMESTAMP), (dt.datetime.now(dt.UTC), sql.TIMESTAMPTZ),
        (dt.time(), sql.TIME), (None, sql.NULL), (np.float32(1), sql.DOUBLE),
        (uuid.UUID(int=1), sql.UUID), (dt.timedelta(1), sql.INTERVAL), (Interval(1), sql.INTERVAL),
        ({"a": 1}, sql.JSON), ([1, None], sql.array(sql.BIGINT)), ([1, 1.5], sql.array(sql.DOUBLE)),
        ([], sql.array(sql.VARCHAR)), ([{"a": 1}], sql.JSON), ([[1]], sql.JSON),
        (np.array([1, 2]), sql.array(sql.BIGINT)),
    ):  # fmt: skip
        assert infer_type(value) == sql_type
    with pytest.raises(UndefinedType, match="set"):
        infer_type(set())
    with pytest.raises(UndefinedType, match="no common SQL type"):
        infer_type([1, "a"])


def test_values_that_do_not_fit_an_array_are_data_errors() -> None:
    for values, sql_type in (
        ([300], sql.TINYINT),
        (["x"], sql.BIGINT),
        ([10**40], sql.decimal(38, 0)),
    ):
        with pytest.raises(DataError):
            values_to_array(values, sql_type)


def test_dates_beyond_python_are_refused() -> None:
    with pytest.raises(InvalidDatetime):
        from_physical(10**8, sql.DATE)


@pytest.mark.parametrize("text", ["\udcff", "fine \ud800 not fine"])
def test_text_that_is_no_unicode_is_refused(text: str) -> None:
    with pytest.raises(InvalidText, match="lone surrogate"):
        to_physical(text, sql.VARCHAR)
    assert to_physical("\U0001f600 é \0", sql.VARCHAR) == "\U0001f600 é \0"
