"""Conversions that Spark makes exactly as the grid does."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import Kind, SqlType
from remuda.sql.spark_sql.literals import type_name

_MOMENTS: Final = (Kind.DATE, Kind.TIMESTAMP)
_EXACT_IN_DOUBLE: Final = 15
"""Digits of decimals that both compute as one quotient of two exact floats."""


def native_cast(inner: str, found: SqlType, wanted: SqlType) -> str | None:
    """``inner`` of type ``found`` as ``wanted``; None where Spark's conversion is another one: it
    truncates floats and decimals that become whole numbers, and reads texts differently."""
    cast = f"CAST({inner} AS {{}})"
    if found == wanted:
        return inner
    if found.kind is Kind.NULL:
        return cast.format(type_name(wanted)) if wanted.element is None else None
    if found.is_text and wanted.is_text:
        return inner if _holds(found, wanted) else None
    if found.kind is Kind.UUID and wanted.kind is Kind.VARCHAR and wanted.length is None:
        return inner
    if _same_in_spark(found, wanted):
        return cast.format(type_name(wanted))
    return None


def _holds(found: SqlType, wanted: SqlType) -> bool:
    """Whether every text fits. CHAR is kept without its blanks, so it is a text like others; a text
    that becomes CHAR must lose them."""
    if wanted.kind is Kind.CHAR and found.kind is not Kind.CHAR:
        return False
    if wanted.length is None:
        return True
    return found.length is not None and found.length <= wanted.length


def _same_in_spark(found: SqlType, wanted: SqlType) -> bool:
    if found.is_integer:
        to_text = wanted.kind is Kind.VARCHAR and wanted.length is None
        return wanted.is_numeric or to_text
    if found.kind is Kind.DECIMAL:
        if wanted.kind is Kind.DOUBLE:
            return (found.precision or 0) <= _EXACT_IN_DOUBLE
        return wanted.kind is Kind.DECIMAL
    if found.kind is Kind.REAL:
        return wanted.kind is Kind.DOUBLE
    if found.kind in _MOMENTS:
        return wanted.kind in _MOMENTS
    return False
