"""Names, types and constants as Spark SQL writes them."""

from __future__ import annotations

import math
import re
import uuid
from typing import Final

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.sql.spark_sql.refusal import refused

_TYPES: Final = {
    Kind.NULL: "STRING",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INT",
    Kind.BIGINT: "BIGINT",
    Kind.REAL: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.CHAR: "STRING",
    Kind.VARCHAR: "STRING",
    Kind.BYTEA: "BINARY",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME(6)",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
    Kind.UUID: "STRING",
    Kind.JSON: "STRING",
}
COMPARABLE: Final = (frozenset(_TYPES) | {Kind.DECIMAL}) - {Kind.JSON, Kind.NULL}
"""Kinds whose values Spark compares and hashes as the grid does, in the form that they have there.
UUIDs are texts of one form, whose order is that of the values."""

_PLAIN_TEXT: Final = re.compile(r"[A-Za-z0-9 _.,:;/+*=<>()|#%&!?@^~\[\]-]*\Z")
"""No quotes, no backslashes, and no ``$`` or braces, which Spark replaces by variables."""


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def type_name(sql_type: SqlType) -> str:
    """The Spark type that holds every value. Raises NotOnSpark."""
    if sql_type.kind is Kind.DECIMAL:
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    if sql_type.element is not None:
        return f"ARRAY<{type_name(sql_type.element)}>"
    found = _TYPES.get(sql_type.kind)
    if found is None:
        raise refused(f"a column of type {sql_type}")
    return found


def text(value: str) -> str:
    if _PLAIN_TEXT.match(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def literal(value: PhysicalValue, sql_type: SqlType) -> str:
    """A constant of exactly the Spark type of ``sql_type``. Raises NotOnSpark."""
    kind, spark = sql_type.kind, type_name(sql_type)
    if value is None:
        return f"CAST(NULL AS {spark})"
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return text(value)
        case bytes() if kind is Kind.UUID:
            return text(str(uuid.UUID(bytes=value)))
        case bytes() if kind is Kind.BYTEA:
            return f"X'{value.hex().upper()}'"
        case int() if kind is Kind.DECIMAL:
            return f"CAST('{_scaled(value, sql_type.scale or 0)}' AS {spark})"
        case int() if kind is Kind.DATE:
            return f"DATE_FROM_UNIX_DATE({value})"
        case int() if kind is Kind.TIMESTAMPTZ:
            return f"TIMESTAMP_MICROS({value}L)"
        case int() if kind is Kind.TIMESTAMP:
            return f"CAST(TIMESTAMP_MICROS({value}L) AS TIMESTAMP_NTZ)"
        case int() if kind is Kind.TIME:
            return f"CAST('{_clock(value)}' AS {spark})"
        case int() | float() if sql_type.is_float:
            return f"CAST('{_float(float(value))}' AS {spark})"
        case int() if sql_type.is_integer:
            return f"CAST('{value}' AS {spark})"
        case _:
            raise refused(f"a constant of type {sql_type}")


def _scaled(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :] or '0'}"


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    if seconds >= 86_400:
        raise refused("the time 24:00:00")
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
