"""Results as text: table, CSV, JSON, Arrow. Each writer streams; none holds the whole result."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO, TextIO

import pyarrow as pa

from remuda.cli.table import (
    Alignment,
    column_widths,
    counted,
    harmless,
    harmless_name,
    table_header,
    table_line,
)
from remuda.client.blocking.cursor import Cursor
from remuda.datatypes.jsons import from_python, json_text
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.arraytext import array_text, row_text
from remuda.errors import InputError

NULL = "<null>"
ROWS_MEASURED = 1000
"""Column widths are taken from this many rows; later rows may stick out."""


class ResultWriter(ABC):
    """Writes the result of one statement after the other."""

    @abstractmethod
    def write(self, cursor: Cursor) -> None: ...


class TableWriter(ResultWriter):
    """Aligned text; one record per block when ``expanded``. The text of EXPLAIN is printed bare."""

    def __init__(self, out: TextIO, expanded: bool = False) -> None:
        self.out = out
        self.expanded = expanded

    def write(self, cursor: Cursor) -> None:
        if not cursor.columns:
            self.out.write(_done(cursor) + "\n")
        elif is_plan(cursor.columns):
            for row in cursor:
                self.out.write(f"{row[0]}\n")
        elif self.expanded:
            self._records(cursor)
        else:
            self._table(cursor)

    def _table(self, cursor: Cursor) -> None:
        rows = cells(cursor)
        names = _names(cursor)
        sides = alignments(cursor.columns)
        count = self._first_rows(names, list(islice(rows, ROWS_MEASURED)), sides, rows)
        self.out.write(f"({counted(count, 'row')})\n")

    def _first_rows(
        self,
        names: list[str],
        first: list[list[str]],
        sides: list[Alignment],
        more: Iterator[list[str]],
    ) -> int:
        widths = column_widths(names, first)
        self.out.write(table_header(names, widths))
        count = 0
        for part in (first, more):
            for row in part:
                self.out.write(table_line(row, widths, sides))
                count += 1
        return count

    def _records(self, cursor: Cursor) -> None:
        names = _names(cursor)
        width = max(map(len, names))
        count = 0
        for count, row in enumerate(cells(cursor), start=1):
            self.out.write(f"-[ record {count} ]\n")
            for name, cell in zip(names, row, strict=True):
                self.out.write(f"{name.ljust(width)} | {cell}".rstrip() + "\n")
        if not count:
            self.out.write("(0 rows)\n")


class RichTableWriter(TableWriter):
    """A table for eyes: colours and rules, when standard output is a terminal."""

    def __init__(self, out: TextIO, expanded: bool = False) -> None:
        super().__init__(out, expanded)
        self._console = import_module("rich.console").Console(file=out)
        self._rich = import_module("rich.table").Table
        self._text = import_module("rich.text").Text
        self._box = import_module("rich.box").SIMPLE_HEAD

    def _first_rows(
        self,
        names: list[str],
        first: list[list[str]],
        sides: list[Alignment],
        more: Iterator[list[str]],
    ) -> int:
        count = 0
        part = first
        while True:
            table = self._rich(box=self._box, header_style="bold", pad_edge=False)
            for name, side in zip(names, sides, strict=True):
                table.add_column(self._text(name), justify=side.value, overflow="fold")
            for row in part:
                table.add_row(*(self._cell(cell) for cell in row))
            self._console.print(table)
            count += len(part)
            part = list(islice(more, ROWS_MEASURED))
            if not part:
                return count

    def _cell(self, cell: str) -> Any:
        return self._text(cell, style="dim italic" if cell is NULL else "")


class CsvWriter(ResultWriter):
    """RFC 4180 with a header; NULL is an empty field, empty text is ``""``."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, cursor: Cursor) -> None:
        if not cursor.columns:
            return
        self.out.write(",".join(csv_field(column.name) for column in cursor.columns) + "\n")
        for row in cursor:
            self.out.write(
                ",".join(
                    "" if value is None else csv_field(show(value, column.type))
                    for value, column in zip(row, cursor.columns, strict=True)
                )
                + "\n"
            )


class JsonWriter(ResultWriter):
    """One array per result, one object per row and line; DECIMAL as a number, all digits."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, cursor: Cursor) -> None:
        if not cursor.columns:
            return
        names = [json.dumps(column.name, ensure_ascii=False) for column in cursor.columns]
        separator = "["
        for row in cursor:
            fields = (
                f"{name}: {json_value(value, column.type)}"
                for name, value, column in zip(names, row, cursor.columns, strict=True)
            )
            self.out.write(separator + "{" + ", ".join(fields) + "}")
            separator = ",\n "
        self.out.write("[]\n" if separator == "[" else "]\n")


class ArrowWriter(ResultWriter):
    """One Arrow IPC stream per result."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out

    def write(self, cursor: Cursor) -> None:
        if not cursor.columns:
            return
        with pa.ipc.new_stream(self.out, cursor.schema) as writer:
            for batch in cursor.batches():
                writer.write_batch(batch)
        self.out.flush()


def make_writer(name: str, out: TextIO, expanded: bool = False) -> ResultWriter:
    """The writer for ``--format name`` on a text stream."""
    if name == "csv":
        return CsvWriter(out)
    if name == "json":
        return JsonWriter(out)
    if name == "arrow":
        if out.isatty():
            raise InputError("Arrow data is not for terminals", hint="Redirect it into a file.")
        return ArrowWriter(out.buffer)
    if out.isatty() and _has_rich():
        return RichTableWriter(out, expanded)
    return TableWriter(out, expanded)


def _names(cursor: Cursor) -> list[str]:
    return [harmless_name(column.name) for column in cursor.columns]


def cells(cursor: Cursor) -> Iterator[list[str]]:
    """Each row as the text of its cells."""
    for row in cursor:
        yield [
            NULL if value is None else harmless(show(value, column.type))
            for value, column in zip(row, cursor.columns, strict=True)
        ]


def alignments(columns: tuple[Column, ...]) -> list[Alignment]:
    return [Alignment.RIGHT if c.type.is_numeric else Alignment.LEFT for c in columns]


def is_plan(columns: tuple[Column, ...]) -> bool:
    """The answer of EXPLAIN: text to be read as it is."""
    return len(columns) == 1 and columns[0].name.upper() in ("QUERY PLAN", "PLAN")


def show(value: object, sql_type: SqlType | None = None) -> str:
    """A value as PostgreSQL prints it; ``sql_type`` tells JSON from arrays and rows."""
    kind = None if sql_type is None else sql_type.kind
    if kind is Kind.JSON:
        return json_text(from_python(value))
    if isinstance(value, list | tuple):
        return _show_nested(value, sql_type)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.removesuffix(":00") if value.tzinfo is not None else text
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return _show_float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _show_nested(value: Sequence[object], sql_type: SqlType | None) -> str:
    """``{1,NULL,"a b"}`` or ``(1,,"a b")``; truth values are one letter there."""
    is_row = sql_type is not None and sql_type.kind is Kind.ROW
    types = _part_types(value, sql_type)
    items = [
        None if item is None else show(item, t)[:1] if isinstance(item, bool) else show(item, t)
        for item, t in zip(value, types, strict=True)
    ]
    return row_text(items) if is_row else array_text(items)


def _part_types(value: Sequence[object], sql_type: SqlType | None) -> list[SqlType | None]:
    if sql_type is None:
        return [None] * len(value)
    if sql_type.element is not None:
        return [sql_type.element] * len(value)
    return [t for _, t in sql_type.fields]


def csv_field(text: str) -> str:
    if text and not any(mark in text for mark in ',"\n\r') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def json_value(value: object, sql_type: SqlType | None = None) -> str:
    if sql_type is not None and sql_type.kind is Kind.JSON and value is not None:
        return show(value, sql_type)
    if isinstance(value, list | tuple):
        types = _part_types(value, sql_type)
        items = [json_value(item, t) for item, t in zip(value, types, strict=True)]
        if sql_type is not None and sql_type.kind is Kind.ROW:
            names = [json.dumps(name, ensure_ascii=False) for name, _ in sql_type.fields]
            pairs = zip(names, items, strict=True)
            return "{" + ", ".join(f"{name}: {item}" for name, item in pairs) + "}"
        return "[" + ", ".join(items) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return show(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(show(value), ensure_ascii=False)


def _show_float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")


def _done(cursor: Cursor) -> str:
    """``INSERT 7``, ``CREATE TABLE``."""
    count = cursor.rowcount
    tag = cursor.tag or "OK"
    return f"{tag} {count}" if tag in ("INSERT", "SINK", "UPDATE", "DELETE") else tag


def _has_rich() -> bool:
    try:
        import_module("rich.console")
    except ImportError:
        return False
    return True
