"""Columns as Drill's metadata describes them: names of types, sizes, what JDBC wants to know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from remuda.catalog.system_relations import DATABASE
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.rpc.messages.user_metadata_pb2 import ColumnMetadata
from remuda.rpc.messages.user_pb2 import ResultColumnMetadata

TEXT_LENGTH: Final = 65535
"""The length that Drill gives a VARCHAR without one."""

_NAMES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.REAL: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.DECIMAL: "DECIMAL",
    Kind.BYTEA: "BINARY VARYING",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
    Kind.INTERVAL: "INTERVAL",
    Kind.ARRAY: "ARRAY",
    Kind.ROW: "STRUCT",
}
"""All others are texts."""

_CLASSES: Final = {
    Kind.BOOLEAN: "java.lang.Boolean",
    Kind.TINYINT: "java.lang.Integer",
    Kind.SMALLINT: "java.lang.Integer",
    Kind.INTEGER: "java.lang.Integer",
    Kind.BIGINT: "java.lang.Long",
    Kind.REAL: "java.lang.Float",
    Kind.DOUBLE: "java.lang.Double",
    Kind.DECIMAL: "java.math.BigDecimal",
    Kind.BYTEA: "byte[]",
    Kind.DATE: "java.sql.Date",
    Kind.TIME: "java.sql.Time",
    Kind.TIMESTAMP: "java.sql.Timestamp",
    Kind.TIMESTAMPTZ: "java.sql.Timestamp",
    Kind.INTERVAL: "org.joda.time.Period",
    Kind.ARRAY: "java.lang.Object",
    Kind.ROW: "java.lang.Object",
}

_DIGITS: Final = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}
_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_BITS: Final = {Kind.REAL: 24, Kind.DOUBLE: 53}
_FLOAT_SIGNIFICANT: Final = {Kind.REAL: 7, Kind.DOUBLE: 15}
_FLOAT_DISPLAY: Final = {Kind.REAL: 14, Kind.DOUBLE: 24}
_SHOWN: Final = {Kind.DATE: 10, Kind.TIME: 12, Kind.TIMESTAMP: 23, Kind.TIMESTAMPTZ: 23}
"""Characters of a value with milliseconds, which is what Drill's clients get."""
_MILLIS: Final = 3
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_INTERVAL_SHOWN: Final = 40
_OCTETS: Final = 4
_FIXED_TEXTS: Final = {Kind.UUID: 36}


def type_name(sql_type: SqlType) -> str:
    """SQL's name of the type, as in Drill's INFORMATION_SCHEMA."""
    return _NAMES.get(sql_type.kind, "CHARACTER VARYING")


def is_text(sql_type: SqlType) -> bool:
    """Whether Drill's clients get it as a VARCHAR."""
    return sql_type.kind not in _NAMES


def length(sql_type: SqlType) -> int:
    """Characters of a text, bytes of a binary."""
    return sql_type.length or _FIXED_TEXTS.get(sql_type.kind, TEXT_LENGTH)


def precision(sql_type: SqlType) -> int:
    """Digits of a number, characters of a text or time, bytes of a binary; 0 for all others."""
    kind = sql_type.kind
    if kind is Kind.DECIMAL:
        return sql_type.precision or 0
    if is_text(sql_type) or kind is Kind.BYTEA:
        return length(sql_type)
    return (
        _DIGITS.get(kind)
        or _FLOAT_SIGNIFICANT.get(kind)
        or _SHOWN.get(kind)
        or (1 if kind is Kind.BOOLEAN else 0)
    )


def display_size(sql_type: SqlType) -> int:
    """Characters that the longest value takes; 0 for arrays and rows."""
    kind = sql_type.kind
    if kind in _DIGITS:
        return _DIGITS[kind] + 1
    if kind is Kind.DECIMAL:
        return (sql_type.precision or 0) + 2
    if kind is Kind.BYTEA:
        return 2 * length(sql_type)
    if kind is Kind.INTERVAL:
        return _INTERVAL_SHOWN
    return _FLOAT_DISPLAY.get(kind, precision(sql_type))


def result_column(column: Column) -> ResultColumnMetadata:
    found = column.type
    return ResultColumnMetadata(
        catalog_name=DATABASE,
        schema_name="",
        table_name="",
        column_name=column.name,
        label=column.name,
        data_type=type_name(found),
        is_nullable=column.nullable,
        precision=precision(found),
        scale=found.scale or 0,
        signed=found.is_numeric,
        display_size=display_size(found),
        is_aliased=True,
        searchability=ResultColumnMetadata.ALL,
        updatability=ResultColumnMetadata.READ_ONLY,
        auto_increment=False,
        case_sensitivity=is_text(found),
        sortable=True,
        class_name=_CLASSES.get(found.kind, "java.lang.String"),
        is_currency=False,
    )


def table_columns(schema: str, table: str, columns: Iterable[Column]) -> list[ColumnMetadata]:
    return [_table_column(schema, table, place, column) for place, column in enumerate(columns, 1)]


def _table_column(schema: str, table: str, place: int, column: Column) -> ColumnMetadata:
    found, kind = column.type, column.type.kind
    made = ColumnMetadata(
        catalog_name=DATABASE,
        schema_name=schema,
        table_name=table,
        column_name=column.name,
        ordinal_position=place,
        is_nullable=column.nullable,
        data_type=type_name(found),
        column_size=precision(found),
    )
    if column.default is not None:
        made.default_value = column.default.text
    if is_text(found) or kind is Kind.BYTEA:
        made.char_max_length = length(found)
        made.char_octet_length = length(found) * (1 if kind is Kind.BYTEA else _OCTETS)
    if kind in _BITS:
        made.numeric_precision, made.numeric_precision_radix = _BITS[kind], 2
        made.numeric_scale = 0
    elif kind in _FLOAT_BITS:
        made.numeric_precision, made.numeric_precision_radix = _FLOAT_BITS[kind], 2
    elif kind is Kind.DECIMAL:
        made.numeric_precision, made.numeric_precision_radix = found.precision or 0, 10
        made.numeric_scale = found.scale or 0
    elif kind in _TIMES:
        made.date_time_precision = _MILLIS
    return made
