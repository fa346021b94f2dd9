"""Numbers with a scale of their own: quotients, roots and logarithms with PostgreSQL's digits.

A ``Numeric`` is an unscaled integer and its digits after the point. PostgreSQL chooses the scale of
an inexact result by the values: 16 significant digits or a little more. It counts digits in groups
of four, so the *weight* of a value is the exponent of 10000 of its first group.
Pure: integers and the ``decimal`` module with a context of its own, no binary floating point in a
result. (Estimates of a result's size use floats, as PostgreSQL's do; they only choose the scale.)
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from remuda.datatypes.sql import LOGARITHM_STEP, QUOTIENT_STEP, ROOT_STEP, TRIMMED_STEP
from remuda.errors import (
    DivisionByZero,
    InvalidArgument,
    InvalidLogarithmArgument,
    NumericOverflow,
)

SIGNIFICANT_DIGITS: Final = 16
"""Digits that every inexact result has at least."""
_SCALE_MAX: Final = 1000
_GROUP: Final = 4
_LOG10_E: Final = 0.434294481903252
_LN_10: Final = 2.302585092994046
_INT32: Final = 2**31
_GUARD_DIGITS: Final = 12
_RESULT_DIGITS_MAX: Final = 2000
"""Results of more digits before the point fit no type here; none is computed."""


class Numeric(NamedTuple):
    """``unscaled / 10**scale``."""

    unscaled: int
    scale: int

    @property
    def weight(self) -> int:
        """The exponent of 10000 of the first group of four digits; 0 for zero."""
        if not self.unscaled:
            return 0
        return (len(str(abs(self.unscaled))) - 1 - self.scale) // _GROUP

    @property
    def first_group(self) -> int:
        """The value of the first group of digits, 1 to 9999; 0 for zero."""
        shift = _GROUP * self.weight + self.scale
        magnitude = abs(self.unscaled)
        return int(magnitude // 10**shift if shift >= 0 else magnitude * 10**-shift)

    def exact(self) -> Decimal:
        sign = 1 if self.unscaled < 0 else 0
        return Decimal((sign, tuple(map(int, str(abs(self.unscaled)))), -self.scale))


def rounded(numerator: int, denominator: int) -> int:
    """The quotient of two integers, rounded half away from zero."""
    magnitude = (2 * abs(numerator) + abs(denominator)) // (2 * abs(denominator))
    return magnitude if (numerator < 0) == (denominator < 0) else -magnitude


def at_scale(value: Numeric, scale: int) -> Numeric:
    """``value`` with ``scale`` digits after the point, which may be negative."""
    if scale >= value.scale:
        return Numeric(value.unscaled * 10 ** (scale - value.scale), scale)
    return Numeric(rounded(value.unscaled, 10 ** (value.scale - scale)), scale)


def significant_scale(left: Numeric, right: Numeric) -> int:
    """The scale at which ``left / right`` has 16 significant digits; negative for large ones."""
    weight = left.weight - right.weight
    if left.first_group <= right.first_group:
        weight -= 1
    return SIGNIFICANT_DIGITS - _GROUP * weight


def shown_scale(unscaled: int, scale: int, step: int, least: int) -> int:
    """How many of ``scale`` digits after the point are shown of an inexact result.

    PostgreSQL's count follows the operands, which are gone; this one follows the value: 16
    significant digits, counted in groups of ``step`` digits (4 for quotients, 2 for roots, 1 for
    logarithms and powers; 0 for no more than needed), at least ``least``, and no digit that is
    not zero is hidden.
    """
    if not unscaled or step == TRIMMED_STEP:
        return _without_hidden(unscaled, scale, max(least, _OF_ZERO[step]))
    magnitude = abs(unscaled)
    exponent = len(str(magnitude)) - 1 - scale
    below = exponent + scale
    if step == QUOTIENT_STEP:
        weight = exponent // _GROUP
        if exponent % _GROUP == 0 and magnitude == 10**below:
            weight -= 1  # the operands begin with equal groups
        shown = SIGNIFICANT_DIGITS - _GROUP * weight
    elif step == ROOT_STEP:
        shown = SIGNIFICANT_DIGITS - (2 * (exponent // 2) + 1)
    else:
        toward_zero = exponent < 0 and magnitude != 10**below
        shown = SIGNIFICANT_DIGITS - exponent - toward_zero
    return _without_hidden(unscaled, scale, max(0, shown, least))


def _without_hidden(unscaled: int, scale: int, shown: int) -> int:
    """``shown``, or as many digits as it takes to hide nothing but zeros."""
    while shown < scale and unscaled % 10 ** (scale - shown):
        shown += 1
    return min(shown, scale)


_OF_ZERO: Final = {QUOTIENT_STEP: 20, ROOT_STEP: 15, LOGARITHM_STEP: 16, TRIMMED_STEP: 0}


def _bounded(scale: int, *operands: Numeric) -> int:
    return min(max(scale, 0, *(operand.scale for operand in operands)), _SCALE_MAX)


def divide(left: Numeric, right: Numeric) -> Numeric:
    """Raises DivisionByZero."""
    if not right.unscaled:
        raise DivisionByZero("division by zero")
    scale = _bounded(significant_scale(left, right), left, right)
    shift = scale + right.scale - left.scale
    numerator = left.unscaled * 10 ** max(0, shift)
    return Numeric(rounded(numerator, right.unscaled * 10 ** max(0, -shift)), scale)


def square_root(value: Numeric) -> Numeric:
    """Raises InvalidArgument for a negative number."""
    if value.unscaled < 0:
        raise InvalidArgument("cannot take square root of a negative number")
    weight = value.weight
    scale = _bounded(SIGNIFICANT_DIGITS - (2 * weight + 1), value)
    shift = 2 * scale - value.scale
    if shift >= 0:
        radicand = value.unscaled * 10**shift
        root = math.isqrt(radicand)
        return Numeric(root + (radicand - root * root > root), scale)
    # more digits than twice the result's: those that are dropped only matter for rounding
    root = math.isqrt(value.unscaled * 10 ** (value.scale % 2))
    return at_scale(Numeric(root, (value.scale + 1) // 2), scale)


def exponential(value: Numeric) -> Numeric:
    """Raises NumericOverflow for results beyond any DECIMAL."""
    exact = value.exact()
    weight = max(-2000.0, min(2000.0, float(exact) * _LOG10_E))
    if weight >= _RESULT_DIGITS_MAX:
        raise _overflow()
    scale = _bounded(SIGNIFICANT_DIGITS - int(weight), value)
    if weight < -scale - 1:
        return Numeric(0, scale)
    context = _context(scale + int(abs(weight)))
    return _quantized(context.exp(exact), scale)


def natural_logarithm(value: Numeric) -> Numeric:
    """Raises InvalidLogarithmArgument unless ``value`` is positive."""
    _require_positive(value)
    scale = _bounded(SIGNIFICANT_DIGITS - _logarithm_weight(value), value)
    context = _context(scale + 10)
    return _quantized(context.ln(value.exact()), scale)


def logarithm(base: Numeric, value: Numeric) -> Numeric:
    """Raises InvalidLogarithmArgument unless both are positive, DivisionByZero for base 1."""
    _require_positive(base)
    _require_positive(value)
    weight = _logarithm_weight(value) - _logarithm_weight(base)
    scale = _bounded(SIGNIFICANT_DIGITS - weight, base, value)
    context = _context(scale + abs(weight) + 20)
    divisor = context.ln(base.exact())
    if not divisor:
        raise DivisionByZero("division by zero")
    return _quantized(context.divide(context.ln(value.exact()), divisor), scale)


def power(base: Numeric, exponent: Numeric) -> Numeric:
    """Raises InvalidArgument where the result is undefined or complex, NumericOverflow beyond any
    DECIMAL."""
    whole, rest = divmod(exponent.unscaled, 10**exponent.scale)
    if not base.unscaled and exponent.unscaled < 0:
        raise InvalidArgument("zero raised to a negative power is undefined")
    if base.unscaled < 0 and rest:
        raise InvalidArgument(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if not rest and -_INT32 <= whole < _INT32:
        return _whole_power(base, whole)
    if not base.unscaled:
        return Numeric(0, SIGNIFICANT_DIGITS)
    positive = Numeric(abs(base.unscaled), base.scale)
    context = _context(30)
    estimate = context.multiply(context.ln(positive.exact()), exponent.exact())
    weight = max(-6000.0, min(6000.0, float(estimate) * _LOG10_E))
    if weight >= _RESULT_DIGITS_MAX:
        raise _overflow()
    if weight < -_SCALE_MAX:
        return Numeric(0, _SCALE_MAX)
    scale = _bounded(SIGNIFICANT_DIGITS - int(weight), base, exponent)
    context = _context(scale + int(abs(weight)))
    return _quantized(context.power(base.exact(), exponent.exact()), scale)


def _whole_power(base: Numeric, exponent: int) -> Numeric:
    scale = _bounded(SIGNIFICANT_DIGITS, base)
    if exponent == 0:
        return Numeric(10**scale, scale)
    if not base.unscaled:
        return Numeric(0, scale)
    size = (math.log10(abs(base.unscaled)) - base.scale) * exponent
    if size >= _RESULT_DIGITS_MAX:
        raise _overflow()
    if size < -scale - 1:
        return Numeric(0, scale)
    context = _context(scale + int(abs(size)))
    return _quantized(context.power(base.exact(), Decimal(exponent)), scale)


def _logarithm_weight(value: Numeric) -> int:
    """PostgreSQL's estimate of the decimal exponent of ``ln(value)``, for its scale."""
    unscaled, scale = value
    power = 10**scale
    if 10 * unscaled >= 9 * power and 10 * unscaled <= 11 * power:
        rest = Numeric(unscaled - power, scale)  # ln(1 + x) is about x
        if not rest.unscaled:
            return 0
        return rest.weight * _GROUP + int(math.log10(rest.first_group))
    weight = value.weight * _GROUP
    digits = value.first_group
    shift = weight + scale
    following = unscaled * 10 ** max(0, _GROUP - shift) // 10 ** max(0, shift - _GROUP)
    if unscaled % 10 ** max(0, shift):  # a second group that is not all zero to the end
        digits, weight = following, weight - _GROUP
    estimate = math.log(digits) + weight * _LN_10
    return int(math.log10(abs(estimate))) if estimate else 0


def _require_positive(value: Numeric) -> None:
    if not value.unscaled:
        raise InvalidLogarithmArgument("cannot take logarithm of zero")
    if value.unscaled < 0:
        raise InvalidLogarithmArgument("cannot take logarithm of a negative number")


def _context(digits: int) -> decimal.Context:
    """A context for results of about ``digits`` digits, with more for the last rounding."""
    return decimal.Context(
        prec=max(30, digits + 2 * _GUARD_DIGITS),
        rounding=decimal.ROUND_HALF_EVEN,
        Emax=decimal.MAX_EMAX,
        Emin=decimal.MIN_EMIN,
        traps=[decimal.InvalidOperation],
    )


def _quantized(value: Decimal, scale: int) -> Numeric:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    magnitude = int("".join(map(str, digits)))
    found = Numeric(-magnitude if sign else magnitude, max(0, -exponent))
    if exponent > 0:
        found = Numeric(found.unscaled * 10**exponent, 0)
    return at_scale(found, scale)


def _overflow() -> NumericOverflow:
    return NumericOverflow("value overflows numeric format")


EXACT_FUNCTIONS: Final[Mapping[str, Callable[..., Numeric]]] = {
    "sqrt": square_root,
    "exp": exponential,
    "ln": natural_logarithm,
    "log10": lambda value: logarithm(Numeric(10, 0), value),
    "log": logarithm,
    "power": power,
}
"""The functions of SQL above, by name."""
