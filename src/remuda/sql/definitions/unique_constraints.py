"""UNIQUE in CREATE TABLE, ALTER TABLE and CREATE UNIQUE INDEX: a unique index of the map."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from remuda.catalog.indexes import with_index
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.violations import stored_twice
from remuda.errors import (
    DuplicateObject,
    InvalidDefinition,
    RemudaError,
    UndefinedObject,
    WrongObjectType,
    WrongState,
)
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import known_name, no_repeats
from remuda.sql.scope.statements import Verification
from remuda.sql.trees.syntax import AdoptIndex, Name, UniqueDefinition


def with_uniques(
    context: Context, schema: MapSchema, definitions: Sequence[UniqueDefinition]
) -> MapSchema:
    """``schema`` with more UNIQUE constraints, named as PostgreSQL names them. Raises
    UndefinedColumn, DuplicateColumn, DuplicateObject, InvalidDefinition."""
    taken = {index.name for index in (*_indexes_beside(context, schema), *schema.indexes)}
    for definition in definitions:
        names = {column.name for column in schema.shown}
        columns = [known_name(context, name, names) for name in definition.columns]
        no_repeats(context, definition.columns, "unique constraint")
        own = {schema.primary_key, *(check.name for check in schema.checks)}
        own.update(key.name for key in schema.foreign_keys)
        given = definition.name.text if definition.name is not None else ""
        name = given or _free("_".join([schema.local, *columns, "key"]), taken | own)
        index = IndexDefinition(
            name,
            IndexKind.SORTED,
            tuple(map(IndexedColumn, columns)),
            unique=True,
            constraint=True,
            nulls_distinct=definition.nulls_distinct,
        )
        place = definition.name or definition.columns[0]
        if name in taken | own:
            raise placed(context, _exists(name, schema), place)
        taken.add(name)
        schema = _added(context, schema, index, place)
    return schema


def with_adopted(context: Context, schema: MapSchema, action: AdoptIndex) -> MapSchema:
    """With a constraint in place of a unique index, whose values are known to differ. Raises
    UndefinedObject, DuplicateObject, WrongObjectType, WrongState."""
    old = action.index.text
    index = next((index for index in schema.indexes if index.name == old), None)
    beside = _indexes_beside(context, schema)
    if index is None:
        error: RemudaError = UndefinedObject(f'index "{old}" does not exist')
        if any(other.name == old for other in beside):
            error = WrongState(f'index "{old}" does not belong to table "{schema.local}"')
        raise placed(context, error, action.index)
    if index.constraint:
        error = WrongState(f'index "{old}" is already associated with a constraint')
        raise placed(context, error, action.index)
    why = "" if index.unique else f'"{old}" is not a unique index'
    for number, column in enumerate(index.columns, 1):
        if column.descending and not why:
            why = f'index "{old}" column number {number} does not have default sorting behavior'
    if why:
        detail = "Cannot create a primary key or unique constraint using such an index."
        raise placed(context, WrongObjectType(why, detail=detail), action.index)
    name = action.name.text if action.name is not None else old
    taken = {schema.primary_key, *(check.name for check in schema.checks)}
    taken.update(key.name for key in schema.foreign_keys)
    taken.update(other.name for other in (*beside, *schema.indexes) if other.name != old)
    if name in taken:
        raise placed(context, _exists(name, schema), action.name or action.index)
    adopted = replace(index, name=name, constraint=True)
    indexes = tuple(adopted if each is index else each for each in schema.indexes)
    return replace(schema, indexes=indexes)


def copied_uniques(
    context: Context, schema: MapSchema, like: MapSchema, *, comments: bool
) -> MapSchema:
    """With the unique indexes of another map, under names of its own (LIKE ... INCLUDING INDEXES),
    and with their ``comments``."""
    taken = {index.name for index in _indexes_beside(context, schema)}
    for index in like.uniques:
        suffix = "key" if index.constraint else "idx"
        name = _free("_".join([schema.local, *index.names, suffix]), taken)
        taken.add(name)
        copied = replace(index, name=name, index_id=0, ready=False)
        if not comments:
            copied = replace(copied, comment="", constraint_comment="")
        schema = with_index(schema, copied)
    return schema


def _indexes_beside(context: Context, schema: MapSchema) -> list[IndexDefinition]:
    """Those of the SQL schema that the map is in, where their names are unique."""
    maps = [context.catalog.find(name) for name in context.catalog.names()]
    return [
        index
        for known in maps
        if known is not None and known.namespace == schema.namespace
        for index in known.indexes
    ]


def _free(base: str, taken: Collection[str]) -> str:
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name


def _exists(name: str, schema: MapSchema) -> DuplicateObject:
    return DuplicateObject(
        f'constraint "{name}" of map "{schema.name}" cannot be made: an index or a constraint of '
        "this name exists already",
        hint="Names of indexes are unique in their schema.",
    )


def _added(context: Context, schema: MapSchema, index: IndexDefinition, place: Name) -> MapSchema:
    try:
        return with_index(schema, index)
    except InvalidDefinition as problem:
        hint = "UNIQUE takes numbers, text, BOOLEAN, BYTEA, UUID, dates and times."
        raise placed(context, problem.advising(hint), place) from None
    except RemudaError as problem:
        raise placed(context, problem, place) from None


def verification(schema: MapSchema, index: IndexDefinition) -> Verification:
    """Finds rows that are there and have the same values."""
    columns = ", ".join(map(quoted_name, index.names))
    text = f"SELECT {columns} FROM {sql_name(schema)}"  # noqa: S608 (quoted names)
    if index.nulls_distinct:
        present = [f"{quoted_name(name)} IS NOT NULL" for name in index.names]
        text += f" WHERE {' AND '.join(present)}"
    return Verification(
        f"{text} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1",
        partial(stored_twice, schema, index),
        tuple(schema.column(name).type for name in index.names),
    )
