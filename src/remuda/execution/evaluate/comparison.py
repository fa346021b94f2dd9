"""``= <> < <= > >=``, IS [NOT] DISTINCT FROM, and IN lists.

NaN equals itself and is larger than every number; -0.0 equals 0.0 (PostgreSQL's order)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.hashes.orderkeys import order_keys
from remuda.datatypes.sql import Kind, SqlType
from remuda.execution.arrays import (
    Mask,
    boolean_array,
    data_of,
    dtype_of,
    mask_of,
    unpack_bits,
    validity_mask,
)
from remuda.execution.evaluate import decimals
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value, is_wide, validity
from remuda.plan.expression import Call

_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARROW: dict[str, Callable[[Any, Any], pa.Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

COMPARISONS = frozenset(_NUMPY)


def comparison(call: Call) -> Kernel:
    compare = comparer(call)
    return lambda values, _: boolean_array(compare(values), validity(*values))


def comparer(call: Call) -> Callable[[list[Value]], Mask]:
    """The comparison as a NumPy mask; it is undefined in NULL rows."""
    return comparer_of(call.function, call.arguments[0].type, call.arguments[1].type)


def comparer_of(function: str, left: SqlType, right: SqlType) -> Callable[[list[Value]], Mask]:
    if left.ordered_by_key:
        return lambda values: _compare_strings(
            function, _order_key(values[0], left), _order_key(values[1], right)
        )
    if Kind.DECIMAL in (left.kind, right.kind):
        return _decimal_comparer(function, left, right)
    if left.is_float or right.is_float:
        return lambda values: compare_floats(function, _plain(values[0]), _plain(values[1]))
    if left.is_text or left.kind in (Kind.BYTEA, Kind.UUID):
        return lambda values: _compare_strings(function, values[0], values[1])
    if left.kind is Kind.BOOLEAN:
        apply_arrow = _ARROW[function]
        return lambda values: _bits(apply_arrow(values[0], values[1]))
    apply = _NUMPY[function]
    return lambda values: apply(_plain(values[0]), _plain(values[1]))


def _order_key(value: Value, type_: SqlType) -> Value:
    if isinstance(value, pa.Array):
        return order_keys(value, type_)
    return order_keys(pa.repeat(value, 1), type_)[0]


def _plain(value: Value) -> Any:
    if isinstance(value, pa.Array):
        return data_of(value)
    dtype = dtype_of(value.type)
    assert dtype is not None
    number = value.value if hasattr(value, "value") else value.as_py()
    return dtype.type(number)


def _bits(result: Value) -> Mask:
    return unpack_bits(result.buffers()[1], result.offset, len(result))


def compare_floats(function: str, left: Any, right: Any) -> Mask:
    result: Mask = _NUMPY[function](left, right)
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if not (left_nan.any() or right_nan.any()):
        return result
    # Where a NaN is involved, NaN counts as 1 and every number as 0.
    involved = left_nan | right_nan
    ranks: Mask = _NUMPY[function](left_nan.astype(np.int8), right_nan.astype(np.int8))
    return np.where(involved, ranks, result)


def _decimal_comparer(
    function: str, left: SqlType, right: SqlType
) -> Callable[[list[Value]], Mask]:
    scale = max(decimals.scale_of(left), decimals.scale_of(right))
    apply = _NUMPY[function]

    def compare(values: list[Value]) -> Mask:
        first = decimals.at_scale(values[0], left, scale)
        second = decimals.at_scale(values[1], right, scale)
        result: Mask = apply(first, second)
        return result.astype(np.bool_) if is_wide(first) or is_wide(second) else result

    return compare


def _compare_strings(function: str, left: Value, right: Value) -> Mask:
    if function in ("=", "<>"):
        if isinstance(left, pa.Scalar):
            left, right = right, left
        if isinstance(right, pa.Scalar):
            equal = equal_to_constant(left, right)
            return equal if function == "=" else ~equal
    return _bits(_ARROW[function](left, right))


def equal_to_constant(array: pa.Array, constant: pa.Scalar) -> Mask:
    """Rows equal to one string: first by length, then byte by byte among those that are left
    (ten times faster than a general comparison)."""
    wanted = constant.as_buffer().to_pybytes()
    rows = len(array)
    buffers = array.buffers()
    if rows == 0 or buffers[1] is None:
        return np.zeros(rows, np.bool_)
    offsets = np.frombuffer(buffers[1], np.int32, rows + 1, 4 * array.offset)
    lengths = offsets[1:] - offsets[:-1]
    result: Mask = lengths == len(wanted)
    if not wanted or buffers[2] is None:
        return result
    if len(wanted) in (1, 2, 4, 8) and result.all():  # flags and codes: compared as numbers
        width = f"u{len(wanted)}"
        numbers = np.frombuffer(buffers[2], width, rows, int(offsets[0]))
        equal: Mask = numbers == np.frombuffer(wanted, width)[0]
        return equal
    data = np.frombuffer(buffers[2], np.uint8)
    candidates = np.flatnonzero(result)
    starts = offsets[:-1].take(candidates)
    for place, byte in enumerate(wanted):
        if not len(candidates):
            break
        same = data.take(starts + place) == byte
        if not same.all():
            candidates, starts = candidates[same], starts[same]
    result = np.zeros(rows, np.bool_)
    result[candidates] = True
    return result


def distinctness(call: Call) -> Callable[[list[Value], int], pa.Array]:
    """IS [NOT] DISTINCT FROM: never NULL. Takes NULL scalars."""
    types = call.arguments[0].type, call.arguments[1].type
    same = comparer_of("=", *types)
    negate = call.function == "is_distinct_from"

    def evaluate(values: list[Value], rows: int) -> pa.Array:
        left, right = (column(value, rows) for value in values)
        left_valid, right_valid = validity_mask(left), validity_mask(right)
        if rows in (left.null_count, right.null_count):
            equal = np.zeros(rows, np.bool_)
        else:
            equal = same([left, right])
        left_valid = np.ones(rows, np.bool_) if left_valid is None else left_valid
        right_valid = np.ones(rows, np.bool_) if right_valid is None else right_valid
        result = np.where(left_valid & right_valid, equal, left_valid == right_valid)
        return boolean_array(~result if negate else result)

    return evaluate


def in_list(operand: SqlType, values: tuple[SqlType, ...]) -> Callable[[list[Value], int], Value]:
    """``operand IN (values)``: TRUE if equal to one, else NULL if any of them was NULL."""
    comparers = [comparer_of("=", operand, type_) for type_ in values]

    def evaluate(arguments: list[Value], rows: int) -> pa.Array:
        needle = column(arguments[0], rows)
        found = np.zeros(rows, np.bool_)
        unknown = np.zeros(rows, np.bool_)
        for same, value in zip(comparers, arguments[1:], strict=True):
            if isinstance(value, pa.Scalar) and not value.is_valid:
                unknown[:] = True
                continue
            equal = same([needle, value])
            if isinstance(value, pa.Array) and value.null_count:
                valid = validity_mask(value)
                assert valid is not None
                equal = equal & valid
                unknown |= ~valid
            found |= equal
        known = found | ~unknown
        needle_valid = validity_mask(needle)
        if needle_valid is not None:
            known &= needle_valid
        if known.all():
            return boolean_array(found)
        return pc.if_else(boolean_array(known), boolean_array(found), pa.scalar(None, pa.bool_()))

    return evaluate


def true_mask(value: Value, rows: int) -> Mask:
    """Where a condition holds: NULL does not."""
    if isinstance(value, pa.Scalar):
        return np.full(rows, value.as_py() is True)
    return mask_of(value)
