"""One value of one column: Python to the engine's form and back, with the reason of a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.client.values.fields import object_hint
from remuda.datatypes.arrow import to_engine
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import FLOAT_KINDS, INTEGER_KINDS, Kind, SqlType
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.values import PhysicalValue, array_to_values, from_physical, to_physical
from remuda.errors import DataError, InvalidDatetime, ObjectMismatch, TypeMismatch

Encoder: TypeAlias = Callable[[object], PhysicalValue]
Decoder: TypeAlias = Callable[[PhysicalValue], Any]

_EXACT: dict[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.DOUBLE: (float,),
    Kind.BYTEA: (bytes,),
}
_INTEGER_LIMITS = {
    Kind.TINYINT: 2**7,
    Kind.SMALLINT: 2**15,
    Kind.INTEGER: 2**31,
    Kind.BIGINT: 2**63,
}
_CONVERTED = (Kind.INTERVAL, Kind.JSON, Kind.ROW, Kind.ARRAY)
"""Kinds whose Python values are not those that Arrow makes."""
_DATED = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
"""Kinds with values that Python's classes cannot hold: years outside of 1 to 9999."""
_UNCHANGED = {*INTEGER_KINDS, *FLOAT_KINDS, Kind.BOOLEAN, Kind.VARCHAR, Kind.CHAR, Kind.BYTEA}


def encoder(map_name: str, column: Column) -> Encoder:
    """A function from a Python value to the physical one; ObjectMismatch names map and field."""
    kind = column.type.kind

    def checked(value: object) -> PhysicalValue:
        return _checked(map_name, column, value)

    if kind in _INTEGER_LIMITS:
        limit = _INTEGER_LIMITS[kind]

        def integer(value: object) -> PhysicalValue:
            if type(value) is int and -limit <= value < limit:
                return value
            return checked(value)

        return integer
    exact = (str,) if kind is Kind.VARCHAR and column.type.length is None else _EXACT.get(kind)
    if exact is None:
        return checked
    (only,) = exact
    if only is str:

        def text(value: object) -> PhysicalValue:
            if type(value) is str and value.isascii():
                return value
            return checked(value)

        return text

    def same(value: object) -> PhysicalValue:
        if type(value) is only:
            return value  # type: ignore[return-value]
        return checked(value)

    return same


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
        return text_of(sql_type)(value)


def _items(value: PhysicalValue) -> tuple[PhysicalValue, ...]:
    assert isinstance(value, tuple)
    return value


def _checked(map_name: str, column: Column, value: object) -> PhysicalValue:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        if column.nullable:
            return None
        raise mismatch(map_name, column, "NULL (the column is NOT NULL)")
    try:
        return to_physical(value, column.type)
    except (DataError, TypeMismatch) as error:
        found = f"{type(value).__name__} {shown(value)}"
        raise mismatch(map_name, column, found, error.message, object_hint(value)) from error


def mismatch(
    map_name: str, column: Column, found: str, reason: str = "", hint: str = ""
) -> ObjectMismatch:
    return ObjectMismatch(
        f'map "{map_name}", field "{column.name}": expected {column.type}, found {found}',
        detail=reason,
        hint=hint,
    )


def shown(value: object, width: int = 60) -> str:
    """For messages."""
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= width else text[: width - 3] + "..."
