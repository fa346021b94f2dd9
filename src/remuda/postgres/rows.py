"""DataRow messages out of columns: a batch at a time, by Arrow's kernels, without an object per
row.

Each column becomes an array of byte strings, and an array of their lengths as the protocol writes
them. Joining heads, lengths and values element by element gives the messages one after the other in
one buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.buffers import values_of
from remuda.datatypes.sql import BPCHAR_LENGTH, Kind, SqlType
from remuda.datatypes.times.calendar import offset_text
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.datatypes.times.zone_columns import offsets
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.uuids import uuid_texts
from remuda.datatypes.values import PhysicalValue, array_to_values
from remuda.postgres.binary_values import (
    EPOCH_DAYS,
    EPOCH_MICROS,
    JSONB_VERSION,
    LENGTH,
    NULL_LENGTH,
    Encoder,
    binary_encoder,
)
from remuda.postgres.catalog_values import catalog_encoder
from remuda.postgres.numeric_columns import short_decimals
from remuda.postgres.text_values import text_encoder

ColumnEncoder: TypeAlias = Callable[[pa.Array], pa.Array]
"""A column in engine form -> its values as an array of bytes; NULLs stay NULL."""
Numbers: TypeAlias = npt.NDArray[Any]

_HEAD: Final = struct.Struct("!ciH")
_HEADS: Final = np.dtype([("kind", "S1"), ("size", ">i4"), ("columns", ">u2")])
_NOTHING: Final = pa.scalar(b"", pa.binary())


class RowForm:
    """How rows of a result are written: the types of its columns and the format of each, and the
    zone of moments written as text. Immutable. ``row`` writes one row of physical values, ``rows``
    columns in engine form."""

    def __init__(self, types: Sequence[SqlType], formats: Sequence[int], zone: str = UTC) -> None:
        self._pairs = list(zip(types, formats, strict=True))
        self._zone = zone
        self._count = len(self._pairs)

    @cached_property
    def _scalars(self) -> list[Encoder]:
        return [value_encoder(t, f, self._zone) for t, f in self._pairs]

    @cached_property
    def _columns(self) -> list[ColumnEncoder]:
        return [_column(t, f, self._zone) for t, f in self._pairs]

    def row(self, values: Sequence[PhysicalValue]) -> bytes:
        return self._row(values)

    @cached_property
    def _row(self) -> Callable[[Sequence[PhysicalValue]], bytes]:
        return self.writer(range(self._count))

    def writer(self, positions: Sequence[int]) -> Callable[[Sequence[PhysicalValue]], bytes]:
        """Writes one row, whose values are at these places of what it is given."""
        columns = list(zip(positions, self._scalars, strict=True))
        count = self._count

        def write(values: Sequence[PhysicalValue]) -> bytes:
            size = 6
            parts: list[bytes] = [b""]
            for position, encode in columns:
                value = values[position]
                if value is None:
                    parts.append(NULL_LENGTH)
                    size += 4
                    continue
                data = encode(value)
                length = len(data)
                parts.append(LENGTH.pack(length))
                parts.append(data)
                size += 4 + length
            parts[0] = _HEAD.pack(b"D", size, count)
            return b"".join(parts)

        return write

    def rows(self, columns: Sequence[pa.Array], count: int) -> memoryview | bytes:
        """The messages of ``count`` rows, one after the other."""
        if not count:
            return b""
        heads = np.empty(count, _HEADS)
        heads["kind"], heads["columns"] = b"D", self._count
        sizes = np.full(count, 6, np.int64)
        parts: list[pa.Array] = []
        for array, encode in zip(columns, self._columns, strict=True):
            values = encode(array)
            lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
            sizes += 4 + np.maximum(lengths, 0)
            parts.append(fixed_width(lengths.astype(">i4")))
            parts.append(values.fill_null(b"") if values.null_count else values)
        heads["size"] = sizes
        joined = pc.binary_join_element_wise(fixed_width(heads), *parts, _NOTHING)
        return bytes_of(joined)


def bytes_of(array: pa.Array) -> memoryview:
    """The data of an array of bytes in one piece."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = bounds[array.offset], bounds[array.offset + len(array)]
    return memoryview(data)[first:last]


def fixed_width(values: Numbers) -> pa.Array:
    """The elements of ``values``, as they lie in memory, as an array of bytes."""
    width = values.dtype.itemsize
    offsets = np.arange(0, (len(values) + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), data])


def _column(sql_type: SqlType, form: int, zone: str) -> ColumnEncoder:
    special = catalog_encoder(sql_type, form)
    if special is None:
        return column_encoder(sql_type, form, zone)
    return _any_array(_one_by_one(sql_type, special))


def value_encoder(sql_type: SqlType, form: int, zone: str = UTC) -> Encoder:
    special = catalog_encoder(sql_type, form)
    if special is not None:
        return special
    width = _width(sql_type)
    if width:
        return lambda value: value.ljust(width).encode("utf-8", "surrogatepass")
    return binary_encoder(sql_type) if form else _text_encoder(sql_type, zone)


def _width(sql_type: SqlType) -> int:
    """How many characters a value has for clients; 0: as many as are stored. The blanks at the end
    of a CHAR(n) are not stored; bpchar has none."""
    padded = sql_type.kind is Kind.CHAR and sql_type.length != BPCHAR_LENGTH
    return sql_type.length or 0 if padded else 0


def _text_encoder(sql_type: SqlType, zone: str) -> Encoder:
    return text_encoder(sql_type, _own_zone(sql_type, zone))


def _own_zone(sql_type: SqlType, zone: str) -> Zone | None:
    """The session's zone, if its texts of the type differ from those of other sessions."""
    found = session_zone(zone)
    return found if found is not None and found.writes(sql_type) else None


@lru_cache(maxsize=1024)
def column_encoder(sql_type: SqlType, form: int, zone: str = UTC) -> ColumnEncoder:
    width = _width(sql_type)
    if width:
        return _any_array(lambda array: pc.utf8_rpad(array, width).cast(pa.binary()))
    known = (_BINARY if form else _TEXT).get(sql_type.kind)
    write = binary_encoder(sql_type) if form else _text_encoder(sql_type, zone)
    general = _one_by_one(sql_type, write)
    there = None if form else _own_zone(sql_type, zone)
    if there is not None and there.forms.writes(sql_type):
        return _any_array(general)
    if there is not None and sql_type.kind is Kind.TIMESTAMPTZ:
        return _any_array(_moment_text(there, general))
    return _any_array(general if known is None else known(sql_type, general))


def _any_array(encode: ColumnEncoder) -> ColumnEncoder:
    """For arrays in pieces, of dictionaries, and of the type null, too."""

    def column(array: pa.Array) -> pa.Array:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), pa.binary())
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return encode(array)

    return column


def _one_by_one(sql_type: SqlType, encode: Encoder) -> ColumnEncoder:
    """For types whose bytes no kernel makes."""

    def column(array: pa.Array) -> pa.Array:
        values = array_to_values(array, sql_type)
        return pa.array([None if v is None else encode(v) for v in values], pa.binary())

    return column


def _masked(values: pa.Array, like: pa.Array) -> pa.Array:
    """``values`` with the NULLs of ``like``."""
    if not like.null_count:
        return values
    return pc.if_else(like.is_valid(), values, pa.scalar(None, values.type))


# --- binary ------------------------------------------------------------------------------------

_Maker: TypeAlias = Callable[[SqlType, ColumnEncoder], ColumnEncoder]


def _numbers(stored: str, sent: str, offset: int = 0) -> _Maker:
    """Numbers in another order of bytes. ``offset`` is subtracted."""

    def make(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
        def column(array: pa.Array) -> pa.Array:
            values = values_of(array, stored)
            shifted = values - offset if offset else values
            return _masked(fixed_width(shifted.astype(sent)), array)

        return column

    return make


def _booleans(true: bytes, false: bytes) -> _Maker:
    texts = np.array([false, true], "S1")

    def make(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
        def column(array: pa.Array) -> pa.Array:
            bits = array.fill_null(False).to_numpy(zero_copy_only=False)
            # An item of b"\0" is one byte wide in memory, as any other.
            return _masked(fixed_width(texts[bits.astype(np.int8)]), array)

        return column

    return make


def _as_stored(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
    return lambda array: array.cast(pa.binary())


def _versioned(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
    def column(array: pa.Array) -> pa.Array:
        version = pa.scalar(JSONB_VERSION, pa.binary())
        return pc.binary_join_element_wise(version, array.cast(pa.binary()), _NOTHING)

    return column


def _interval_column(_: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    stored = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
    sent = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])

    def column(array: pa.Array) -> pa.Array:
        if array.null_count or not len(array):
            return general(array)
        values = np.frombuffer(bytes_of(array.cast(pa.binary())), stored)
        found = np.empty(len(values), sent)
        for name in ("micros", "days", "months"):
            found[name] = values[name]
        return fixed_width(found)

    return column


def _numeric_column(sql_type: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    if not sql_type.is_short_decimal or sql_type.digits is not None:
        return general

    def column(array: pa.Array) -> pa.Array:
        found = short_decimals(array, sql_type) if pa.types.is_int64(array.type) else None
        return general(array) if found is None else found

    return column


_BINARY: Final[dict[Kind, _Maker]] = {
    Kind.DECIMAL: _numeric_column,
    Kind.BOOLEAN: _booleans(b"\x01", b"\x00"),
    Kind.TINYINT: _numbers("<i1", ">i2"),
    Kind.SMALLINT: _numbers("<i2", ">i2"),
    Kind.INTEGER: _numbers("<i4", ">i4"),
    Kind.BIGINT: _numbers("<i8", ">i8"),
    Kind.REAL: _numbers("<f4", ">f4"),
    Kind.DOUBLE: _numbers("<f8", ">f8"),
    Kind.DATE: _numbers("<i4", ">i4", EPOCH_DAYS),
    Kind.TIME: _numbers("<i8", ">i8"),
    Kind.TIMESTAMP: _numbers("<i8", ">i8", EPOCH_MICROS),
    Kind.TIMESTAMPTZ: _numbers("<i8", ">i8", EPOCH_MICROS),
    Kind.CHAR: _as_stored,
    Kind.VARCHAR: _as_stored,
    Kind.ENUM: _as_stored,
    Kind.JSON: _versioned,
    Kind.BYTEA: _as_stored,
    Kind.UUID: _as_stored,
    Kind.INTERVAL: _interval_column,
}

# --- text --------------------------------------------------------------------------------------

_YEAR_1: Final = -719_162
_YEAR_10000: Final = 2_932_897
_DAY: Final = 86_400_000_000


def _integer_text(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
    return lambda array: pc.cast(array, pa.string()).cast(pa.binary())


def _date_text(_: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    """Arrow writes the years 1 to 9999 as PostgreSQL does."""

    def column(array: pa.Array) -> pa.Array:
        if not _within(values_of(array, "<i4"), _YEAR_1, _YEAR_10000):
            return general(array)
        return pc.cast(array, pa.string()).cast(pa.binary())

    return column


def _timestamp_text(suffix: str) -> _Maker:
    def make(_: SqlType, general: ColumnEncoder) -> ColumnEncoder:
        def column(array: pa.Array) -> pa.Array:
            values = values_of(array, "<i8")
            if not _within(values, _YEAR_1 * _DAY, _YEAR_10000 * _DAY):
                return general(array)
            plain = array.cast(pa.timestamp("us")) if suffix else array
            return _without_zeros(pc.cast(plain, pa.string()), suffix).cast(pa.binary())

        return column

    return make


def _moment_text(zone: Zone, general: ColumnEncoder) -> ColumnEncoder:
    """Moments by the clocks of a zone."""

    def column(array: pa.Array) -> pa.Array:
        moments = values_of(array, "<i8")
        if not _within(moments, (_YEAR_1 + 2) * _DAY, (_YEAR_10000 - 2) * _DAY):
            return general(array)
        east, places = np.unique(offsets(zone, moments, to_utc=False), return_inverse=True)
        suffixes = pa.array([offset_text(int(each)) for each in east], pa.string())
        clocks = pa.array(moments + east[places], pa.timestamp("us"))
        if array.null_count:
            clocks = pc.if_else(array.is_valid(), clocks, None)
        short = _without_zeros(pc.cast(clocks, pa.string()), "")
        behind = suffixes.take(pa.array(places, pa.int64()))
        return pc.binary_join_element_wise(short, behind, "").cast(pa.binary())

    return column


def _time_text(_: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    def column(array: pa.Array) -> pa.Array:
        if not _within(values_of(array, "<i8"), 0, _DAY):
            return general(array)  # 24:00:00 is a time, too
        return _without_zeros(pc.cast(array, pa.string()), "").cast(pa.binary())

    return column


def _without_zeros(texts: pa.Array, suffix: str) -> pa.Array:
    """Without the zeros at the end of a fraction of a second: Arrow always writes six digits."""
    short = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return pc.binary_join_element_wise(short, suffix, "") if suffix else short


def _within(values: Numbers, low: int, high: int) -> bool:
    """Whether all of them are at least ``low`` and below ``high``; NULLs count with what lies in
    their places."""
    return not len(values) or bool(values.min() >= low and values.max() < high)


def _short_decimal_text(sql_type: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    scale = sql_type.scale or 0

    def column(array: pa.Array) -> pa.Array:
        if not pa.types.is_int64(array.type):
            return general(array)
        if not scale:
            return pc.cast(array, pa.string()).cast(pa.binary())
        size = pc.utf8_lpad(pc.cast(pc.abs(array), pa.string()), scale + 1, "0")
        whole = pc.utf8_slice_codeunits(size, 0, -scale)
        fraction = pc.utf8_slice_codeunits(size, -scale)
        sign = pc.if_else(pc.less(array, 0), "-", "")
        number = pc.binary_join_element_wise(whole, fraction, ".")
        return pc.binary_join_element_wise(sign, number, "").cast(pa.binary())

    return column


def _decimals(sql_type: SqlType, general: ColumnEncoder) -> ColumnEncoder:
    if sql_type.is_short_decimal and sql_type.digits is None:
        return _short_decimal_text(sql_type, general)
    return general


def _uuid_text(_: SqlType, __: ColumnEncoder) -> ColumnEncoder:
    return lambda array: uuid_texts(array).cast(pa.binary())


_TEXT: Final[dict[Kind, _Maker]] = {
    Kind.BOOLEAN: _booleans(b"t", b"f"),
    Kind.TINYINT: _integer_text,
    Kind.SMALLINT: _integer_text,
    Kind.INTEGER: _integer_text,
    Kind.BIGINT: _integer_text,
    Kind.DECIMAL: _decimals,
    Kind.DATE: _date_text,
    Kind.TIME: _time_text,
    Kind.TIMESTAMP: _timestamp_text(""),
    Kind.TIMESTAMPTZ: _timestamp_text("+00"),
    Kind.CHAR: _as_stored,
    Kind.VARCHAR: _as_stored,
    Kind.ENUM: _as_stored,
    Kind.JSON: _as_stored,
    Kind.UUID: _uuid_text,
}
