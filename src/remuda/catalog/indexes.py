"""Changes of the secondary indexes of a map: pure functions from schema to schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from remuda.datatypes.index import IndexDefinition, IndexKind, can_be_indexed
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind
from remuda.errors import DuplicateObject, InvalidDefinition, LimitExceeded, UndefinedColumn

COLUMNS_MAX: Final = 32
INDEXES_MAX: Final = 64
"""Of one map: every index takes memory and time in the background."""


def with_index(schema: MapSchema, definition: IndexDefinition) -> MapSchema:
    """The map with one more index. Raises what ``check`` raises, and DuplicateObject."""
    if any(index.name == definition.name for index in schema.indexes):
        raise DuplicateObject(f'index "{definition.name}" exists already')
    if len(schema.indexes) >= INDEXES_MAX:
        raise LimitExceeded(f"a map has at most {INDEXES_MAX} indexes")
    check(schema, definition)
    return replace(schema, indexes=(*schema.indexes, definition))


def without_index(schema: MapSchema, name: str) -> MapSchema:
    return replace(schema, indexes=tuple(i for i in schema.indexes if i.name != name))


def with_ready(schema: MapSchema, index_id: int) -> MapSchema:
    """The map with an index that plans may use."""
    indexes = tuple(replace(i, ready=True) if i.index_id == index_id else i for i in schema.indexes)
    return replace(schema, indexes=indexes)


def check(schema: MapSchema, definition: IndexDefinition) -> None:
    """Raises UndefinedColumn, InvalidDefinition, LimitExceeded."""
    if len(definition.columns) > COLUMNS_MAX:
        raise LimitExceeded(f"an index has at most {COLUMNS_MAX} columns")
    seen: set[str] = set()
    for name in definition.names:
        if name not in schema.position:
            raise UndefinedColumn(f'column "{name}" of map "{schema.name}" does not exist')
        if name in seen:
            raise InvalidDefinition(f'column "{name}" appears twice in index "{definition.name}"')
        seen.add(name)
        column_type = schema.column(name).type
        if not can_be_indexed(column_type):
            raise InvalidDefinition(
                f'column "{name}" of type {column_type} cannot be indexed',
                hint="Types of indexes: numbers, text, BOOLEAN, BYTEA, UUID, dates and times.",
            )
    if definition.kind is IndexKind.BITMAP and len(definition.columns) > 1:
        raise InvalidDefinition(
            "a bitmap index has one column",
            hint="Make one for each column: a query combines them.",
        )


def carried(before: MapSchema, after: MapSchema, new_ids: Iterable[int]) -> MapSchema:
    """``after``, the next schema of the map ``before``, with the indexes that it has then.

    Columns that were renamed go by their new names; an index of a column that is gone, or whose
    type cannot be indexed, goes too; one of a column with another type is made anew, under a number
    of ``new_ids``, and so is one that has no number yet.
    """
    numbers = iter(new_ids)
    names = {column.id: column.name for column in after.columns}
    ids = {column.name: column.id for column in before.columns}
    kept: list[IndexDefinition] = []
    for index in after.indexes:
        if index not in before.indexes and index.index_id == 0:
            kept.append(replace(index, index_id=next(numbers)))
            continue
        columns = [replace(c, name=names.get(ids.get(c.name, 0), "")) for c in index.columns]
        if any(not c.name or not can_be_indexed(after.column(c.name).type) for c in columns):
            continue
        old = [before.column(c.name).type for c in index.columns]
        new = [after.column(c.name).type for c in columns]
        changed = old != new and any(
            Kind.ENUM is not a.kind or Kind.ENUM is not b.kind
            for a, b in zip(old, new, strict=True)
            if a != b
        )
        number = next(numbers) if changed else index.index_id
        kept.append(replace(index, columns=tuple(columns), index_id=number))
    return replace(after, indexes=tuple(kept))


def continued(now: MapSchema, wanted: MapSchema) -> MapSchema:
    """``wanted``, which a definition makes after it has made ``now``: with the numbers that new
    columns and indexes got then, and the values of these columns in rows that lack them. Under
    other numbers they would be other columns, without the values that rows have by now."""
    indexes = {index.name: index for index in now.indexes}
    return replace(
        wanted,
        columns=tuple(
            replace(column, id=now.column(column.name).id, missing=now.column(column.name).missing)
            if not column.id and column.name in now.position
            else column
            for column in wanted.columns
        ),
        indexes=tuple(indexes.get(index.name, index) for index in wanted.indexes),
    )


def same_rows(before: MapSchema, after: MapSchema) -> bool:
    """Whether two schemas of a map differ in nothing but their indexes and options, and say the
    same of what is unique."""
    if {i.index_id for i in before.uniques} != {i.index_id for i in after.uniques}:
        return False
    plain = replace(after, indexes=before.indexes, options=before.options, version=before.version)
    return plain == before and [c.id for c in plain.columns] == [c.id for c in before.columns]
