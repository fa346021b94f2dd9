"""psql's tables and records: widths, borders, wrapped cells and footers.

Widths are those of the first rows (``ROWS_MEASURED``), so that a long result is printed while it
arrives. A later cell that is wider sticks out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, TextIO

from remuda.cli.results.options import PrintOptions
from remuda.cli.results.table import Alignment, display_width

ROWS_MEASURED: Final = 1000
_BOLD, _FAINT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Table:
    """A result to print: names, alignments and rows of cells. A cell that is None is NULL.

    ``footers``: lines below it; None: the number of rows."""

    names: Sequence[str]
    sides: Sequence[Alignment]
    rows: Iterable[Sequence[str | None]]
    title: str = ""
    footers: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class _Lines:
    """The characters of a line style: of rules (left, between, right), and the marks in cells."""

    rule: str
    top: str
    middle: str
    bottom: str
    bar: str
    newline: str
    wrap: str


_ASCII = _Lines("-", "+++", "+++", "+++", "|", "+", ".")
_UNICODE = _Lines("─", "┌┬┐", "├┼┤", "└┴┘", "│", "↵", "…")


def print_table(out: TextIO, table: Table, options: PrintOptions, null: str = "") -> int:
    """Print it as ``aligned`` or ``wrapped``, or as records where ``expanded`` wants it. The number
    of rows."""
    shown = _Cells(table, options.null_text(null))
    first = shown.first()
    if options.expanded == "on":
        return _Records(out, table, options, shown).write()
    widths, fits = _widths(table, first, options)
    if options.expanded == "auto" and not fits and len(table.names) > 1:
        return _Records(out, table, options, shown).write()
    return _Grid(out, table, options, shown, widths).write()


class _Cells:
    """Rows as texts; the first of them can be looked at before they are printed."""

    def __init__(self, table: Table, null: str) -> None:
        self.null = null
        self._rows = self._texts(table.rows)
        self._first: list[list[str]] = []

    def _texts(self, rows: Iterable[Sequence[str | None]]) -> Iterator[list[str]]:
        for row in rows:
            yield [self.null if cell is None else cell for cell in row]

    def first(self) -> list[list[str]]:
        if not self._first:
            self._first = list(islice(self._rows, ROWS_MEASURED))
        return self._first

    def __iter__(self) -> Iterator[list[str]]:
        return chain(self.first(), self._rows)


def _frame(border: int, columns: int) -> int:
    """Characters of a line that belong to no cell."""
    if border == 0:
        return columns
    return columns * 3 - 1 if border == 1 and columns else columns * 3 + 1


def _cell_width(cell: str) -> int:
    return max(map(display_width, cell.split("\n")))


def _widths(
    table: Table, rows: Sequence[Sequence[str]], options: PrintOptions
) -> tuple[list[int], bool]:
    """The width of each column, and whether the table fits."""
    heads = [_cell_width(name) for name in table.names]
    sizes = [[_cell_width(cell) for cell in column] for column in zip(*rows, strict=True)]
    widest = [
        max(head, *column) if column else head
        for head, column in zip(heads, sizes or [[]] * len(heads), strict=True)
    ]
    frame = _frame(options.border, len(heads))
    target = options.target_width
    if not target:
        return widest, True
    widths = list(widest)
    if options.format == "wrapped" and target >= frame + sum(heads):
        averages = [sum(column) / len(column) for column in sizes] if sizes else []
        _shrink(widths, heads, averages, target - frame)
    return widths, frame + sum(widths) <= target


def _shrink(widths: list[int], heads: list[int], averages: list[float], room: int) -> None:
    """Take from the column whose widest cell exceeds the average most, until all fit."""
    widest = list(widths)
    while sum(widths) > room:
        worst, place = 0.0, -1
        for i, average in enumerate(averages):
            if average and widths[i] > heads[i]:
                ratio = widths[i] / average + widest[i] * 0.01
                if ratio > worst:
                    worst, place = ratio, i
        if place < 0:
            return
        widths[place] -= 1


class _Grid:
    """One line per row, or several where cells have several."""

    def __init__(
        self, out: TextIO, table: Table, options: PrintOptions, rows: _Cells, widths: list[int]
    ) -> None:
        self._out = out
        self._table = table
        self._options = options
        self._rows = rows
        self._widths = widths
        self._lines = _UNICODE if options.linestyle == "unicode" else _ASCII

    def write(self) -> int:
        options = self._options
        title = options.title or self._table.title
        if title and not options.tuples_only:
            whole = _frame(options.border, len(self._widths)) + sum(self._widths)
            space = " " * max(0, (whole - display_width(title)) // 2)
            self._out.write(f"{space}{title}\n")
        if not options.tuples_only:
            if options.border == 2:
                self._rule(self._lines.top)
            self._head()
            self._rule(self._lines.middle)
        elif options.border == 2:
            self._rule(self._lines.top)
        count = 0
        for row in self._rows:
            self._row(row)
            count += 1
        if options.border == 2:
            self._rule(self._lines.bottom)
        _print_footers(self._out, self._table, options, count)
        return count

    def _rule(self, joints: str) -> None:
        left, between, right = tuple(joints)
        rule, border = self._lines.rule, self._options.border
        parts = [rule * width for width in self._widths]
        if border == 0:
            self._out.write(" ".join(parts) + "\n")
            return
        line = (rule + between + rule).join(parts)
        if border == 1:
            self._out.write(rule + line + rule + "\n")
        else:
            self._out.write(left + rule + line + rule + right + "\n")

    def _head(self) -> None:
        parts = [name.split("\n") for name in self._table.names]
        border = self._options.border
        for at in range(max(map(len, parts), default=1)):
            cells = []
            for part, width in zip(parts, self._widths, strict=True):
                text = part[at] if at < len(part) else ""
                space = max(0, width - display_width(text))
                centred = " " * (space // 2) + self._bold(text) + " " * ((space + 1) // 2)
                mark = self._lines.newline if at + 1 < len(part) else " "
                cells.append((" " if border else "") + centred + mark)
            bar = self._lines.bar if border else ""
            edge = self._lines.bar if border == 2 else ""
            self._out.write(edge + bar.join(cells) + edge + "\n")

    def _row(self, row: Sequence[str]) -> None:
        """The lines of a row. A line that is continued has a mark on its right."""
        parts = [
            _lines_of(cell, width, self._options)
            for cell, width in zip(row, self._widths, strict=True)
        ]
        border, last = self._options.border, len(row) - 1
        for at in range(max(map(len, parts), default=1)):
            line = []
            for i, (part, side, width) in enumerate(
                zip(parts, self._table.sides, self._widths, strict=True)
            ):
                padded = border == 2 or i < last
                text = part[at][0] if at < len(part) else ""
                begun = at > 0 and at < len(part) and part[at - 1][1] == "wrap"
                mark = "" if at + 1 >= len(part) else part[at][1]
                space = " " * max(0, width - display_width(text))
                if at >= len(part):
                    cell = space if padded else ""
                elif side is Alignment.RIGHT:
                    cell = space + self._styled(text, row[i])
                else:
                    cell = self._styled(text, row[i]) + (space if padded or mark else "")
                left = "" if not border else self._lines.wrap if begun else " "
                right = self._mark(mark) or (" " if padded else "")
                line.append(left + cell + right)
            bar = self._lines.bar if border else ""
            edge = self._lines.bar if border == 2 else ""
            self._out.write(edge + bar.join(line) + edge + "\n")

    def _mark(self, kind: str) -> str:
        return {"": "", "newline": self._lines.newline, "wrap": self._lines.wrap}[kind]

    def _bold(self, text: str) -> str:
        return f"{_BOLD}{text}{_PLAIN}" if self._options.colors and text else text

    def _styled(self, text: str, cell: str) -> str:
        faint = self._options.colors and cell == self._rows.null and cell
        return f"{_FAINT}{text}{_PLAIN}" if faint else text


def _lines_of(cell: str, width: int, options: PrintOptions) -> list[tuple[str, str]]:
    """The lines of a cell, and why each one ends."""
    if options.format == "wrapped":
        return list(_wrapped(cell, width))
    return [(line, "newline") for line in cell.split("\n")]


def _wrapped(cell: str, width: int) -> Iterator[tuple[str, str]]:
    """The lines of a cell that is at most ``width`` wide, and why each one ends."""
    for line in cell.split("\n"):
        rest = line
        while display_width(rest) > width:
            end, used = 0, 0
            while end < len(rest) and used + display_width(rest[end]) <= width:
                used += display_width(rest[end])
                end += 1
            end = max(end, 1)
            yield rest[:end], "wrap"
            rest = rest[end:]
        yield rest, "newline"


class _Records:
    """One line per value."""

    def __init__(self, out: TextIO, table: Table, options: PrintOptions, rows: _Cells) -> None:
        self._out = out
        self._table = table
        self._options = options
        self._rows = rows
        self._lines = _UNICODE if options.linestyle == "unicode" else _ASCII
        self._names = [name.split("\n") for name in table.names]
        self._width = max((_cell_width(name) for name in table.names), default=0)
        cells = (_cell_width(cell) for row in rows.first() for cell in row)
        self._data = max(cells, default=0)
        if options.format == "wrapped" and options.target_width:
            frame = {0: 2, 1: 3}.get(options.border, 7) + self._width
            self._data = max(1, min(self._data, options.target_width - frame))

    def write(self) -> int:
        options = self._options
        title = options.title or self._table.title
        if not self._rows.first():
            if not options.tuples_only:
                if options.footer and self._table.footers is None:
                    self._out.write("(0 rows)\n")
                self._out.write("\n")
            return 0
        if title and not options.tuples_only:
            self._out.write(f"{title}\n")
        count = 0
        for row in self._rows:
            count += 1
            if not options.tuples_only:
                self._heading(count, self._lines.top if count == 1 else self._lines.middle)
            elif count > 1 or options.border == 2:
                self._heading(0, self._lines.top if count == 1 else self._lines.middle)
            for name, cell in zip(self._names, row, strict=True):
                self._value(name, cell)
        if options.border == 2:
            self._heading(0, self._lines.bottom)
        if not options.tuples_only and options.footer and self._table.footers:
            if options.border < 2:
                self._out.write("\n")
            self._out.writelines(f"{line}\n" for line in self._table.footers)
        self._out.write("\n")
        return count

    def _heading(self, record: int, joints: str) -> None:
        left, between, right = tuple(joints)
        border = self._options.border
        rule = self._lines.rule if border else " "
        label = f"* Record {record}" if border == 0 else f"[ RECORD {record} ]"
        label = label if record else ""
        edge = {0: "", 1: rule, 2: left + rule}[border]
        used = len(label) + (border != 2)
        line = edge + label + rule * (self._width - used)
        over = max(0, used - self._width)
        if border:
            line += (rule + between + rule)[min(over, 3) :]
            over = max(0, over - 3)
        else:
            line += " "[min(over, 1) :]
            over = max(0, over - 1)
        line += rule * (self._data - over)
        self._out.write(line + (rule + right if border == 2 else "") + "\n")

    def _value(self, name: Sequence[str], cell: str) -> None:
        border = self._options.border
        lines = _lines_of(cell, self._data, self._options)
        for at in range(max(len(name), len(lines))):
            text = name[at] if at < len(name) else ""
            mark = self._lines.newline if at + 1 < len(name) else " "
            label = text + " " * (self._width - display_width(text))
            if border == 2:
                label = " " + label
            line = label + (mark if border else "")
            if border:
                line += self._lines.bar
            if at < len(lines):
                value, _ = lines[at]
                begun = at > 0 and lines[at - 1][1] == "wrap"
                space = " " * max(0, self._data - display_width(value))
                line += (self._lines.wrap if begun else " ") + value
                if at + 1 < len(lines):
                    kind = lines[at][1]
                    line += space if kind == "newline" or border == 2 else ""
                    line += self._lines.newline if kind == "newline" else self._lines.wrap
                elif border == 2:
                    line += space + " "
            elif border == 2:
                line += " " * self._data + "  "
            self._out.write(f"{self._left}{line}{self._left}\n")

    @property
    def _left(self) -> str:
        return self._lines.bar if self._options.border == 2 else ""


def _print_footers(out: TextIO, table: Table, options: PrintOptions, count: int) -> None:
    if not options.tuples_only and options.footer:
        if table.footers is None:
            out.write(f"({count} row{'' if count == 1 else 's'})\n")
        else:
            out.writelines(f"{line}\n" for line in table.footers)
    out.write("\n")
