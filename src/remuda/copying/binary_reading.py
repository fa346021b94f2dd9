"""PostgreSQL's binary format of a COPY FROM, piece by piece, as batches of columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.copying.reading import PIECE_SIZE, ROW_SIZE_MAX, Target
from remuda.datatypes.arrow import engine_type
from remuda.datatypes.enums import label_of
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import check_length, decimal_to_unscaled
from remuda.datatypes.times.time_digits import fit_array, fit_of
from remuda.datatypes.values import PhysicalValue, from_physical, to_physical, values_to_array
from remuda.errors import BadCopyData, DataError, InvalidBinaryForm, LimitExceeded, RemudaError
from remuda.postgres.binary_values import EPOCH_DAYS, EPOCH_MICROS
from remuda.postgres.numeric_digits import decode_numeric
from remuda.postgres.parameters import BINARY, decode

_WIDTHS: Final = {
    Kind.BOOLEAN: 1, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8, Kind.REAL: 4,
    Kind.DOUBLE: 8, Kind.DATE: 4, Kind.TIME: 8, Kind.TIMESTAMP: 8, Kind.TIMESTAMPTZ: 8,
    Kind.UUID: 16, Kind.INTERVAL: 16,
}  # fmt: skip
"""Bytes of the values of a type."""
SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00"
_FLAGS: Final = struct.Struct("!Ii")
_OIDS: Final = 1 << 16
_COUNT: Final = struct.Struct("!h")
_LENGTH: Final = struct.Struct("!i")

_ROWS_AT_ONCE: Final = 4096
"""Rows of the usual form between two others for which it pays to look for more of them."""

Values: TypeAlias = list[bytes | None]


class BinaryReader:
    """``feed`` bytes, then ``end``: both give batches, each a list of columns in engine form. Rows
    in front of an error are given before it is raised."""

    left_out = 0

    def __init__(self, target: Target) -> None:
        self._target = target
        self._columns = [column_reader(column.type) for column in target.columns]
        self._layout = _Layout([column.type for column in target.columns])
        self._waiting: list[bytes] = []
        self._size = 0
        self._enough = PIECE_SIZE
        self._lines = 0
        self._begun = False
        self._ended = False

    def feed(self, data: bytes) -> Iterator[list[pa.Array]]:
        """Raises BadCopyData and the DataErrors of values, with the place as their context."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= self._enough:
            yield from self._read(final=False)

    def end(self) -> Iterator[list[pa.Array]]:
        """There are no more bytes. Raises as ``feed``."""
        yield from self._read(final=True)

    def _read(self, *, final: bool) -> Iterator[list[pa.Array]]:
        data = b"".join(self._waiting)
        at = 0
        if not self._begun:
            begun = _after_header(data, final=final)
            if begun is None:
                self._waiting, self._size = [data], len(data)
                return
            self._begun, at = True, begun
        if self._ended and at < len(data):
            raise self._error("received copy data after EOF marker")
        lists: list[Values] = [[] for _ in self._columns]
        problem: RemudaError | None = None
        try:
            at = self._cut(data, at, lists, final=final)
        except RemudaError as error:
            problem = error
        rows = min(map(len, lists), default=0)
        if rows:
            columns, problem = self._converted([each[:rows] for each in lists], problem)
            if columns is not None:
                yield columns
            self._lines += rows
        if problem is not None:
            raise problem
        if self._ended and at < len(data):
            raise self._error("received copy data after EOF marker")
        if len(data) - at > ROW_SIZE_MAX:
            raise LimitExceeded(f"a row has more than {ROW_SIZE_MAX} bytes")
        self._waiting, self._size = [data[at:]], len(data) - at
        self._enough = max(PIECE_SIZE, 2 * self._size)

    def _error(self, message: str, row: int = 1, place: int = -1) -> RemudaError:
        """In the ``row``-th row from here (the first one has number 1)."""
        context = self._target.at_line(self._lines + row)
        if place >= 0:
            context += f", column {self._target.columns[place].name}"
        return BadCopyData(message).met_at(context)

    def _cut(self, data: bytes, at: int, lists: list[Values], *, final: bool) -> int:
        """Adds the values of all whole rows. The place behind the last one."""
        if not lists:
            return self._cut_one(data, at, lists, final=final)
        while True:
            before = len(lists[0])
            at = self._layout.cut(data, at, lists)
            # A look at the whole piece pays for many rows alone.
            again = len(lists[0]) - before >= _ROWS_AT_ONCE
            while True:
                behind = self._cut_one(data, at, lists, final=final)
                if behind == at or self._ended:
                    return behind
                at = behind
                if again:
                    break

    def _cut_one(self, data: bytes, at: int, lists: list[Values], *, final: bool) -> int:
        """Adds the values of one row, of any form. The place behind it; ``at``: it is not whole."""
        begin, size = at, len(data)
        if size - at < 2:
            return begin
        (count,) = _COUNT.unpack_from(data, at)
        at += 2
        if count == -1:
            self._ended = True
            return at
        if count != len(lists):
            message = f"row field count is {count}, expected {len(lists)}"
            raise self._error(message, len(lists[0]) + 1)
        for place, values in enumerate(lists):
            if size - at < 4:
                return self._short(begin, lists, place, final=final)
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4
            if length < -1:
                raise self._error("invalid field size", len(values) + 1, place)
            end = at + max(length, 0)
            if end > size:
                return self._short(begin, lists, place, final=final)
            values.append(None if length < 0 else data[at:end])
            at = end
        return at

    def _short(self, begin: int, lists: list[Values], place: int, *, final: bool) -> int:
        """The row at ``begin`` is not whole."""
        if final:
            raise self._error("unexpected EOF in COPY data", len(lists[place]) + 1, place)
        for each in lists[:place]:
            each.pop()
        return begin

    def _converted(
        self, lists: list[Values], problem: RemudaError | None
    ) -> tuple[list[pa.Array] | None, RemudaError | None]:
        """The columns, cut at the first value that is wrong."""
        try:
            return [read(each) for read, each in zip(self._columns, lists, strict=True)], problem
        except (DataError, struct.error, pa.ArrowInvalid):
            row, found = self._first_failure(lists)
        if not row:
            return None, found
        columns = [read(each[:row]) for read, each in zip(self._columns, lists, strict=True)]
        return columns, found

    def _first_failure(self, lists: list[Values]) -> tuple[int, RemudaError]:
        for row, values in enumerate(zip(*lists, strict=True)):
            for place, value in enumerate(values):
                column = self._target.columns[place]
                context = self._target.at_line(self._lines + row + 1) + f", column {column.name}"
                try:
                    self._columns[place]([value])
                except (struct.error, pa.ArrowInvalid):
                    return row, InvalidBinaryForm(
                        f"incorrect binary data format in column {place + 1}"
                    ).met_at(context)
                except DataError as error:
                    return row, error.met_at(context)
        raise AssertionError("one of the values is wrong")


class _Layout:
    """Cuts rows whose values of fixed width are all there, many at a time.

    One pass finds the places of the values of variable width, because each row tells where the next
    one begins. Array operations check and take all others.
    """

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._count = len(types)
        self._fixed: list[tuple[int, int, int, int]] = []
        """Of each column of fixed width: its place, its width, the column of variable width in
        front of it (-1: none), and the bytes between that one and its length."""
        self._variable: list[int] = []
        self._steps: list[int] = []
        """Bytes in front of the values of these columns, from the end of the one before."""
        between = _COUNT.size
        for place, sql_type in enumerate(types):
            width = _WIDTHS.get(sql_type.kind)
            if width is None:
                self._variable.append(place)
                self._steps.append(between + _LENGTH.size)
                between = 0
            else:
                self._fixed.append((place, width, len(self._variable) - 1, between))
                between += _LENGTH.size + width
        self._tail = between

    def cut(self, data: bytes, at: int, lists: list[Values]) -> int:
        """Adds the values of rows up to the first one of another form, whose place it gives."""
        buffer = np.frombuffer(data, np.uint8)
        if len(buffer) - at < _LENGTH.size:
            return at
        words = buffer.astype(np.int32)
        lengths = words[:-3] << 24 | words[1:-2] << 16 | words[2:-1] << 8 | words[3:]
        rows, begins, ends, behind = self._walk(lengths, len(data), at)
        good = self._checked(lengths, rows, ends)
        if good < len(rows):
            behind = int(rows[good])
        for place, width, before, between in self._fixed:
            base = (rows if before < 0 else ends[before])[:good] + (between + _LENGTH.size)
            values = np.ascontiguousarray(buffer[base[:, None] + np.arange(width)])
            lists[place] += values.view(f"V{width}")[:, 0].tolist()
        for place, first, last in zip(self._variable, begins, ends, strict=True):
            pairs = zip(first[:good].tolist(), last[:good].tolist(), strict=True)
            lists[place] += [data[a:b] for a, b in pairs]
        return behind

    def _walk(
        self, lengths: np.ndarray, size: int, at: int
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray], int]:
        """The places of the rows, where their values of variable width begin and end, and the place
        behind the last row."""
        read, steps, tail = lengths.data, self._steps, self._tail
        rows: list[int] = []
        found: list[int] = []
        while True:
            place = at
            for step in steps:
                place += step
                length = read[place - 4] if place <= size else -1
                if length < 0:
                    break
                found.append(place)
                place += length
            else:
                place += tail
                if at + 2 < place <= size:
                    rows.append(at)
                    at = place
                    continue
            break
        width = len(steps)
        begins = np.array(found[: len(rows) * width], np.int64).reshape(len(rows), width)
        places = np.array(rows, np.int64)
        columns = [np.ascontiguousarray(begins[:, number]) for number in range(width)]
        ends = [column + lengths[column - 4] for column in columns]
        return places, columns, ends, at

    def _checked(self, lengths: np.ndarray, rows: np.ndarray, ends: list[np.ndarray]) -> int:
        """How many of the rows have the form that the walk has taken them for."""
        wrong = (lengths[rows] >> 16) != self._count
        for _, width, before, between in self._fixed:
            base = rows if before < 0 else ends[before]
            wrong |= lengths[base + between] != width
        places = np.flatnonzero(wrong)
        return int(places[0]) if len(places) else len(rows)


def _after_header(data: bytes, *, final: bool) -> int | None:
    """The place of the first row; None: the header is not whole."""
    if data[: len(SIGNATURE)] != SIGNATURE[: len(data)] or (final and len(data) < len(SIGNATURE)):
        raise BadCopyData("COPY file signature not recognized")
    at = len(SIGNATURE)
    if len(data) < at + _FLAGS.size:
        if final:
            raise BadCopyData("invalid COPY file header (missing flags)")
        return None
    flags, extension = _FLAGS.unpack_from(data, at)
    if flags & _OIDS:
        raise BadCopyData("invalid COPY file header (WITH OIDS)")
    if flags >> 16:
        raise BadCopyData("unrecognized critical flags in COPY file header")
    if extension < 0:
        raise BadCopyData("invalid COPY file header (missing length)")
    behind = at + _FLAGS.size + int(extension)
    if len(data) < behind:
        if final:
            raise BadCopyData("invalid COPY file header (wrong length)")
        return None
    return behind


# --- columns -----------------------------------------------------------------------------------

ColumnReader: TypeAlias = Callable[[Values], pa.Array]
"""Values as they were sent -> a column in engine form. Raises DataErrors, struct.error,
ArrowInvalid."""


def column_reader(sql_type: SqlType) -> ColumnReader:
    fixed = _FIXED.get(sql_type.kind)
    if fixed is not None:
        sent, offset = fixed
        return _numbers(sql_type, np.dtype(sent), offset)
    if sql_type.kind is Kind.BOOLEAN:
        return _booleans
    if sql_type.is_text:
        return _texts(sql_type)
    if sql_type.kind is Kind.DECIMAL:
        return _decimals(sql_type)
    return _general(sql_type)


_FIXED: Final = {
    Kind.SMALLINT: (">i2", 0),
    Kind.INTEGER: (">i4", 0),
    Kind.BIGINT: (">i8", 0),
    Kind.REAL: (">f4", 0),
    Kind.DOUBLE: (">f8", 0),
    Kind.DATE: (">i4", EPOCH_DAYS),
    Kind.TIMESTAMP: (">i8", EPOCH_MICROS),
    Kind.TIMESTAMPTZ: (">i8", EPOCH_MICROS),
}


def _joined(values: Values, width: int) -> tuple[bytes, np.ndarray | None]:
    """Values of one width, with zeros for NULLs; and where these are. Raises struct.error for
    another width."""
    missing = None
    if None in values:
        missing = np.fromiter((value is None for value in values), bool, len(values))
        zeros = bytes(width)
        found = [zeros if value is None else value for value in values]
    else:
        found = values  # type: ignore[assignment]
    if set(map(len, found)) - {width}:
        raise struct.error("a value of another width")
    return b"".join(found), missing


def _numbers(sql_type: SqlType, sent: np.dtype, offset: int) -> ColumnReader:
    arrow = engine_type(sql_type)
    general = _general(sql_type)
    bound = np.iinfo(sent).max - 2 * offset if offset else 0

    def column(values: Values) -> pa.Array:
        data, missing = _joined(values, sent.itemsize)
        numbers = np.frombuffer(data, sent).astype(sent.newbyteorder("="))
        if offset:
            if len(numbers) and (numbers.max() > bound or numbers.min() < -bound):
                return general(values)  # it tells what is out of range
            numbers = numbers + numbers.dtype.type(offset)
        validity = None
        if missing is not None:
            validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        found = pa.Array.from_buffers(arrow, len(values), [validity, pa.py_buffer(numbers)])
        return found if fit_of(sql_type) is None else fit_array(found, sql_type)

    return column


def _booleans(values: Values) -> pa.Array:
    data, missing = _joined(values, 1)
    return pa.array(np.frombuffer(data, np.uint8) != 0, pa.bool_(), mask=missing)


def _texts(sql_type: SqlType) -> ColumnReader:
    length = sql_type.length

    def column(values: Values) -> pa.Array:
        array = pa.array(values, pa.binary())
        if b"\0" in memoryview(array.buffers()[2] or b"").tobytes():
            return general(values)
        try:
            found = array.cast(pa.string())
        except pa.ArrowInvalid:
            return general(values)
        if sql_type.kind is Kind.CHAR:
            found = pc.utf8_rtrim(found, characters=" ")
        if length is not None and (pc.max(pc.utf8_length(found)).as_py() or 0) > length:
            return pa.array(
                [None if v is None else check_length(v, sql_type) for v in found.to_pylist()],
                pa.string(),
            )
        return found

    general = _general(sql_type)
    return column


_POWERS: Final = 10 ** np.arange(19, dtype=np.int64)
_GROUP: Final = 4
"""Decimal digits of one digit of PostgreSQL's NUMERIC."""
_HEAD_WORDS: Final = 4
_MINUS: Final = 0x4000


def _decimals(sql_type: SqlType) -> ColumnReader:
    def general(values: Values) -> pa.Array:
        found = [
            None if v is None else decimal_to_unscaled(decode_numeric(v), sql_type) for v in values
        ]
        return values_to_array(found, sql_type)

    def column(values: Values) -> pa.Array:
        if not sql_type.is_short_decimal:
            return general(values)
        sizes = np.fromiter((-1 if v is None else len(v) for v in values), np.int64, len(values))
        numbers = np.zeros(len(values), np.int64)
        for size in np.unique(sizes[sizes >= 0]).tolist():
            places = np.flatnonzero(sizes == size)
            found = _same_size([values[place] for place in places.tolist()], size, sql_type)
            if found is None:
                return general(values)  # it rounds, and tells errors
            numbers[places] = found
        validity = None
        if (sizes < 0).any():
            validity = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
        return pa.Array.from_buffers(pa.int64(), len(values), [validity, pa.py_buffer(numbers)])

    return column


def _same_size(values: Values, size: int, sql_type: SqlType) -> np.ndarray | None:
    """Unscaled numbers out of values of ``size`` bytes; None: one of them is no plain number of
    the type, or has more digits."""
    if size < 2 * _HEAD_WORDS or size % 2:
        return None
    words = np.frombuffer(b"".join(values), ">u2").reshape(len(values), -1)  # type: ignore[arg-type]
    count, weight, sign = words[:, 0], words[:, 1].astype(np.int16).astype(np.int64), words[:, 2]
    digits = words[:, _HEAD_WORDS:].astype(np.int64)
    scale = sql_type.scale or 0
    if (count != digits.shape[1]).any() or not np.isin(sign, (0, _MINUS)).all():
        return None
    if (digits > 9999).any() or (_GROUP * (weight + 1) + scale > 18).any():
        return None
    found = np.zeros(len(values), np.int64)
    for place in range(digits.shape[1]):
        power = _GROUP * (weight - place) + scale
        if (power < -18).any():
            return None
        found += digits[:, place] * _POWERS[np.maximum(power, 0)]
        small = np.flatnonzero(power < 0)
        if len(small):
            divisor = _POWERS[-power[small]]
            if (digits[small, place] % divisor).any():
                return None
            found[small] += digits[small, place] // divisor - digits[small, place]
    if (found >= 10 ** (sql_type.precision or 0)).any():
        return None
    return np.where(sign == _MINUS, -found, found)


def _general(sql_type: SqlType) -> ColumnReader:
    fit = fit_of(sql_type)

    def value(data: bytes | None) -> PhysicalValue:
        found, own = decode(data, BINARY, 0, sql_type)
        if found is None:
            return None
        if own.element is not None and own.element.kind is Kind.DECIMAL:
            found = to_physical(from_physical(found, own), sql_type)
        if sql_type.is_text:
            return check_length(str(found), sql_type)
        if sql_type.enum is not None:
            return label_of(str(found), sql_type)
        return found if fit is None else fit(found)

    return lambda values: values_to_array([value(each) for each in values], sql_type)
