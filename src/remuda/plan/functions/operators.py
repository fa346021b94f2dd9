"""Arithmetic, comparisons, logic and conditionals: types of arguments and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.datatypes.coercion import as_decimal, common_type, is_comparable
from remuda.datatypes.sql import (
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    REAL,
    Kind,
    SqlType,
)
from remuda.plan.functions import intervals as function_intervals
from remuda.plan.functions import json as function_json
from remuda.plan.functions.signatures import (
    NullRule,
    Resolver,
    ScalarFunction,
    Signature,
    Types,
    bounded_decimal,
    least_digits,
    overloads,
    quotient_decimal,
    same_numeric,
    same_type,
    scaled,
    shown_like,
    unknown,
)

_OWN, _NEVER = NullRule.OWN, NullRule.NEVER


def comparison(types: Types) -> Signature | None:
    if len(types) != 2:
        return None
    common = common_type(types)
    if common is None or not is_comparable(common):
        return None
    return Signature((common, common), BOOLEAN)


def logical(types: Types) -> Signature | None:
    if not all(unknown(t) or t == BOOLEAN for t in types):
        return None
    return Signature((BOOLEAN,) * len(types), BOOLEAN)


def unary_logical(types: Types) -> Signature | None:
    return logical(types) if len(types) == 1 else None


def null_test(types: Types) -> Signature | None:
    return Signature(types, BOOLEAN) if len(types) == 1 else None


def _single_row(types: Types) -> Signature | None:
    return Signature(types, types[0]) if len(types) == 2 else None


def numeric_pair(types: Types) -> Types | None:
    """Both sides in one family: integers, floats or decimals; None if they have none."""
    if len(types) != 2:
        return None
    left, right = types
    if unknown(left) and unknown(right):
        return None
    left, right = (right if unknown(left) else left), (left if unknown(right) else right)
    if not (left.is_numeric and right.is_numeric):
        return None
    if left.is_float or right.is_float:
        both = REAL if left == REAL and right == REAL else DOUBLE
        return both, both
    if left.kind is Kind.DECIMAL or right.kind is Kind.DECIMAL:
        return as_decimal(left), as_decimal(right)
    common = common_type((left, right))
    return None if common is None else (common, common)


def _additive_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (p2, s2) = scaled(left), scaled(right)
    scale = max(s1, s2)
    result = bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    return shown_like(result, left, right)


_SUM_OF_BIGINT_DIGITS: Final = 19
_PRODUCT_SCALE_MAX: Final = DECIMAL_PRECISION_MAX - 18


def _product_result(left: SqlType, right: SqlType) -> SqlType:
    """PostgreSQL's scale, the sum of both; but 18 digits stay before the point where there could be
    so many."""
    (p1, s1), (p2, s2) = scaled(left), scaled(right)
    scale = s1 + s2
    if p1 + p2 > DECIMAL_PRECISION_MAX:
        scale = min(scale, max(_PRODUCT_SCALE_MAX, s1, s2))
    return shown_like(bounded_decimal(p1 + p2, scale), left, right)


_SCALE_OF_SUMS: Final = 6
"""Digits behind the point of what is summed up, as a rule. The type of a sum, or of another
computed number, has all digits and says little of its size. A type of all digits with more of them
behind the point was written by somebody with large numbers: quotients need the room before it."""


def _quotient_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (_, s2) = scaled(left), scaled(right)
    least = max(least_digits(left), least_digits(right))
    if p1 == DECIMAL_PRECISION_MAX and (s1 <= _SCALE_OF_SUMS or left.digits is not None):
        return quotient_decimal(None if s1 else _SUM_OF_BIGINT_DIGITS, least)
    return quotient_decimal(p1 - s1 + s2, least)


def _remainder_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (p2, s2) = scaled(left), scaled(right)
    scale = max(s1, s2)
    return bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def _arithmetic(decimal_result: Callable[[SqlType, SqlType], SqlType]) -> Resolver:
    def resolve(types: Types) -> Signature | None:
        pair = numeric_pair(types)
        if pair is None:
            return None
        if pair[0].kind is Kind.DECIMAL:
            return Signature(pair, decimal_result(*pair))
        return Signature(pair, pair[0])

    return resolve


def _exact_remainder(types: Types) -> Signature | None:
    """``%`` is not defined on floats, as in PostgreSQL."""
    signature = _arithmetic(_remainder_result)(types)
    return None if signature is None or signature.result.is_float else signature


def _plus(types: Types) -> Signature | None:
    """Numbers; DATE + integer = DATE (days)."""
    if len(types) == 2:
        left, right = types
        if left == DATE and (right.is_integer or unknown(right)) and right.kind is not Kind.BIGINT:
            return Signature((DATE, INTEGER), DATE)
        if right == DATE and left.is_integer and left.kind is not Kind.BIGINT:
            return Signature((INTEGER, DATE), DATE)
    return _arithmetic(_additive_result)(types)


def _minus(types: Types) -> Signature | None:
    """Numbers; DATE - integer = DATE; DATE - DATE = INTEGER (days)."""
    if len(types) == 2:
        left, right = types
        if left == DATE and right == DATE:
            return Signature(types, INTEGER)
        if DATE in types and any(unknown(t) for t in types):
            return Signature((DATE, DATE), INTEGER)
        if left == DATE and right.is_integer and right.kind is not Kind.BIGINT:
            return Signature((DATE, INTEGER), DATE)
    return _arithmetic(_additive_result)(types)


def _nullif(types: Types) -> Signature | None:
    if comparison(types) is None:
        return None
    both = same_type(types)
    assert both is not None
    return both


FUNCTIONS: Final = (
    ScalarFunction("+", overloads(function_intervals.plus, _plus),
                   summary="sum; DATE + days", raises=True),
    ScalarFunction("-", overloads(function_intervals.minus, function_json.without, _minus),
                   summary="difference; DATE - days; days between DATEs", raises=True),
    ScalarFunction("*", overloads(function_intervals.times, _arithmetic(_product_result)),
                   summary="product", raises=True),
    ScalarFunction("/", overloads(function_intervals.divided, _arithmetic(_quotient_result)),
                   summary="quotient; integers truncate", raises=True),
    ScalarFunction("%", _exact_remainder, summary="remainder", raises=True),
    ScalarFunction("neg", overloads(function_intervals.negated, same_numeric),
                   summary="negation", raises=True),
    *(ScalarFunction(name, comparison) for name in ("=", "<>", "<", "<=", ">", ">=")),
    ScalarFunction("is_distinct_from", comparison, _NEVER, "<> with NULL as a value"),
    ScalarFunction("is_not_distinct_from", comparison, _NEVER, "= with NULL as a value"),
    ScalarFunction("and", logical, _OWN, "n-ary, three-valued"),
    ScalarFunction("or", logical, _OWN, "n-ary, three-valued"),
    ScalarFunction("not", unary_logical),
    ScalarFunction("is_null", null_test, _NEVER),
    ScalarFunction("is_not_null", null_test, _NEVER),
    *(
        ScalarFunction(name, unary_logical, _NEVER)
        for name in ("is_true", "is_false", "is_not_true", "is_not_false")
    ),
    ScalarFunction("single_row", _single_row, _OWN, "value, rows", raises=True),
    ScalarFunction("coalesce", same_type, _OWN, "the first that is not NULL"),
    ScalarFunction("nullif", _nullif, _OWN, "NULL if both are equal, else the first"),
    ScalarFunction("greatest", same_type, _OWN, "the largest; NULLs are skipped"),
    ScalarFunction("least", same_type, _OWN, "the smallest; NULLs are skipped"),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {"mod": "%"}
