"""Rows of ``information_schema``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.definition_text import expression_shown
from remuda.catalog.foreign_keys import index_of
from remuda.catalog.pg_objects import SCHEMAS, Relation, relations, schemas
from remuda.catalog.pg_types import data_type, udt_name
from remuda.catalog.system_relations import DATABASE, OWNER, PUBLIC
from remuda.catalog.temporary import in_temporary_schema
from remuda.datatypes.schema import Column, ForeignKey, MapSchema
from remuda.datatypes.sequences import RANGES
from remuda.datatypes.sql import FRACTION_MAX, TIME_KINDS, Kind, SqlType
from remuda.sql.definitions.constraints import condition_columns
from remuda.sql.definitions.sequences import uses

Row = tuple[Any, ...]
_OCTETS: Final = 4
_TEXT_OCTETS_MAX: Final = 1 << 30
_INTEGER_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_BITS: Final = {Kind.REAL: 24, Kind.DOUBLE: 53}


def _answer(value: bool) -> str:
    return "YES" if value else "NO"


def schemata(catalog: Catalog) -> Iterator[Row]:
    for name, _ in schemas(catalog):
        yield DATABASE, name, OWNER, None, None, None, None


def catalog_name(_catalog: Catalog) -> Iterator[Row]:
    yield (DATABASE,)


def tables(catalog: Catalog) -> Iterator[Row]:
    for r in relations(catalog):
        if r.kind == "S":
            continue
        kind = "BASE TABLE" if r.kind == "r" else "VIEW"
        insertable = _answer(isinstance(r.source, MapSchema))
        if isinstance(r.source, MapSchema) and in_temporary_schema(r.source):
            kind = "LOCAL TEMPORARY"
        yield (
            DATABASE, r.schema, r.name, kind, None, None, None, None, None, insertable, "NO", None,
        )  # fmt: skip


def columns(catalog: Catalog) -> Iterator[Row]:
    for relation in relations(catalog):
        if relation.kind == "S":
            continue
        for place, column in enumerate(relation.columns, 1):
            yield _column(relation, place, column, _identity(catalog, column))


def sequences(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.sequences:
        options = schema.sequence
        assert options is not None
        owner = catalog.owners.get(options.link)
        if owner is not None and owner[1].identity is not None:
            continue  # PostgreSQL does not list those of identity columns either
        bits = _INTEGER_BITS[RANGES[options.type][0].kind]
        yield (
            DATABASE, schema.namespace, schema.local, options.type, bits, 2, 0,
            *map(str, (options.start, options.minimum, options.maximum, options.increment)),
            _answer(options.cycle),
        )  # fmt: skip


def _identity(catalog: Catalog, column: Column) -> Row:
    """is_identity and the columns that follow it."""
    if column.identity is None:
        return "NO", None, None, None, None, None, "NO"
    found = [s.sequence for s in catalog.sequences if s.sequence and uses(column, s.name)]
    shown = [(o.start, o.increment, o.maximum, o.minimum, o.cycle) for o in found]
    for start, increment, maximum, minimum, cycle in shown[:1]:
        numbers = map(str, (start, increment, maximum, minimum))
        return "YES", column.identity.value, *numbers, _answer(cycle)
    return "YES", column.identity.value, None, None, None, None, "NO"


def _column(relation: Relation, place: int, column: Column, identity: Row) -> Row:
    t = column.type
    shown = column.default if column.identity is None else None
    default = None if shown is None else expression_shown(shown.text)
    generated = expression_shown(column.generated) if column.generated else None
    return (
        DATABASE, relation.schema, relation.name, column.name, place, default,
        _answer(column.nullable), data_type(t), t.length, _octets(t), *_number(t),
        _second_digits(t), _interval_type(t), None,
        None, None, None, None, None, None, None, None, None,
        DATABASE, _udt_schema(t), udt_name(t), None, None, None, None, str(place), "NO", *identity,
        "NEVER" if generated is None else "ALWAYS", generated,
        _answer(isinstance(relation.source, MapSchema)),
    )  # fmt: skip


def _udt_schema(t: SqlType) -> str:
    enum = (t.element or t).enum
    return "pg_catalog" if enum is None else enum.namespace


def _second_digits(t: SqlType) -> int | None:
    if t.kind in TIME_KINDS:
        return FRACTION_MAX if t.fraction is None else t.fraction
    return 0 if t.kind is Kind.DATE else None


def _interval_type(t: SqlType) -> str | None:
    """``DAY TO SECOND(3)``; PostgreSQL gives the fields only, with their digits."""
    return str(t).removeprefix("INTERVAL ") if t.span else None


def _octets(t: SqlType) -> int | None:
    if not t.is_text:
        return None
    return _TEXT_OCTETS_MAX if t.length is None else t.length * _OCTETS


def _number(t: SqlType) -> tuple[int | None, int | None, int | None]:
    """Precision, its radix, scale."""
    if t.kind in _INTEGER_BITS:
        return _INTEGER_BITS[t.kind], 2, 0
    if t.kind in _FLOAT_BITS:
        return _FLOAT_BITS[t.kind], 2, None
    if t.kind is Kind.DECIMAL:
        return t.precision, 10, t.scale
    return None, None, None


def views(catalog: Catalog) -> Iterator[Row]:
    for view in catalog.views:
        yield (
            DATABASE, view.namespace, view.local, view.text + ";", "NONE",
            "NO", "NO", "NO", "NO", "NO",
        )  # fmt: skip


def view_table_usage(catalog: Catalog) -> Iterator[Row]:
    for view in catalog.views:
        for name in view.uses:
            used = catalog.find(name) or catalog.find_view(name)
            if used is not None:
                found = used.namespace, used.local
                yield DATABASE, view.namespace, view.local, DATABASE, *found


def table_constraints(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.tables:
        keys = {key.name: key for key in schema.foreign_keys}
        for name, kind in _constraints(schema):
            key = keys.get(name)
            yield (
                DATABASE, schema.namespace, name, DATABASE, schema.namespace, schema.local,
                kind, _yes(key is not None and key.deferrable),
                _yes(key is not None and key.deferred), "YES",
                "YES" if kind == "UNIQUE" else None,
            )  # fmt: skip


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _constraints(schema: MapSchema) -> Iterator[tuple[str, str]]:
    if not schema.has_row_ids:
        yield schema.primary_key, "PRIMARY KEY"
    for index in schema.uniques:
        if index.constraint:
            yield index.name, "PRIMARY KEY" if index is schema.added_key else "UNIQUE"
    for check in schema.checks:
        yield check.name, "CHECK"
    for key in schema.foreign_keys:
        yield key.name, "FOREIGN KEY"
    for name, _ in _not_nulls(schema):
        yield name, "CHECK"


def _not_nulls(schema: MapSchema) -> Iterator[tuple[str, str]]:
    """PostgreSQL shows NOT NULL columns as CHECK constraints with names made of numbers."""
    for place, column in enumerate(schema.shown, 1):
        if not column.nullable:
            yield f"{SCHEMAS[PUBLIC]}_{schema.map_id}_{place}_not_null", column.name


def key_column_usage(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.tables:
        for constraint, columns in _keys(schema):
            for place, name in enumerate(columns, 1):
                yield (
                    DATABASE, schema.namespace, constraint, DATABASE, schema.namespace,
                    schema.local, name, place, None,
                )  # fmt: skip
        for key in schema.foreign_keys:
            parent = catalog.get(key.parent)
            order = _key_order(parent, key)
            for place, (name, other) in enumerate(
                zip(key.columns, key.parent_columns, strict=True), 1
            ):
                yield (
                    DATABASE, schema.namespace, key.name, DATABASE, schema.namespace,
                    schema.local, name, place, order.index(other) + 1,
                )  # fmt: skip


def _key_order(parent: MapSchema, key: ForeignKey) -> tuple[str, ...]:
    """The columns of the parent's constraint in its own order."""
    index = index_of(parent, key.parent_columns)
    if index is None or frozenset(key.parent_columns) == frozenset(parent.key):
        return parent.key
    return index.names


def referential_constraints(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.tables:
        for key in schema.foreign_keys:
            parent = catalog.get(key.parent)
            index = index_of(parent, key.parent_columns)
            name: str | None = parent.primary_key
            if frozenset(key.parent_columns) != frozenset(parent.key) and index is not None:
                name = index.name if index.constraint else None
            yield (
                DATABASE, schema.namespace, key.name, DATABASE, parent.namespace, name,
                "FULL" if key.full else "NONE",
                key.on_update.value, key.on_delete.value,
            )  # fmt: skip


def _keys(schema: MapSchema) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The constraints that name columns whose values no two rows share."""
    if not schema.has_row_ids:
        yield schema.primary_key, schema.key
    for index in schema.uniques:
        if index.constraint:
            yield index.name, index.names


def constraint_column_usage(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.tables:
        where = schema.namespace
        for constraint, columns in _keys(schema):
            for name in columns:
                yield DATABASE, where, schema.local, name, DATABASE, where, constraint
        for key in schema.foreign_keys:
            parent = catalog.get(key.parent)
            for name in key.parent_columns:
                yield DATABASE, parent.namespace, parent.local, name, DATABASE, where, key.name
        for check in schema.checks:
            for position in condition_columns(schema, check):
                name = schema.columns[position].name
                yield DATABASE, where, schema.local, name, DATABASE, where, check.name


def check_constraints(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.tables:
        for check in schema.checks:
            yield DATABASE, schema.namespace, check.name, f"({check.text})"
        for name, column in _not_nulls(schema):
            yield DATABASE, schema.namespace, name, f"{column} IS NOT NULL"


def _nothing(_catalog: Catalog) -> Iterable[Row]:
    return ()


ROWS: Final[dict[str, Callable[[Catalog], Iterable[Row]]]] = {
    "schemata": schemata,
    "information_schema_catalog_name": catalog_name,
    "tables": tables,
    "columns": columns,
    "views": views,
    "view_table_usage": view_table_usage,
    "table_constraints": table_constraints,
    "key_column_usage": key_column_usage,
    "constraint_column_usage": constraint_column_usage,
    "check_constraints": check_constraints,
    "referential_constraints": referential_constraints,
    "sequences": sequences,
    "routines": _nothing,
    "parameters": _nothing,
    "triggers": _nothing,
    "domains": _nothing,
    "user_defined_types": _nothing,
}
