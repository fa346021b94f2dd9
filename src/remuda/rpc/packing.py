"""Rows of known column types as bytes, the form in which keys, values and small results travel.

A protobuf message per value costs several times more, and a get consists of little else. Both
sides know the types (of a map's schema by id and version, of a result by its announced columns), so
a row needs no tags::

    ceil(n / 8) bytes   one bit per column, lowest first; set = NULL
    per column          little-endian: BOOLEAN 1 byte, TINYINT 1, SMALLINT 2, INTEGER and DATE 4,
                        BIGINT, TIME, TIMESTAMP, TIMESTAMPTZ, DECIMAL(p <= 18) (unscaled) 8, REAL
                        and DOUBLE 8 (IEEE); all others 4 for a length
    the rest            the columns with a length, one after the other: UTF-8 (JSON: its text),
                        bytes (UUID and INTERVAL: 16), unscaled values as big-endian two's
                        complement; ROW a packed row of its fields; ARRAY per element 4 bytes for
                        a length and a packed row of this one column

NULL leaves zeros in its place, and takes no length.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import ProtocolError

_CODES: Final = {
    Kind.NULL: "0s",
    Kind.BOOLEAN: "?",
    Kind.TINYINT: "b",
    Kind.SMALLINT: "h",
    Kind.INTEGER: "i",
    Kind.DATE: "i",
    Kind.BIGINT: "q",
    Kind.TIME: "q",
    Kind.TIMESTAMP: "q",
    Kind.TIMESTAMPTZ: "q",
    Kind.REAL: "d",
    Kind.DOUBLE: "d",
}
_LENGTH: Final = "I"
_item_length: Final = struct.Struct("<I")
_PACKERS_KEPT: Final = 1024


class RowPacker:
    """Packs and unpacks rows of one sequence of types. Immutable, thread-safe."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        """Raises ``ProtocolError`` for a type that no column has."""
        self.types = tuple(types)
        self._mask_size = (len(self.types) + 7) // 8
        self._no_nulls = bytes(self._mask_size)
        codes = [_code(sql_type) for sql_type in self.types]
        self._struct = struct.Struct("<" + f"{self._mask_size}s" + "".join(codes))
        self._empty = tuple(b"" if code == "0s" else 0 for code in codes)
        self._variable: tuple[tuple[int, Callable[[Any], bytes], Callable[[bytes], Any]], ...]
        self._variable = tuple(
            (position, *_variable(sql_type))
            for position, (sql_type, code) in enumerate(zip(self.types, codes, strict=True))
            if code == _LENGTH
        )

    def pack(self, row: Sequence[PhysicalValue]) -> bytes:
        """Raises ``ProtocolError`` for a row of other columns or types."""
        try:
            if None in row:
                return self._pack_nulls(row)
            if not self._variable:
                return self._struct.pack(self._no_nulls, *row)
            fixed: list[Any] = list(row)
            parts = [b""]
            for position, encode, _ in self._variable:
                data = encode(fixed[position])
                fixed[position] = len(data)
                parts.append(data)
            parts[0] = self._struct.pack(self._no_nulls, *fixed)
            return b"".join(parts)
        except (struct.error, TypeError, IndexError, OverflowError, UnicodeError) as problem:
            raise self._unfit(problem) from problem

    def unpack(self, data: bytes) -> tuple[PhysicalValue, ...]:
        """Raises ``ProtocolError`` for bytes that are no such row."""
        try:
            if not self._variable:
                nulls, *row = self._struct.unpack(data)
            else:
                nulls, *row = self._struct.unpack_from(data)
                start = self._struct.size
                for position, _, decode in self._variable:
                    stop = start + row[position]
                    row[position] = decode(data[start:stop])
                    start = stop
                if start != len(data):
                    raise ProtocolError(f"a packed row has {len(data)} bytes instead of {start}")
        except (struct.error, UnicodeError) as problem:
            raise self._unfit(problem) from problem
        if nulls != self._no_nulls:
            self._set_nulls(row, nulls)
        return tuple(row)

    def _pack_nulls(self, row: Sequence[PhysicalValue]) -> bytes:
        mask = 0
        fixed: list[Any] = list(row)
        for position, value in enumerate(row):
            if value is None:
                mask |= 1 << position
                fixed[position] = self._empty[position]
        parts = [b""]
        for position, encode, _ in self._variable:
            if row[position] is not None:
                data = encode(row[position])
                fixed[position] = len(data)
                parts.append(data)
        parts[0] = self._struct.pack(mask.to_bytes(self._mask_size, "little"), *fixed)
        return b"".join(parts)

    def _set_nulls(self, row: list[Any], nulls: bytes) -> None:
        mask = int.from_bytes(nulls, "little")
        if mask >> len(row):
            raise ProtocolError("a packed row says NULL for a column that it does not have")
        for position in range(len(row)):
            if mask >> position & 1:
                row[position] = None

    def _unfit(self, problem: Exception) -> ProtocolError:
        listed = ", ".join(map(str, self.types))
        return ProtocolError(f"a row is no row of ({listed}): {problem}")


@lru_cache(maxsize=_PACKERS_KEPT)
def packer(types: tuple[SqlType, ...]) -> RowPacker:
    """The packer of these types, made once."""
    return RowPacker(types)


def _code(sql_type: SqlType) -> str:
    if sql_type.is_short_decimal:
        return "q"
    return _CODES.get(sql_type.kind, _LENGTH)


def _variable(sql_type: SqlType) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    if sql_type.holds_text:
        return str.encode, bytes.decode
    if sql_type.holds_bytes:
        return bytes.__bytes__, bytes.__bytes__
    if sql_type.element is not None:
        return _array_codec(sql_type.element)
    if sql_type.kind is Kind.ROW:
        fields = RowPacker([t for _, t in sql_type.fields])
        # NULL leaves no bytes behind; a row always has some.
        return fields.pack, lambda data: fields.unpack(data) if data else None
    if sql_type.kind is Kind.DECIMAL:
        return _integer_bytes, _integer_of
    raise ProtocolError(f"a row cannot hold {sql_type}")


def _array_codec(element: SqlType) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    one = RowPacker([element])

    def encode(items: tuple[PhysicalValue, ...]) -> bytes:
        parts: list[bytes] = []
        for item in items:
            data = one.pack((item,))
            parts += (_item_length.pack(len(data)), data)
        return b"".join(parts)

    def decode(data: bytes) -> tuple[PhysicalValue, ...]:
        items: list[PhysicalValue] = []
        at = 0
        while at < len(data):
            (size,) = _item_length.unpack_from(data, at)
            at += _item_length.size + size
            items.append(one.unpack(data[at - size : at])[0])
        return tuple(items)

    return encode, decode


def _integer_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _integer_of(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
