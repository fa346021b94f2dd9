"""Object identifiers (OIDs): the numbers by which PostgreSQL's clients know maps, views, indexes,
constraints and defaults.

The catalog allots an OID when it first holds a definition, and keeps it with the definition: in
messages, logs and snapshots. An OID is never given to another object, and lies below 2^31, because
clients keep OIDs in 32-bit integers. The highest ones are those of temporary tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from operator import is_not
from typing import Any, Final, TypeVar

from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import (
    PUBLIC,
    Check,
    Column,
    ForeignKey,
    MapSchema,
    Namespace,
    ViewDefinition,
)
from remuda.datatypes.sql import EnumType

FIRST_OID: Final = 16384
"""PostgreSQL's first one for the objects of users."""
TEMPORARY_SCHEMAS: Final = 0x7F000000
"""With the number of a session: the OID of its schema of temporary tables."""
TEMPORARY_FIRST: Final = TEMPORARY_SCHEMAS + (1 << 16)
"""The first OID of what a temporary table consists of. Sessions allot these, each for itself."""
TEMPORARY_LIMIT: Final = 1 << 31
OID_LIMIT: Final = TEMPORARY_SCHEMAS


@dataclass
class Allotment:
    """``following`` is the next OID that was never allotted."""

    following: int
    taken: set[int] = field(default_factory=set)
    first: int = FIRST_OID
    limit: int = OID_LIMIT

    def keep(self, oid: int) -> int:
        """``oid``, if it is one and no other object has it; else a new one."""
        if not self.first <= oid < self.limit or oid in self.taken:
            oid = self._new()
        self.taken.add(oid)
        self.following = max(self.following, oid + 1)
        return oid

    def _new(self) -> int:
        oid = self.following
        while oid in self.taken or oid >= self.limit:
            oid = self.first if oid >= self.limit else oid + 1
        return oid

    def map(self, schema: MapSchema) -> MapSchema:
        return _with(
            schema,
            oid=self.keep(schema.oid),
            key_oid=0 if schema.has_row_ids else self.keep(schema.key_oid),
            key_index_oid=0 if schema.has_row_ids else self.keep(schema.key_index_oid),
            columns=tuple(
                [
                    column
                    if column.default is None and not column.generated
                    else _with(column, default_oid=self.keep(column.default_oid))
                    for column in schema.columns
                ]
            ),
            checks=tuple([_with(check, oid=self.keep(check.oid)) for check in schema.checks]),
            foreign_keys=tuple([_with(key, oid=self.keep(key.oid)) for key in schema.foreign_keys]),
            indexes=tuple(
                [
                    _with(
                        index,
                        oid=self.keep(index.oid),
                        constraint_oid=self.keep(index.constraint_oid) if index.constraint else 0,
                    )
                    for index in schema.indexes
                ]
            ),
        )

    def enum(self, enum: EnumType) -> EnumType:
        old = (*enum.label_oids, *(0 for _ in enum.labels))[: len(enum.labels)]
        return _with(
            enum,
            oid=self.keep(enum.oid),
            array_oid=self.keep(enum.array_oid),
            label_oids=tuple(self.keep(oid) for oid in old),
        )

    def view(self, view: ViewDefinition) -> ViewDefinition:
        return _with(view, oid=self.keep(view.oid))


_Definition = TypeVar("_Definition", MapSchema, Column, Check, ForeignKey, IndexDefinition,
                      EnumType, ViewDefinition, Namespace)  # fmt: skip


def _with(definition: _Definition, **fields: Any) -> _Definition:
    """The same object, if it has these fields already: a change of the catalog passes all
    definitions through here, and makes one of them anew. Equal parts may differ in their OIDs,
    so parts count as unchanged only if they are the same objects."""
    for name, value in fields.items():
        old = getattr(definition, name)
        if isinstance(value, tuple):
            if len(old) != len(value) or any(map(is_not, old, value)):
                break
        elif old != value:
            break
    else:
        return definition
    return replace(definition, **fields)


def allotted(  # noqa: PLR0917 (the parts of a catalog)
    maps: Sequence[MapSchema],
    views: Sequence[ViewDefinition],
    following: int,
    known: Collection[int] = (),
    namespaces: Sequence[Namespace] = (),
    types: Sequence[EnumType] = (),
) -> tuple[
    tuple[MapSchema, ...],
    tuple[ViewDefinition, ...],
    int,
    tuple[Namespace, ...],
    tuple[EnumType, ...],
]:
    """All maps, views, schemas and types with OIDs, and the next OID that was never allotted.

    An object that brings an OID (from a snapshot, or as a copy of another one) keeps it if nothing
    else has it. The objects of ``known``, the ids of maps and views that the catalog held before,
    come first. Maps that users do not see yet get theirs when they are shown.
    """
    allotment = Allotment(max(following, FIRST_OID))
    numbered = tuple(
        each if each.name == PUBLIC else _with(each, oid=allotment.keep(each.oid))
        for each in sorted(namespaces, key=lambda each: not each.oid)
    )
    enums = {enum: allotment.enum(enum) for enum in sorted(types, key=lambda each: not each.oid)}
    shown = [schema for schema in maps if not schema.internal]
    shown.sort(key=lambda schema: schema.map_id not in known)
    made = {schema.map_id: allotment.map(schema) for schema in shown}
    ordered = sorted(views, key=lambda view: view.view_id not in known)
    seen = {view.view_id: allotment.view(view) for view in ordered}
    return (
        tuple(made.get(schema.map_id, schema) for schema in maps),
        tuple(seen[view.view_id] for view in views),
        allotment.following,
        numbered,
        tuple(enums[enum] for enum in types),
    )
