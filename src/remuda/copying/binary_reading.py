"""PostgreSQL's binary format of a COPY FROM, piece by piece, as batches of columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.copying.reading import PIECE_SIZE, ROW_SIZE_MAX, Target
from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import check_length, decimal_to_unscaled
from remuda.datatypes.times.time_digits import fit_array, fit_of
from remuda.datatypes.values import PhysicalValue, from_physical, to_physical, values_to_array
from remuda.errors import BadCopyData, DataError, InvalidBinaryForm, LimitExceeded, RemudaError
from remuda.postgres.binary_values import EPOCH_DAYS, EPOCH_MICROS
from remuda.postgres.numeric_digits import decode_numeric
from remuda.postgres.parameters import BINARY, decode

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00"
_FLAGS: Final = struct.Struct("!Ii")
_OIDS: Final = 1 << 16
_COUNT: Final = struct.Struct("!h")
_LENGTH: Final = struct.Struct("!i")

Values: TypeAlias = list[bytes | None]


class BinaryReader:
    """``feed`` bytes, then ``end``: both give batches, each a list of columns in engine form. Rows
    in front of an error are given before it is raised."""

    left_out = 0

    def __init__(self, target: Target) -> None:
        self._target = target
        self._columns = [column_reader(column.type) for column in target.columns]
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
        wanted, size = len(lists), len(data)
        appends = [each.append for each in lists]
        count_at, length_at = _COUNT.unpack_from, _LENGTH.unpack_from
        while True:
            begin = at
            if size - at < 2:
                return begin
            (count,) = count_at(data, at)
            at += 2
            if count == -1:
                self._ended = True
                return at
            if count != wanted:
                raise self._error(
                    f"row field count is {count}, expected {wanted}", len(lists[0]) + 1
                )
            for place, append in enumerate(appends):
                if size - at < 4:
                    return self._short(begin, lists, place, final=final)
                (length,) = length_at(data, at)
                at += 4
                if length < 0:
                    if length != -1:
                        raise self._error("invalid field size", len(lists[place]) + 1, place)
                    append(None)
                    continue
                end = at + length
                if end > size:
                    return self._short(begin, lists, place, final=final)
                append(data[at:end])
                at = end

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
        return lambda values: values_to_array(
            [
                None if v is None else decimal_to_unscaled(decode_numeric(v), sql_type)
                for v in values
            ],
            sql_type,
        )
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
        return found if fit is None else fit(found)

    return lambda values: values_to_array([value(each) for each in values], sql_type)
