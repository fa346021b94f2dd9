"""The schema of a map that nobody declared: from its first object, or from an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from remuda.client.values.fields import (
    INFERRED_DECIMAL,
    Declared,
    declared_fields,
    object_hint,
    shape_of,
)
from remuda.datatypes import sql
from remuda.datatypes.arrow import from_arrow_type
from remuda.datatypes.schema import KEY_COLUMN, VALUE_COLUMN, Column, MapSchema, ValueShape
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import infer_type
from remuda.errors import InvalidDefinition, ObjectMismatch, RemudaError, UndefinedColumn

_UNDECLARED = Declared(None, True)


def infer_schema(name: str, key: object, value: object) -> MapSchema:
    """The schema that ``put(key, value)`` gives to a new map.

    A scalar key becomes the column ``__key``, a composite key one column per field (``__key_1``,
    ``__key_2``, ... when it is a plain tuple). A scalar value becomes the column ``this``, an
    object one column per field; a field of the value with the name of a key field is the same
    column. Key columns are NOT NULL, and so are annotated fields that are not Optional.
    """
    key_columns = _key_columns(name, key)
    keys = tuple(column.name for column in key_columns)
    value_columns = _columns(name, value)
    if value_columns is None:
        value_type = _type_of(name, VALUE_COLUMN, value, _UNDECLARED)
        columns = (*key_columns, Column(VALUE_COLUMN, value_type, nullable=False))
        return MapSchema(name, columns, keys, keys, value_shape=ValueShape.SCALAR)
    rest = tuple(column for column in value_columns if column.name not in keys)
    return MapSchema(name, (*key_columns, *rest), keys, keys)


def infer_table_schema(
    name: str, schema: pa.Schema, key: Sequence[str], replicated: bool = False
) -> MapSchema:
    """The schema that a bulk write of Arrow data gives to a new map; ``key`` names its columns."""
    keys = tuple(key)
    if not keys:
        raise InvalidDefinition(f'map "{name}" needs a key', hint='Name its columns: key=["id"].')
    for column in keys:
        if schema.get_field_index(column) < 0:
            raise UndefinedColumn(
                f'key column "{column}" of map "{name}" is not in the data',
                detail="columns: " + ", ".join(schema.names),
            )
    columns = tuple(
        Column(field.name, _arrow_type(name, field), field.nullable and field.name not in keys)
        for field in schema
    )
    return MapSchema(name, columns, keys, keys, replicated=replicated)


def _arrow_type(map_name: str, field: pa.Field) -> SqlType:
    try:
        return from_arrow_type(field.type)
    except RemudaError as error:
        raise ObjectMismatch(
            f'map "{map_name}", field "{field.name}": {field.type} has no SQL type',
            detail=str(error),
        ) from error


def _key_columns(map_name: str, key: object) -> tuple[Column, ...]:
    columns = _columns(map_name, key)
    if columns is None and isinstance(key, tuple):
        columns = tuple(
            Column(f"{KEY_COLUMN}_{i}", _type_of(map_name, f"{KEY_COLUMN}_{i}", part, _UNDECLARED))
            for i, part in enumerate(key, start=1)
        )
    if columns is None:
        columns = (Column(KEY_COLUMN, _type_of(map_name, KEY_COLUMN, key, _UNDECLARED)),)
    if not columns:
        raise ObjectMismatch(f'map "{map_name}": a key has at least one field, found {key!r}')
    return tuple(Column(column.name, column.type, nullable=False) for column in columns)


def _columns(map_name: str, value: Any) -> tuple[Column, ...] | None:
    """One column per field, or None when ``value`` is a scalar (or a plain tuple)."""
    shape = shape_of(value)
    if shape is None:
        return None
    hints = declared_fields(type(value))
    columns = []
    for name, item in zip(shape.names, shape.take(value), strict=True):
        if not isinstance(name, str) or not name:
            raise ObjectMismatch(f'map "{map_name}": field names are text, found {name!r}')
        hint = hints.get(name, _UNDECLARED)
        columns.append(Column(name, _type_of(map_name, name, item, hint), hint.nullable))
    return tuple(columns)


def _type_of(map_name: str, field: str, value: object, hint: Declared) -> SqlType:
    if hint.type is not None and not (isinstance(value, datetime) and hint.type == sql.TIMESTAMP):
        return hint.type
    if value is None:
        raise ObjectMismatch(
            f'map "{map_name}", field "{field}": its type cannot be inferred from None',
            hint="Annotate the field of the class, or declare the map by CREATE TABLE.",
        )
    if isinstance(value, Decimal):
        return INFERRED_DECIMAL
    try:
        return infer_type(value)
    except RemudaError as error:
        raise ObjectMismatch(
            f'map "{map_name}", field "{field}": {type(value).__name__} has no SQL type',
            hint=object_hint(value)
            or "Supported: bool, int, float, Decimal, str, bytes, date, time, datetime, "
            "timedelta, UUID, dict, and lists of them.",
        ) from error
