"""Fields of records as bytes: little-endian, without tags, in the order of the record.

A reader never goes beyond its bytes and refuses what is left over, so a record that was encoded by
another layout is an error, not a surprise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from remuda.errors import DataCorrupted

_i64: Final = struct.Struct("<q")
_u32: Final = struct.Struct("<I")


class FieldReader:
    """Takes fields from the front of ``data``. Every method raises ``DataCorrupted`` at the end."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, size: int) -> bytes:
        start = self.at
        self.at = stop = start + size
        if stop > len(self.data):
            raise DataCorrupted(
                f"a field of {size} bytes at {start} goes beyond the record's {len(self.data)}"
            )
        return self.data[start:stop]

    def finish(self) -> None:
        if self.at != len(self.data):
            raise DataCorrupted(f"{len(self.data) - self.at} bytes are left over in a record")


@dataclass(frozen=True, slots=True)
class FieldCodec:
    """``write`` appends the pieces of a value to a list; ``read`` takes it back."""

    write: Callable[[list[bytes], Any], None]
    read: Callable[[FieldReader], Any]


def _write_integer(out: list[bytes], value: int) -> None:
    out.append(_i64.pack(value))


def _read_integer(source: FieldReader) -> int:
    value: int = _i64.unpack(source.take(8))[0]
    return value


def _write_flag(out: list[bytes], value: bool) -> None:
    out.append(b"\x01" if value else b"\x00")


def _read_flag(source: FieldReader) -> bool:
    byte = source.take(1)[0]
    if byte > 1:
        raise DataCorrupted(f"{byte} is no truth value")
    return byte == 1


def _write_blob(out: list[bytes], value: bytes) -> None:
    out += (_u32.pack(len(value)), value)


def _read_blob(source: FieldReader) -> bytes:
    return source.take(_u32.unpack(source.take(4))[0])


def _write_text(out: list[bytes], value: str) -> None:
    _write_blob(out, value.encode())


def _read_text(source: FieldReader) -> str:
    try:
        return _read_blob(source).decode()
    except UnicodeDecodeError as problem:
        raise DataCorrupted(f"a text in a record is no UTF-8: {problem}") from problem


INTEGER: Final = FieldCodec(_write_integer, _read_integer)
"""Signed, 64 bits."""
FLAG: Final = FieldCodec(_write_flag, _read_flag)
BLOB: Final = FieldCodec(_write_blob, _read_blob)
TEXT: Final = FieldCodec(_write_text, _read_text)


def several(item: FieldCodec) -> FieldCodec:
    """A tuple of items."""
    if item is INTEGER:
        return FieldCodec(_write_integers, _read_integers)

    def write(out: list[bytes], value: tuple[Any, ...]) -> None:
        out.append(_u32.pack(len(value)))
        for each in value:
            item.write(out, each)

    def read(source: FieldReader) -> tuple[Any, ...]:
        return tuple([item.read(source) for _ in range(_u32.unpack(source.take(4))[0])])

    return FieldCodec(write, read)


def _write_integers(out: list[bytes], value: tuple[int, ...]) -> None:
    out.append(struct.pack(f"<I{len(value)}q", len(value), *value))


def _read_integers(source: FieldReader) -> tuple[int, ...]:
    count = _u32.unpack(source.take(4))[0]
    return struct.unpack(f"<{count}q", source.take(8 * count))


def optional(item: FieldCodec) -> FieldCodec:
    """An item or None."""

    def write(out: list[bytes], value: Any) -> None:
        if value is None:
            out.append(b"\x00")
        else:
            out.append(b"\x01")
            item.write(out, value)

    def read(source: FieldReader) -> Any:
        return item.read(source) if _read_flag(source) else None

    return FieldCodec(write, read)


def composed(make: Callable[..., Any], **items: FieldCodec) -> FieldCodec:
    """An object of the named fields, in this order. Integers that follow each other are packed at
    once: a record of the log is mostly these."""
    runs: list[tuple[tuple[str, ...], FieldCodec | None]] = []
    for name, item in items.items():
        if item is INTEGER and runs and runs[-1][1] is None:
            runs[-1] = ((*runs[-1][0], name), None)
        else:
            runs.append(((name,), None if item is INTEGER else item))
    parts = [
        (attrgetter(*names), struct.Struct(f"<{len(names)}q") if codec is None else codec)
        for names, codec in runs
    ]
    single = {id(get) for (get, _), (names, _) in zip(parts, runs, strict=True) if len(names) == 1}

    def write(out: list[bytes], value: Any) -> None:
        for get, part in parts:
            if isinstance(part, FieldCodec):
                part.write(out, get(value))
            elif id(get) in single:
                out.append(part.pack(get(value)))
            else:
                out.append(part.pack(*get(value)))

    def read(source: FieldReader) -> Any:
        values: list[Any] = []
        for _, part in parts:
            if isinstance(part, FieldCodec):
                values.append(part.read(source))
            else:
                values += part.unpack(source.take(part.size))
        return make(*values)

    return FieldCodec(write, read)
