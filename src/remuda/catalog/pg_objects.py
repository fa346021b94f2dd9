"""Numbers (oids) for what the catalog holds, as PostgreSQL's clients expect them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from remuda.catalog.system_relations import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    PUBLIC,
    SYS,
    SystemRelation,
    all_system_relations,
)
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import Check, Column, MapSchema, ViewDefinition

SCHEMAS: Final = {PG_CATALOG: 11, PUBLIC: 2200, INFORMATION_SCHEMA: 13000, SYS: 13500}
OWNER_OID: Final = 10
DATABASE_OID: Final = 5
_FIRST: Final = 16384
_STEP: Final = 8
"""Numbers per map: itself, its primary key as an index and as a constraint."""
_VIEW, _KEY_INDEX, _KEY, _INDEX, _UNIQUE = 1, 2, 3, 4, 5
_SYSTEM_FIRST: Final = 14000
_KNOWN: Final = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_database": 1262,
    "pg_attrdef": 2604,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_namespace": 2615,
}
"""Numbers that clients know by heart."""
_CHECKS: Final = 1 << 40
_DEFAULTS: Final = 1 << 41


class Holder(Protocol):
    """A catalog, or what stands for one."""

    @property
    def maps(self) -> Sequence[MapSchema]: ...

    @property
    def views(self) -> Sequence[ViewDefinition]: ...


@dataclass(frozen=True, slots=True)
class Relation:
    """One row of ``pg_class`` that is no index."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...]
    source: MapSchema | ViewDefinition | SystemRelation


@dataclass(frozen=True, slots=True)
class Index:
    """The primary key of a map (``definition`` is None), or a secondary index."""

    oid: int
    table: int
    name: str
    schema: MapSchema
    columns: tuple[str, ...]
    definition: IndexDefinition | None


def map_oid(schema: MapSchema) -> int:
    return _FIRST + _STEP * schema.map_id


def key_oid(schema: MapSchema) -> int:
    return map_oid(schema) + _KEY


def key_index_oid(schema: MapSchema) -> int:
    return map_oid(schema) + _KEY_INDEX


def check_oid(schema: MapSchema, check: Check) -> int:
    return _CHECKS + schema.map_id * 4096 + schema.checks.index(check)


def unique_oid(index: IndexDefinition) -> int:
    """Of a UNIQUE constraint."""
    return index_oid(index) + _UNIQUE - _INDEX


def index_oid(index: IndexDefinition) -> int:
    return _FIRST + _STEP * index.index_id + _INDEX


def default_oid(schema: MapSchema, column: Column) -> int:
    return _DEFAULTS + schema.map_id * 4096 + column.id


def number_of(schema: MapSchema, name: str) -> int:
    """``attnum`` of a column: from 1 on, without the hidden one."""
    return [column.name for column in schema.shown].index(name) + 1


def relations(holder: Holder) -> Iterator[Relation]:
    for schema in holder.maps:
        yield Relation(map_oid(schema), PUBLIC, schema.name, "r", schema.shown, schema)
    for view in holder.views:
        oid = _FIRST + _STEP * view.view_id + _VIEW
        yield Relation(oid, PUBLIC, view.name, "v", view.columns, view)
    for place, found in enumerate(all_system_relations()):
        kind = "v" if found.schema != PG_CATALOG else "r"
        oid = _KNOWN.get(found.name, _SYSTEM_FIRST + place)
        yield Relation(oid, found.schema, found.name, kind, found.columns, found)


def indexes(holder: Holder) -> Iterator[Index]:
    for schema in holder.maps:
        table = map_oid(schema)
        if not schema.has_row_ids:
            yield Index(key_index_oid(schema), table, schema.primary_key, schema, schema.key, None)
        for index in schema.indexes:
            yield Index(index_oid(index), table, index.name, schema, index.names, index)


def index_text(index: Index) -> str:
    """The CREATE INDEX that makes it (of a primary key: that would make one like it)."""
    name, table = quoted_name(index.name), quoted_name(index.schema.name)
    if index.definition is None:
        columns = ", ".join(quoted_name(column) for column in index.columns)
        return f"CREATE UNIQUE INDEX {name} ON {PUBLIC}.{table} USING hash ({columns})"
    columns = ", ".join(
        quoted_name(column.name) + (" DESC" if column.descending else "")
        for column in index.definition.columns
    )
    kind = index.definition.kind.value
    unique = "UNIQUE " if index.definition.unique else ""
    nulls = "" if index.definition.nulls_distinct else " NULLS NOT DISTINCT"
    return f"CREATE {unique}INDEX {name} ON {PUBLIC}.{table} USING {kind} ({columns}){nulls}"
