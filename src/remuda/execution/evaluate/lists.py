"""Operators and functions of ARRAY over Arrow lists: places and lengths by NumPy, the rare ones
value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.hashes.orderkeys import value_key
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.valuetext import part_text
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.errors import (
    ArraySubscript,
    InternalError,
    InvalidParameterValue,
    LimitExceeded,
    NullNotAllowed,
    UnsupportedValue,
)
from remuda.execution.arrays import (
    Indices,
    array_from,
    boolean_array,
    data_of,
    mask_of,
    pack_bits,
    take,
    take_or_null,
    validity_mask,
)
from remuda.execution.evaluate.comparison import COMPARISONS, comparison
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value, validity
from remuda.execution.evaluate.result_size import gathered
from remuda.execution.evaluate.text import TEXT_FUNCTIONS
from remuda.limits import ROW_SIZE_MAX
from remuda.plan.expression import Call, Literal

OwnNulls: TypeAlias = Callable[[list[Value], int], Value]
"""A function that looks at NULLs itself; its values may be NULL scalars."""
_FILLED_MAX = ROW_SIZE_MAX // 8
"""Elements that array_fill makes: no row holds more of them at 8 bytes each."""


def element_of(type_: SqlType) -> SqlType:
    assert type_.element is not None
    return type_.element


def bounds_of(array: pa.Array) -> tuple[Indices, Indices]:
    """Where each list begins in ``array.values``, and its length (0 for NULL)."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    valid = validity_mask(array)
    return offsets[:-1], lengths if valid is None else np.where(valid, lengths, 0)


def ranges(starts: Indices, lengths: Indices) -> Indices:
    """All places of all ranges, one after the other."""
    total = int(lengths.sum())
    first = np.cumsum(lengths) - lengths
    places: Indices = np.arange(total) + np.repeat(starts - first, lengths)
    return places


def list_array(
    values: pa.Array, lengths: Indices, type_: SqlType, known: pa.Buffer | None
) -> pa.Array:
    """Lists of these lengths over ``values``."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    flat = canonical(values, element_of(type_))
    buffers = [known, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(engine_type(type_), len(lengths), buffers, children=[flat])


# --- parts -------------------------------------------------------------------------------------


def _constructor(call: Call) -> OwnNulls:
    element = element_of(call.type)
    arrow = engine_type(element)

    def evaluate(values: list[Value], rows: int) -> pa.Array:
        columns = [
            pa.nulls(rows, arrow)
            if pa.types.is_null(v.type)
            else canonical(column(v, rows), element)
            for v in values
        ]
        width = len(columns)
        order = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
        flat = take(pa.concat_arrays(columns), order)
        return list_array(flat, np.full(rows, width), call.type, None)

    return evaluate


def _subscript(_: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        array, places = column(values[0], rows), data_of(column(values[1], rows)).astype(np.int64)
        starts, lengths = bounds_of(array)
        inside = (places >= 1) & (places <= lengths)
        valid = validity_mask(column(values[1], rows))
        if valid is not None:
            inside &= valid
        return take_or_null(array.values, np.where(inside, starts + places - 1, -1))

    return kernel


def _slice(call: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        array = column(values[0], rows)
        low, high = (data_of(column(v, rows)).astype(np.int64) for v in values[1:])
        starts, lengths = bounds_of(array)
        first = np.maximum(low, 1)
        count = np.clip(np.minimum(high, lengths) - first + 1, 0, None)
        flat = take(array.values, ranges(starts + first - 1, count))
        return list_array(flat, count, call.type, validity(*(column(v, rows) for v in values)))

    return kernel


def _lengths(name: str) -> Callable[[Call], Kernel]:
    """``array_length``, ``array_upper``, ``array_lower``: NULL for an empty array."""

    def make(_: Call) -> Kernel:
        def kernel(values: list[Value], rows: int) -> pa.Array:
            array = column(values[0], rows)
            _, lengths = bounds_of(array)
            known = lengths > 0
            if len(values) > 1:
                known = known & (data_of(column(values[1], rows)) == 1)
                valid = validity_mask(column(values[1], rows))
                known = known if valid is None else known & valid
            found = np.ones(rows, np.int64) if name in ("array_lower", "array_ndims") else lengths
            return array_from(found, pa.int32(), pack_bits(known))

        return kernel

    return make


def _cardinality(_: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        array = column(values[0], rows)
        return array_from(bounds_of(array)[1], pa.int32(), validity(array))

    return kernel


# --- ANY and ALL -------------------------------------------------------------------------------


def _operator_kernel(name: str, element: SqlType, result: SqlType) -> Kernel:
    both = (Literal(element, None), Literal(element, None))
    call = Call(result, name, both)
    if name in COMPARISONS:
        return comparison(call)
    make = TEXT_FUNCTIONS.get(name)
    if make is None:
        raise InternalError(f"ANY with the operator {name} has no evaluator")
    return make(call)


def _quantified(want: bool) -> Callable[[Call], OwnNulls]:
    """``value operator ANY (array)`` (``want``: one true decides) and ALL (one false decides)."""

    def make(call: Call) -> OwnNulls:
        operator, value, _ = call.arguments
        assert isinstance(operator, Literal)
        negated = str(operator.value).startswith("not ")
        name = str(operator.value).removeprefix("not ")
        kernel = _operator_kernel(name, value.type, call.type)

        def evaluate(values: list[Value], rows: int) -> pa.Array:
            needles, array = column(values[1], rows), column(values[2], rows)
            starts, lengths = bounds_of(array)
            parents = np.repeat(np.arange(rows), lengths)
            flat = take(array.values, ranges(starts, lengths))
            if pa.types.is_null(needles.type) or not len(flat):
                compared = pa.nulls(len(flat), pa.bool_())
            else:
                compared = kernel([take(needles, parents), flat], len(flat))
            known = validity_mask(compared)
            holds = mask_of(compared)
            if negated:
                holds = ~holds if known is None else ~holds & known
            decisive = holds if want else (~holds if known is None else ~holds & known)
            decided = np.bincount(parents[decisive], minlength=rows) > 0
            open_ = np.zeros(rows, np.bool_)
            if known is not None:
                open_ = np.bincount(parents[~known], minlength=rows) > 0
            valid = validity_mask(array)
            certain = decided | ~open_
            if valid is not None:
                certain &= valid
            return boolean_array(decided == want, None if certain.all() else pack_bits(certain))

        return evaluate

    return make


# --- value by value ----------------------------------------------------------------------------


def physical_columns(
    values: Sequence[Value], types: Sequence[SqlType], rows: int
) -> list[list[PhysicalValue]]:
    """The arguments as physical values; a constant is converted once."""
    found: list[list[PhysicalValue]] = []
    for value, type_ in zip(values, types, strict=True):
        if isinstance(value, pa.Scalar):
            single = None
            if value.is_valid:
                single = array_to_values(canonical(pa.repeat(value, 1), type_), type_)[0]
            found.append([single] * rows)
        else:
            found.append(array_to_values(canonical(value, type_), type_))
    return found


def by_row(function: Callable[..., PhysicalValue], call: Call) -> OwnNulls:
    """``function`` of the physical values of each row, NULLs as None."""
    types = [argument.type for argument in call.arguments]
    sized = call.type.element is not None

    def evaluate(values: list[Value], rows: int) -> pa.Array:
        columns = physical_columns(values, types, rows)
        results = (function(*row) for row in zip(*columns, strict=True))
        found = gathered(results, call.function) if sized else list(results)
        return values_to_array(found, call.type)

    return evaluate


def strict_by_row(function: Callable[..., PhysicalValue], call: Call) -> Kernel:
    """The same, NULL where any argument is."""
    types = [argument.type for argument in call.arguments]

    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = physical_columns(values, types, rows)
        return values_to_array(
            [None if None in row else function(*row) for row in zip(*columns, strict=True)],
            call.type,
        )

    return kernel


def _sameness(type_: SqlType) -> Callable[[Any], Any]:
    """The object to compare in place of a value, so that == is SQL's equality (NULL equals
    NULL)."""
    if not (type_.ordered_by_key or type_.is_float):
        return lambda value: value
    key = value_key(type_)
    return lambda value: None if value is None else key(value)


def _contains(swapped: bool) -> Callable[[Call], Kernel]:
    """All elements of the second array occur in the first; NULL elements equal nothing."""

    def make(call: Call) -> Kernel:
        same = _sameness(element_of(call.arguments[0].type))

        def within(whole: tuple[Any, ...], part: tuple[Any, ...]) -> bool:
            if swapped:
                whole, part = part, whole
            return None not in part and set(map(same, part)) <= set(map(same, whole))

        return strict_by_row(within, call)

    return make


def _overlap(call: Call) -> Kernel:
    same = _sameness(element_of(call.arguments[0].type))

    def meet(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        found = {same(item) for item in left if item is not None}
        return any(item is not None and same(item) in found for item in right)

    return strict_by_row(meet, call)


def _position(call: Call) -> OwnNulls:
    same = _sameness(element_of(call.arguments[0].type))

    def first(items: tuple[Any, ...] | None, wanted: Any, start: int | None = 1) -> int | None:
        if items is None:
            return None
        if start is None:
            raise InvalidParameterValue("initial position must not be null")
        target = same(wanted)
        for place in range(max(start, 1), len(items) + 1):
            if same(items[place - 1]) == target:
                return place
        return None

    return by_row(first, call)


def _positions(call: Call) -> OwnNulls:
    same = _sameness(element_of(call.arguments[0].type))

    def places(items: tuple[Any, ...] | None, wanted: Any) -> PhysicalValue:
        if items is None:
            return None
        target = same(wanted)
        return tuple(place for place, item in enumerate(items, 1) if same(item) == target)

    return by_row(places, call)


def _append(call: Call) -> OwnNulls:
    return by_row(lambda items, value: (*(items or ()), value), call)


def _prepend(call: Call) -> OwnNulls:
    return by_row(lambda value, items: (value, *(items or ())), call)


def _cat(call: Call) -> OwnNulls:
    def both(left: tuple[Any, ...] | None, right: tuple[Any, ...] | None) -> PhysicalValue:
        if left is None or right is None:
            return right if left is None else left
        return left + right

    return by_row(both, call)


def _remove(call: Call) -> OwnNulls:
    same = _sameness(element_of(call.type))

    def without(items: tuple[Any, ...] | None, value: Any) -> PhysicalValue:
        if items is None:
            return None
        target = same(value)
        return tuple(item for item in items if same(item) != target)

    return by_row(without, call)


def _replace(call: Call) -> OwnNulls:
    same = _sameness(element_of(call.type))

    def replaced(items: tuple[Any, ...] | None, old: Any, new: Any) -> PhysicalValue:
        if items is None:
            return None
        target = same(old)
        return tuple(new if same(item) == target else item for item in items)

    return by_row(replaced, call)


def _fill(call: Call) -> OwnNulls:
    def filled(value: Any, sizes: tuple[int | None, ...] | None) -> PhysicalValue:
        if sizes is None or None in sizes:
            raise ArraySubscript("dimension array or low bound array cannot be null")
        if len(sizes) != 1:
            raise ArraySubscript("wrong number of array subscripts",
                                 detail="Arrays have one dimension.")  # fmt: skip
        size = sizes[0] or 0
        if size > _FILLED_MAX:
            raise LimitExceeded(f"array size exceeds the maximum allowed ({_FILLED_MAX})")
        return (value,) * max(size, 0)

    return by_row(filled, call)


def _trim(call: Call) -> Kernel:
    def trimmed(items: tuple[Any, ...], count: int) -> PhysicalValue:
        if not 0 <= count <= len(items):
            raise ArraySubscript(f"number of elements to trim must be between 0 and {len(items)}")
        return items[: len(items) - count]

    return strict_by_row(trimmed, call)


def _dimensions(call: Call) -> Kernel:
    return strict_by_row(lambda items: f"[1:{len(items)}]" if items else None, call)


def _to_string(call: Call) -> OwnNulls:
    element = element_of(call.arguments[0].type)
    write = part_text(element)

    def text(items: tuple[Any, ...] | None, separator: str | None,
             missing: str | None = None) -> str | None:  # fmt: skip
        if items is None or separator is None:
            return None
        parts = [missing if item is None else write(item) for item in items]
        return separator.join(part for part in parts if part is not None)

    return by_row(text, call)


def _from_string(call: Call) -> OwnNulls:
    def split(text: str | None, separator: str | None, missing: str | None = None) -> PhysicalValue:
        if text is None:
            return None
        if text == "":
            return ()
        parts = list(text) if separator is None else [text]
        if separator:
            parts = text.split(separator)
        return tuple(None if part == missing else part for part in parts)

    return by_row(split, call)


# --- rows --------------------------------------------------------------------------------------


def _row(call: Call) -> OwnNulls:
    arrow = engine_type(call.type)
    types = [t for _, t in call.type.fields]

    def evaluate(values: list[Value], rows: int) -> pa.Array:
        children = [
            pa.nulls(rows, engine_type(t))
            if pa.types.is_null(v.type)
            else canonical(column(v, rows), t)
            for v, t in zip(values, types, strict=True)
        ]
        return pa.Array.from_buffers(arrow, rows, [None], children=children)

    return evaluate


def _field(call: Call) -> Kernel:
    place = call.arguments[1]
    assert isinstance(place, Literal)
    assert isinstance(place.value, int)
    index = place.value

    def kernel(values: list[Value], rows: int) -> pa.Array:
        return column(values[0], rows).flatten()[index]

    return kernel


def _set_element(call: Call) -> OwnNulls:
    def assigned(items: tuple[Any, ...] | None, index: int | None, value: Any) -> PhysicalValue:
        if index is None:
            raise NullNotAllowed("array subscript in assignment must not be null")
        old = items or ()
        if index < 1 or (not old and index > 1):
            raise UnsupportedValue(
                f"an array that does not begin at 1 is not supported (subscript {index})",
                hint="Assign the elements in order, or the whole array.",
            )
        if index > _FILLED_MAX:
            raise LimitExceeded(f"array size exceeds the maximum allowed ({_FILLED_MAX})")
        gap = (None,) * (index - 1 - len(old))
        return (*old[: index - 1], *gap, value, *old[index:])

    return by_row(assigned, call)


STRICT_LISTS: dict[str, Callable[[Call], Kernel]] = {
    "subscript": _subscript,
    "array_slice": _slice,
    "array_length": _lengths("array_length"),
    "array_upper": _lengths("array_upper"),
    "array_lower": _lengths("array_lower"),
    "array_ndims": _lengths("array_ndims"),
    "array_dims": _dimensions,
    "cardinality": _cardinality,
    "&&": _overlap,
    "trim_array": _trim,
    "field": _field,
}
OWN_LISTS: dict[str, Callable[[Call], OwnNulls]] = {
    "array": _constructor,
    "row": _row,
    "any_of": _quantified(want=True),
    "all_of": _quantified(want=False),
    "array_position": _position,
    "array_positions": _positions,
    "array_append": _append,
    "array_prepend": _prepend,
    "array_cat": _cat,
    "array_remove": _remove,
    "array_replace": _replace,
    "array_fill": _fill,
    "set_element": _set_element,
    "array_to_string": _to_string,
    "string_to_array": _from_string,
}
ARRAY_CONTAINS = _contains(swapped=False)
ARRAY_CONTAINED = _contains(swapped=True)
