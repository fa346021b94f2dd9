"""Conversions between types, and the common type of two types. The rules are PostgreSQL's.

*Implicit* conversions happen in any expression, *assignments* in INSERT, *explicit* ones by CAST.
Text never turns into anything else by itself: only untyped literals do (Kind.NULL here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from remuda.datatypes.sql import (
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER_KINDS,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array,
    decimal,
    row,
)

INTEGER_DIGITS: Final[dict[Kind, int]] = {
    Kind.TINYINT: 3,
    Kind.SMALLINT: 5,
    Kind.INTEGER: 10,
    Kind.BIGINT: 19,
}
INTEGER_BITS: Final[dict[Kind, int]] = {
    Kind.TINYINT: 8,
    Kind.SMALLINT: 16,
    Kind.INTEGER: 32,
    Kind.BIGINT: 64,
}
_TIME_LADDER: Final = (DATE, TIMESTAMP, TIMESTAMPTZ)


def integer_range(kind: Kind) -> tuple[int, int]:
    """Lowest and highest value of an integer kind."""
    half = 1 << (INTEGER_BITS[kind] - 1)
    return -half, half - 1


def as_decimal(t: SqlType) -> SqlType:
    """The DECIMAL that holds every value of an exact numeric type."""
    return t if t.kind is Kind.DECIMAL else decimal(INTEGER_DIGITS[t.kind], 0)


def is_comparable(t: SqlType) -> bool:
    """Whether ``= < >``, ORDER BY and GROUP BY take this type."""
    if t.element is not None:
        return is_comparable(t.element)
    return t.kind is not Kind.NULL and all(is_comparable(part) for _, part in t.fields)


def same_representation(source: SqlType, target: SqlType) -> bool:
    """No conversion is needed: equal, or text of any length into unlimited text."""
    return source == target or (source.is_text and target == VARCHAR)


def is_implicit(source: SqlType, target: SqlType) -> bool:
    """Whether ``source`` becomes ``target`` without a CAST."""
    if source == target or source.kind is Kind.NULL:
        return True
    if source.is_text and target.is_text:
        return True
    if source.is_numeric and target.is_numeric:
        return _widens(source, target)
    if source.is_nested and target.is_nested:
        return _parts_convert(source, target, is_implicit)
    if source in _TIME_LADDER and target in _TIME_LADDER:
        return _TIME_LADDER.index(source) <= _TIME_LADDER.index(target)
    return False


def _parts_convert(
    source: SqlType, target: SqlType, rule: Callable[[SqlType, SqlType], bool]
) -> bool:
    """Arrays convert as their elements do, rows as their fields."""
    if source.element is not None and target.element is not None:
        return rule(source.element, target.element)
    if source.kind is not target.kind or len(source.fields) != len(target.fields):
        return False
    return all(rule(s, t) for (_, s), (_, t) in zip(source.fields, target.fields, strict=True))


def _widens(source: SqlType, target: SqlType) -> bool:
    if target.kind is Kind.DOUBLE:
        return True
    if source.is_integer and target.is_integer:
        return INTEGER_KINDS.index(source.kind) <= INTEGER_KINDS.index(target.kind)
    if target.kind is Kind.REAL:
        return not source.is_float or source == REAL
    return target.kind is Kind.DECIMAL and not source.is_float


def is_assignable(source: SqlType, target: SqlType) -> bool:
    """Whether a value of ``source`` may be stored in a column of ``target`` (an error at run
    time when it does not fit): implicit conversions, numbers to numbers, anything to text,
    timestamps to their parts.
    """
    if is_implicit(source, target):
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if target.is_text:
        return True
    if source.is_nested and target.is_nested:
        return _parts_convert(source, target, is_assignable)
    if source.kind is Kind.INTERVAL and target.kind is Kind.TIME:
        return True
    return source in (TIMESTAMP, TIMESTAMPTZ) and target.kind in (
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
    )


def is_explicit(source: SqlType, target: SqlType) -> bool:
    """Whether CAST takes this pair."""
    if is_assignable(source, target):
        return True
    if target.is_text or (source.is_text and target.kind is not Kind.ROW):
        return True
    if source.is_nested and target.is_nested:
        return _parts_convert(source, target, is_explicit)
    pair = {source.kind, target.kind}
    if pair == {Kind.INTERVAL, Kind.TIME}:
        return True
    if source.kind is Kind.JSON:
        return target.is_numeric or target.kind is Kind.BOOLEAN
    return pair == {Kind.BOOLEAN, Kind.INTEGER}


def common_type(types: Iterable[SqlType]) -> SqlType | None:
    """The type that all convert to implicitly: for comparisons, CASE, COALESCE, UNION.

    Untyped arguments (Kind.NULL) take part in nothing; all untyped gives VARCHAR. Text of
    different lengths is VARCHAR. DECIMAL with an integer or another DECIMAL is one that holds both
    (cut at 38 digits, keeping the scale); with REAL or DOUBLE it is DOUBLE. None: no common type.
    """
    result: SqlType | None = None
    untyped = False
    for t in types:
        if t.kind is Kind.NULL:
            untyped = True
            continue
        result = t if result is None else _common_pair(result, t)
        if result is None:
            return None
    if result is None or (untyped and result.is_text):
        return VARCHAR  # an untyped text may be longer than VARCHAR(n)
    return result


def _common_pair(left: SqlType, right: SqlType) -> SqlType | None:
    if left == right:
        return left
    if left.is_text and right.is_text:
        return VARCHAR
    if left.is_numeric and right.is_numeric:
        return _common_number(left, right)
    if left in _TIME_LADDER and right in _TIME_LADDER:
        return max(left, right, key=_TIME_LADDER.index)
    if left.element is not None and right.element is not None:
        element = _common_pair(left.element, right.element)
        return None if element is None else array(element)
    if left.fields and len(left.fields) == len(right.fields):
        return _common_row(left, right)
    return None


def _common_row(left: SqlType, right: SqlType) -> SqlType | None:
    fields = []
    for (name, a), (_, b) in zip(left.fields, right.fields, strict=True):
        t = common_type((a, b))
        if t is None:
            return None
        fields.append((name, t))
    return row(fields)


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda t: INTEGER_KINDS.index(t.kind))
    if left.is_float or right.is_float:
        exact = left if right.is_float else right
        if (
            exact.is_integer
            and exact.kind in (Kind.TINYINT, Kind.SMALLINT)
            and REAL in (left, right)
        ):
            return REAL
        return DOUBLE
    left, right = as_decimal(left), as_decimal(right)
    (p1, s1), (p2, s2) = _digits(left), _digits(right)
    scale = max(s1, s2)
    common = decimal(min(DECIMAL_PRECISION_MAX, max(p1 - s1, p2 - s2) + scale), scale)
    digits = left.digits or right.digits
    return common if digits is None else replace(common, digits=digits)


def _digits(t: SqlType) -> tuple[int, int]:
    return t.precision or DECIMAL_PRECISION_MAX, t.scale or 0
