"""One value of a program in the engine's form, or the reason why it does not fit its column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from remuda.client.values.fields import object_hint
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue, to_physical, values_to_array
from remuda.errors import DataError, ObjectMismatch, TypeMismatch

Encoder: TypeAlias = Callable[[object], PhysicalValue]

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


def encoded_column(column: Column, encode: Encoder, values: Sequence[object]) -> pa.Array:
    """Many values of one column in engine form. ``encode`` is the ``encoder`` of the column; values
    that need no check of their own do not go through it. Raises ObjectMismatch."""
    if not _plain(column, values):
        values = [encode(value) for value in values]
    return values_to_array(values, column.type)  # type: ignore[arg-type]


def _plain(column: Column, values: Sequence[object]) -> bool:
    """Whether all values are physical ones of the column as they are: the same as ``encoder`` asks
    of each."""
    kind, types = column.type.kind, set(map(type, values))
    if len(types) != 1:
        return False
    (only,) = types
    if only is int:
        limit = _INTEGER_LIMITS.get(kind, 0)
        numbers: Sequence[int] = values  # type: ignore[assignment]
        return -limit <= min(numbers) and max(numbers) < limit
    if only is str:
        whole = kind is Kind.VARCHAR and column.type.length is None
        return whole and "".join(values).isascii()  # type: ignore[arg-type]
    return _EXACT.get(kind) == (only,)


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
