"""Writers of results, one per format. Each writes the result of one statement after the other."""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import BinaryIO, TextIO

import pyarrow as pa

from remuda.cli.results.aligned import Table, print_table
from remuda.cli.results.options import NULL, PrintOptions
from remuda.cli.results.table import Alignment, harmless, harmless_name
from remuda.cli.results.values import csv_field, json_value, show
from remuda.client.blocking.cursor import Cursor
from remuda.datatypes.schema import Column
from remuda.errors import InputError

_HTML_SPACES = str.maketrans({"\n": "<br />\n"})
_MARKDOWN = str.maketrans({"|": "\\|", "\n": "<br>", "\\": "\\\\", "<": "&lt;", ">": "&gt;"})


class ResultWriter(ABC):
    """``write`` prints a result with columns, and returns the number of its rows."""

    def __init__(self, out: TextIO, options: PrintOptions) -> None:
        self.out = out
        self.options = options

    @abstractmethod
    def write(self, cursor: Cursor) -> int: ...


class AlignedWriter(ResultWriter):
    """psql's tables and records. The text of EXPLAIN is printed bare."""

    def write(self, cursor: Cursor) -> int:
        if is_plan(cursor.columns):
            count = 0
            for row in cursor:
                self.out.write(f"{row[0]}\n")
                count += 1
            return count
        names = [harmless(column.name) for column in cursor.columns]
        table = Table(names, alignments(cursor.columns), cells(cursor, self.options))
        return print_table(self.out, table, self.options, NULL)


class UnalignedWriter(ResultWriter):
    """Values with separators between them, for programs."""

    def write(self, cursor: Cursor) -> int:
        return self.table(Table(_names(cursor), (), cells(cursor, self.options)))

    def table(self, table: Table) -> int:
        """The same for what the shell itself prints."""
        options, records = self.options, self.options.expanded == "on"
        title = options.title or table.title
        lines: list[str] = [title] if title and not options.tuples_only else []
        if not records and not options.tuples_only:
            lines.append(options.fieldsep.join(table.names))
        count = 0
        self._lines(lines)
        for row in table.rows:
            texts = [options.null_text("") if cell is None else cell for cell in row]
            if records:
                found = [
                    options.fieldsep.join(pair) for pair in zip(table.names, texts, strict=True)
                ]
                self._lines(["", *found] if count else found)
            else:
                self._lines([options.fieldsep.join(texts)])
            count += 1
        if not options.tuples_only and options.footer:
            if table.footers is not None:
                self.out.writelines(f"{line}\n" for line in table.footers)
            elif not records:
                self.out.write(f"({count} row{'' if count == 1 else 's'})\n")
        return count

    def _lines(self, lines: Sequence[str]) -> None:
        self.out.writelines(f"{line}{self.options.recordsep}" for line in lines)


class CsvWriter(ResultWriter):
    """RFC 4180 with a header; NULL is an empty field, empty text is ``""``."""

    def write(self, cursor: Cursor) -> int:
        separator, columns = self.options.csv_fieldsep, cursor.columns
        null = self.options.null_text("")
        names = [csv_field(column.name, separator) for column in columns]
        records = self.options.expanded == "on"
        if not self.options.tuples_only and not records:
            self.out.write(separator.join(names) + "\n")
        count = 0
        for row in cursor:
            count += 1
            fields = [
                null if value is None else csv_field(show(value, column.type), separator)
                for value, column in zip(row, columns, strict=True)
            ]
            if records:
                pairs = zip(names, fields, strict=True)
                self.out.writelines(separator.join(pair) + "\n" for pair in pairs)
            else:
                self.out.write(separator.join(fields) + "\n")
        return count


class JsonWriter(ResultWriter):
    """One array per result, one object per row and line; DECIMAL as a number, all digits."""

    def write(self, cursor: Cursor) -> int:
        separator, count = "[", 0
        for line in _objects(cursor):
            self.out.write(separator + line)
            separator = ",\n "
            count += 1
        self.out.write("[]\n" if separator == "[" else "]\n")
        return count


class NdjsonWriter(ResultWriter):
    """One JSON object per line."""

    def write(self, cursor: Cursor) -> int:
        count = 0
        for line in _objects(cursor):
            self.out.write(line + "\n")
            count += 1
        return count


class MarkdownWriter(ResultWriter):
    """A table as GitHub reads it. Line breaks are ``<br>``."""

    def write(self, cursor: Cursor) -> int:
        if self.options.title and not self.options.tuples_only:
            self.out.write(f"**{self.options.title.translate(_MARKDOWN)}**\n\n")
        self._line(column.name.translate(_MARKDOWN) for column in cursor.columns)
        sides = alignments(cursor.columns)
        self._line("--:" if side is Alignment.RIGHT else "---" for side in sides)
        null, count = self.options.null_text(""), 0
        for row in cells(cursor, self.options):
            self._line(null if cell is None else cell.translate(_MARKDOWN) for cell in row)
            count += 1
        self.out.write("\n")
        return count

    def _line(self, texts: Iterator[str]) -> None:
        self.out.write("| " + " | ".join(texts) + " |\n")


class HtmlWriter(ResultWriter):
    """psql's tables of HTML."""

    def write(self, cursor: Cursor) -> int:
        options = self.options
        attributes = f" {options.tableattr}" if options.tableattr else ""
        self.out.write(f'<table border="{options.border}"{attributes}>\n')
        if options.title and not options.tuples_only:
            self.out.write(f"  <caption>{_escaped(options.title)}</caption>\n")
        names = [_escaped(name) for name in _names(cursor)]
        count = 0
        if options.expanded == "on":
            for count, row in enumerate(self._texts(cursor), start=1):
                self._record(count, names, row, cursor.columns)
        else:
            if not options.tuples_only:
                self._row("th", "center", names)
            for row in self._texts(cursor):
                self._cells(row, cursor.columns)
                count += 1
        self.out.write("</table>\n")
        if options.footer and not options.tuples_only and options.expanded != "on":
            self.out.write(f"<p>({count} row{'' if count == 1 else 's'})<br />\n</p>\n")
        if options.expanded == "on":
            self.out.write("\n")
        return count

    def _texts(self, cursor: Cursor) -> Iterator[list[str]]:
        null = self.options.null_text("")
        for row in cells(cursor, self.options):
            texts = [null if cell is None else cell for cell in row]
            yield [_escaped(cell) if cell.strip() else "&nbsp; " for cell in texts]

    def _row(self, tag: str, side: str, texts: Sequence[str]) -> None:
        self.out.write("  <tr>\n")
        self.out.writelines(f'    <{tag} align="{side}">{text}</{tag}>\n' for text in texts)
        self.out.write("  </tr>\n")

    def _cells(self, texts: Sequence[str], columns: Sequence[Column]) -> None:
        self.out.write('  <tr valign="top">\n')
        for text, side in zip(texts, alignments(columns), strict=True):
            self.out.write(f'    <td align="{side.value}">{text}</td>\n')
        self.out.write("  </tr>\n")

    def _record(
        self, number: int, names: Sequence[str], texts: Sequence[str], columns: Sequence[Column]
    ) -> None:
        if self.options.tuples_only:
            self.out.write('\n  <tr><td colspan="2">&nbsp;</td></tr>\n')
        else:
            self.out.write(f'\n  <tr><td colspan="2" align="center">Record {number}</td></tr>\n')
        for name, text, side in zip(names, texts, alignments(columns), strict=True):
            self.out.write(f'  <tr valign="top">\n    <th>{name}</th>\n')
            self.out.write(f'    <td align="{side.value}">{text}</td>\n  </tr>\n')


class ArrowWriter(ResultWriter):
    """One Arrow IPC stream per result."""

    def write(self, cursor: Cursor) -> int:
        out, count = _bytes_of(self.out, "Arrow"), 0
        with pa.ipc.new_stream(out, cursor.schema) as writer:
            for batch in cursor.batches():
                writer.write_batch(batch)
                count += batch.num_rows
        out.flush()
        return count


class ParquetWriter(ResultWriter):
    """One Parquet file per result: to be read, each goes into a file of its own."""

    def write(self, cursor: Cursor) -> int:
        from pyarrow import parquet  # noqa: PLC0415  (few need it, and it takes time)

        out, count = _bytes_of(self.out, "Parquet"), 0
        with parquet.ParquetWriter(out, cursor.schema) as writer:
            for batch in cursor.batches():
                writer.write_batch(batch)
                count += batch.num_rows
        out.flush()
        return count


_WRITERS: dict[str, type[ResultWriter]] = {
    "aligned": AlignedWriter,
    "arrow": ArrowWriter,
    "csv": CsvWriter,
    "html": HtmlWriter,
    "json": JsonWriter,
    "markdown": MarkdownWriter,
    "ndjson": NdjsonWriter,
    "parquet": ParquetWriter,
    "unaligned": UnalignedWriter,
    "wrapped": AlignedWriter,
}
FOR_PROGRAMS = frozenset({"arrow", "csv", "json", "ndjson", "parquet"})
"""Formats whose output has nothing but data: no tags of statements."""


def make_writer(out: TextIO, options: PrintOptions) -> ResultWriter:
    """The writer of the format."""
    return _WRITERS[options.format](out, options)


def cells(cursor: Cursor, options: PrintOptions) -> Iterator[list[str | None]]:
    """Each row as the text of its cells; None for NULL."""
    types = [column.type for column in cursor.columns]
    grouped = [options.numericlocale and kind.is_numeric for kind in types]
    for row in cursor:
        yield [
            None if value is None else _grouped(show(value, kind), group)
            for value, kind, group in zip(row, types, grouped, strict=True)
        ]


def _grouped(text: str, group: bool) -> str:
    if not group:
        return harmless(text)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, rest = digits.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}" if whole.isdecimal() else text


def alignments(columns: Sequence[Column]) -> list[Alignment]:
    return [Alignment.RIGHT if c.type.is_numeric else Alignment.LEFT for c in columns]


def is_plan(columns: tuple[Column, ...]) -> bool:
    """The answer of EXPLAIN: text to be read as it is."""
    return len(columns) == 1 and columns[0].name.upper() in ("QUERY PLAN", "PLAN")


def _names(cursor: Cursor) -> list[str]:
    return [harmless_name(column.name) for column in cursor.columns]


def _objects(cursor: Cursor) -> Iterator[str]:
    names = [json.dumps(column.name, ensure_ascii=False) for column in cursor.columns]
    types = [column.type for column in cursor.columns]
    for row in cursor:
        fields = (
            f"{name}: {json_value(value, kind)}"
            for name, value, kind in zip(names, row, types, strict=True)
        )
        yield "{" + ", ".join(fields) + "}"


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "'").translate(_HTML_SPACES)


def _bytes_of(out: TextIO, what: str) -> BinaryIO:
    if out.isatty():
        raise InputError(f"{what} data is not for terminals", hint="Redirect it into a file.")
    out.flush()
    return out.buffer
