"""CAST between all types, with PostgreSQL's rounding and errors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.buffers import list_over, validity_of
from remuda.datatypes.jsons import json_type, parse_json
from remuda.datatypes.sql import Kind, SqlType, decimal
from remuda.datatypes.texts.text import parse_text, type_name
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.uuids import uuid_texts
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import InvalidParameterValue, NumericOverflow, TypeMismatch
from remuda.execution.arrays import Data, array_from, boolean_array, data_of, mask_of
from remuda.execution.evaluate.arithmetic import decimal_to_float
from remuda.execution.evaluate.decimals import canonical, compact, to_precision
from remuda.execution.evaluate.intervals import interval_to_time, time_to_interval
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import (
    INTEGER_LIMITS,
    Value,
    compute,
    decimal_array,
    exact_of,
    integer_array,
    invalid_mask,
    rescale,
    shrink,
    validity,
)
from remuda.execution.evaluate.points import DAY

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_SAFE_FLOAT = 2.0**52
_JSON_NUMBER = decimal(38, 10)


def cast(source: SqlType, target: SqlType) -> Kernel:
    """The conversion as a strict kernel over one column. Raises TypeMismatch if there is none."""
    convert = conversion(source, target)
    arrow = engine_type(target)

    def kernel(values: list[Value], _: int) -> pa.Array:
        array = values[0]
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), arrow)
        return convert(array)

    return kernel


Conversion = Callable[[pa.Array], pa.Array]


def conversion(source: SqlType, target: SqlType) -> Conversion:
    if source.kind is Kind.NULL:
        return lambda array: array
    if target.is_text:
        return _to_text(source, target)
    if source.is_text:
        return lambda array: parse_column(array, target)
    if source.is_nested:
        return nested_conversion(source, target, conversion)
    if source.kind is Kind.JSON and target.kind is not Kind.JSON:
        return lambda array: _from_json(array, target)
    if target.is_integer:
        return _to_integer(source, target)
    if target.kind is Kind.DECIMAL:
        return _to_decimal(source, target)
    if target.is_float:
        return _to_float(source, target)
    if source.kind is target.kind:
        return lambda array: array
    if target.kind is Kind.BOOLEAN and source.is_integer:
        return lambda array: boolean_array(data_of(array) != 0, validity(array))
    found = _TEMPORAL.get((source.kind, target.kind))
    if found is None:
        raise TypeMismatch(f"cannot cast type {type_name(source)} to {type_name(target)}")
    return found


# --- nested values and JSON ------------------------------------------------------------------


def nested_conversion(
    source: SqlType, target: SqlType, conversion_of: Callable[[SqlType, SqlType], Conversion]
) -> Conversion:
    """Arrays element by element, rows field by field; lengths and NULLs stay."""
    arrow = engine_type(target)
    if source.element is not None and target.element is not None:
        element = target.element
        convert = conversion_of(source.element, element)
        if source.element == element:
            return lambda array: array
        return lambda array: list_over(array, canonical(convert(array.values), element), arrow)
    pairs = zip(source.fields, target.fields, strict=True)
    fields = [
        (None if have == want else conversion_of(have, want), want)
        for (_, have), (_, want) in pairs
    ]

    def rows(array: pa.Array) -> pa.Array:
        children = [
            array.field(place) if change is None else canonical(change(array.field(place)), want)
            for place, (change, want) in enumerate(fields)
        ]
        return pa.Array.from_buffers(arrow, len(array), [validity_of(array)], children=children)

    return rows


def _from_json(array: pa.Array, target: SqlType) -> pa.Array:
    """Numbers and truth values of JSON; anything else is no number."""
    unique = array.dictionary_encode()
    found: list[str | None] = []
    for text in unique.dictionary.to_pylist():
        value = None if text is None else parse_json(text)
        boolean = isinstance(value, bool)
        number = not boolean and isinstance(value, int | Decimal)
        if text is not None and not (boolean if target.kind is Kind.BOOLEAN else number):
            raise InvalidParameterValue(
                f"cannot cast jsonb {json_type(value)} to type {type_name(target)}"
            )
        found.append(text)
    texts = pa.array(found, pa.string())
    if target.kind is Kind.BOOLEAN:
        return parse_column(texts, target).take(unique.indices)
    exact = parse_column(texts, _JSON_NUMBER) if target.is_integer else None
    if exact is not None:
        return conversion(_JSON_NUMBER, target)(exact).take(unique.indices)
    return parse_column(texts, target).take(unique.indices)


# --- numbers ---------------------------------------------------------------------------------


def _to_integer(source: SqlType, target: SqlType) -> Conversion:
    arrow = engine_type(target)
    name, limit = INTEGER_LIMITS[target.kind]
    if source.is_integer:
        if INTEGER_LIMITS[source.kind][1] <= limit:
            return lambda array: array_from(data_of(array), arrow, validity(array))
        return lambda array: integer_array(data_of(array), target, arrow, array)
    if source.kind is Kind.BOOLEAN:
        return lambda array: array_from(mask_of(array), arrow, validity(array))
    if source.kind is Kind.DECIMAL:

        def from_decimal(array: pa.Array) -> pa.Array:
            invalid = invalid_mask(array)
            data = rescale(exact_of(array), -(source.scale or 0), invalid)
            assert isinstance(data, np.ndarray)
            return integer_array(data, target, arrow, array)

        return from_decimal
    if source.is_float:

        def from_float(array: pa.Array) -> pa.Array:
            data = np.rint(data_of(array).astype(np.float64))
            invalid = invalid_mask(array)
            if invalid is not None:
                data = np.where(invalid, 0.0, data)
            if not ((data >= -float(limit)) & (data < float(limit))).all():
                raise NumericOverflow(f"{name} out of range")
            return array_from(data.astype(np.int64), arrow, validity(array))

        return from_float
    raise TypeMismatch(f"cannot cast type {type_name(source)} to {type_name(target)}")


def _to_float(source: SqlType, target: SqlType) -> Conversion:
    arrow = engine_type(target)
    single = target.kind is Kind.REAL

    def convert(array: pa.Array) -> pa.Array:
        if source.kind is Kind.DECIMAL:
            data = decimal_to_float(exact_of(array), source.scale or 0)
        elif source.kind is Kind.BOOLEAN:
            data = mask_of(array).astype(np.float64)
        else:
            data = data_of(array)
        if single and data.dtype != np.float32:
            with np.errstate(over="ignore", under="ignore"):
                narrow = data.astype(np.float32)
            if (np.isinf(narrow) & np.isfinite(data)).any():
                raise NumericOverflow("value out of range: overflow")
            lost = (narrow == 0) & (data != 0)
            if lost.any() and (lost & np.asarray(array.is_valid())).any():  # below NULL is anything
                raise NumericOverflow("value out of range: underflow")
            data = narrow
        return array_from(data, arrow, validity(array))

    if source.is_numeric or source.kind is Kind.BOOLEAN:
        return convert
    raise TypeMismatch(f"cannot cast type {type_name(source)} to {type_name(target)}")


def _to_decimal(source: SqlType, target: SqlType) -> Conversion:
    scale = target.scale or 0
    if source.kind is Kind.DECIMAL and (source.precision, source.scale) == (
        target.precision,
        scale,
    ):
        return lambda array: array

    def convert(array: pa.Array) -> pa.Array:
        invalid = invalid_mask(array)
        if source.is_float:
            data: Any = float_to_unscaled(data_of(array), scale, invalid)
        elif source.kind is Kind.BOOLEAN:
            data = mask_of(array).astype(np.int64) * 10**scale
        else:
            from_scale = source.scale or 0 if source.kind is Kind.DECIMAL else 0
            data = rescale(exact_of(array), scale - from_scale, invalid)
        data = to_precision(data, target, invalid)
        return decimal_array(data, target, array, invalid=invalid)

    if source.is_numeric:
        return convert
    raise TypeMismatch(f"cannot cast type {type_name(source)} to {type_name(target)}")


def float_to_unscaled(data: Data, scale: int, invalid: np.ndarray | None) -> Data:
    """Rounded half away from zero by the shortest decimal form of each float.

    The product with the power of ten decides where it is clearly off a tie and exact enough;
    only the rest goes through decimal text."""
    data = data.astype(np.float64)
    if invalid is not None:
        data = np.where(invalid, 0.0, data)
    if not np.isfinite(data).all():
        raise NumericOverflow("cannot convert infinity or NaN to numeric")
    with np.errstate(over="ignore", invalid="ignore"):  # infinite products are hard ones
        scaled = data * 10.0**scale
        magnitude = np.abs(scaled)
        rounded = np.floor(magnitude + 0.5)
        near_tie = np.abs(magnitude - np.floor(magnitude) - 0.5) < 1e-4
    hard = near_tie | ~(magnitude < _SAFE_FLOAT / 1024)
    if not hard.any():
        return np.copysign(rounded, scaled).astype(np.int64)
    result = np.where(hard, 0.0, np.copysign(rounded, scaled)).astype(np.int64).astype(object)
    for row in np.flatnonzero(hard):
        exact = Decimal(repr(float(data[row]))).scaleb(scale, _EXACT)
        result[row] = int(exact.to_integral_value(ROUND_HALF_UP, _EXACT))
    shrunk = shrink(result)
    assert isinstance(shrunk, np.ndarray)
    return shrunk


# --- dates and times -------------------------------------------------------------------------


def _date_to_timestamp(kind: pa.DataType) -> Conversion:
    def convert(array: pa.Array) -> pa.Array:
        data = compute("*", exact_of(array), DAY, invalid_mask(array))
        if isinstance(data, np.ndarray) and data.dtype == object:
            raise NumericOverflow("date out of range for timestamp")
        return array_from(data, kind, validity(array))  # type: ignore[arg-type]

    return convert


def _retyped(kind: pa.DataType) -> Conversion:
    return lambda array: array_from(data_of(array), kind, validity(array))


def _floor_day(array: pa.Array) -> pa.Array:
    return array_from(data_of(array) // DAY, pa.date32(), validity(array))


def _time_of_day(array: pa.Array) -> pa.Array:
    return array_from(data_of(array) % DAY, pa.time64("us"), validity(array))


_PLAIN, _ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
_TEMPORAL: dict[tuple[Kind, Kind], Conversion] = {
    (Kind.DATE, Kind.TIMESTAMP): _date_to_timestamp(_PLAIN),
    (Kind.DATE, Kind.TIMESTAMPTZ): _date_to_timestamp(_ZONED),
    (Kind.TIMESTAMP, Kind.TIMESTAMPTZ): _retyped(_ZONED),
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP): _retyped(_PLAIN),
    (Kind.TIMESTAMP, Kind.DATE): _floor_day,
    (Kind.TIMESTAMPTZ, Kind.DATE): _floor_day,
    (Kind.TIMESTAMP, Kind.TIME): _time_of_day,
    (Kind.TIMESTAMPTZ, Kind.TIME): _time_of_day,
    (Kind.INTERVAL, Kind.TIME): interval_to_time,
    (Kind.TIME, Kind.INTERVAL): time_to_interval,
}


# --- text ------------------------------------------------------------------------------------


def _plain(numbers: pa.Array) -> bool:
    """Whether no float may stand for a text that is out of range."""
    data = data_of(numbers)
    return bool(np.isfinite(data).all() and data.all())


def parse_column(array: pa.Array, target: SqlType) -> pa.Array:
    """Text as values of ``target``; raises what ``datatypes.texts.text.parse_text`` raises.

    Clean columns go through Arrow's parsers; anything they refuse is read value by value."""
    if target.is_integer or target.kind in (Kind.DOUBLE, Kind.DATE):
        try:
            parsed = array.cast(engine_type(target))
            if target.kind is not Kind.DOUBLE or _plain(parsed):
                return parsed
        except pa.ArrowInvalid:
            pass  # a value that Arrow does not read: blanks, a sign, or an error to be named
    unique = array.dictionary_encode()
    parsed = values_to_array(
        [parse_text(text, target) for text in unique.dictionary.to_pylist()], target
    )
    return compact(parsed.take(unique.indices))


def _to_text(source: SqlType, target: SqlType) -> Conversion:
    if target.kind is Kind.CHAR and source.kind is not Kind.CHAR:
        cut = _to_text(source, SqlType(Kind.VARCHAR, length=target.length))
        return lambda array: pc.utf8_rtrim(cut(array), characters=" ")
    if source.is_text:
        if target.length is None or (source.length is not None and source.length <= target.length):
            return lambda array: array
        return lambda array: pc.utf8_slice_codeunits(array, 0, target.length)
    if source.is_integer:
        convert: Conversion = lambda array: array.cast(pa.string())  # noqa: E731
    elif source.kind is Kind.BOOLEAN:
        convert = lambda array: array.cast(pa.string())  # noqa: E731
    elif source.kind is Kind.UUID:
        convert = uuid_texts
    else:
        write = text_of(source)

        def convert(array: pa.Array) -> pa.Array:
            if source.is_float:
                values: list[Any] = array.to_pylist()
            else:
                values = array_to_values(array, source)
            return pa.array([None if v is None else write(v) for v in values], pa.string())

    if target.length is None:
        return convert
    return lambda array: pc.utf8_slice_codeunits(convert(array), 0, target.length)
