"""Values of results as Python objects: from the engine's form back to the program's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from remuda.datatypes.arrow import to_engine
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import FLOAT_KINDS, INTEGER_KINDS, Kind, SqlType
from remuda.datatypes.times.calendar import date_text, timestamp_text, zoned_text
from remuda.datatypes.values import PhysicalValue, array_to_values, from_physical
from remuda.errors import InvalidDatetime

Decoder: TypeAlias = Callable[[PhysicalValue], Any]

_CONVERTED = (Kind.INTERVAL, Kind.JSON, Kind.ROW, Kind.ARRAY)
"""Kinds whose Python values are not those that Arrow makes."""
_DATED: Final = {
    Kind.DATE: date_text,
    Kind.TIMESTAMP: timestamp_text,
    Kind.TIMESTAMPTZ: zoned_text,
}
"""Kinds with values that Python's classes cannot hold: years outside of 1 to 9999."""
_UNCHANGED = {
    *INTEGER_KINDS,
    *FLOAT_KINDS,
    Kind.BOOLEAN,
    Kind.VARCHAR,
    Kind.ENUM,
    Kind.CHAR,
    Kind.BYTEA,
}


def decoder(column: Column) -> Decoder | None:
    """A function from the physical value to the Python one; None when they are the same."""
    if column.type.kind in _UNCHANGED:
        return None
    column_type = column.type
    return lambda value: None if value is None else _fetched(value, column_type)


def python_values(array: pa.Array, column: Column) -> list[Any]:
    """The Python objects of a column of a result; text in place of what Python cannot hold."""
    sql_type = column.type
    if sql_type.kind not in _CONVERTED and sql_type.digits is None:
        try:
            found: list[Any] | None = array.to_pylist()
        except (OverflowError, ValueError):
            found = None  # one value is out of Python's range: convert each by itself
        if found is not None:
            return found
    return [
        None if value is None else _fetched(value, sql_type)
        for value in array_to_values(to_engine(array, sql_type), sql_type)
    ]


def _fetched(value: PhysicalValue, sql_type: SqlType) -> Any:
    """The Python object of one physical value. A date that Python's classes cannot hold becomes
    PostgreSQL's text of it: one such value must not keep the rest of a result from its reader."""
    try:
        return from_physical(value, sql_type)
    except InvalidDatetime:
        if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
            element = sql_type.element
            return [_fetched(item, element) for item in _items(value)]
        if sql_type.kind is Kind.ROW:
            pairs = zip(_items(value), sql_type.fields, strict=True)
            return tuple([_fetched(item, field) for item, (_, field) in pairs])
        if sql_type.kind not in _DATED:
            raise
        assert isinstance(value, int)
        return _DATED[sql_type.kind](value)


def _items(value: PhysicalValue) -> tuple[PhysicalValue, ...]:
    assert isinstance(value, tuple)
    return value
