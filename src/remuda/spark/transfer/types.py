"""SQL types <-> Spark types, and whether one fits into the other without loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import types as T  # noqa: N812 (Spark's own convention)

from remuda.datatypes.schema import ROW_ID, Column
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    Kind,
    SqlType,
    array,
    decimal,
)
from remuda.errors import NotSupported, UndefinedColumn

TIME_PRECISION: Final = 6

_TO_SPARK: Final[dict[Kind, T.DataType]] = {
    Kind.BOOLEAN: T.BooleanType(),
    Kind.TINYINT: T.ByteType(),
    Kind.SMALLINT: T.ShortType(),
    Kind.INTEGER: T.IntegerType(),
    Kind.BIGINT: T.LongType(),
    Kind.REAL: T.FloatType(),
    Kind.DOUBLE: T.DoubleType(),
    Kind.CHAR: T.StringType(),
    Kind.VARCHAR: T.StringType(),
    Kind.ENUM: T.StringType(),
    Kind.BYTEA: T.BinaryType(),
    Kind.DATE: T.DateType(),
    Kind.TIME: T.TimeType(TIME_PRECISION),
    Kind.TIMESTAMP: T.TimestampNTZType(),
    Kind.TIMESTAMPTZ: T.TimestampType(),
    Kind.NULL: T.StringType(),
    Kind.UUID: T.StringType(),
    Kind.JSON: T.StringType(),
}
"""UUID and JSON are text in Spark; INTERVAL has no type there that holds months and days."""

_FROM_SPARK: Final[dict[type[T.DataType], SqlType]] = {
    T.BooleanType: BOOLEAN,
    T.ByteType: TINYINT,
    T.ShortType: SMALLINT,
    T.IntegerType: INTEGER,
    T.LongType: BIGINT,
    T.FloatType: REAL,
    T.DoubleType: DOUBLE,
    T.StringType: VARCHAR,
    T.BinaryType: BYTEA,
    T.DateType: DATE,
    T.TimeType: TIME,
    T.TimestampNTZType: TIMESTAMP,
    T.TimestampType: TIMESTAMPTZ,
    T.DayTimeIntervalType: INTERVAL,
}

INTEGER_DIGITS: Final = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}
_INTEGER_ORDER: Final = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


def spark_type(sql: SqlType) -> T.DataType:
    """The Spark type that holds every value of ``sql``."""
    if sql.kind is Kind.DECIMAL:
        return T.DecimalType(sql.precision or 38, sql.scale or 0)
    if sql.element is not None:
        return T.ArrayType(spark_type(sql.element))
    found = _TO_SPARK.get(sql.kind)
    if found is None:
        raise NotSupported(
            f"type {sql} cannot be read into Spark",
            hint="Read a query that converts the column, for example CAST(x AS TEXT).",
        )
    return found


def sql_type(spark: T.DataType) -> SqlType | None:
    """The SQL type of a Spark type; None for those that have none (maps, structs...)."""
    if isinstance(spark, T.ArrayType):
        element = sql_type(spark.elementType)
        return None if element is None or element.element is not None else array(element)
    if isinstance(spark, T.DecimalType):
        return decimal(spark.precision, spark.scale)
    if isinstance(spark, T.VarcharType):
        return SqlType(Kind.VARCHAR, length=spark.length)
    if isinstance(spark, T.CharType):
        return SqlType(Kind.CHAR, length=spark.length)
    return _FROM_SPARK.get(type(spark))


def spark_schema(columns: tuple[Column, ...]) -> T.StructType:
    """Every field nullable: Spark refuses Arrow batches that say otherwise."""
    return T.StructType([T.StructField(c.name, spark_type(c.type), True) for c in columns])


def chosen_schema(where: str, columns: tuple[Column, ...], names: Sequence[str]) -> T.StructType:
    """That of the named columns of ``where``, or of all that users see. Raises UndefinedColumn."""
    shown = tuple(column for column in columns if column.name != ROW_ID)
    if not names:
        return spark_schema(shown)
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise UndefinedColumn(
                f"{where} has no column {name}",
                detail=f"it has {', '.join(column.name for column in shown)}",
            )
    return spark_schema(tuple(by_name[name] for name in names))


def fits(found: SqlType, expected: SqlType) -> bool:
    """Whether every value of ``found`` fits ``expected``; lengths of text, and whether it is a
    UUID, JSON or a label, are seen per row."""
    if found.element is not None and expected.element is not None:
        return fits(found.element, expected.element)
    if found.kind is Kind.NULL or found.kind is expected.kind is not Kind.DECIMAL:
        return True
    if found.is_text and (expected.is_text or expected.kind in (Kind.UUID, Kind.JSON, Kind.ENUM)):
        return True
    if found.is_integer and expected.is_integer:
        return _INTEGER_ORDER.index(found.kind) <= _INTEGER_ORDER.index(expected.kind)
    if expected.kind is Kind.DOUBLE:
        # Every 32-bit integer is a 64-bit float exactly.
        return found.kind is Kind.REAL or found.kind in _INTEGER_ORDER[:3]
    if expected.kind is Kind.DECIMAL:
        whole = (expected.precision or 0) - (expected.scale or 0)
        if found.is_integer:
            return INTEGER_DIGITS[found.kind] <= whole
        if found.kind is Kind.DECIMAL:
            return (found.precision or 0) - (found.scale or 0) <= whole and (found.scale or 0) <= (
                expected.scale or 0
            )
    return False
