"""Inexact results of constants, at bind time: the digits that PostgreSQL gives them are known then,
and make the type. Of a column they are not: its type has one scale (decision 0052)."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.coercion import integer_range
from remuda.datatypes.numeric import (
    EXACT_FUNCTIONS,
    Numeric,
    at_scale,
    divide,
)
from remuda.datatypes.sql import DECIMAL_PRECISION_MAX, Kind, SqlType, decimal
from remuda.errors import DataError
from remuda.plan.expression import Call, Cast, Expression, Literal

_INEXACT: Final = {"/": divide, **EXACT_FUNCTIONS}


def folded_quotient(call: Call) -> Literal | None:
    """The value of a division or function of constants whose result is DECIMAL; None for anything
    else, and where it fails: the call is computed, and fails, when its row is needed."""
    if call.function not in _INEXACT or call.type.kind is not Kind.DECIMAL:
        return None
    value = _number(call)
    return None if value is None else _literal(value)


def _literal(value: Numeric) -> Literal | None:
    """``value`` with as many of its digits after the point as a DECIMAL holds."""
    whole = max(0, len(str(abs(value.unscaled))) - value.scale)
    if whole > DECIMAL_PRECISION_MAX:
        return None
    fitting = at_scale(value, min(value.scale, DECIMAL_PRECISION_MAX - whole))
    digits = max(1, len(str(abs(fitting.unscaled))), fitting.scale)
    if digits > DECIMAL_PRECISION_MAX:  # rounding made one digit more
        fitting = at_scale(fitting, fitting.scale - 1)
        digits -= 1
    return Literal(decimal(digits, fitting.scale), fitting.unscaled)


def _number(expression: Expression) -> Numeric | None:
    """The value of an exact constant with PostgreSQL's scale; None if it is none, or fails."""
    match expression:
        case Literal(value=int() as value) if not isinstance(value, bool):
            return _checked(Numeric(value, expression.type.scale or 0), expression.type)
        case Cast(operand=operand) if operand.type.is_integer and _is_exact(expression.type):
            inner = _number(operand)
            if inner is None or expression.type.is_integer:
                return None if inner is None else _checked(inner, expression.type)
            # a function's argument has the scale of its value, not that of the type
            return inner if not expression.type.scale else at_scale(inner, expression.type.scale)
        case Cast(operand=operand) if operand.type.kind is Kind.DECIMAL and _is_exact(
            expression.type
        ):
            inner = _number(operand)
            if inner is None:
                return None
            return _checked(at_scale(inner, expression.type.scale or 0), expression.type)
        case Call(function=function, arguments=arguments) if _is_exact(expression.type):
            values = [_number(argument) for argument in arguments]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                return None
            return _computed(function, known, expression.type)
        case _:
            return None


def _is_exact(t: SqlType) -> bool:
    return t.is_integer or t.kind is Kind.DECIMAL


def _checked(value: Numeric, t: SqlType) -> Numeric | None:
    if t.is_integer:
        low, high = integer_range(t.kind)
        return value if value.scale == 0 and low <= value.unscaled <= high else None
    return value


def _computed(function: str, values: list[Numeric], t: SqlType) -> Numeric | None:
    if function in _INEXACT and not t.is_integer:
        try:
            return _INEXACT[function](*values)
        except DataError:
            return None
    if function == "neg":
        return _checked(Numeric(-values[0].unscaled, values[0].scale), t)
    if function == "abs":
        return _checked(Numeric(abs(values[0].unscaled), values[0].scale), t)
    if function not in ("+", "-", "*"):
        return None
    left, right = values
    if function == "*":
        return _checked(Numeric(left.unscaled * right.unscaled, left.scale + right.scale), t)
    scale = max(left.scale, right.scale)
    first, second = at_scale(left, scale).unscaled, at_scale(right, scale).unscaled
    return _checked(Numeric(first + second if function == "+" else first - second, scale), t)
