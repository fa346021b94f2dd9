"""The keys of secondary indexes: values of one or several columns in a form whose order is theirs.

One column of at most 64 bits is kept as signed integers (*words*): integers, dates and short
decimals as they are, floats by their bits so that NaN is above infinity and -0.0 is 0.0; NULL is
``NULL_WORD``, above all of them. Everything else is kept as byte strings that sort like the values
(memory-comparable keys, as in MyRocks or FoundationDB's tuple layer): for each column one byte that
tells NULL from a value, then 8 or 16 bytes big-endian with the sign flipped, or the bytes of a text
with 00 written as 00 FF and 00 01 behind; all bytes of a descending column are inverted. So every
condition on a prefix of the columns is a range of keys, whatever the types and directions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import values_of
from remuda.datatypes.index import is_word
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue

Bound: TypeAlias = int | bytes
"""A key, or a place between keys."""
Span: TypeAlias = tuple[Bound, Bound]
"""Keys from the first bound on, up to but without the second one."""
Words: TypeAlias = npt.NDArray[np.int64]
Keys: TypeAlias = Words | pa.Array

NULL_WORD: Final = 2**63
LOWEST_WORD: Final = -(2**63)
VALUE: Final = b"\x01"
NULL: Final = b"\x02"
_END: Final = b"\x00\x01"
_SIGN: Final = 2**63
_LONG_SIGN: Final = 2**127
_MAX: Final = 2**63 - 1
_NAN_WORD: Final = struct.unpack("<q", struct.pack("<d", float("nan")))[0]
_INVERT: Final = bytes(range(255, -1, -1))
_PACK: Final = struct.Struct(">Q").pack
_PACK_DOUBLE: Final = struct.Struct("<d").pack
_UNPACK_WORD: Final = struct.Struct("<q").unpack

_DTYPES: Final = {
    Kind.TINYINT: "<i1",
    Kind.SMALLINT: "<i2",
    Kind.INTEGER: "<i4",
    Kind.DATE: "<i4",
    Kind.REAL: "<f4",
    Kind.DOUBLE: "<f8",
}


class KeyForm:
    """How the values of some columns of a map become keys. ``words`` says which of the two forms
    they take."""

    def __init__(
        self, positions: Sequence[int], types: Sequence[SqlType], descending: Sequence[bool]
    ) -> None:
        self.positions = tuple(positions)
        self.types = tuple(types)
        self.words = len(types) == 1 and is_word(types[0])
        # The reverse of one column alone is reading it backwards.
        self.inverted = tuple(len(types) > 1 and down for down in descending)
        self._word: list[Callable[[Any], int]] = [_word_of(type_) for type_ in types]
        self._as_word = [is_word(type_) for type_ in types]

    # --- single keys ---

    def key(self, values: Sequence[PhysicalValue]) -> Bound:
        """The key of one value per column."""
        if self.words:
            return NULL_WORD if values[0] is None else self._word[0](values[0])
        return self.prefix(values)

    def prefix(self, values: Sequence[PhysicalValue]) -> bytes:
        """The common beginning of all keys that have these values in their first columns (byte
        form)."""
        if len(values) == 1:
            return self.part(0, values[0])
        return b"".join([self.part(index, value) for index, value in enumerate(values)])

    def part(self, index: int, value: PhysicalValue, *, closed: bool = True) -> bytes:
        """Column ``index`` of a key. Not ``closed``: the common beginning of texts that begin
        so."""
        if value is None:
            encoded = NULL
        elif self._as_word[index]:
            encoded = VALUE + _PACK(self._word[index](value) + _SIGN)
        elif self.types[index].kind is Kind.DECIMAL:
            assert isinstance(value, int)
            encoded = VALUE + (value + _LONG_SIGN).to_bytes(16, "big")
        else:
            data = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[arg-type]
            encoded = VALUE + data.replace(b"\x00", b"\x00\xff") + (_END if closed else b"")
        return encoded.translate(_INVERT) if self.inverted[index] else encoded

    def word(self, value: PhysicalValue) -> int:
        """The word of a value (word form)."""
        return self._word[0](value)

    # --- many keys ---

    def keys(self, batch: pa.RecordBatch) -> tuple[Keys, npt.NDArray[np.bool_] | None]:
        """The keys of all rows of a batch of the map; in word form with flags of the NULLs (None
        when there are none), whose words mean nothing."""
        columns = [batch.column(position) for position in self.positions]
        return self.keys_of(columns)

    def keys_of(self, columns: Sequence[pa.Array]) -> tuple[Keys, npt.NDArray[np.bool_] | None]:
        if self.words:
            return _words(columns[0], self.types[0]), _null_flags(columns[0])
        parts: list[Any] = []
        for index, column in enumerate(columns):
            parts.append(self._part_of_all(index, column))
        if len(parts) == 1:
            return parts[0], None
        return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary())), None

    def _part_of_all(self, index: int, column: pa.Array) -> pa.Array:
        type_ = self.types[index]
        nulls = _null_flags(column)
        if is_word(type_):
            words = _words(column, type_).view(np.uint64) ^ np.uint64(_SIGN)
            encoded = _fixed(words.astype(">u8").view(np.uint8).reshape(-1, 8))
        elif type_.kind is Kind.DECIMAL:
            encoded = _fixed(_long_decimal_bytes(column))
        else:
            encoded = _escaped(column)
        if nulls is not None:
            null = pa.scalar(NULL, pa.large_binary())
            encoded = pc.if_else(pa.array(nulls), null, encoded)
        return _inverted(encoded) if self.inverted[index] else encoded


def after(prefix: bytes) -> bytes:
    """The lowest string above all strings that begin with ``prefix``."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1])


def float_word(value: float) -> int:
    """The bits of a float as an integer of the same order; -0.0 is 0.0, NaN is above infinity."""
    if value != value:  # noqa: PLR0124 (NaN)
        return int(_NAN_WORD)
    word: int = _UNPACK_WORD(_PACK_DOUBLE(value + 0.0))[0]
    return word ^ _MAX if word < 0 else word


def _word_of(type_: SqlType) -> Callable[[Any], int]:
    return float_word if type_.is_float else int


def _words(column: pa.Array, type_: SqlType) -> Words:
    if type_.kind is Kind.BOOLEAN:
        filled = column.fill_null(False) if column.null_count else column
        flags: Words = filled.to_numpy(zero_copy_only=False).astype(np.int64)
        return flags
    values = values_of(column, _DTYPES.get(type_.kind, "<i8"))
    if not type_.is_float:
        return values.astype(np.int64)
    data = values.astype(np.float64) + 0.0
    bits = data.view(np.int64)
    words = np.where(bits < 0, bits ^ np.int64(_MAX), bits)
    return np.where(np.isnan(data), np.int64(_NAN_WORD), words)


def _null_flags(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    if not column.null_count:
        return None
    flags: npt.NDArray[np.bool_] = pc.is_null(column).to_numpy(zero_copy_only=False)
    return flags


def _fixed(data: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes as binaries with ``VALUE`` in front."""
    rows, width = data.shape
    whole = np.empty((rows, width + 1), dtype=np.uint8)
    whole[:, 0] = VALUE[0]
    whole[:, 1:] = data
    offsets = np.arange(0, (rows + 1) * (width + 1), width + 1, dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)


def _long_decimal_bytes(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Big-endian 128-bit integers with the sign flipped."""
    data = np.frombuffer(values_of(column, "<V16").tobytes(), dtype=np.uint8).reshape(-1, 16)
    swapped = data[:, ::-1].copy()
    swapped[:, 0] ^= 0x80
    return swapped


def _escaped(column: pa.Array) -> pa.Array:
    data = column.cast(pa.binary()) if not pa.types.is_binary(column.type) else column
    if column.null_count:
        data = data.fill_null(b"")
    data = data.cast(pa.large_binary())
    if _holds_zero(data):
        data = pc.replace_substring(data, pattern=b"\x00", replacement=b"\x00\xff")
    parts = [pa.scalar(part, pa.large_binary()) for part in (VALUE, _END, b"")]
    return pc.binary_join_element_wise(parts[0], data, parts[1], parts[2])


def _holds_zero(data: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(data, pattern=b"\x00")).as_py())


def _inverted(encoded: pa.Array) -> pa.Array:
    _, offsets, data = encoded.buffers()
    inverted = np.invert(np.frombuffer(data, dtype=np.uint8)) if data is not None else b""
    return pa.Array.from_buffers(
        pa.large_binary(),
        len(encoded),
        [None, offsets, pa.py_buffer(inverted)],
        offset=encoded.offset,
    )
