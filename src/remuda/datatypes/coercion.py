"""Which types convert to which, and what two types have in common. The rules are PostgreSQL's.

*Implicit* conversions happen in any expression, *assignments* in INSERT, *explicit* ones by CAST.
Text never turns into anything else by itself: only untyped literals do (Kind.NULL here).
"""

from __future__ import annotations

from collections.abc import Iterable
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
    decimal,
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
    return t.kind not in (Kind.INTERVAL, Kind.NULL)


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
    if source in _TIME_LADDER and target in _TIME_LADDER:
        return _TIME_LADDER.index(source) <= _TIME_LADDER.index(target)
    return False


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
    time when it does not fit): implicit conversions, numbers to numbers, timestamps to their parts.
    """
    if is_implicit(source, target):
        return True
    if source.is_numeric and target.is_numeric:
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
    if Kind.INTERVAL in (source.kind, target.kind):
        return False
    if source.is_text or target.is_text:
        return True
    pair = {source.kind, target.kind}
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
    return None


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
    return decimal(min(DECIMAL_PRECISION_MAX, max(p1 - s1, p2 - s2) + scale), scale)


def _digits(t: SqlType) -> tuple[int, int]:
    return t.precision or DECIMAL_PRECISION_MAX, t.scale or 0
