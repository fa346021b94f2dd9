"""``INSERT INTO m [(columns)] VALUES (literal, ...), ...``, read straight from the text.

The general way makes a tree of the whole text first: for a megabyte that takes eight times as long.
Here one row is read at a time. All that is not plain is left to the general way, also for its
errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind, unrestricted
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.plan.expression import Literal
from remuda.plan.logical import OutputColumn, Values
from remuda.sql.changes.rows import insert_positions
from remuda.sql.definitions.constraints import default_of
from remuda.sql.scope.context import Context
from remuda.sql.scope.resolution import DEFAULT_PATH, find_any
from remuda.sql.scope.statements import CatalogReader, InsertStatement
from remuda.sql.trees import ast

LEAST_LENGTH: Final = 4096
"""Shorter texts gain nothing."""
DIGITS_MAX: Final = 100

_NAME = r'(?:[A-Za-z_][A-Za-z_0-9$]*|"[^"\0]+")'
_HEAD = re.compile(
    rf"\s*INSERT\s+INTO\s+(?:({_NAME})\s*\.\s*)?({_NAME})\s*"
    rf"(?:\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*)?VALUES\s*\(",
    re.IGNORECASE,
)
_NAMES = re.compile(_NAME)
_CELL = re.compile(
    r"\s*(?:([+-]?\d+(?:\.\d+)?)|'([^'\0]*(?:''[^'\0]*)*)'|(NULL|TRUE|FALSE))\s*([,)])",
    re.IGNORECASE,
)
_NEXT_ROW = re.compile(r"\s*,\s*\(")
_END = re.compile(r"\s*;?\s*\Z")

_RANGES: Final = {
    Kind.TINYINT: range(-(2**7), 2**7),
    Kind.SMALLINT: range(-(2**15), 2**15),
    Kind.INTEGER: range(-(2**31), 2**31),
    Kind.BIGINT: range(-(2**63), 2**63),
}

Reader: TypeAlias = Callable[[re.Match[str]], PhysicalValue]


class NotPlain(Exception):
    """To be read in the general way."""


def literal_insert(
    text: str,
    catalog: CatalogReader,
    zone: str = UTC,
    path: tuple[str, ...] = DEFAULT_PATH,
) -> InsertStatement | None:
    """The statement, or None if it is not of this form, or wrong. ``zone`` and ``path``: those of
    the session."""
    if len(text) < LEAST_LENGTH:
        return None
    head = _HEAD.match(text)
    namespace = "" if head is None or head[1] is None else _folded(head[1])
    schema = None if head is None else find_any(catalog, path, namespace, _folded(head[2]))
    if head is None or not isinstance(schema, MapSchema) or schema.generated:
        return None
    context = Context(text, catalog, 0, None, session_zone(zone), path=path)
    try:
        return _statement(text, head, schema, context)
    except (NotPlain, RemudaError):
        return None


def _statement(
    text: str, head: re.Match[str], schema: MapSchema, context: Context
) -> InsertStatement:
    names = [ast.name(_folded(name)) for name in _NAMES.findall(head[3] or "")]
    positions = insert_positions(context, schema, list(names))
    defaults = [_default(column) for column in schema.columns]
    for position, column in enumerate(schema.columns):
        if not column.nullable and position not in positions and defaults[position] is None:
            raise NotPlain  # a row that has no value for it is refused, with its place
    readers = [
        _reader(schema.columns[position], position in schema.key_positions, context.zone)
        for position in positions
    ]
    rows: list[tuple[PhysicalValue, ...]] = []
    at = head.end()
    while True:
        row = list(defaults)
        for number, (position, read) in enumerate(zip(positions, readers, strict=True), 1):
            cell = _CELL.match(text, at)
            if cell is None or (cell[4] == ")") != (number == len(positions)):
                raise NotPlain
            row[position] = read(cell)
            at = cell.end()
        rows.append(tuple(row))
        following = _NEXT_ROW.match(text, at)
        if following is None:
            break
        at = following.end()
    if _END.match(text, at) is None:
        raise NotPlain
    output = tuple(
        OutputColumn(
            context.new_id(),
            column.name,
            unrestricted(column.type),
            any(row[place] is None for row in rows),
        )
        for place, column in enumerate(schema.columns)
    )
    return InsertStatement(schema, Values(output, tuple(rows)), "insert")


def _folded(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.lower()


def _default(column: Column) -> PhysicalValue:
    value = default_of(column)
    if not isinstance(value, Literal):
        raise NotPlain
    return value.value


def _reader(column: Column, is_key: bool, zone: Zone | None) -> Reader:
    """The value of a cell in the column's type. Raises NotPlain and DataErrors."""
    sql_type = column.type
    kind = sql_type.kind
    allowed = _RANGES.get(kind)
    numeric = sql_type.is_numeric
    required = is_key or not column.nullable

    def read(cell: re.Match[str]) -> PhysicalValue:
        number, text, word = cell[1], cell[2], cell[3]
        if number is not None:
            if len(number) > DIGITS_MAX:
                raise NotPlain
            if allowed is None:
                if not numeric:
                    raise NotPlain
                return parse_text(number, sql_type)
            if "." in number or int(number) not in allowed:
                raise NotPlain
            return int(number)
        if text is not None:
            text = text.replace("''", "'")
            if kind is Kind.VARCHAR and (sql_type.length is None or len(text) <= sql_type.length):
                return text
            if sql_type.is_text:
                raise NotPlain
            return parse_text(text, sql_type, zone)
        if word.upper() == "NULL":
            if required:
                raise NotPlain
            return None
        if kind is not Kind.BOOLEAN:
            raise NotPlain
        return word.upper() == "TRUE"

    return read
