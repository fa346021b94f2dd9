"""Enum types of the catalog, and the columns that have them. Pure functions.

A column has the whole definition of its type, so that values compare, and are checked, without the
catalog. A type that changes therefore changes the columns in the same version of the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from remuda.datatypes.schema import Column, MapSchema, ViewDefinition
from remuda.datatypes.sql import EnumType, SqlType, enum_of
from remuda.errors import DuplicateObject

Key: TypeAlias = tuple[str, str]
"""The schema and the name of a type."""


def key_of(enum: EnumType) -> Key:
    return enum.namespace, enum.local


def enum_in(sql_type: SqlType) -> EnumType | None:
    """The enum of a type, or of its elements."""
    return (sql_type.element or sql_type).enum


def with_enum(sql_type: SqlType, enum: EnumType) -> SqlType:
    """``sql_type``, which is an enum or an array of one, with another definition of it."""
    if sql_type.element is not None:
        return replace(sql_type, element=enum_of(enum))
    return enum_of(enum)


def enums_of(columns: Iterable[Column]) -> Iterator[EnumType]:
    for column in columns:
        enum = enum_in(column.type)
        if enum is not None:
            yield enum


def users_of(
    enum: EnumType, relations: Iterable[MapSchema | ViewDefinition]
) -> Iterator[tuple[MapSchema | ViewDefinition, Column]]:
    """The columns of a type."""
    for relation in relations:
        for column in relation.columns:
            found = enum_in(column.type)
            if found is not None and found.oid == enum.oid:
                yield relation, column


def adopted(
    before: Sequence[EnumType],
    after: Sequence[EnumType],
    relations: Iterable[MapSchema | ViewDefinition],
) -> tuple[EnumType, ...]:
    """``after``, and the types that relations bring with them: from a snapshot, say, of another
    cluster. They get new OIDs. Raises DuplicateObject for one whose labels are not among those of
    the type that has its name here."""
    known = {key_of(enum): enum for enum in before}
    types = {key_of(enum): enum for enum in after}
    brought: dict[Key, EnumType] = {}
    for relation in relations:
        for enum in enums_of(relation.columns):
            key = key_of(enum)
            if key in known and known[key].oid == enum.oid:
                continue
            here = types.get(key) or brought.get(key)
            if here is None:
                brought[key] = replace(enum, oid=0, array_oid=0, label_oids=())
            elif not set(enum.labels) <= set(here.labels):
                missing = next(label for label in enum.labels if label not in here.labels)
                raise DuplicateObject(
                    f'type "{enum.local}" exists with other values than "{relation.name}" needs',
                    detail=f'Its values have no "{missing}".',
                    hint="Add the value with ALTER TYPE ... ADD VALUE, or rename the type.",
                )
    return (*after, *brought.values())


class Retyping:
    """The newest definitions of types, for columns that have those of the version before."""

    def __init__(self, before: Sequence[EnumType], after: Sequence[EnumType]) -> None:
        self._before = {key_of(enum): enum for enum in before}
        self._by_oid = {enum.oid: enum for enum in after}
        self._by_key = {key_of(enum): enum for enum in after}

    def map(self, schema: MapSchema, *, known: bool) -> MapSchema:
        """``known``: it was there before, and has another version if its columns change."""
        columns = self._columns(schema.columns)
        if columns is schema.columns:
            return schema
        return replace(schema, columns=columns, version=schema.version + known)

    def view(self, view: ViewDefinition) -> ViewDefinition:
        columns = self._columns(view.columns)
        return view if columns is view.columns else replace(view, columns=columns)

    def _columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        found = tuple(self._column(column) for column in columns)
        return columns if all(a is b for a, b in zip(found, columns, strict=True)) else found

    def _column(self, column: Column) -> Column:
        enum = enum_in(column.type)
        if enum is None:
            return column
        known = self._before.get(key_of(enum))
        same = known is not None and known.oid == enum.oid
        newest = self._by_oid.get(enum.oid) if same else self._by_key.get(key_of(enum))
        if newest is None or newest == enum:
            return column
        return replace(column, type=with_enum(column.type, newest))
