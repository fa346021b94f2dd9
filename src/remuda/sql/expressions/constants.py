"""Conversions of constants at bind time: only where the result cannot depend on anything."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from remuda.datatypes.coercion import integer_range
from remuda.datatypes.sql import (
    BIGINT,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    decimal,
)
from remuda.datatypes.texts.text import (
    MICROS_PER_DAY,
    field_overflow,
    parse_text,
    rescale,
    type_name,
)
from remuda.datatypes.times.calendar import (
    END_OF_TIMESTAMPS,
    FIRST_TIMESTAMP,
    civil,
    days_from_civil,
    days_in_month,
)
from remuda.datatypes.times.intervals import pack, unpack
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.values import PhysicalValue
from remuda.errors import DatetimeOverflow, NumericOverflow
from remuda.plan.expression import Call, Cast, Expression, Literal

_INTEGER = re.compile(r"[0-9]+\Z")
_EXACT = re.compile(r"[0-9]*\.[0-9]*\Z")


def number_literal(text: str) -> Literal:
    """INTEGER, BIGINT or DECIMAL, by the form of the literal; with an exponent DOUBLE, if
    a DECIMAL has not enough digits.

    Raises NumericOverflow for what fits into none of them.
    """
    if _INTEGER.match(text):
        if len(text) < 10 or int(text) <= 2**31 - 1:
            return Literal(INTEGER, int(text))
        if len(text) < 19 or (len(text) <= 40 and int(text) <= 2**63 - 1):
            return Literal(BIGINT, int(text))
        text += "."
    if _EXACT.match(text):
        whole, fraction = text.split(".")
        whole = whole.lstrip("0")
        scale = len(fraction)
        if len(whole) + scale > DECIMAL_PRECISION_MAX:
            raise NumericOverflow(
                f"number {text if len(text) < 60 else text[:57] + '...'} has more than "
                f"{DECIMAL_PRECISION_MAX} digits"
            )
        return Literal(decimal(max(1, len(whole) + scale), scale), int(whole + fraction or "0"))
    exact = _scientific(text)
    if exact is not None:
        return exact
    value = float(text)
    if value == float("inf"):
        raise NumericOverflow(f'"{text}" is out of range for type double precision')
    return Literal(DOUBLE, value)


def _scientific(text: str) -> Literal | None:
    """``1.5e3`` is the DECIMAL 1500, as in PostgreSQL, if it has at most 38 digits."""
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    if sign or abs(exponent) > DECIMAL_PRECISION_MAX:
        return None
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits))) * int(10 ** max(0, exponent))
    precision = max(1, len(str(unscaled)), scale)
    if precision > DECIMAL_PRECISION_MAX:
        return None
    return Literal(decimal(precision, scale), unscaled)


def negated(literal: Literal) -> Literal | None:
    """``-literal`` in the narrowest type again (-2147483648 is INTEGER)."""
    value = literal.value
    if literal.type == INTERVAL and isinstance(value, bytes):
        months, days, micros = unpack(value)
        return Literal(INTERVAL, pack(-months, -days, -micros))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if literal.type == BIGINT and value == 2**31:
        return Literal(INTEGER, -value)
    if literal.type.kind is Kind.DECIMAL and value == 2**63 and literal.type.scale == 0:
        return Literal(BIGINT, -value)
    if literal.type.is_integer and value == integer_range(literal.type.kind)[0]:
        return None
    return Literal(literal.type, -value)


def minimal_decimal(literal: Literal) -> Literal:
    """An integer literal as the DECIMAL of just its digits: keeps results of arithmetic small."""
    assert isinstance(literal.value, int)
    return Literal(decimal(len(str(abs(literal.value))), 0), literal.value)


def exactly(literal: Literal, target: SqlType, zone: Zone | None = None) -> Literal | None:
    """``literal`` as a ``target`` of the same value, or None if there is none (or no such rule).
    ``zone``: that of the session, None: UTC."""
    value, source = literal.value, literal.type
    if value is None:
        return Literal(target, None)
    if source == target:
        return literal
    if source.kind is Kind.DECIMAL or source.is_integer:
        return _exact_number(literal, target)
    if source == TIMESTAMP and target == DATE:
        assert isinstance(value, int)
        return None if value % MICROS_PER_DAY else Literal(DATE, value // MICROS_PER_DAY)
    if source == DATE and target in (TIMESTAMP, TIMESTAMPTZ):
        assert isinstance(value, int)
        clock = value * MICROS_PER_DAY
        east = 0 if zone is None or target != TIMESTAMPTZ else zone.at_local(clock)
        return Literal(target, clock - east)
    if source.is_text and target == SqlType(Kind.VARCHAR):
        return Literal(target, value)
    return None


def _exact_number(literal: Literal, target: SqlType) -> Literal | None:
    value, scale = literal.value, literal.type.scale or 0
    assert isinstance(value, int)
    if target.is_integer:
        whole, rest = divmod(value, 10**scale)
        low, high = integer_range(target.kind)
        return Literal(target, whole) if not rest and low <= whole <= high else None
    if target.kind is Kind.DECIMAL:
        new_scale = target.scale or 0
        unscaled = rescale(value, scale, new_scale)
        if rescale(unscaled, new_scale, scale) != value:
            return None
        fits = abs(unscaled) < 10 ** (target.precision or DECIMAL_PRECISION_MAX)
        return Literal(target, unscaled) if fits else None
    if target.kind is Kind.DOUBLE:
        return Literal(target, float(Decimal(value).scaleb(-scale)))
    return None


def folded_cast(literal: Literal, target: SqlType, zone: Zone | None = None) -> Literal | None:
    """CAST of a constant, where that is trivial; None leaves it to the evaluator.

    Raises a DataError (without position) if the value does not fit.
    """
    if literal.value is None:
        return Literal(target, None)
    if literal.type.is_text and not target.is_text:
        return Literal(target, parse_text(str(literal.value), target, zone))
    exact = exactly(literal, target, zone)
    if exact is not None:
        return exact
    if literal.type.is_text and target.is_text:
        text = str(literal.value)[: target.length]
        return Literal(target, text.rstrip(" ") if target.kind is Kind.CHAR else text)
    source, value = literal.type, literal.value
    if source.kind is Kind.DECIMAL or source.is_integer:
        assert isinstance(value, int)
        return _rounded(value, source, target)
    return None


def _rounded(value: int, source: SqlType, target: SqlType) -> Literal | None:
    scale = source.scale or 0
    if target.is_integer:
        whole = rescale(value, scale, 0)
        low, high = integer_range(target.kind)
        if not low <= whole <= high:
            raise NumericOverflow(f"{type_name(target)} out of range")
        return Literal(target, whole)
    if target.kind is Kind.DECIMAL:
        unscaled = rescale(value, scale, target.scale or 0)
        if abs(unscaled) >= 10 ** (target.precision or DECIMAL_PRECISION_MAX):
            raise field_overflow(target)
        return Literal(target, unscaled)
    return None


def add_interval(value: PhysicalValue, source: SqlType, months: int, days: int, micros: int) -> int:
    """A DATE or TIMESTAMP constant plus an interval, as a TIMESTAMP value.

    The months come first; a day that the month does not have becomes its last one. Raises
    DatetimeOverflow outside of the range of timestamps.
    """
    assert isinstance(value, int)
    day, time = (value, 0) if source == DATE else divmod(value, MICROS_PER_DAY)
    year, month, day_of_month = civil(day)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    day = days_from_civil(year, month + 1, min(day_of_month, days_in_month(year, month + 1)))
    result = (day + days) * MICROS_PER_DAY + time + micros
    if not FIRST_TIMESTAMP <= result < END_OF_TIMESTAMPS:
        raise DatetimeOverflow("timestamp out of range")
    return result


# --- words that stand for moments --------------------------------------------------------------

_DAYS: Final = {"today": 0, "tomorrow": 1, "yesterday": -1}
_MOMENTS: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def special_moment(text: str, target: SqlType) -> Expression | None:
    """``DATE 'today'``, ``TIMESTAMP 'now'`` and the like, of type ``target``; None: ``text`` is
    no such word there. Where PostgreSQL reads the clock when it reads the literal, these are
    expressions: each execution of a statement has its own moment."""
    word = text.strip().lower()
    if target.kind not in _MOMENTS or word not in {"now", "epoch", *_DAYS}:
        return None
    if word == "epoch":
        return Literal(target, 0)
    today = Call(DATE, "current_date", ())
    if word == "now":
        if target == DATE:
            return today
        now = Call(TIMESTAMPTZ, "current_timestamp", ())
        return now if target.kind is Kind.TIMESTAMPTZ else Cast(TIMESTAMP, now)
    day: Expression = today
    if _DAYS[word]:
        day = Call(DATE, "+", (today, Literal(INTEGER, _DAYS[word])))
    return day if target == DATE else Cast(target, day)
