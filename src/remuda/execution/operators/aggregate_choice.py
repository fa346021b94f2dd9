"""Which state computes an aggregate call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from remuda.datatypes.sql import INTERVAL, Kind, SqlType
from remuda.errors import InternalError
from remuda.execution.operators.aggregate_states import (
    AnyValueState,
    BitState,
    CountState,
    ExactSumState,
    ExtremeState,
    FloatSumState,
    ObjectExtremeState,
    State,
)
from remuda.execution.operators.collected import (
    ExtremeRowState,
    JoinedState,
    ModeState,
    PercentileState,
)
from remuda.execution.operators.collecting import ArrayState, JsonArrayState, JsonObjectState
from remuda.execution.operators.distinct_estimate import DistinctEstimateState
from remuda.execution.operators.keyed_states import IntervalSumState, KeyedExtremeState
from remuda.execution.operators.moments import RegressionState, SpreadState
from remuda.execution.operators.ordering import BoundKey

Types: TypeAlias = Sequence[SqlType]
Keys: TypeAlias = Sequence[BoundKey]
_Maker: TypeAlias = Callable[[str, Types, SqlType, Keys], State]


def _sum(_: str, types: Types, result: SqlType, _keys: Keys) -> State:
    if types[0] == INTERVAL:
        return IntervalSumState(result)
    return FloatSumState(result) if types[0].is_float else ExactSumState(result)


def _extreme(function: str, types: Types, result: SqlType, _keys: Keys) -> State:
    argument, largest = types[0], function in ("max", "bool_or")
    if argument.ordered_by_key:
        return KeyedExtremeState(result, largest)
    wide = argument.kind is Kind.DECIMAL and not argument.is_short_decimal
    if wide or argument.is_text or argument.holds_bytes:
        return ObjectExtremeState(result, largest)
    return ExtremeState(result, largest)


def _extreme_row(function: str, types: Types, result: SqlType, _keys: Keys) -> State:
    return ExtremeRowState(result, types, largest=function == "max_by")


def _spread(function: str, types: Types, result: SqlType, _keys: Keys) -> State:
    return SpreadState(function, types[0], result)


def _regression(function: str, _: Types, result: SqlType, _keys: Keys) -> State:
    return RegressionState(function, result)


def _median(function: str, types: Types, result: SqlType, _: Keys) -> State:
    return PercentileState(function, types, result, [BoundKey(0, types[0])])


_MAKERS: Final[dict[str, _Maker]] = {
    "count": lambda _, _types, result, _keys: CountState(result),
    "sum": _sum,
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), _extreme),
    "any_value": lambda _, _types, result, _keys: AnyValueState(result),
    **dict.fromkeys(
        ("bit_and", "bit_or", "bit_xor"),
        lambda function, _types, result, _keys: BitState(function, result),
    ),
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), _spread),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), _regression),
    **dict.fromkeys(("regr_count", "regr_avgx", "regr_avgy", "regr_r2"), _regression),
    **dict.fromkeys(("regr_sxx", "regr_syy", "regr_sxy"), _regression),
    **dict.fromkeys(("regr_slope", "regr_intercept"), _regression),
    "approx_count_distinct": lambda _, types, result, _keys: DistinctEstimateState(
        types[0], result
    ),
    **dict.fromkeys(("min_by", "max_by"), _extreme_row),
    "array_agg": lambda _, types, result, keys: ArrayState(result, types, keys),
    "jsonb_agg": lambda _, types, result, keys: JsonArrayState(result, types, keys),
    "jsonb_object_agg": lambda _, types, result, keys: JsonObjectState(result, types, keys),
    "string_agg": lambda _, types, result, keys: JoinedState(result, types, keys),
    "median": _median,
    **dict.fromkeys(("percentile_cont", "percentile_disc"), PercentileState),
    "mode": lambda _, types, result, keys: ModeState(result, types, keys),
}


def new_state(function: str, types: Types, result: SqlType, keys: Keys = ()) -> State:
    """``types`` are those of the columns that ``add_columns`` will be given; the last ones may be
    sort columns, which ``keys`` name by position."""
    make = _MAKERS.get(function)
    if make is None:
        raise InternalError(f"aggregate function {function} has no implementation")
    return make(function, types, result, keys)
