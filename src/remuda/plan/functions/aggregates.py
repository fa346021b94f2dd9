"""The aggregates: types of arguments and results, and how their states may be combined."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from remuda.datatypes.coercion import as_decimal, is_comparable
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTERVAL,
    JSON,
    VARCHAR,
    Kind,
    SqlType,
    array,
    decimal,
)
from remuda.plan.expression import AggregateCall, Expression
from remuda.plan.functions.signatures import (
    AggregateFunction,
    Resolver,
    Signature,
    StateForm,
    Types,
    fixed,
    least_digits,
    overloads,
    quotient_decimal,
    scaled,
    shown_like,
    unknown,
)


def _sum(types: Types) -> Signature | None:
    if len(types) != 1:
        return None
    t = types[0]
    if t.kind is Kind.BIGINT:
        return Signature((t,), decimal(DECIMAL_PRECISION_MAX, 0))
    if t.is_integer:
        return Signature((t,), BIGINT)
    if t.kind is Kind.DECIMAL:
        return Signature((t,), shown_like(decimal(DECIMAL_PRECISION_MAX, t.scale or 0), t))
    return Signature((t,), t) if t.is_float or t == INTERVAL else None


def _avg(types: Types) -> Signature | None:
    if len(types) != 1:
        return None
    t = types[0]
    if t.is_integer or t.kind is Kind.DECIMAL:
        precision, scale = scaled(as_decimal(t))
        return Signature((t,), quotient_decimal(precision - scale, least_digits(t)))
    if t == INTERVAL:
        return Signature((t,), t)
    return Signature((t,), DOUBLE) if t.is_float else None


def _settled(t: SqlType) -> SqlType:
    return VARCHAR if unknown(t) else t


def _extreme(types: Types) -> Signature | None:
    if len(types) != 1:
        return None
    t = _settled(types[0])
    return Signature((t,), t) if is_comparable(t) and t != BOOLEAN else None


def _counting(types: Types) -> Signature | None:
    return Signature((_settled(types[0]),), BIGINT) if len(types) == 1 else None


def _counting_distinct(types: Types) -> Signature | None:
    return _counting(types) if all(is_comparable(_settled(t)) for t in types) else None


def _any_value(types: Types) -> Signature | None:
    if len(types) != 1:
        return None
    t = _settled(types[0])
    return Signature((t,), t)


def _value_at_extreme(types: Types) -> Signature | None:
    """``min_by(value, key)``"""
    if len(types) != 2:
        return None
    value, key = _settled(types[0]), _settled(types[1])
    return Signature((value, key), value) if is_comparable(key) else None


def _spread(types: Types) -> Signature | None:
    """stddev and variance: exact arguments keep their type, the result is DOUBLE PRECISION."""
    if len(types) != 1:
        return None
    t = DOUBLE if unknown(types[0]) else types[0]
    return Signature((t,), DOUBLE) if t.is_numeric else None


def _bits(types: Types) -> Signature | None:
    return Signature(types, types[0]) if len(types) == 1 and types[0].is_integer else None


def _percentile(types: Types) -> Signature | None:
    """(sorted value, fraction or array of fractions)"""
    one = fixed(DOUBLE, DOUBLE, DOUBLE)(types)
    if one is None and _fractions(types) and fixed(DOUBLE, DOUBLE)(types[:1]) is not None:
        return Signature((DOUBLE, array(DOUBLE)), array(DOUBLE))
    return one


def _fractions(types: Types) -> bool:
    return len(types) == 2 and types[1].element is not None and types[1].element.is_numeric


def _discrete_percentile(types: Types) -> Signature | None:
    """(sorted value, fraction or array of fractions)"""
    t = _settled(types[0]) if types else VARCHAR
    if _fractions(types) and is_comparable(t) and t.element is None:
        return Signature((t, array(DOUBLE)), array(t))
    if len(types) != 2 or fixed(DOUBLE, DOUBLE)(types[1:]) is None:
        return None
    return Signature((t, DOUBLE), t) if is_comparable(t) else None


def _mode(types: Types) -> Signature | None:
    if len(types) != 1:
        return None
    t = _settled(types[0])
    return Signature((t,), t) if is_comparable(t) else None


def _gathered(types: Types) -> Signature | None:
    """array_agg: arrays cannot be elements."""
    if len(types) != 1 or types[0].element is not None:
        return None
    t = _settled(types[0])
    return Signature((t,), array(t))


def _json_gathered(count: int) -> Resolver:
    def resolve(types: Types) -> Signature | None:
        settled = tuple(_settled(t) for t in types)
        return Signature(settled, JSON) if len(types) == count else None

    return resolve


_ONE_BOOLEAN: Final = fixed(BOOLEAN, BOOLEAN)
_PAIR: Final = fixed(DOUBLE, DOUBLE, DOUBLE)
_STRINGS: Final = overloads(fixed(VARCHAR, VARCHAR, VARCHAR), fixed(BYTEA, BYTEA, BYTEA))


_PACKED, _ROWS = StateForm.PACKED, StateForm.ROWS
_function = AggregateFunction

FUNCTIONS: Final = (
    _function("count", _counting, "rows, or rows where the argument is not NULL", counts=True,
              oid=2147, combine="sum"),
    _function("sum", _sum, oid=2107, combine="sum"),
    _function("avg", _avg, oid=2100),
    _function("min", _extreme, oid=2051, combine="min", idempotent=True),
    _function("max", _extreme, oid=2050, combine="max", idempotent=True),
    _function("any_value", _any_value, "of some row, if possible not NULL", idempotent=True),
    _function("bool_and", _ONE_BOOLEAN, "true if all are", oid=2517, combine="bool_and",
              idempotent=True, on_spark=True),
    _function("bool_or", _ONE_BOOLEAN, "true if any is", oid=2518, combine="bool_or",
              idempotent=True, on_spark=True),
    _function("bit_and", _bits, oid=2236, combine="bit_and", idempotent=True, on_spark=True),
    _function("bit_or", _bits, oid=2237, combine="bit_or", idempotent=True, on_spark=True),
    _function("bit_xor", _bits, oid=6164, combine="bit_xor", on_spark=True),
    _function("stddev_samp", _spread, "standard deviation of a sample", _PACKED, oid=2712,
              on_spark=True),
    _function("stddev_pop", _spread, "standard deviation of all", _PACKED, oid=2724, on_spark=True),
    _function("var_samp", _spread, "the square of stddev_samp", _PACKED, oid=2641, on_spark=True),
    _function("var_pop", _spread, "the square of stddev_pop", _PACKED, oid=2718, on_spark=True),
    _function("corr", _PAIR, "(y, x): correlation", _PACKED, oid=2829, on_spark=True),
    _function("covar_pop", _PAIR, "(y, x): covariance", _PACKED, oid=2827, on_spark=True),
    _function("covar_samp", _PAIR, "(y, x): covariance of a sample", _PACKED, oid=2828,
              on_spark=True),
    _function("regr_count", fixed(BIGINT, DOUBLE, DOUBLE), "(y, x): rows without NULL", _PACKED,
              counts=True, oid=2818),
    _function("regr_avgx", _PAIR, "(y, x): mean of x", _PACKED, oid=2822),
    _function("regr_avgy", _PAIR, "(y, x): mean of y", _PACKED, oid=2823),
    _function("regr_sxx", _PAIR, "(y, x): sum of squares of x about its mean", _PACKED, oid=2819),
    _function("regr_syy", _PAIR, "(y, x): sum of squares of y about its mean", _PACKED, oid=2820),
    _function("regr_sxy", _PAIR, "(y, x): sum of products about the means", _PACKED, oid=2821),
    _function("regr_slope", _PAIR, "(y, x): of the line of least squares", _PACKED, oid=2825),
    _function("regr_intercept", _PAIR, "(y, x): of the line of least squares", _PACKED, oid=2826),
    _function("regr_r2", _PAIR, "(y, x): square of the correlation", _PACKED, oid=2824),
    _function("approx_count_distinct", _counting_distinct, "within about 1 percent", _PACKED,
              counts=True),
    _function("min_by", _value_at_extreme, "(value, key): value where key is smallest", _ROWS),
    _function("max_by", _value_at_extreme, "(value, key): value where key is largest", _ROWS),
    _function("string_agg", _STRINGS, "(text, delimiter)", _ROWS, ordered=True, oid=3538),
    _function("array_agg", _gathered, "all values, NULLs as well, as an array", _ROWS, ordered=True,
              oid=2335, keeps_nulls=True),
    _function("jsonb_agg", _json_gathered(1), "all values as a JSON array", _ROWS, ordered=True,
              oid=3267, keeps_nulls=True),
    _function("jsonb_object_agg", _json_gathered(2), "(key, value): a JSON object", _ROWS,
              ordered=True, oid=3270, keeps_nulls=True),
    _function("median", fixed(DOUBLE, DOUBLE), "the middle, or the mean of both", _ROWS),
    _function("percentile_cont", _percentile, "(fraction): interpolated", _ROWS, within_group=True,
              oid=3974),
    _function("percentile_disc", _discrete_percentile, "(fraction): a value that occurs", _ROWS,
              within_group=True, oid=3972),
    _function("mode", _mode, "the most frequent value", _ROWS, within_group=True, oid=3984),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {
    "every": "bool_and",
    "json_agg": "jsonb_agg",
    "json_object_agg": "jsonb_object_agg",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "arg_min": "min_by",
    "arg_max": "max_by",
}
"""Other SQL names -> catalog names, same arguments."""

_CATALOG: Final[dict[str, AggregateFunction]] = {function.name: function for function in FUNCTIONS}


def aggregate_function(name: str) -> AggregateFunction:
    """The function of a call in a plan, where no alias occurs."""
    return _CATALOG[name]


def combining(call: AggregateCall, part: Expression) -> AggregateCall:
    """The call that makes the result of ``call`` of its results over parts of the rows, which are
    in the column ``part``. Only for functions with ``combine``."""
    function = aggregate_function(call.function).combine
    return replace(call, function=function, argument=part, filter=None)


def splits(call: AggregateCall) -> bool:
    """Whether members can aggregate their own rows first, and combine their states later."""
    return (
        not call.distinct and not call.order and _CATALOG[call.function].state is not StateForm.ROWS
    )


def state_type(call: AggregateCall) -> SqlType:
    """The type of the column in which the state of a call travels between members."""
    return BYTEA if _CATALOG[call.function].state is StateForm.PACKED else call.type


def never_null(function: str) -> bool:
    """Whether an aggregate gives a number, 0, over no rows."""
    return _CATALOG[function].counts
