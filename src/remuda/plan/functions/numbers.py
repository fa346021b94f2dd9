"""Functions of mathematics: types of arguments and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from remuda.datatypes.coercion import as_decimal, common_type, is_implicit
from remuda.datatypes.sql import (
    BIGINT,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    LOGARITHM_STEP,
    ROOT_STEP,
    TRIMMED_STEP,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)
from remuda.plan.functions.signatures import (
    NullRule,
    Resolver,
    ScalarFunction,
    Signature,
    Types,
    bounded_decimal,
    fixed,
    inexact_decimal,
    same_numeric,
    scaled,
    unknown,
)

_MATH_1 = fixed(DOUBLE, DOUBLE)


def _whole(types: Types) -> Signature | None:
    """``ceil``, ``floor``: DECIMAL(p,s) -> DECIMAL without fraction; all others -> DOUBLE."""
    if len(types) != 1:
        return None
    t = types[0]
    if t.kind is Kind.DECIMAL:
        precision, scale = scaled(t)
        return Signature((t,), bounded_decimal(precision - scale + 1, 0))
    return Signature((DOUBLE,), DOUBLE) if t.is_numeric or unknown(t) else None


def _rounding(types: Types) -> Signature | None:
    """``round``, ``trunc``: like ``ceil`` with one argument; with digits DECIMAL keeps its scale
    (``with_digits`` sharpens it for literal digits), and DOUBLE is allowed as well."""
    if len(types) == 1:
        return _whole(types)
    if len(types) != 2 or not (unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    t = types[0]
    if t.is_float or unknown(t):
        return Signature((DOUBLE, INTEGER), DOUBLE)
    if not t.is_numeric:
        return None
    t = as_decimal(t)
    precision, scale = scaled(t)
    return Signature((t, INTEGER), bounded_decimal(precision + 1, scale))


def with_digits(signature: Signature, digits: int) -> Signature:
    """The signature of ``round(DECIMAL, digits)`` for known digits: the result has that scale, as
    far as its digits before the point leave room for it."""
    argument = signature.arguments[0]
    if argument.kind is not Kind.DECIMAL:
        return signature
    precision, scale = scaled(argument)
    room = max(scale, DECIMAL_PRECISION_MAX - (precision - scale + 1))
    new_scale = min(room, max(0, digits))
    result = bounded_decimal(precision - scale + 1 + new_scale, new_scale)
    return dataclasses.replace(signature, result=result)


def _sign(types: Types) -> Signature | None:
    if len(types) == 1 and types[0].kind is Kind.DECIMAL:
        return Signature(types, decimal(1, 0))
    return fixed(DOUBLE, DOUBLE)(types)


def _integers(count: int) -> Resolver:
    """Integers of one type, which is that of the result: that of the widest argument."""

    def resolve(types: Types) -> Signature | None:
        if len(types) != count or not all(t.is_integer or unknown(t) for t in types):
            return None
        common = (
            common_type(t for t in types if not unknown(t))
            if any(not unknown(t) for t in types)
            else INTEGER
        )
        return None if common is None else Signature((common,) * count, common)

    return resolve


def _shift(types: Types) -> Signature | None:
    """(integer, bits)"""
    if len(types) != 2 or not types[0].is_integer:
        return None
    if not (unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    return Signature((types[0], INTEGER), types[0])


def _divisors(types: Types) -> Signature | None:
    """``gcd``, ``lcm``: integers, or decimals at one scale."""
    found = _integers(2)(types)
    if found is not None or len(types) != 2:
        return found
    if not all(t.is_integer or t.kind is Kind.DECIMAL for t in types):
        return None
    left, right = scaled(as_decimal(types[0])), scaled(as_decimal(types[1]))
    scale = max(left[1], right[1])
    both = bounded_decimal(max(left[0] - left[1], right[0] - right[1]) + scale, scale)
    return Signature((both, both), both)


def _multiples(types: Types) -> Signature | None:
    found = _divisors(types)
    if found is None or found.result.kind is not Kind.DECIMAL:
        return found
    return dataclasses.replace(found, result=bounded_decimal(38, found.result.scale or 0))


def _whole_quotient(types: Types) -> Signature | None:
    """``div``: the quotient of exact numbers without its fraction."""
    if len(types) != 2 or any(t.is_float or not t.is_numeric for t in types):
        return None
    left, right = as_decimal(types[0]), as_decimal(types[1])
    (p1, s1), (_, s2) = scaled(left), scaled(right)
    return Signature((left, right), bounded_decimal(p1 - s1 + s2, 0))


def _decimal_digits(types: Types) -> Signature | None:
    """``scale``, ``min_scale``"""
    if len(types) != 1 or types[0].is_float or not types[0].is_numeric:
        return None
    return Signature((as_decimal(types[0]),), INTEGER)


def _trimmed_scale(types: Types) -> Signature | None:
    if len(types) != 1 or types[0].is_float or not types[0].is_numeric:
        return None
    t = as_decimal(types[0])
    return Signature((t,), dataclasses.replace(t, digits=(TRIMMED_STEP, 0)))


def _bucket(types: Types) -> Signature | None:
    """(value, low, high, count)"""
    if len(types) != 4 or not (unknown(types[3]) or is_implicit(types[3], INTEGER)):
        return None
    if any(t.is_float for t in types[:3]) or all(unknown(t) for t in types[:3]):
        return fixed(INTEGER, DOUBLE, DOUBLE, DOUBLE, INTEGER)(types)
    if not all(t.is_numeric or unknown(t) for t in types[:3]):
        return None
    common = common_type(as_decimal(t) for t in types[:3] if not unknown(t))
    if common is None:
        return None
    return Signature((common, common, common, INTEGER), INTEGER)


def _counted_nulls(types: Types) -> Signature | None:
    kept = tuple(VARCHAR if unknown(t) else t for t in types)
    return Signature(kept, INTEGER) if types else None


def _exact_or(
    types: Types, count: int, result: Callable[[tuple[SqlType, ...]], SqlType], integers: SqlType
) -> Signature | None:
    """An exact result if an argument is DECIMAL and none is REAL or DOUBLE; integers alone compute
    as ``integers`` says."""
    if len(types) != count or not all(t.is_numeric or unknown(t) for t in types):
        return None
    exact = [t for t in types if t.is_integer or t.kind is Kind.DECIMAL]
    if integers == DOUBLE and all(t.is_integer for t in exact):
        return fixed(DOUBLE, *(DOUBLE,) * count)(types)
    if not exact or any(t.is_float for t in types):
        return fixed(DOUBLE, *(DOUBLE,) * count)(types)
    known = as_decimal(exact[0])
    settled = tuple(known if unknown(t) else as_decimal(t) for t in types)
    return Signature(settled, result(settled))


def _root(types: Types) -> Signature | None:
    def result(arguments: tuple[SqlType, ...]) -> SqlType:
        precision, scale = scaled(arguments[0])
        return inexact_decimal((precision - scale + 1) // 2 or 1, scale, ROOT_STEP)

    return _exact_or(types, 1, result, DOUBLE)


def _logarithm(count: int, integers: SqlType) -> Resolver:
    def result(arguments: tuple[SqlType, ...]) -> SqlType:
        least = max(t.scale or 0 for t in arguments)
        return inexact_decimal(None, least, LOGARITHM_STEP)

    return lambda types: _exact_or(types, count, result, integers)


def _exponential(count: int) -> Resolver:
    """``exp``, ``power``: 22 digits before the point, because results may be large."""

    def result(arguments: tuple[SqlType, ...]) -> SqlType:
        least = max(t.scale or 0 for t in arguments)
        return inexact_decimal(_WHOLE_DIGITS_OF_POWERS, least, LOGARITHM_STEP)

    return lambda types: _exact_or(types, count, result, DOUBLE)


def with_exponent(signature: Signature, exponent: int) -> Signature:
    """The signature of ``power(DECIMAL, exponent)`` for a known whole exponent: PostgreSQL shows 16
    digits after the point then, and the size of the result follows from the argument's type."""
    if signature.result.kind is not Kind.DECIMAL:
        return signature
    precision, scale = scaled(signature.arguments[0])
    room = DECIMAL_PRECISION_MAX - max(1, precision - scale) * abs(exponent)
    least = max(_DIGITS_OF_POWERS, scale)
    result = decimal(DECIMAL_PRECISION_MAX, min(least, max(room, scale * abs(exponent))))
    return dataclasses.replace(signature, result=result if room > 0 else signature.result)


_WHOLE_DIGITS_OF_POWERS: Final = 22
_DIGITS_OF_POWERS: Final = 16
_TRIGONOMETRY: Final = (
    "sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "sind", "cosd", "tand", "cotd", "asind", "acosd", "atand",
)  # fmt: skip

FUNCTIONS: Final = (
    ScalarFunction("abs", same_numeric, raises=True),
    ScalarFunction("ceil", _whole),
    ScalarFunction("floor", _whole),
    ScalarFunction("round", _rounding, summary="half away from zero (DOUBLE: half to even)"),
    ScalarFunction("trunc", _rounding, summary="towards zero"),
    ScalarFunction("sqrt", _root, raises=True),
    ScalarFunction("power", _exponential(2), raises=True),
    ScalarFunction("exp", _exponential(1), raises=True),
    ScalarFunction("ln", _logarithm(1, DOUBLE), raises=True),
    ScalarFunction("log10", _logarithm(1, DOUBLE), raises=True),
    ScalarFunction("log", _logarithm(2, INTEGER), summary="base, number", raises=True),
    ScalarFunction("cbrt", _MATH_1, summary="cube root"),
    ScalarFunction("sign", _sign),
    ScalarFunction("pi", fixed(DOUBLE)),
    ScalarFunction("degrees", _MATH_1, raises=True),
    ScalarFunction("radians", _MATH_1),
    *(ScalarFunction(name, _MATH_1, raises=True) for name in _TRIGONOMETRY),
    ScalarFunction("atan2", fixed(DOUBLE, DOUBLE, DOUBLE), summary="y, x"),
    ScalarFunction("atan2d", fixed(DOUBLE, DOUBLE, DOUBLE), summary="y, x, in degrees"),
    ScalarFunction("div", _whole_quotient, summary="quotient without its fraction", raises=True),
    ScalarFunction("gcd", _divisors, summary="greatest common divisor", raises=True),
    ScalarFunction("lcm", _multiples, summary="least common multiple", raises=True),
    ScalarFunction("factorial", fixed(decimal(38, 0), BIGINT), raises=True),
    ScalarFunction("width_bucket", _bucket, summary="value, low, high, count: from 1, 0 is below",
                   raises=True),
    ScalarFunction("scale", _decimal_digits, summary="digits after the point"),
    ScalarFunction("min_scale", _decimal_digits, summary="digits after the point that are needed"),
    ScalarFunction("trim_scale", _trimmed_scale, summary="without zeros at the end"),
    ScalarFunction("&", _integers(2), summary="bits of both"),
    ScalarFunction("|", _integers(2), summary="bits of either"),
    ScalarFunction("#", _integers(2), summary="bits of one of them"),
    ScalarFunction("bit_not", _integers(1), summary="all bits turned"),
    ScalarFunction("<<", _shift, summary="bits to the left"),
    ScalarFunction(">>", _shift, summary="bits to the right, with the sign"),
    ScalarFunction("random", fixed(DOUBLE), NullRule.NEVER, "from 0 up to 1", folds=False),
    ScalarFunction("setseed", fixed(VARCHAR, DOUBLE), folds=False, raises=True,
                   summary="random of the member that runs it begins anew"),
    ScalarFunction("row_count", fixed(BIGINT, BIGINT, VARCHAR), raises=True),
    ScalarFunction("num_nulls", _counted_nulls, NullRule.NEVER, "how many arguments are NULL"),
    ScalarFunction("num_nonnulls", _counted_nulls, NullRule.NEVER, "how many are not"),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {
    "ceiling": "ceil",
    "pow": "power",
    "dlog10": "log10",
}
