"""Rows of ``pg_catalog``: what describes maps, views, columns, constraints and indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.definition_text import definition_of
from remuda.catalog.pg_objects import (
    DATABASE_OID,
    OWNER_OID,
    SCHEMAS,
    Index,
    Relation,
    access_method,
    index_text,
    indexes,
    number_of,
    relations,
)
from remuda.catalog.pg_types import PG_TYPES, modifier, type_length, type_oid
from remuda.catalog.system_relations import DATABASE, OWNER, PUBLIC
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.sql.constraints import condition_columns

Row = tuple[Any, ...]
CLASS_OID: Final = 1259
"""``pg_class`` itself, in ``pg_description.classoid``."""
HEAP, BTREE, HASH, BITMAP = 2, 403, 405, 13900
UTF8: Final = 6


def pg_namespace(_catalog: Catalog) -> Iterator[Row]:
    for name, oid in SCHEMAS.items():
        yield oid, name, OWNER_OID, None


def pg_class(catalog: Catalog) -> Iterator[Row]:
    indexed = {index.table for index in indexes(catalog)}
    for r in relations(catalog):
        checks = len(r.source.checks) if isinstance(r.source, MapSchema) else 0
        yield _class(
            r.oid,
            r.name,
            SCHEMAS[r.schema],
            r.kind,
            HEAP if r.kind == "r" else 0,
            len(r.columns),
            checks,
            indexed=r.oid in indexed,
        )
    for i in indexes(catalog):
        yield _class(i.oid, i.name, SCHEMAS[PUBLIC], "i", _method(i), len(i.columns), 0)


def _method(index: Index) -> int:
    return {"btree": BTREE, "hash": HASH, "bitmap": BITMAP}[access_method(index)]


def _class(  # noqa: PLR0917 (the parts of one row)
    oid: int,
    name: str,
    namespace: int,
    kind: str,
    method: int,
    width: int,
    checks: int,
    *,
    indexed: bool = False,
) -> Row:
    return (
        oid, name, namespace, 0, 0, OWNER_OID, method, oid, 0, 0, -1.0, 0, 0, indexed, False,
        "p", kind, width, checks, kind == "v", False, False, False, False, True, "d", False, 0,
        0, 0, None, None, None,
    )  # fmt: skip


def pg_attribute(catalog: Catalog) -> Iterator[Row]:
    for relation in relations(catalog):
        yield from _attributes(relation)
    for index in indexes(catalog):
        for place, name in enumerate(index.columns, 1):
            column = index.schema.column(name)
            yield _attribute(index.oid, name, place, column.type, False, False)


def _attributes(relation: Relation) -> Iterator[Row]:
    for place, c in enumerate(relation.columns, 1):
        yield _attribute(relation.oid, c.name, place, c.type, not c.nullable, c.default is not None)


def _attribute(  # noqa: PLR0917 (the parts of one row)
    relation: int, name: str, place: int, t: Any, not_null: bool, has_default: bool
) -> Row:
    length = type_length(t)
    return (
        relation, name, type_oid(t), -1, length, place, int(t.element is not None), -1,
        modifier(t), 0 < length <= 8, "i", "p" if length > 0 else "x", "", not_null, has_default,
        False, "", "", False, True, 0, 0, None, None, None, None,
    )  # fmt: skip


def pg_attrdef(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.maps:
        for column in schema.shown:
            if column.default is not None:
                yield (
                    column.default_oid,
                    schema.oid,
                    number_of(schema, column.name),
                    column.default.text,
                )


def pg_type(_catalog: Catalog) -> Iterator[Row]:
    for t in PG_TYPES:
        kind = "p" if t.category == "P" else "b"
        by_value = 0 < t.length <= 8
        names = (f"{t.name}in", f"{t.name}out", f"{t.name}recv", f"{t.name}send", "-", "-", "-")
        yield (
            t.oid, t.name, 11, OWNER_OID, t.length, by_value, kind, t.category, t.preferred, True,
            ",", 0, "-", 0, t.array, *names, t.alignment, "p" if t.length > 0 else "x", False, 0,
            -1, 0, 0, None, None, None,
        )  # fmt: skip
        array = ("array_in", "array_out", "array_recv", "array_send", "-", "-", "-")
        yield (
            t.array, f"_{t.name}", 11, OWNER_OID, -1, False, "b", "A", False, True, ",", 0,
            "array_subscript_handler", t.oid, 0, *array, "i", "x", False, 0, -1, 0, 0, None, None,
            None,
        )  # fmt: skip


def pg_constraint(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.maps:
        table = schema.oid
        if not schema.has_row_ids:
            key = [number_of(schema, name) for name in schema.key]
            index = schema.key_index_oid
            yield _constraint(schema.key_oid, schema.primary_key, "p", table, index, key, None)
        for unique in schema.uniques:
            if unique.constraint:
                columns = [number_of(schema, name) for name in unique.names]
                oid, index = unique.constraint_oid, unique.oid
                yield _constraint(oid, unique.name, "u", table, index, columns, None)
        for check in schema.checks:
            read = [
                number_of(schema, schema.columns[position].name)
                for position in condition_columns(schema, check)
            ]
            yield _constraint(check.oid, check.name, "c", table, 0, read, check.text)


def _constraint(  # noqa: PLR0917 (the parts of one row)
    oid: int, name: str, kind: str, table: int, index: int, columns: list[int], text: str | None
) -> Row:
    return (
        oid, name, SCHEMAS[PUBLIC], kind, False, False, True, table, 0, index, 0, 0, " ", " ", " ",
        True, 0, kind in "pu", columns, None, text,
    )  # fmt: skip


def pg_index(catalog: Catalog) -> Iterator[Row]:
    for i in indexes(catalog):
        primary = i.definition is None
        unique = i.definition is None or i.definition.unique
        nulls_equal = i.definition is not None and not i.definition.nulls_distinct
        ready = i.definition is None or i.definition.ready
        keys = [number_of(i.schema, name) for name in i.columns]
        descending = (
            [False] * len(keys)
            if i.definition is None
            else [column.descending for column in i.definition.columns]
        )
        yield (
            i.oid, i.table, len(keys), len(keys), unique, nulls_equal, primary, False, True, False,
            ready, False, ready, True, False, keys, [0] * len(keys), [0] * len(keys),
            [3 if d else 0 for d in descending], None, None,
        )  # fmt: skip


def pg_description(catalog: Catalog) -> Iterator[Row]:
    for relation in relations(catalog):
        source = relation.source
        if not isinstance(source, MapSchema | ViewDefinition):
            continue
        if source.comment:
            yield relation.oid, CLASS_OID, 0, source.comment
        for place, column in enumerate(relation.columns, 1):
            if column.comment:
                yield relation.oid, CLASS_OID, place, column.comment


def pg_database(_catalog: Catalog) -> Iterator[Row]:
    yield (
        DATABASE_OID, DATABASE, OWNER_OID, UTF8, "c", False, True, -1, 1663, "C.UTF-8", "C.UTF-8",
        None, None, None,
    )  # fmt: skip


def pg_roles(_catalog: Catalog) -> Iterator[Row]:
    yield (
        OWNER_OID, OWNER, True, True, True, True, True, False, -1, "********", None, True, None,
    )  # fmt: skip


def pg_user(_catalog: Catalog) -> Iterator[Row]:
    yield OWNER, OWNER_OID, True, True, False, True, "********", None, None


def pg_tables(catalog: Catalog) -> Iterator[Row]:
    indexed = {index.table for index in indexes(catalog)}
    for r in relations(catalog):
        if r.kind == "r":
            yield r.schema, r.name, OWNER, None, r.oid in indexed, False, False, False


def pg_views(catalog: Catalog) -> Iterator[Row]:
    for view in catalog.views:
        yield PUBLIC, view.name, OWNER, view.text + ";"


def sqlite_master(catalog: Catalog) -> Iterator[Row]:
    """SQLite's list of tables, views and indexes: what asks it, as pandas does of connections that
    it does not know, goes on with statements that mean the same here."""
    for schema in catalog.maps:
        yield "table", schema.name, schema.name, 0, definition_of(schema)
    for view in catalog.views:
        yield "view", view.name, view.name, 0, definition_of(view)
    for index in indexes(catalog):
        if index.definition is not None:
            yield "index", index.name, index.schema.name, 0, index_text(index)


def pg_indexes(catalog: Catalog) -> Iterator[Row]:
    for index in indexes(catalog):
        yield PUBLIC, index.schema.name, index.name, None, index_text(index)


def pg_am(_catalog: Catalog) -> Iterator[Row]:
    yield HEAP, "heap", "heap_tableam_handler", "t"
    yield BTREE, "btree", "bthandler", "i"
    yield HASH, "hash", "hashhandler", "i"
    yield BITMAP, "bitmap", "bitmaphandler", "i"


def pg_tablespace(_catalog: Catalog) -> Iterator[Row]:
    yield 1663, "pg_default", OWNER_OID, None, None


def pg_collation(_catalog: Catalog) -> Iterator[Row]:
    yield 100, "default", 11, OWNER_OID, "d", True, -1, None, None
    yield 950, "C", 11, OWNER_OID, "c", True, -1, "C", "C"


def pg_language(_catalog: Catalog) -> Iterator[Row]:
    yield 12, "internal", OWNER_OID, False, False


ROWS: Final[dict[str, Callable[[Catalog], Iterable[Row]]]] = {
    "pg_namespace": pg_namespace,
    "pg_class": pg_class,
    "pg_attribute": pg_attribute,
    "pg_attrdef": pg_attrdef,
    "pg_type": pg_type,
    "pg_constraint": pg_constraint,
    "pg_index": pg_index,
    "pg_description": pg_description,
    "pg_database": pg_database,
    "pg_roles": pg_roles,
    "pg_user": pg_user,
    "pg_tables": pg_tables,
    "pg_views": pg_views,
    "pg_indexes": pg_indexes,
    "sqlite_master": sqlite_master,
    "pg_am": pg_am,
    "pg_tablespace": pg_tablespace,
    "pg_collation": pg_collation,
    "pg_language": pg_language,
}
"""What is not here (triggers, rules, policies, enumerations, ...) does not exist in the grid: the
relations are empty."""
