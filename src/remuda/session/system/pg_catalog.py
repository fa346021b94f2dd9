"""Rows of ``pg_catalog`` that describe maps, views, columns, constraints and indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.definition_text import definition_of, expression_shown
from remuda.catalog.foreign_keys import index_of
from remuda.catalog.pg_objects import (
    DATABASE_OID,
    DEFAULT_TABLESPACE,
    HEAP,
    LANGUAGES,
    OWNER_OID,
    PG_CATALOG_OID,
    TABLESPACES,
    Relation,
    comments,
    index_text,
    indexes,
    number_of,
    relations,
    schema_numbers,
    schemas,
    view_text,
)
from remuda.catalog.pg_operator_classes import operator_class
from remuda.catalog.pg_operators import equality_of
from remuda.catalog.pg_types import (
    ARRAY_ANALYZE,
    ARRAY_IN,
    ARRAY_OUT,
    ARRAY_RECEIVE,
    ARRAY_SEND,
    ARRAY_SUBSCRIPT,
    PG_TYPES,
    VECTORS,
    declared_type,
    enum_row,
    modifier,
)
from remuda.catalog.system_relations import DATABASE, OWNER, PUBLIC, SYS, SystemRelation
from remuda.catalog.temporary import in_temporary_schema
from remuda.datatypes.identifiers import reserved_words
from remuda.datatypes.schema import ForeignKey, KeyAction, MapSchema, ViewDefinition
from remuda.datatypes.sql import SqlType
from remuda.session.system.access_methods import method_of, pg_am, pg_opclass, pg_opfamily
from remuda.session.system.functions import pg_operator, pg_proc
from remuda.session.system.rows import Row, row
from remuda.session.system.rules import pg_depend, pg_rewrite
from remuda.session.system.sequences import pg_sequence, with_generated, with_identity
from remuda.sql.definitions.constraints import condition_columns

UTF8: Final = 6
_ACTIONS: Final = {
    KeyAction.NO_ACTION: "a",
    KeyAction.RESTRICT: "r",
    KeyAction.CASCADE: "c",
    KeyAction.SET_NULL: "n",
    KeyAction.SET_DEFAULT: "d",
}
NO_LIMIT: Final = -1
"""Of connections, of statistics: PostgreSQL's number for none."""


def pg_namespace(catalog: Catalog) -> Iterator[Row]:
    for name, oid in schemas(catalog):
        if name == SYS:
            continue  # clients take every schema that they do not know for one of users
        allowed = _FOR_ALL if name == PUBLIC else None
        yield row("pg_namespace", oid=oid, nspname=name, nspowner=OWNER_OID, nspacl=allowed)


_FOR_ALL: Final = [f"{OWNER}=UC/{OWNER}", f"=U/{OWNER}"]
"""The privileges of ``public`` in PostgreSQL 15: without them a dump takes its use from all."""


def _listed(catalog: Catalog) -> Iterator[Relation]:
    """The relations of the schemas that are listed."""
    return (relation for relation in relations(catalog) if relation.schema != SYS)


def pg_class(catalog: Catalog) -> Iterator[Row]:
    indexed = {index.table for index in indexes(catalog)}
    namespaces = schema_numbers(catalog)
    for r in _listed(catalog):
        is_map = isinstance(r.source, MapSchema)
        yield _class(
            oid=r.oid,
            relname=r.name,
            relnamespace=namespaces[r.schema],
            relkind=r.kind,
            relam=HEAP if r.kind == "r" else 0,
            relnatts=len(r.columns),
            relchecks=len(r.source.checks) if isinstance(r.source, MapSchema) else 0,
            relhasindex=r.oid in indexed,
            relhastriggers=isinstance(r.source, MapSchema)
            and bool(r.source.foreign_keys or r.source.children),
            relhasrules=r.kind == "v",
            relreplident="d" if is_map else "n",
            relpersistence=_persistence(r.source),
        )
    for i in indexes(catalog):
        yield _class(
            oid=i.oid, relname=i.name, relnamespace=namespaces[i.schema.namespace], relkind="i",
            relam=method_of(i), relnatts=len(i.columns), relreplident="n",
            relpersistence=_persistence(i.schema),
        )  # fmt: skip


def _class(oid: int, **values: Any) -> Row:
    return row(
        "pg_class", oid=oid, relfilenode=oid, relowner=OWNER_OID, reltuples=-1.0,
        relispopulated=True, **values,
    )  # fmt: skip


def _persistence(source: MapSchema | ViewDefinition | SystemRelation) -> str:
    if isinstance(source, MapSchema | ViewDefinition) and in_temporary_schema(source):
        return "t"
    return "p"


def pg_attribute(catalog: Catalog) -> Iterator[Row]:
    for relation in _listed(catalog):
        is_view = isinstance(relation.source, ViewDefinition)
        for place, c in enumerate(relation.columns, 1):
            not_null = not (c.nullable or is_view)
            shown = bool(c.generated) or (c.default is not None and c.identity is None)
            found = _attribute(relation.oid, c.name, place, c.type, not_null, shown)
            if c.generated:
                found = with_generated(found)
            yield found if c.identity is None else with_identity(found, c.identity)
    for index in indexes(catalog):
        for place, name in enumerate(index.columns, 1):
            column = index.schema.column(name)
            yield _attribute(index.oid, name, place, column.type, False, False)


def _attribute(  # noqa: PLR0917 (the parts of one row)
    relation: int, name: str, place: int, t: SqlType, not_null: bool, has_default: bool
) -> Row:
    found, is_array = declared_type(t)
    return row(
        "pg_attribute", attrelid=relation, attname=name, attnum=place, attnotnull=not_null,
        atthasdef=has_default, atttypid=found.array if is_array else found.oid,
        atttypmod=modifier(t), attlen=-1 if is_array else found.length, attndims=int(is_array),
        attbyval=found.by_value and not is_array, attalign="i" if is_array else found.alignment,
        attstorage="x" if is_array else found.storage, attcollation=found.collation,
        attstattarget=NO_LIMIT, attcacheoff=-1, attislocal=True,
    )  # fmt: skip


def pg_attrdef(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.maps:
        for column in schema.shown:
            default = "" if column.default is None else column.default.text
            text = column.generated or default
            if text and column.identity is None:
                yield row(
                    "pg_attrdef", oid=column.default_oid, adrelid=schema.oid,
                    adnum=number_of(schema, column.name), adbin=expression_shown(text),
                )  # fmt: skip


def pg_type(catalog: Catalog) -> Iterator[Row]:
    namespaces = schema_numbers(catalog)
    places = {enum.oid: namespaces[enum.namespace] for enum in catalog.types}
    for t in (*PG_TYPES, *map(enum_row, catalog.types)):
        reads, writes, receives, sends = t.io
        yield _type(
            places.get(t.oid),
            oid=t.oid, typname=t.name, typlen=t.length, typbyval=t.by_value, typtype=t.kind,
            typcategory=t.category, typispreferred=t.preferred, typelem=t.element,
            typarray=t.array, typinput=reads, typoutput=writes, typreceive=receives,
            typsend=sends, typalign=t.alignment, typstorage=t.storage, typcollation=t.collation,
            typsubscript=ARRAY_SUBSCRIPT if t.name in VECTORS else 0,
        )  # fmt: skip
        if t.array:
            yield _type(
                places.get(t.oid),
                oid=t.array, typname=f"_{t.name}", typlen=-1, typtype="b", typcategory="A",
                typelem=t.oid, typinput=ARRAY_IN, typoutput=ARRAY_OUT, typreceive=ARRAY_RECEIVE,
                typsend=ARRAY_SEND, typanalyze=ARRAY_ANALYZE, typsubscript=ARRAY_SUBSCRIPT,
                typalign="d" if t.alignment == "d" else "i", typstorage="x",
                typcollation=t.collation,
            )  # fmt: skip


def _type(namespace: int | None, **values: Any) -> Row:
    return row(
        "pg_type", typnamespace=namespace or PG_CATALOG_OID, typowner=OWNER_OID, typisdefined=True,
        typdelim=",", typtypmod=-1, **values,
    )  # fmt: skip


def pg_constraint(catalog: Catalog) -> Iterator[Row]:
    namespaces = schema_numbers(catalog)
    for schema in catalog.maps:
        table, namespace = schema.oid, namespaces[schema.namespace]
        if not schema.has_row_ids:
            yield _constraint(
                oid=schema.key_oid, conname=schema.primary_key, contype="p", conrelid=table,
                connamespace=namespace,
                conindid=schema.key_index_oid, connoinherit=True,
                conkey=[number_of(schema, name) for name in schema.key],
            )  # fmt: skip
        for unique in schema.uniques:
            if unique.constraint:
                yield _constraint(
                    oid=unique.constraint_oid, conname=unique.name,
                    contype="p" if unique is schema.added_key else "u", conrelid=table,
                    connamespace=namespace,
                    conindid=unique.oid, connoinherit=True,
                    conkey=[number_of(schema, name) for name in unique.names],
                )  # fmt: skip
        for key in schema.foreign_keys:
            yield _foreign_key(catalog, schema, key, namespace)
        for check in schema.checks:
            read = condition_columns(schema, check)
            yield _constraint(
                oid=check.oid, conname=check.name, contype="c", conrelid=table,
                connamespace=namespace, conbin=check.text, convalidated=check.valid,
                conkey=[number_of(schema, schema.columns[position].name) for position in read],
            )  # fmt: skip


def _foreign_key(catalog: Catalog, schema: MapSchema, key: ForeignKey, namespace: int) -> Row:
    parent = catalog.get(key.parent)
    equal = [_equality(parent.column(name).type) for name in key.parent_columns]
    return _constraint(
        oid=key.oid, conname=key.name, contype="f", conrelid=schema.oid,
        connamespace=namespace, conindid=_key_index(parent, key), connoinherit=True,
        conkey=[number_of(schema, name) for name in key.columns],
        confrelid=parent.oid,
        confkey=[number_of(parent, name) for name in key.parent_columns],
        confupdtype=_ACTIONS[key.on_update], confdeltype=_ACTIONS[key.on_delete],
        confmatchtype="f" if key.full else "s", convalidated=key.valid,
        condeferrable=key.deferrable, condeferred=key.deferred,
        confdelsetcols=[number_of(schema, name) for name in key.set_columns] or None,
        conpfeqop=equal, conppeqop=equal, conffeqop=equal,
    )  # fmt: skip


def _key_index(parent: MapSchema, key: ForeignKey) -> int:
    """The index that a foreign key relies on."""
    if frozenset(key.parent_columns) == frozenset(parent.key):
        return parent.key_index_oid
    index = index_of(parent, key.parent_columns)
    return 0 if index is None else index.oid


def _equality(sql_type: SqlType) -> int:
    """The operator ``=`` of a type."""
    return equality_of(declared_type(sql_type)[0].name)


def _constraint(**values: Any) -> Row:
    ends = {"confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "convalidated": True}
    return row("pg_constraint", conislocal=True, **{**ends, **values})


def pg_index(catalog: Catalog) -> Iterator[Row]:
    for i in indexes(catalog):
        definition = i.definition
        ready = definition is None or definition.ready
        types = [i.schema.column(name).type for name in i.columns]
        descending = [] if definition is None else [c.descending for c in definition.columns]
        yield row(
            "pg_index", indexrelid=i.oid, indrelid=i.table, indnatts=len(types),
            indnkeyatts=len(types), indisunique=definition is None or definition.unique,
            indnullsnotdistinct=definition is not None and not definition.nulls_distinct,
            indisprimary=i.primary, indimmediate=True, indisvalid=ready,
            indisready=ready, indislive=True,
            indkey=[number_of(i.schema, name) for name in i.columns],
            indcollation=[declared_type(t)[0].collation for t in types],
            indclass=[operator_class(method_of(i), t) for t in types],
            indoption=[DESCENDING if d else 0 for d in descending or [False] * len(types)],
        )  # fmt: skip


DESCENDING: Final = 3
"""DESC NULLS FIRST, in ``pg_index.indoption``."""


def pg_description(catalog: Catalog) -> Iterator[Row]:
    for comment in comments(catalog):
        yield row(
            "pg_description", objoid=comment.oid, classoid=comment.relation,
            objsubid=comment.place, description=comment.text,
        )  # fmt: skip


def pg_database(_catalog: Catalog) -> Iterator[Row]:
    yield row(
        "pg_database", oid=DATABASE_OID, datname=DATABASE, datdba=OWNER_OID, encoding=UTF8,
        datlocprovider="c", datallowconn=True, datconnlimit=NO_LIMIT,
        dattablespace=DEFAULT_TABLESPACE, datcollate="C.UTF-8", datctype="C.UTF-8",
    )  # fmt: skip


def pg_tables(catalog: Catalog) -> Iterator[Row]:
    indexed = {index.table for index in indexes(catalog)}
    for r in relations(catalog):
        if r.kind == "r":
            yield row(
                "pg_tables", schemaname=r.schema, tablename=r.name, tableowner=OWNER,
                hasindexes=r.oid in indexed, hasrules=False, hastriggers=False, rowsecurity=False,
            )  # fmt: skip


def pg_views(catalog: Catalog) -> Iterator[Row]:
    for view in catalog.views:
        yield view.namespace, view.local, OWNER, view_text(view)


def sqlite_master(catalog: Catalog) -> Iterator[Row]:
    """SQLite's list of tables, views and indexes. A tool that asks it, as pandas does of
    connections that it does not know, goes on with statements that mean the same here."""
    for schema in catalog.tables:
        if in_temporary_schema(schema):
            continue  # SQLite has them in another list
        yield "table", schema.name, schema.name, 0, definition_of(schema)
    for view in catalog.views:
        yield "view", view.name, view.name, 0, definition_of(view)
    for index in indexes(catalog):
        if index.definition is not None and not in_temporary_schema(index.schema):
            yield "index", index.name, index.schema.name, 0, index_text(index)


def pg_indexes(catalog: Catalog) -> Iterator[Row]:
    for index in indexes(catalog):
        yield index.schema.namespace, index.schema.local, index.name, None, index_text(index)


def pg_tablespace(_catalog: Catalog) -> Iterator[Row]:
    for oid, name in TABLESPACES.items():
        yield row("pg_tablespace", oid=oid, spcname=name, spcowner=OWNER_OID)


def pg_collation(_catalog: Catalog) -> Iterator[Row]:
    for oid, name, provider, locale in (
        (100, "default", "d", None),
        (950, "C", "c", "C"),
        (951, "POSIX", "c", "POSIX"),
    ):
        yield row(
            "pg_collation", oid=oid, collname=name, collnamespace=PG_CATALOG_OID,
            collowner=OWNER_OID, collprovider=provider, collisdeterministic=True, collencoding=-1,
            collcollate=locale, collctype=locale,
        )  # fmt: skip


def pg_enum(catalog: Catalog) -> Iterator[Row]:
    for enum in catalog.types:
        for place, (label, oid) in enumerate(zip(enum.labels, enum.label_oids, strict=True), 1):
            yield row(
                "pg_enum", oid=oid, enumtypid=enum.oid, enumsortorder=float(place), enumlabel=label
            )


def pg_language(_catalog: Catalog) -> Iterator[Row]:
    for oid, name in LANGUAGES.items():
        yield row("pg_language", oid=oid, lanname=name, lanowner=OWNER_OID)


def pg_get_keywords(_catalog: Catalog) -> Iterator[Row]:
    """The words that are no names without quotes."""
    for word in sorted(reserved_words()):
        yield word, "R", False, "reserved", "requires AS"


ROWS: Final[dict[str, Callable[[Catalog], Iterable[Row]]]] = {
    "pg_namespace": pg_namespace,
    "pg_class": pg_class,
    "pg_attribute": pg_attribute,
    "pg_attrdef": pg_attrdef,
    "pg_type": pg_type,
    "pg_enum": pg_enum,
    "pg_constraint": pg_constraint,
    "pg_index": pg_index,
    "pg_description": pg_description,
    "pg_database": pg_database,
    "pg_tables": pg_tables,
    "pg_views": pg_views,
    "pg_indexes": pg_indexes,
    "sqlite_master": sqlite_master,
    "pg_am": pg_am,
    "pg_opclass": pg_opclass,
    "pg_opfamily": pg_opfamily,
    "pg_tablespace": pg_tablespace,
    "pg_collation": pg_collation,
    "pg_language": pg_language,
    "pg_operator": pg_operator,
    "pg_proc": pg_proc,
    "pg_sequence": pg_sequence,
    "pg_depend": pg_depend,
    "pg_rewrite": pg_rewrite,
    "pg_get_keywords": pg_get_keywords,
}
"""Other objects (triggers, policies, enumerations, ...) do not exist in the grid: their
relations are empty."""
