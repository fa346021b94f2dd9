"""Texts and CSV cut into fields, by array operations over all bytes of a piece.

A piece holds whole rows. Rows of the usual form go through Arrow's CSV reader. Where its rules
differ from PostgreSQL's (escapes, carriage returns, quotes in the middle of a field, the end marker
``\\.``) this module computes the structure of the piece: positions of quotes and backslashes give
the bytes that separate fields, and those that are taken out of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from remuda.copying.options import CopyOptions, Format

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NEWLINE, RETURN, BACKSLASH, POINT = 10, 13, 92, 46
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CONTROLS: Final = {ord(c): ord(v) for c, v in zip("bfnrtv", "\b\f\n\r\t\v", strict=True)}
_TRANSLATION: Final = np.array([_CONTROLS.get(c, c) for c in range(256)], np.uint8)
_HEX: Final = b"0123456789abcdefABCDEF"


@dataclass(frozen=True, slots=True)
class LineEnd:
    """How the lines of an input end: the first line decides."""

    mark: bytes

    @property
    def byte(self) -> int:
        return self.mark[-1]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a piece, row after row: ``values`` are their contents (NULL where they say so),
    ``firsts`` the place of the first field of each row, and one more for the end."""

    values: pa.Array
    firsts: Positions

    @property
    def rows(self) -> int:
        return len(self.firsts) - 1

    def counts(self) -> Positions:
        return np.diff(self.firsts)

    def column(self, place: int, rows: slice) -> pa.Array:
        """All of ``rows`` have this field."""
        return self.values.take(pa.array(self.firsts[:-1][rows] + place, pa.int64()))


@dataclass(frozen=True, slots=True)
class Structure:
    """The roles of the bytes of a piece. ``separators`` are the bytes that end fields, ``row_ends``
    which of them end rows; ``quotes`` are those that open and close quoted parts."""

    buffer: Bytes
    separators: Positions
    row_ends: npt.NDArray[np.bool_]
    removed: Positions
    """Bytes inside of rows that are no part of values: backslashes, quotes."""
    quotes: Positions
    stray: int
    """The first carriage return or newline that is neither data nor the end of a line; -1: none."""
    unterminated: bool
    """A quoted part does not end."""
    complete: int
    """Bytes of whole rows."""


# --- the usual form ----------------------------------------------------------------------------


def plain_columns(data: bytes, options: CopyOptions, count: int) -> list[pa.Array] | None:
    """The columns of rows in their usual form, as binary arrays; None: ``structure_of`` must look
    at the piece, because it has another form or is wrong."""
    if b"\r" in data or data.startswith(BYTE_ORDER_MARK):
        return None
    is_csv = options.format is Format.CSV
    if options.force_null or options.force_not_null or not data.endswith(b"\n"):
        return None
    if data.startswith(b"\n") or b"\n\n" in data:  # Arrow reads an empty line as a row of NULLs
        return None
    if not (_plain_csv(data, options) if is_csv else _plain_text(data, options)):
        return None
    names = [str(place) for place in range(count)]
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote if is_csv else False,
                double_quote=is_csv,
                escape_char=False,
                newlines_in_values=is_csv,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[options.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None  # rows of different lengths, for one
    return [column.combine_chunks() for column in table.columns]


def _plain_text(data: bytes, options: CopyOptions) -> bool:
    """Whether all backslashes are those of NULLs."""
    if b"\\" not in data:
        return True
    if options.null != "\\N":
        return False
    buffer = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero(buffer == BACKSLASH)
    if marks[-1] + 2 >= len(buffer):
        return False
    delimiter = ord(options.delimiter)
    behind = buffer[marks + 2]
    front = buffer[np.maximum(marks - 1, 0)]
    begins = (marks == 0) | (front == delimiter) | (front == NEWLINE)
    ends = (behind == delimiter) | (behind == NEWLINE)
    return bool((begins & ends & (buffer[marks + 1] == ord("N"))).all())


def _plain_csv(data: bytes, options: CopyOptions) -> bool:
    """Whether quotes stand at the ends of fields, or are doubled inside."""
    if b"\\." in data or options.quote != options.escape:
        return False
    quote = options.quote.encode()
    if quote not in data:
        return True
    buffer = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero(buffer == quote[0])
    if len(marks) % 2:
        return False
    delimiter = ord(options.delimiter)
    opening, closing = marks[::2], marks[1::2]
    front = buffer[np.maximum(opening - 1, 0)]
    behind = buffer[np.minimum(closing + 1, len(buffer) - 1)]
    again = np.zeros(len(opening), bool)
    again[1:] = closing[:-1] + 1 == opening[1:]  # a doubled quote
    begins = again | (opening == 0) | (front == delimiter) | (front == NEWLINE)
    goes_on = np.zeros(len(closing), bool)
    goes_on[:-1] = again[1:]
    ends = goes_on | (behind == delimiter) | (behind == NEWLINE)
    return bool((begins & ends).all())


# --- any form ----------------------------------------------------------------------------------


def structure_of(data: bytes, options: CopyOptions, end: LineEnd) -> Structure:
    """The roles of the bytes. The last row may be cut short."""
    buffer = np.frombuffer(data, np.uint8)
    if options.format is Format.CSV:
        return _csv_structure(buffer, options, end)
    return _text_structure(buffer, options, end)


def _active(buffer: Bytes) -> Positions:
    """Backslashes that are not escaped by the one in front of them."""
    marks = np.flatnonzero(buffer == BACKSLASH)
    if not len(marks):
        return marks
    begins = np.ones(len(marks), bool)
    begins[1:] = np.diff(marks) != 1
    places = np.arange(len(marks))
    in_run = places - np.maximum.accumulate(np.where(begins, places, 0))
    found: Positions = marks[in_run % 2 == 0]
    return found


def _text_structure(buffer: Bytes, options: CopyOptions, end: LineEnd) -> Structure:
    active = _active(buffer)
    escaped = np.zeros(len(buffer) + 1, bool)
    escaped[active + 1] = True
    return _structure(buffer, options, end, ~escaped[:-1], active, active[:0], unterminated=False)


def _csv_structure(buffer: Bytes, options: CopyOptions, end: LineEnd) -> Structure:
    quote, escape = ord(options.quote), ord(options.escape)
    if quote == escape:
        quotes = np.flatnonzero(buffer == quote)
        kept = np.zeros(len(quotes), bool)
        # A part that ends where the next one begins is a quote of the value.
        kept[2::2] = quotes[1:-1:2] + 1 == quotes[2::2]
        removed = quotes[~kept]
    else:
        quotes, removed = _escaped_quotes(buffer, quote, escape)
    outside = np.ones(len(buffer), bool)
    if len(quotes):
        depth = np.zeros(len(buffer), np.int8)
        depth[quotes] = 1
        outside = np.bitwise_xor.accumulate(depth) == 0
    open_ = bool(len(quotes) % 2)
    return _structure(buffer, options, end, outside, removed, quotes, unterminated=open_)


def _escaped_quotes(buffer: Bytes, quote: int, escape: int) -> tuple[Positions, Positions]:
    """For an escape character of its own: quotes that open and close, and the removed bytes."""
    quotes: list[int] = []
    removed: list[int] = []
    inside, behind = False, 0
    for place in np.flatnonzero((buffer == quote) | (buffer == escape)).tolist():
        if place < behind:
            continue
        mark = buffer[place]
        if inside and mark == escape:
            follows = buffer[place + 1] if place + 1 < len(buffer) else -1
            if follows in (quote, escape):
                removed.append(place)
                behind = place + 2
        elif mark == quote:
            inside = not inside
            quotes.append(place)
            removed.append(place)
    return np.array(quotes, np.int64), np.array(removed, np.int64)


def _structure(  # noqa: PLR0917 (what both forms find out first)
    buffer: Bytes,
    options: CopyOptions,
    end: LineEnd,
    live: npt.NDArray[np.bool_],
    removed: Positions,
    quotes: Positions,
    *,
    unterminated: bool,
) -> Structure:
    """``live`` says which bytes may separate: they are neither escaped nor quoted."""
    newlines = (buffer == NEWLINE) & live
    returns = (buffer == RETURN) & live
    if end.mark == b"\r\n":
        pairs = np.zeros(len(buffer), bool)
        pairs[1:] = newlines[1:] & returns[:-1]
        alone = np.zeros(len(buffer), bool)
        alone[:-1] = returns[:-1] & ~newlines[1:]
        stray = (newlines & ~pairs) | alone
        ends, dropped = pairs, np.flatnonzero(pairs) - 1
    else:
        by_newline = end.mark == b"\n"
        ends, stray = (newlines, returns) if by_newline else (returns, newlines)
        dropped = np.zeros(0, np.int64)
    strays = np.flatnonzero(stray)
    separators = np.flatnonzero(((buffer == ord(options.delimiter)) & live) | ends)
    row_ends = ends[separators]
    last = separators[row_ends][-1:]
    return Structure(
        buffer=buffer,
        separators=separators,
        row_ends=row_ends,
        removed=np.union1d(removed, dropped) if len(dropped) else removed,
        quotes=quotes,
        stray=int(strays[0]) if len(strays) else -1,
        unterminated=unterminated,
        complete=int(last[0]) + 1 if len(last) else 0,
    )


def fields_of(structure: Structure, options: CopyOptions) -> Fields:
    """The fields of rows that are all whole."""
    separators = structure.separators
    buffer = structure.buffer
    starts = np.zeros(len(separators), np.int64)
    starts[1:] = separators[:-1] + 1
    ends = separators.copy()
    if len(structure.removed):  # the carriage return in front of a newline is no part of a field
        before = np.maximum(ends - 1, 0)
        cut = structure.row_ends & (buffer[before] == RETURN) & (ends > starts)
        cut &= np.isin(before, structure.removed)
        ends -= cut
    quoted = None
    if len(structure.quotes):
        found = np.searchsorted(structure.quotes, ends) - np.searchsorted(structure.quotes, starts)
        quoted = found > 0
    nulls = _equal(buffer, starts, ends, options.null)
    if quoted is not None:
        nulls &= ~quoted
    contents, removed = buffer, structure.removed
    if options.format is Format.TEXT and len(removed):
        contents, removed = _unescaped(buffer, removed)
    keep = np.ones(structure.complete, bool)
    keep[removed[removed < structure.complete]] = False
    keep[separators] = False
    before_each = np.cumsum(keep) - keep
    offsets = np.empty(len(separators) + 1, np.int32)
    offsets[:-1] = before_each[starts]
    values = contents[: structure.complete][keep]
    offsets[-1] = len(values)
    array = _binary_array(values, offsets, nulls)
    firsts = np.zeros(int(structure.row_ends.sum()) + 1, np.int64)
    firsts[1:] = np.flatnonzero(structure.row_ends) + 1
    return Fields(array, firsts)


def _binary_array(
    values: Bytes, offsets: npt.NDArray[np.int32], nulls: npt.NDArray[np.bool_]
) -> pa.Array:
    validity = None
    if nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [validity, pa.py_buffer(offsets), data]
    )


def _equal(buffer: Bytes, starts: Positions, ends: Positions, text: str) -> npt.NDArray[np.bool_]:
    """Which fields are ``text``, as they stand in the input."""
    wanted = text.encode()
    found: npt.NDArray[np.bool_] = (ends - starts) == len(wanted)
    places = np.flatnonzero(found)
    for offset, byte in enumerate(wanted):
        same = buffer[starts[places] + offset] == byte
        found[places[~same]] = False
        places = places[same]
    return found


def _unescaped(buffer: Bytes, removed: Positions) -> tuple[Bytes, Positions]:
    """The bytes with the meaning of escape sequences in place of their last byte, and all bytes
    that are no part of values."""
    contents = buffer.copy()
    active = removed[buffer[removed] == BACKSLASH]
    active = active[active + 1 < len(buffer)]
    following = buffer[active + 1]
    contents[active + 1] = _TRANSLATION[following]
    numbered = ((following >= ord("0")) & (following <= ord("7"))) | (following == ord("x"))
    more: list[int] = []
    for place in active[numbered].tolist():
        more += _number(buffer, contents, place)
    return contents, np.union1d(removed, np.array(more, np.int64)) if more else removed


def _number(buffer: Bytes, contents: Bytes, place: int) -> list[int]:
    """``\\ooo`` or ``\\xhh`` at ``place``: its value goes to its last digit. The bytes between."""
    sequence = buffer[place + 1 : place + 4].tobytes()
    if sequence[0] == ord("x"):
        digits = [c for c in sequence[1:2] if c in _HEX]
        if not digits:
            return []
        digits += [c for c in sequence[2:3] if c in _HEX]
        value, width = int(bytes(digits), 16), 1 + len(digits)
    else:
        width = 1
        while width < len(sequence) and ord("0") <= sequence[width] <= ord("7"):
            width += 1
        value = int(sequence[:width], 8) & 0xFF
    contents[place + width] = value
    return list(range(place + 1, place + width))


def end_marker(structure: Structure, options: CopyOptions) -> int:
    """The place of the first ``\\.`` that ends the data; -1: there is none. In CSV it stands at the
    beginning of a line."""
    buffer: Any = structure.buffer
    if options.format is Format.CSV:
        marks = np.flatnonzero(buffer == BACKSLASH)
        starts = np.concatenate(([0], structure.separators[structure.row_ends] + 1))
        marks = np.intersect1d(marks, starts)
    else:
        marks = structure.removed[buffer[structure.removed] == BACKSLASH]
    marks = marks[marks + 1 < len(buffer)]
    found = marks[buffer[marks + 1] == POINT]
    return int(found[0]) if len(found) else -1
