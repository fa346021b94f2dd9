"""Rows of a COPY TO as text, CSV or PostgreSQL's binary format: a batch at a time, by Arrow's
kernels, without an object per row."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.copying.binary_reading import SIGNATURE
from remuda.copying.options import Columns, CopyOptions, Everything, Format, Header
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import UntranslatableCharacter
from remuda.postgres.rows import ColumnEncoder, bytes_of, column_encoder, fixed_width

TRAILER: Final = b"\xff\xff"
_FRAME: Final = struct.Struct("!ci")
_FRAMES: Final = np.dtype([("kind", "S1"), ("size", ">i4")])
_NOTHING: Final = pa.scalar(b"", pa.binary())
_ESCAPES: Final = {
    b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b"\v": b"\\v",
}  # fmt: skip
_NEVER_IN_NUMBERS: Final = "\t,;|~^#"
"""Delimiters that no text of a number, a date or a time has."""
_PLAIN: Final = frozenset(
    {
        Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL,
        Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
        Kind.UUID,
    }
)  # fmt: skip

_Quote: TypeAlias = Callable[[pa.Array], pa.Array]


class RowWriter:
    """``head``, then ``rows`` any number of times, then ``tail``. ``framed``: each row is a
    CopyData message of PostgreSQL's protocol, as are the head and the tail."""

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[SqlType],
        options: CopyOptions,
        zone: str,
        *,
        framed: bool,
    ) -> None:
        self._names = names
        self._options = options
        self._framed = framed
        self._is_binary = options.format is Format.BINARY
        self._signature = SIGNATURE + bytes(8) if self._is_binary else b""
        """Leaves with the first row, or with the end: clients expect both in one message."""
        form = 1 if self._is_binary else 0
        self._encoders: list[ColumnEncoder] = [column_encoder(t, form, zone) for t in types]
        self._quotes: list[_Quote | None] = [
            self._quote(name, sql_type, len(types))
            for name, sql_type in zip(names, types, strict=True)
        ]

    def head(self) -> bytes:
        """The header line; nothing if there is none."""
        if self._is_binary or self._options.header is Header.NONE:
            return b""
        quote = self._quote("", SqlType(Kind.VARCHAR), 1)
        names = pa.array([name.encode() for name in self._names], pa.binary())
        texts = names if quote is None else quote(names)
        line = self._options.delimiter.encode().join(texts.to_pylist()) + b"\n"
        return self._frame(self._recoded(line))

    def tail(self) -> bytes:
        return self._frame(self._signature + TRAILER) if self._is_binary else b""

    def rows(self, columns: Sequence[pa.Array], count: int) -> memoryview | bytes:
        """Columns in engine form as rows. Raises UntranslatableCharacter."""
        if not count:
            return b""
        parts = self._binary(columns, count) if self._is_binary else self._texts(columns, count)
        if self._options.encoding:
            lines = pc.binary_join_element_wise(*parts, _NOTHING)
            recoded = [self._recoded(line) for line in lines.to_pylist()]
            parts = [pa.array(recoded, pa.binary())]
        if self._framed:
            parts = [_frames(parts, count), *parts]
        if len(parts) == 1:
            return bytes_of(parts[0])
        return bytes_of(pc.binary_join_element_wise(*parts, _NOTHING))

    def _frame(self, data: bytes) -> bytes:
        return _FRAME.pack(b"d", len(data) + 4) + data if self._framed and data else data

    def _recoded(self, line: bytes) -> bytes:
        encoding = self._options.encoding
        if not encoding:
            return line
        text = line.decode()
        try:
            return text.encode(encoding)
        except UnicodeEncodeError as problem:
            shown = " ".join(f"0x{byte:02x}" for byte in text[problem.start].encode())
            raise UntranslatableCharacter(
                f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
                f'encoding "{encoding.upper()}"'
            ) from None

    # --- binary -------------------------------------------------------------------------------

    def _binary(self, columns: Sequence[pa.Array], count: int) -> list[Any]:
        head = struct.pack("!h", len(columns))
        parts: list[Any] = [pa.scalar(head, pa.binary())]
        if self._signature or not columns:
            parts = [pa.array([self._signature + head, *[head] * (count - 1)], pa.binary())]
            self._signature = b""
        for array, encode in zip(columns, self._encoders, strict=True):
            values = encode(array)
            lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
            parts.append(fixed_width(lengths.astype(">i4")))
            parts.append(values.fill_null(b"") if values.null_count else values)
        return parts

    # --- text ---------------------------------------------------------------------------------

    def _texts(self, columns: Sequence[pa.Array], count: int) -> list[Any]:
        delimiter = pa.scalar(self._options.delimiter.encode(), pa.binary())
        null = pa.scalar(self._options.null.encode(), pa.binary())
        parts: list[Any] = []
        for array, encode, quote in zip(columns, self._encoders, self._quotes, strict=True):
            values = encode(array)
            if quote is not None:
                values = quote(values)
            parts += (values.fill_null(null) if values.null_count else values, delimiter)
        newline = pa.scalar(b"\n", pa.binary())
        if not parts:
            return [pa.array([b"\n"] * count, pa.binary())]
        return [*parts[:-1], newline]

    def _quote(self, name: str, sql_type: SqlType, columns: int) -> _Quote | None:
        """Escapes or quotes the texts of a column; None: they need nothing of that."""
        options = self._options
        if options.format is Format.BINARY:
            return None
        plain = sql_type.kind in _PLAIN and options.delimiter in _NEVER_IN_NUMBERS
        if options.format is Format.TEXT:
            return None if plain else _Escaping(options.delimiter.encode())
        forced = _lists(options.force_quote, name)
        quotes_numbers = options.quote.isalnum() or options.quote in "+-.: "
        if plain and not forced and not quotes_numbers and _is_no_number(options.null):
            return None
        return _Quoting(options, forced=forced, alone=columns == 1)


def _lists(columns: Columns, name: str) -> bool:
    return columns is Everything.COLUMNS or name in columns


def _is_no_number(null: str) -> bool:
    """Whether no text of a number, a date or a time is the text for NULL."""
    return not null or (not any(c.isdigit() for c in null) and null.lower() not in _WORDS)


_WORDS: Final = ("t", "f", "nan", "infinity", "-infinity")


def _frames(parts: Sequence[Any], count: int) -> pa.Array:
    sizes = np.full(count, 4, np.int64)
    for part in parts:
        if isinstance(part, pa.Scalar):
            sizes += len(part.as_py())
        else:
            sizes += pc.binary_length(part).to_numpy(zero_copy_only=False)
    heads = np.empty(count, _FRAMES)
    heads["kind"], heads["size"] = b"d", sizes
    return fixed_width(heads)


def _present(values: pa.Array, marks: Sequence[bytes]) -> list[bytes]:
    """Those of ``marks`` (one byte each) that the texts have."""
    data = bytes(bytes_of(values)) if len(values) else b""
    return [mark for mark in marks if mark in data]


class _Escaping:
    """Backslashes in front of bytes that mean something in the text format."""

    def __init__(self, delimiter: bytes) -> None:
        self._escapes = {b"\\": b"\\\\", **_ESCAPES}
        if delimiter not in self._escapes:
            self._escapes[delimiter] = b"\\" + delimiter

    def __call__(self, values: pa.Array) -> pa.Array:
        for mark in _present(values, list(self._escapes)):
            values = pc.replace_substring(values, mark, self._escapes[mark])
        return values


class _Quoting:
    """Quotes around CSV values that need them."""

    def __init__(self, options: CopyOptions, *, forced: bool, alone: bool) -> None:
        """``alone``: the column is the only one."""
        self._quote, self._escape = options.quote.encode(), options.escape.encode()
        self._special = [options.delimiter.encode(), self._quote, b"\n", b"\r"]
        self._null = pa.scalar(options.null.encode(), pa.binary())
        self._forced = forced
        self._alone = alone

    def __call__(self, values: pa.Array) -> pa.Array:
        needed = pc.equal(values, self._null)
        if self._forced:
            needed = values.is_valid()
        else:
            for mark in _present(values, self._special):
                needed = pc.or_(needed, pc.match_substring(values, mark))
            if self._alone:
                needed = pc.or_(needed, pc.equal(values, pa.scalar(b"\\.", pa.binary())))
        if not pc.any(needed, min_count=0).as_py():
            return values
        inner = values
        for mark in dict.fromkeys((self._escape, self._quote)):
            inner = pc.replace_substring(inner, mark, self._escape + mark)
        quote = pa.scalar(self._quote, pa.binary())
        quoted = pc.binary_join_element_wise(quote, inner, quote, _NOTHING)
        return pc.if_else(needed.fill_null(False), quoted, values)
