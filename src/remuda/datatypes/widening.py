"""Changes of a column's type under which every value stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.times.time_digits import keeps_all
from remuda.datatypes.values import PhysicalValue

_MICROS_PER_DAY: Final = 86_400_000_000
_INTEGERS: Final = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_LONGEST_TEXT: Final = {
    Kind.BOOLEAN: 5,
    Kind.TINYINT: 4,
    Kind.SMALLINT: 6,
    Kind.INTEGER: 11,
    Kind.BIGINT: 20,
    Kind.UUID: 36,
    Kind.DECIMAL: 3,
}
"""Characters of the longest value; of DECIMAL beside its digits: sign, point and a zero."""
_DIGITS: Final = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}

Conversion: TypeAlias = Callable[[PhysicalValue], PhysicalValue]


def widening(stored: SqlType, wanted: SqlType) -> Conversion | None:
    """How a value of ``stored`` becomes the same value of ``wanted``; None when some value of
    ``stored`` has no counterpart."""
    a, b = stored.kind, wanted.kind
    if not keeps_all(stored, wanted):
        return None
    if stored == wanted or (stored.is_text and b is Kind.VARCHAR and wanted.length is None):
        return same
    if a is Kind.ENUM:
        return _from_enum(stored, wanted)
    if stored.is_text and wanted.is_text:
        fits = stored.length is not None and (wanted.length or 0) >= stored.length
        return same if fits else None
    if b is Kind.VARCHAR and a in _LONGEST_TEXT:
        return _to_text(stored, wanted)
    if a in _INTEGERS and b in _INTEGERS:
        return same if _DIGITS[a] <= _DIGITS[b] else None
    if a in (*_INTEGERS, Kind.DECIMAL) and b is Kind.DECIMAL:
        return _to_decimal(stored, wanted)
    if (a in _INTEGERS[:3] and b is Kind.DOUBLE) or (a in _INTEGERS[:2] and b is Kind.REAL):
        return float  # type: ignore[return-value]
    if a is Kind.REAL and b is Kind.DOUBLE:
        return same
    if a is Kind.DATE and b is Kind.TIMESTAMP:
        return lambda value: value * _MICROS_PER_DAY  # type: ignore[operator]
    return None


def _to_text(stored: SqlType, wanted: SqlType) -> Conversion | None:
    """As a cast writes the value; its text depends on no setting of a session."""
    longest = _LONGEST_TEXT[stored.kind] + (stored.precision or 0)
    fits = wanted.length is None or wanted.length >= longest
    return text_of(stored) if fits else None


def _from_enum(stored: SqlType, wanted: SqlType) -> Conversion | None:
    """To text, or to the same enum with more labels."""
    if wanted.kind is Kind.VARCHAR and wanted.length is None:
        return same
    if stored.enum is None or wanted.enum is None or stored.enum.oid != wanted.enum.oid:
        return None
    return same if set(stored.enum.labels) <= set(wanted.enum.labels) else None


def same(value: PhysicalValue) -> PhysicalValue:
    return value


def _to_decimal(stored: SqlType, wanted: SqlType) -> Conversion | None:
    digits, scale = _DIGITS.get(stored.kind, stored.precision or 0), stored.scale or 0
    more = (wanted.scale or 0) - scale
    if more < 0 or (wanted.precision or 0) - (wanted.scale or 0) < digits - scale:
        return None
    factor = 10**more
    return lambda value: value * factor
