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
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.index import IndexDefinition, IndexKind
from remuda.datatypes.schema import Column, MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import EnumType

SCHEMAS: Final = {PG_CATALOG: 11, PUBLIC: 2200, INFORMATION_SCHEMA: 13000, SYS: 13500}
PG_CATALOG_OID: Final = SCHEMAS[PG_CATALOG]
OWNER_OID: Final = 10
DATABASE_OID: Final = 5
METHODS: Final = {"btree": 403, "hash": 405, "bitmap": 13900}
"""OIDs of the access methods of indexes."""
HEAP: Final = 2
"""The access method of tables."""
HANDLERS: Final = {
    3: "heap_tableam_handler",
    330: "bthandler",
    331: "hashhandler",
    13901: "bitmaphandler",
}
"""The functions behind access methods."""
LANGUAGES: Final = {12: "internal"}
DEFAULT_TABLESPACE: Final = 1663
TABLESPACES: Final = {DEFAULT_TABLESPACE: "pg_default", 1664: "pg_global"}
_SYSTEM_FIRST: Final = 14000


class Holder(Protocol):
    """A catalog, or a value that stands for one."""

    @property
    def maps(self) -> Sequence[MapSchema]: ...

    @property
    def views(self) -> Sequence[ViewDefinition]: ...

    @property
    def namespaces(self) -> Sequence[Namespace]: ...

    @property
    def types(self) -> Sequence[EnumType]: ...


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

    @property
    def primary(self) -> bool:
        """Whether it is that of the primary key."""
        return self.definition is None or self.definition is self.schema.added_key


def schemas(holder: Holder) -> Iterator[tuple[str, int]]:
    """The name and the OID of each schema."""
    yield from SCHEMAS.items()
    for namespace in holder.namespaces:
        if namespace.name not in SCHEMAS:
            yield namespace.name, namespace.oid


def schema_numbers(holder: Holder) -> dict[str, int]:
    return dict(schemas(holder))


def number_of(schema: MapSchema, name: str) -> int:
    """``attnum`` of a column: from 1 on, without the hidden one."""
    return [column.name for column in schema.shown].index(name) + 1


def relations(holder: Holder) -> Iterator[Relation]:
    for schema in holder.maps:
        kind = "r" if schema.sequence is None else "S"
        yield Relation(schema.oid, schema.namespace, schema.local, kind, schema.shown, schema)
    for view in holder.views:
        yield Relation(view.oid, view.namespace, view.local, "v", view.columns, view)
    for place, found in enumerate(all_system_relations()):
        kind = "r" if found.oid else "v"
        oid = found.oid or _SYSTEM_FIRST + place
        yield Relation(oid, found.schema, found.name, kind, found.columns, found)


def indexes(holder: Holder) -> Iterator[Index]:
    for schema in holder.maps:
        table = schema.oid
        if not schema.has_row_ids:
            yield Index(schema.key_index_oid, table, schema.primary_key, schema, schema.key, None)
        for index in schema.indexes:
            yield Index(index.oid, table, index.name, schema, index.names, index)


@dataclass(frozen=True, slots=True)
class Comment:
    """``relation`` is the catalog that lists the object (``pg_description.classoid``); ``place``
    is the number of a column, 0 for the object itself."""

    relation: int
    oid: int
    place: int
    text: str


CLASS_OID: Final = 1259
"""``pg_class`` itself, as the catalog of an object."""
TYPE_OID: Final = 1247
"""``pg_type`` itself."""
CONSTRAINT_OID: Final = 2606
"""``pg_constraint`` itself."""
SCHEMA_OID: Final = 2615
"""``pg_namespace`` itself."""


def comments(holder: Holder) -> Iterator[Comment]:
    """The comments on maps, views, columns, indexes and constraints, and on the schema of users."""
    return (comment for comment in _every_comment(holder) if comment.text)


def _every_comment(holder: Holder) -> Iterator[Comment]:
    numbers = schema_numbers(holder)
    if not any(namespace.name == PUBLIC for namespace in holder.namespaces):
        yield Comment(SCHEMA_OID, SCHEMAS[PUBLIC], 0, "standard public schema")
    for namespace in holder.namespaces:
        yield Comment(SCHEMA_OID, numbers[namespace.name], 0, namespace.comment)
    for enum in holder.types:
        yield Comment(TYPE_OID, enum.oid, 0, enum.comment)
    for relation in relations(holder):
        if isinstance(relation.source, MapSchema | ViewDefinition):
            yield Comment(CLASS_OID, relation.oid, 0, relation.source.comment)
        for place, column in enumerate(relation.columns, 1):
            yield Comment(CLASS_OID, relation.oid, place, column.comment)
    for schema in holder.maps:
        yield Comment(CLASS_OID, schema.key_index_oid, 0, schema.key_index_comment)
        yield Comment(CONSTRAINT_OID, schema.key_oid, 0, schema.key_comment)
        for check in schema.checks:
            yield Comment(CONSTRAINT_OID, check.oid, 0, check.comment)
        for key in schema.foreign_keys:
            yield Comment(CONSTRAINT_OID, key.oid, 0, key.comment)
        for index in schema.indexes:
            yield Comment(CLASS_OID, index.oid, 0, index.comment)
            yield Comment(CONSTRAINT_OID, index.constraint_oid, 0, index.constraint_comment)


def access_method(index: Index) -> str:
    """PostgreSQL's name for the kind of an index. Keys are unique, as only a btree is there."""
    if index.definition is None or index.definition.kind is IndexKind.SORTED:
        return "btree"
    return str(index.definition.kind.value)


def index_text(index: Index, *, pretty: bool = False) -> str:
    """The CREATE INDEX that makes it (of a primary key: that would make one like it). ``pretty``
    leaves the schema out, which every session searches."""
    schema = index.schema
    name, table = quoted_name(index.name), quoted_name(schema.local)
    where = sql_name(schema) if pretty else f"{quoted_name(schema.namespace)}.{table}"
    definition, kind = index.definition, access_method(index)
    if definition is None:
        columns = ", ".join(quoted_name(column) for column in index.columns)
        return f"CREATE UNIQUE INDEX {name} ON {where} USING {kind} ({columns})"
    columns = ", ".join(
        quoted_name(column.name) + (" DESC" if column.descending else "")
        for column in definition.columns
    )
    unique = "UNIQUE " if definition.unique else ""
    nulls = "" if definition.nulls_distinct else " NULLS NOT DISTINCT"
    return f"CREATE {unique}INDEX {name} ON {where} USING {kind} ({columns}){nulls}"


def view_text(view: ViewDefinition) -> str:
    """The query of a view, as it was written."""
    return view.text + ";"
