"""The aggregates: types of arguments and results, and how their states may be combined."""

from __future__ import annotations

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
from remuda.plan.expression import AggregateCall
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


def _function(
    name: str,
    resolve: Resolver,
    summary: str = "",
    state: StateForm = StateForm.RESULT,
    *,
    counts: bool = False,
    ordered: bool = False,
    within_group: bool = False,
) -> AggregateFunction:
    return AggregateFunction(name, resolve, summary, state, counts, ordered, within_group)


_PACKED, _ROWS = StateForm.PACKED, StateForm.ROWS

FUNCTIONS: Final = (
    _function("count", _counting, "rows, or rows where the argument is not NULL", counts=True),
    _function("sum", _sum),
    _function("avg", _avg),
    _function("min", _extreme),
    _function("max", _extreme),
    _function("any_value", _any_value, "of some row, if possible not NULL"),
    _function("bool_and", _ONE_BOOLEAN, "true if all are"),
    _function("bool_or", _ONE_BOOLEAN, "true if any is"),
    _function("bit_and", _bits),
    _function("bit_or", _bits),
    _function("bit_xor", _bits),
    _function("stddev_samp", _spread, "standard deviation of a sample", _PACKED),
    _function("stddev_pop", _spread, "standard deviation of all", _PACKED),
    _function("var_samp", _spread, "the square of stddev_samp", _PACKED),
    _function("var_pop", _spread, "the square of stddev_pop", _PACKED),
    _function("corr", _PAIR, "(y, x): correlation", _PACKED),
    _function("covar_pop", _PAIR, "(y, x): covariance", _PACKED),
    _function("covar_samp", _PAIR, "(y, x): covariance of a sample", _PACKED),
    _function("regr_count", fixed(BIGINT, DOUBLE, DOUBLE), "(y, x): rows without NULL", _PACKED,
              counts=True),
    _function("regr_avgx", _PAIR, "(y, x): mean of x", _PACKED),
    _function("regr_avgy", _PAIR, "(y, x): mean of y", _PACKED),
    _function("regr_sxx", _PAIR, "(y, x): sum of squares of x about its mean", _PACKED),
    _function("regr_syy", _PAIR, "(y, x): sum of squares of y about its mean", _PACKED),
    _function("regr_sxy", _PAIR, "(y, x): sum of products about the means", _PACKED),
    _function("regr_slope", _PAIR, "(y, x): of the line of least squares", _PACKED),
    _function("regr_intercept", _PAIR, "(y, x): of the line of least squares", _PACKED),
    _function("regr_r2", _PAIR, "(y, x): square of the correlation", _PACKED),
    _function("approx_count_distinct", _counting_distinct, "within about 1 percent", _PACKED,
              counts=True),
    _function("min_by", _value_at_extreme, "(value, key): value where key is smallest", _ROWS),
    _function("max_by", _value_at_extreme, "(value, key): value where key is largest", _ROWS),
    _function("string_agg", _STRINGS, "(text, delimiter)", _ROWS, ordered=True),
    _function("array_agg", _gathered, "all values, NULLs as well, as an array", _ROWS,
              ordered=True),
    _function("jsonb_agg", _json_gathered(1), "all values as a JSON array", _ROWS, ordered=True),
    _function("jsonb_object_agg", _json_gathered(2), "(key, value): a JSON object", _ROWS,
              ordered=True),
    _function("median", fixed(DOUBLE, DOUBLE), "the middle, or the mean of both", _ROWS),
    _function("percentile_cont", _percentile, "(fraction): interpolated", _ROWS,
              within_group=True),
    _function("percentile_disc", _discrete_percentile, "(fraction): a value that occurs", _ROWS,
              within_group=True),
    _function("mode", _mode, "the most frequent value", _ROWS, within_group=True),
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
