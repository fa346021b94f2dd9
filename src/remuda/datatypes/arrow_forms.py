"""The Arrow forms of INTERVAL, UUID, JSON, ARRAY and ROW: engine to external and back.

Engine: 16 bytes (``datatypes.times.intervals``), 16 bytes, normalized text, list, struct. External:
month_day_nano_interval, arrow.uuid, arrow.json, list, struct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.buffers import list_over, validity_of, values_of
from remuda.datatypes.jsons import normalized
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import LAYOUT, pack
from remuda.errors import DataError, IntervalOverflow, InvalidText

Convert: TypeAlias = Callable[[pa.Array, SqlType], pa.Array]

_NANOS = 1000
_EXTERNAL_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])


def to_external(
    array: pa.Array, sql_type: SqlType, target: pa.DataType, convert: Convert
) -> pa.Array:
    """``array`` in the external form; ``convert`` does it for the values of arrays and rows."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    match sql_type.kind:
        case Kind.INTERVAL:
            return _interval_to_external(array)
        case Kind.UUID:
            return pa.ExtensionArray.from_storage(target, array.cast(pa.binary(16)))
        case Kind.JSON:
            return pa.ExtensionArray.from_storage(target, array)
        case Kind.ARRAY:
            assert sql_type.element is not None
            return list_over(array, convert(array.values, sql_type.element), target)
        case _:
            children = [
                convert(array.field(place), t) for place, (_, t) in enumerate(sql_type.fields)
            ]
            return _struct_over(array, children, target)


def _struct_over(like: pa.Array, children: list[pa.Array], target: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(target, len(like), [validity_of(like)], children=children)


def _interval_to_external(array: pa.Array) -> pa.Array:
    values = [None if v is None else LAYOUT.unpack(v) for v in array.to_pylist()]
    data = np.zeros(len(values), _EXTERNAL_INTERVAL)
    for row, value in enumerate(values):
        if value is not None:
            months, days, micros = value
            if abs(micros) * _NANOS >= 2**63:
                raise IntervalOverflow(
                    "an interval of more than 292 years in hours does not fit Arrow's intervals",
                    hint="Convert it with justify_hours(x), or to text.",
                )
            data[row] = (months, days, micros * _NANOS)
    buffers = [validity_of(array), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), len(values), buffers)


def to_engine(
    array: pa.Array, sql_type: SqlType, target: pa.DataType, convert: Convert
) -> pa.Array | None:
    """``array``, in any fitting Arrow type, in the engine form; None when the type does not fit.

    Raises DataError for a value that does not.
    """
    found = array.type
    match sql_type.kind:
        case Kind.INTERVAL:
            return _interval_to_engine(array)
        case Kind.UUID:
            return _uuid_to_engine(array)
        case Kind.JSON:
            if not (pa.types.is_string(found) or pa.types.is_large_string(found)):
                return None
            return _json_to_engine(array)
        case Kind.ARRAY:
            return _list_to_engine(array, sql_type, target, convert)
        case _:
            if not pa.types.is_struct(found) or found.num_fields != len(sql_type.fields):
                return None
            children = [
                convert(array.field(place), t) for place, (_, t) in enumerate(sql_type.fields)
            ]
            return _struct_over(array, children, target)


def _interval_to_engine(array: pa.Array) -> pa.Array | None:
    if pa.types.is_duration(array.type):
        try:
            spans = values_of(array.cast(pa.duration("us")), "<i8").tolist()
        except pa.ArrowInvalid as problem:
            raise DataError(f"a duration does not fit INTERVAL: {problem}") from problem
        packed = [pack(0, 0, span) for span in spans]
    elif array.type == pa.month_day_nano_interval():
        records = values_of(array, _EXTERNAL_INTERVAL.str).view(_EXTERNAL_INTERVAL)
        packed = []
        for months, days, nanos in records.tolist():
            micros, rest = divmod(nanos, _NANOS)
            if rest:
                raise DataError("an interval with nanoseconds does not fit INTERVAL")
            packed.append(pack(months, days, micros))
    else:
        return None
    missing = pc.is_null(array).to_numpy(zero_copy_only=False)
    return pa.array(
        [None if gone else value for gone, value in zip(missing.tolist(), packed, strict=True)],
        pa.binary(),
    )


def _uuid_to_engine(array: pa.Array) -> pa.Array | None:
    found = array.type
    if pa.types.is_fixed_size_binary(found) and found.byte_width == 16:
        return array.cast(pa.binary())
    if not (pa.types.is_binary(found) or pa.types.is_large_binary(found)):
        return None
    lengths = pc.binary_length(array)
    if pc.all(pc.equal(lengths, 16), min_count=0).as_py() is False:
        raise InvalidText("a UUID has 16 bytes")
    return array.cast(pa.binary())


def _json_to_engine(array: pa.Array) -> pa.Array:
    unique = array.dictionary_encode()
    texts = [None if t is None else normalized(t) for t in unique.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(unique.indices)


def _list_to_engine(
    array: pa.Array, sql_type: SqlType, target: pa.DataType, convert: Convert
) -> pa.Array | None:
    found = array.type
    if not hasattr(found, "value_type") or sql_type.element is None:
        return None
    if not pa.types.is_list(found):
        try:
            array = array.cast(pa.list_(found.value_type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise DataError(f"a value does not fit {sql_type}: {problem}") from problem
    return list_over(array, convert(array.values, sql_type.element), target)
