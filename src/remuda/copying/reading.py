"""Text and CSV of a COPY FROM, piece by piece, as batches of columns.

The usual form of a piece is read column by column. Where something of it is unusual or wrong, its
structure is computed, and the first error is found: the one that PostgreSQL would meet first.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.copying.options import Columns, CopyOptions, Everything, Format, Header
from remuda.copying.parsing import ValueFailure, failures, parsed_column
from remuda.copying.splitting import (
    NEWLINE,
    Fields,
    LineEnd,
    Structure,
    end_marker,
    fields_of,
    plain_columns,
    structure_of,
)
from remuda.datatypes.schema import Column
from remuda.errors import (
    BadCopyData,
    DataError,
    InvalidByteSequence,
    LimitExceeded,
    RemudaError,
)
from remuda.limits import MIB

PIECE_SIZE: Final = 2 * MIB
"""Bytes that are read at a time: a row may be longer."""
ROW_SIZE_MAX: Final = 256 * MIB
"""Bytes of a row as text."""
SHOWN_MAX: Final = 100
"""Characters of a row or a value that a context shows, as in PostgreSQL."""

Pieces: TypeAlias = Generator[list[pa.Array], None, int]
"""Batches, and at last the number of bytes that were used."""
Skipped = Callable[[str], None]
"""Told of each row that is left out: where it stands."""


@dataclass(frozen=True, slots=True)
class Target:
    """The columns that a COPY fills, by the name of their table. ``zone``: that of the session."""

    table: str
    columns: Sequence[Column]
    zone: str

    def at_line(self, line: int, text: str | None = None) -> str:
        shown = "" if text is None else f': "{_short(text)}"'
        return f"COPY {self.table}, line {line}{shown}"

    def at_value(self, line: int, place: int, text: str) -> str:
        name = self.columns[place].name
        return f'COPY {self.table}, line {line}, column {name}: "{_short(text)}"'


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


_MISSING: Final = 3


@dataclass(frozen=True, slots=True)
class _Problem:
    """The error of a row. ``rank`` orders those of one row: the smallest one is met first."""

    row: int
    rank: int
    error: RemudaError


class TextReader:
    """``feed`` bytes, then ``end``: both give batches, each a list of columns in engine form. Rows
    in front of an error are given before it is raised."""

    def __init__(
        self, target: Target, options: CopyOptions, skipped: Skipped = lambda _: None
    ) -> None:
        """``skipped`` hears of each row that ON_ERROR leaves out."""
        self._target = target
        self._options = options
        self._skipped = skipped
        self._types = [column.type for column in target.columns]
        self._waiting: list[bytes] = []
        self._size = 0
        self._enough = PIECE_SIZE
        self._lines = 0
        self._end: LineEnd | None = None
        self._header = options.header
        self._ended = False
        self.left_out = 0
        """Rows that ON_ERROR has left out."""
        self._decoder = (
            codecs.getincrementaldecoder(options.encoding)() if options.encoding else None
        )

    def feed(self, data: bytes) -> Iterator[list[pa.Array]]:
        """Raises BadCopyData and the DataErrors of values, with the place as their context."""
        if self._ended:  # PostgreSQL ignores what follows the end marker
            return
        if self._decoder is not None:
            data = self._decoded(data, final=False)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= self._enough:
            yield from self._read(final=False)

    def end(self) -> Iterator[list[pa.Array]]:
        """There are no more bytes. Raises as ``feed``."""
        if self._ended:
            return
        if self._decoder is not None:
            self._waiting.append(self._decoded(b"", final=True))
        yield from self._read(final=True)

    def _decoded(self, data: bytes, *, final: bool) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decode(data, final).encode()
        except UnicodeError as problem:
            raise InvalidByteSequence(
                f'invalid byte sequence for encoding "{self._options.encoding.upper()}"'
            ).met_at(self._target.at_line(self._lines + 1)) from problem

    # --- pieces -------------------------------------------------------------------------------

    def _read(self, *, final: bool) -> Iterator[list[pa.Array]]:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if self._end is None and data:
            self._end = _first_line_end(data, self._options, final=final)
            if final and self._end is None:
                self._end = LineEnd(b"\n")
        if final and self._end is not None:
            data = _closed(data, self._options, self._end)
        rest = data
        if self._end is not None and data:
            if self._header is not Header.NONE:
                data = self._without_header(data, self._end, final=final)
            rest = data
            if data and self._header is Header.NONE:
                used = yield from self._rows(data, self._end, final=final)
                rest = data[used:]
        if final and self._header is Header.MATCH:
            self._check_header(Fields(pa.array([b""]), np.array([0, 1])))
        if self._ended or final:
            return
        if len(rest) > ROW_SIZE_MAX:
            raise LimitExceeded(f"a row has more than {ROW_SIZE_MAX} bytes").met_at(
                self._target.at_line(self._lines + 1)
            )
        self._waiting, self._size = [rest], len(rest)
        # A long row is not looked at again with every piece of it.
        self._enough = max(PIECE_SIZE, 2 * len(rest))

    def _rows(self, data: bytes, end: LineEnd, *, final: bool) -> Pieces:
        """Gives the batches, and returns the number of bytes that were used."""
        if end.mark == b"\n":
            cut = data.rfind(b"\n") + 1
            piece = data[:cut]
            columns = plain_columns(piece, self._options, len(self._types)) if cut else None
            found = None if columns is None or b"\0" in piece else self._converted(columns)
            if found is not None:
                self._lines += piece.count(b"\n")
                yield found
                return cut
        return (yield from self._any_rows(data, end, final=final))

    def _converted(self, columns: Sequence[pa.Array]) -> list[pa.Array] | None:
        """None: a value is none of its type."""
        zone = self._target.zone
        try:
            return [
                parsed_column(column.cast(pa.string()), sql_type, zone)
                for column, sql_type in zip(columns, self._types, strict=True)
            ]
        except (pa.ArrowInvalid, DataError):
            return None

    # --- the header ---------------------------------------------------------------------------

    def _without_header(self, data: bytes, end: LineEnd, *, final: bool) -> bytes:
        """The bytes behind the first line, if it is here."""
        structure = structure_of(data, self._options, end)
        ends = structure.separators[structure.row_ends]
        if not len(ends):
            if final:
                self._check_open_quote(structure)
            return data
        behind = int(ends[0]) + 1
        self._check_bytes(data[:behind])
        if 0 <= end_marker(structure, self._options) < behind:
            self._header = Header.NONE  # it ends the data, or is out of place
            return data
        self._lines += _newlines(data[:behind], self._options, end)
        if self._header is Header.MATCH:
            first = structure_of(data[:behind], self._options, end)
            self._check_header(fields_of(first, self._options))
        self._header = Header.NONE
        return data[behind:]

    def _check_header(self, fields: Fields) -> None:
        names = fields.values.to_pylist()
        columns = self._target.columns
        problem = ""
        if len(names) != len(columns):
            problem = (
                f"wrong number of fields in header line: got {len(names)}, expected {len(columns)}"
            )
        for number, (name, column) in enumerate(zip(names, columns, strict=False), 1):
            if problem:
                break
            if name is None:
                problem = (
                    f"column name mismatch in header line field {number}: got null value "
                    f'("{self._options.null}"), expected "{column.name}"'
                )
            elif name != column.name.encode():
                problem = (
                    f"column name mismatch in header line field {number}: "
                    f'got "{name.decode("utf-8", "replace")}", expected "{column.name}"'
                )
        if problem:
            raise BadCopyData(problem).met_at(self._target.at_line(self._lines))

    # --- any form -----------------------------------------------------------------------------

    def _any_rows(self, data: bytes, end: LineEnd, *, final: bool) -> Pieces:
        structure = structure_of(data, self._options, end)
        marker = end_marker(structure, self._options)
        behind = data[marker + 2 : marker + 2 + len(end.mark)] if marker >= 0 else b""
        is_whole = final or len(behind) == len(end.mark)
        is_end = not behind or behind == end.mark
        if marker < 0 or not is_whole or (not is_end and self._options.format is Format.CSV):
            used = yield from self._whole_rows(structure, data, end)
            if final and used < len(data):
                self._check_open_quote(structure)
            return used
        kept = data[:marker]
        if kept and not kept.endswith(end.mark) and is_end:
            kept += end.mark
        yield from self._whole_rows(structure_of(kept, self._options, end), kept, end)
        if not is_end:
            self._check_bytes(data[len(kept) - len(kept.rpartition(end.mark)[2]) :])
            raise BadCopyData("end-of-copy marker corrupt").met_at(
                self._target.at_line(self._lines + 1)
            )
        self._ended = True
        return len(data)

    def _check_bytes(self, data: bytes) -> None:
        """Of one line."""
        bad = _invalid_bytes(data)
        if bad is not None:
            raise InvalidByteSequence(
                f'invalid byte sequence for encoding "UTF8": {bad[1]}'
            ).met_at(self._target.at_line(self._lines + 1))

    def _check_open_quote(self, structure: Structure) -> None:
        self._check_bytes(structure.buffer[structure.complete :].tobytes())
        if structure.unterminated:
            raise BadCopyData("unterminated CSV quoted field").met_at(
                self._target.at_line(self._lines + 1)
            )

    def _whole_rows(self, structure: Structure, data: bytes, end: LineEnd) -> Pieces:
        if not structure.complete:
            self._raise_stray(structure, data)
            return 0
        whole = structure_of(data[: structure.complete], self._options, end)
        fields = fields_of(whole, self._options)
        row_ends = whole.separators[whole.row_ends]
        lines = _lines_of(whole, row_ends, self._options, self._lines)
        problem = self._first_problem(whole, fields, row_ends, lines, data, end)
        good = fields.rows if problem is None else problem.row
        # Rows with fields for all columns, and with the one of the problem for some of them.
        columns, problem = self._values(fields, good, lines, problem)
        if columns is not None:
            yield columns
        if problem is not None:
            raise problem.error
        self._lines += _newlines(data[: whole.complete], self._options, end)
        return whole.complete

    def _raise_stray(self, structure: Structure, data: bytes) -> None:
        if structure.stray >= 0:
            raise self._stray(data[structure.stray], self._lines + 1)

    def _stray(self, byte: int, line: int) -> RemudaError:
        name, mark = ("newline", "\\n") if byte == NEWLINE else ("carriage return", "\\r")
        if self._options.format is Format.CSV:
            error = BadCopyData(
                f"unquoted {name} found in data",
                hint=f"Use quoted CSV field to represent {name}.",
            )
        else:
            error = BadCopyData(
                f"literal {name} found in data", hint=f'Use "{mark}" to represent {name}.'
            )
        return error.met_at(self._target.at_line(line))

    def _first_problem(  # noqa: PLR0917 (what is known of the piece)
        self,
        structure: Structure,
        fields: Fields,
        row_ends: np.ndarray,
        lines: np.ndarray,
        data: bytes,
        end: LineEnd,
    ) -> _Problem | None:
        """The first row whose form is wrong."""
        found: list[_Problem] = []
        if structure.stray >= 0:
            row = int(np.searchsorted(row_ends, structure.stray))
            found.append(_Problem(row, 0, self._stray(data[structure.stray], int(lines[row]))))
        wanted = len(self._types)
        wrong = np.flatnonzero(fields.counts() != wanted)
        if len(wrong):
            row, count = int(wrong[0]), int(fields.counts()[wrong[0]])
            text = self._row_text(structure, row_ends, row, end)
            context = self._target.at_line(int(lines[row]), text)
            if count > wanted:
                error: RemudaError = BadCopyData("extra data after last expected column")
            else:
                missing = self._target.columns[count].name
                error = BadCopyData(f'missing data for column "{missing}"')
            rank = 1 if count > wanted else _MISSING
            found.append(_Problem(row, rank, error.met_at(context)))
        bad = _invalid_bytes(data[: structure.complete])
        if bad is not None:
            row = int(np.searchsorted(row_ends, bad[0]))
            invalid = InvalidByteSequence(f'invalid byte sequence for encoding "UTF8": {bad[1]}')
            found.append(_Problem(row, 0, invalid.met_at(self._target.at_line(int(lines[row])))))
        return min(found, key=lambda p: (p.row, p.rank), default=None)

    def _row_text(self, structure: Structure, row_ends: np.ndarray, row: int, end: LineEnd) -> str:
        start = int(row_ends[row - 1]) + 1 if row else 0
        stop = int(row_ends[row]) + 1 - len(end.mark)
        return structure.buffer[start:stop].tobytes().decode("utf-8", "replace")

    # --- values -------------------------------------------------------------------------------

    def _values(
        self, fields: Fields, good: int, lines: np.ndarray, problem: _Problem | None
    ) -> tuple[list[pa.Array] | None, _Problem | None]:
        """The columns of the first ``good`` rows, cut at the first error in a value."""
        partial = 0
        if (
            problem is not None and problem.rank == 3
        ):  # values in front of the missing one come first
            partial = int(fields.counts()[good])
        texts: list[pa.Array] = []
        failed: list[tuple[ValueFailure, int]] = []
        for place, sql_type in enumerate(self._types):
            rows = slice(0, good + (place < partial))
            column, broken = _unicode(fields.column(place, rows))
            column = self._forced(column, place)
            failed += [(failure, place) for failure in broken]
            texts.append(column)
            try:
                parsed_column(column, sql_type, self._target.zone)
            except DataError:
                found = failures(column, sql_type, self._target.zone)
                failed += [(failure, place) for failure in found]
        if self._options.ignores_errors and failed:
            left_out = self._leave_out(failed, lines)
            if problem is not None and good in left_out:
                good = problem.row
            keep = np.setdiff1d(np.arange(good), np.fromiter(left_out, np.int64, len(left_out)))
        else:
            if failed:
                failure, place = min(failed, key=lambda f: (f[0].place, f[1]))
                context = self._target.at_value(int(lines[failure.place]), place, failure.text)
                problem = _Problem(failure.place, 2, failure.error.met_at(context))
                good = min(good, failure.place)
            keep = np.arange(good)
        if not len(keep):
            return None, problem
        rows_kept = pa.array(keep, pa.int64())
        columns = [
            parsed_column(column.take(rows_kept), sql_type, self._target.zone)
            for column, sql_type in zip(texts, self._types, strict=True)
        ]
        return columns, problem

    def _forced(self, column: pa.Array, place: int) -> pa.Array:
        """With FORCE_NOT_NULL and FORCE_NULL."""
        name, options = self._target.columns[place].name, self._options
        found = column
        if _lists(options.force_null, name):
            missing = pa.scalar(None, pa.string())
            found = pc.if_else(pc.equal(column, options.null), missing, column)
        if _lists(options.force_not_null, name):
            found = pc.if_else(column.is_valid(), found, options.null)
        return found

    def _leave_out(self, failed: list[tuple[ValueFailure, int]], lines: np.ndarray) -> set[int]:
        """Rows that ON_ERROR leaves out."""
        first: dict[int, tuple[ValueFailure, int]] = {}
        for failure, place in failed:
            known = first.get(failure.place)
            if known is None or place < known[1]:
                first[failure.place] = (failure, place)
        for row in sorted(first):
            failure, place = first[row]
            self._skipped(
                f"skipping row due to data type incompatibility at line {lines[row]} for column "
                f'{self._target.columns[place].name}: "{_short(failure.text)}"'
            )
        self.left_out += len(first)
        return set(first)


def _lists(columns: Columns, name: str) -> bool:
    return columns is Everything.COLUMNS or name in columns


# --- lines and bytes ---------------------------------------------------------------------------


def _first_line_end(data: bytes, options: CopyOptions, *, final: bool) -> LineEnd | None:
    """How the first line ends; None: it is not here."""
    if b"\n" not in data and b"\r" not in data:
        return None
    for mark in (b"\n", b"\r"):
        structure = structure_of(data, options, LineEnd(mark))
        ends = structure.separators[structure.row_ends]
        first = int(ends[0]) if len(ends) else len(data)
        if structure.stray >= 0 and structure.stray < first:
            continue
        if mark == b"\n":
            return LineEnd(mark) if len(ends) else None
        if first + 1 >= len(data) and not final:
            return None  # the next byte may be a newline
        return LineEnd(b"\r\n" if data[first + 1 : first + 2] == b"\n" else b"\r")
    return None


def _closed(data: bytes, options: CopyOptions, end: LineEnd) -> bytes:
    """The last bytes of an input, with an end of their last line."""
    structure = structure_of(data, options, end)
    if structure.complete == len(data):
        return data
    last = structure.removed[-1:].tolist()
    if options.format is Format.TEXT and last == [len(data) - 1]:  # a backslash before nothing
        data = data[:-1]
    return data + end.mark


def _newlines(data: bytes, options: CopyOptions, end: LineEnd) -> int:
    """How many lines PostgreSQL counts in whole rows: those inside of quoted values, too."""
    if options.format is Format.CSV:
        return data.count(end.mark[-1:])
    return int(structure_of(data, options, end).row_ends.sum())


def _lines_of(
    structure: Structure, row_ends: np.ndarray, options: CopyOptions, before: int
) -> np.ndarray:
    """The number of the last line of each row."""
    if options.format is not Format.CSV or not len(row_ends):
        return before + 1 + np.arange(len(row_ends))
    mark = structure.buffer[row_ends[0]]
    newlines = np.flatnonzero(structure.buffer == mark)
    found: np.ndarray = before + 1 + np.searchsorted(newlines, row_ends)
    return found


def _invalid_bytes(data: bytes) -> tuple[int, str] | None:
    """The place of the first bytes that are no UTF-8, or zero, and how PostgreSQL shows them."""
    zero = data.find(b"\0")
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        place = problem.start
        if zero < 0 or place < zero:
            return place, _shown_bytes(data, place)
    return None if zero < 0 else (zero, "0x00")


def _shown_bytes(data: bytes, place: int) -> str:
    first = data[place]
    width = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4
    if first >> 5 != 0b110 and first >> 4 != 0b1110 and first >> 3 != 0b11110:
        width = 1
    return " ".join(f"0x{byte:02x}" for byte in data[place : place + width])


def _unicode(column: pa.Array) -> tuple[pa.Array, list[ValueFailure]]:
    """The column as texts. Escape sequences may have made what is no UTF-8."""
    try:
        found = column.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    else:
        if b"\0" not in (memoryview(found.buffers()[2] or b"")).tobytes():
            return found, []
    texts: list[str | None] = []
    broken: list[ValueFailure] = []
    for place, value in enumerate(column.to_pylist()):
        bad = None if value is None else _invalid_bytes(value)
        if bad is not None:
            message = f'invalid byte sequence for encoding "UTF8": {bad[1]}'
            shown = value.decode("utf-8", "replace")
            broken.append(ValueFailure(place, shown, InvalidByteSequence(message)))
        texts.append(None if value is None or bad is not None else value.decode())
    return pa.array(texts, pa.string()), broken
