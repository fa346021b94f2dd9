"""Engine and external Arrow forms: every accepted input, every refusal."""
# ruff: noqa: DTZ001 (TIMESTAMP has no zone)

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import (
    engine_type,
    external_type,
    from_arrow_type,
    to_engine,
    to_external,
)
from remuda.datatypes.sql import SqlType
from remuda.errors import (
    DataError,
    InvalidDatetime,
    NumericOverflow,
    RemudaError,
    StringTooLong,
    TypeMismatch,
    UndefinedType,
)

SHORT = sql.decimal(5, 2)
LONG = sql.decimal(30, 2)
D = Decimal

ACCEPTED: list[tuple[pa.Array, SqlType, list[Any]]] = [
    (pa.array([1, None], pa.uint8()), sql.BIGINT, [1, None]),
    (pa.array([1.0, None]), sql.INTEGER, [1, None]),
    (pa.array([D("3.00")], pa.decimal128(5, 2)), sql.SMALLINT, [3]),
    (pa.array([1, 2**31]), sql.DOUBLE, [1.0, float(2**31)]),
    (pa.array([0.1]), sql.REAL, [0.10000000149011612]),
    (pa.array([1, None], pa.uint64()), SHORT, [100, None]),
    (pa.array([D("1.5"), None, D("-999.99")]), SHORT, [150, None, -99999]),
    (pa.array([D("1.500")], pa.decimal256(50, 3)), SHORT, [150]),
    (pa.array([D("1.5")], pa.decimal32(3, 1)), SHORT, [150]),
    (pa.array([D("1.5")], pa.decimal64(10, 2)), LONG, [D("1.50")]),
    (pa.array(["a", None], pa.large_string()), sql.VARCHAR, ["a", None]),
    (pa.array(["a", None], pa.string_view()), sql.varchar(1), ["a", None]),
    (pa.array(["a", None, "a"]).dictionary_encode(), sql.VARCHAR, ["a", None, "a"]),
    (pa.array([b"ab"], pa.binary(2)), sql.BYTEA, [b"ab"]),
    (pa.array([86_400_000], pa.date64()), sql.DATE, [dt.date(1970, 1, 2)]),
    (pa.array([dt.datetime(2020, 1, 1), None]), sql.DATE, [dt.date(2020, 1, 1), None]),
    (pa.array([1], pa.time32("s")), sql.TIME, [dt.time(0, 0, 1)]),
    (pa.array([1], pa.timestamp("s")), sql.TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    (pa.array([1], pa.date32()), sql.TIMESTAMP, [dt.datetime(1970, 1, 2)]),
    (pa.array([None, None]), SHORT, [None, None]),
    (pa.array([True, None]), sql.BOOLEAN, [True, None]),
]


@pytest.mark.parametrize(("array", "sql_type", "expected"), ACCEPTED)
def test_accepted(array: pa.Array, sql_type: SqlType, expected: list[Any]) -> None:
    for given, wanted in (
        (array, expected),
        (pa.concat_arrays([array, array])[1:], [*expected, *expected][1:]),
        (pa.chunked_array([array, array]), [*expected, *expected]),
    ):
        result = to_engine(given, sql_type)
        result.validate(full=True)
        assert result.type == engine_type(sql_type)
        assert result.to_pylist() == wanted


REFUSED: list[tuple[pa.Array, SqlType, type[RemudaError]]] = [
    (pa.array([300]), sql.TINYINT, NumericOverflow),
    (pa.array([2**63], pa.uint64()), sql.BIGINT, NumericOverflow),
    (pa.array([1.5]), sql.BIGINT, NumericOverflow),
    (pa.array([True]), sql.BIGINT, TypeMismatch),
    (pa.array(["1"]), sql.BIGINT, TypeMismatch),
    (pa.array([1]), sql.VARCHAR, TypeMismatch),
    (pa.array([1]), sql.BOOLEAN, TypeMismatch),
    (pa.array([1e39]), sql.REAL, NumericOverflow),
    (pa.array([1000]), SHORT, NumericOverflow),
    (pa.array([None, D("1000.00")]), SHORT, NumericOverflow),
    (pa.array([D("99999999999999999999.00")], pa.decimal128(38, 2)), SHORT, NumericOverflow),
    (pa.array([D("1.005")]), SHORT, NumericOverflow),
    (pa.array([1.5]), SHORT, TypeMismatch),
    (pa.array(["äöü"]), sql.varchar(2), StringTooLong),
    (pa.array([dt.datetime(2020, 1, 1, 5)]), sql.DATE, InvalidDatetime),
    (pa.array([1], pa.timestamp("ns")), sql.TIMESTAMP, InvalidDatetime),
    (pa.array([1], pa.timestamp("us")), sql.TIMESTAMPTZ, TypeMismatch),
    (pa.array([1], pa.timestamp("us", "UTC")), sql.TIMESTAMP, TypeMismatch),
    (pa.array([[1]]), sql.BIGINT, TypeMismatch),
]


@pytest.mark.parametrize(("array", "sql_type", "error"), REFUSED)
def test_refused(array: pa.Array, sql_type: SqlType, error: type[RemudaError]) -> None:
    with pytest.raises(error) as caught:
        to_engine(array, sql_type)
    assert str(sql_type) in str(caught.value) or isinstance(caught.value, DataError)


def test_short_decimals_go_out_and_come_back() -> None:
    unscaled = [None, 0, 1, -1, 12345, -99999]
    array = pa.array(unscaled, pa.int64())
    for given in (array, array.slice(1), array.slice(3, 2), array.slice(6)):
        outside = to_external(given, SHORT)
        outside.validate(full=True)
        assert outside.type == external_type(SHORT) == pa.decimal128(5, 2)
        assert outside.to_pylist() == [
            None if v is None else D(v).scaleb(-2) for v in given.to_pylist()
        ]
        assert to_engine(outside, SHORT).equals(given)


def test_the_type_of_an_arrow_type() -> None:
    for sql_type in (
        sql.BOOLEAN, sql.TINYINT, sql.BIGINT, sql.REAL, sql.DOUBLE, SHORT, LONG, sql.VARCHAR,
        sql.BYTEA, sql.DATE, sql.TIME, sql.TIMESTAMP, sql.TIMESTAMPTZ, sql.INTERVAL, sql.UUID,
        sql.JSON, sql.array(sql.UUID), sql.array(SHORT),
    ):  # fmt: skip
        assert from_arrow_type(external_type(sql_type)) == sql_type
    assert from_arrow_type(pa.dictionary(pa.int8(), pa.string())) == sql.VARCHAR
    assert from_arrow_type(pa.decimal128(5, -2)) == sql.decimal(7, 0)
    with pytest.raises(UndefinedType, match="list"):
        from_arrow_type(pa.list_(pa.list_(pa.int8())))
    with pytest.raises(UndefinedType, match="struct"):
        from_arrow_type(pa.struct([("a", pa.int8())]))
