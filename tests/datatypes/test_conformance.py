"""Rows and batches against a schema."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import RowCheck, check_batch
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    TIME,
    TINYINT,
    VARCHAR,
    decimal,
    varchar,
)
from remuda.errors import (
    NotNullViolation,
    NumericOverflow,
    ObjectMismatch,
    RowTooLarge,
    StringTooLong,
    TypeMismatch,
)
from remuda.limits import ROW_SIZE_MAX

COLUMNS = (
    Column("k", INTEGER, nullable=False),
    Column("small", TINYINT),
    Column("money", decimal(5, 2)),
    Column("big", decimal(30, 2)),
    Column("name", varchar(3)),
    Column("flag", BOOLEAN),
    Column("x", DOUBLE),
    Column("day", DATE),
    Column("at", TIME),
)
SCHEMA = MapSchema("m", COLUMNS, ("k",), ("k",))
GOOD = (1, 127, 99999, 10**29, "abc", True, 1.5, 20000, 86_399_999_999)


def with_value(name: str, value: Any) -> tuple[Any, ...]:
    row: list[Any] = list(GOOD)
    row[SCHEMA.position[name]] = value
    return tuple(row)


def test_good_rows_pass() -> None:
    check = RowCheck(SCHEMA)
    check.row(GOOD)
    check.row((1, *[None] * 8))
    check.key((1,))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("k", None, NotNullViolation),
        ("k", 2**31, NumericOverflow),
        ("k", True, ObjectMismatch),
        ("k", "1", ObjectMismatch),
        ("small", 128, NumericOverflow),
        ("money", 100000, NumericOverflow),
        ("big", 10**30, NumericOverflow),
        ("name", "abcd", StringTooLong),
        ("name", b"abc", ObjectMismatch),
        ("flag", 1, ObjectMismatch),
        ("x", 1, ObjectMismatch),
        ("at", 86_400_000_000, NumericOverflow),
    ],
)
def test_bad_values_name_map_and_column(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        RowCheck(SCHEMA).row(with_value(name, value))
    assert '"m"' in str(caught.value)
    assert f'"{name}"' in str(caught.value)


def test_rows_and_keys_of_another_width() -> None:
    check = RowCheck(SCHEMA)
    with pytest.raises(ObjectMismatch):
        check.row(GOOD[:-1])
    with pytest.raises(ObjectMismatch):
        check.key((1, 2))
    with pytest.raises(ObjectMismatch):
        check.key((None,))


def batch(**changes: list[Any]) -> pa.RecordBatch:
    arrow = engine_schema(SCHEMA)
    columns = {"k": [1, 2], **changes}
    arrays = [pa.array(columns.get(field.name, [None, None]), field.type) for field in arrow]
    return pa.record_batch(arrays, schema=arrow)


def test_batches() -> None:
    check_batch(batch(), SCHEMA)
    check_batch(batch(money=[99999, -99999], name=["abc", None]), SCHEMA)
    with pytest.raises(NotNullViolation):
        check_batch(batch(k=[1, None]), SCHEMA)
    with pytest.raises(NumericOverflow):
        check_batch(batch(money=[0, 100000]), SCHEMA)
    with pytest.raises(StringTooLong):
        check_batch(batch(name=["abcd", ""]), SCHEMA)
    with pytest.raises(TypeMismatch):
        check_batch(batch().select(["k"]), SCHEMA)


def test_a_real_is_what_four_bytes_hold() -> None:
    schema = MapSchema("m", (Column("k", INTEGER, False), Column("r", REAL)), ("k",), ("k",))
    check = RowCheck(schema)
    for good in (None, 0.0, -1.5, math.inf, -math.inf, math.nan, 3.4028234663852886e38, 2.0**-149):
        check.row((1, good))
    for bad in (1e300, -3.41e38, 0.1, 1e-300):
        with pytest.raises(NumericOverflow, match='"r"'):
            check.row((1, bad))


def test_the_size_of_a_row_is_that_of_its_texts_together() -> None:
    columns = (Column("k", INTEGER, False), Column("s", VARCHAR), Column("b", BYTEA))
    schema = MapSchema("m", columns, ("k",), ("k",))
    half = ROW_SIZE_MAX // 2
    fits = [(1, "a" * half, bytes(half)), (2, "\u00e4" * (half // 2), bytes(half)), (3, None, None)]
    too_large = [(4, "a" * half, bytes(half + 1)), (5, "\u00e4" * half, b"b")]
    check = RowCheck(schema)
    for row in fits:
        check.row(row)
    check_batch(of_rows(fits, schema), schema)
    for row in too_large:
        with pytest.raises(RowTooLarge):
            check.row(row)
        with pytest.raises(RowTooLarge):
            check_batch(of_rows([*fits, row], schema), schema)


def of_rows(rows: list[tuple[Any, ...]], schema: MapSchema) -> pa.RecordBatch:
    arrow = engine_schema(schema)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, arrow, strict=True)]
    return pa.record_batch(arrays, schema=arrow)
