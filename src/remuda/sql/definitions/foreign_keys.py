"""FOREIGN KEY and REFERENCES: a map whose rows name rows of another one (decision 0108)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from remuda.catalog.edits import DropMap, Edit, PutMap
from remuda.catalog.foreign_keys import is_key, refuse
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.schema import PG_TEMP, ForeignKey, KeyAction, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.violations import missing_parent
from remuda.errors import (
    DuplicateObject,
    InvalidColumnReference,
    InvalidForeignKey,
    NotSupported,
    RemudaError,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedObject,
)
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.statements import CatalogReader, Verification
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import ForeignKeyDefinition, Name

MapOf = Callable[[Context, Name], MapSchema]
"""The map that a definition names."""


def with_foreign_keys(
    context: Context,
    schema: MapSchema,
    definitions: Sequence[ForeignKeyDefinition],
    map_of: MapOf,
) -> MapSchema:
    """``schema`` with more foreign keys, named as PostgreSQL names them. Raises UndefinedColumn,
    UndefinedMap, UndefinedObject, InvalidForeignKey, TypeMismatch, DuplicateObject,
    NotSupported."""
    for definition in definitions:
        key = _bound(context, schema, definition, map_of)
        schema = replace(schema, foreign_keys=(*schema.foreign_keys, key))
    return schema


def _bound(
    context: Context, schema: MapSchema, definition: ForeignKeyDefinition, map_of: MapOf
) -> ForeignKey:
    columns = tuple(_column(context, schema, name) for name in definition.columns)
    parent = _parent(context, schema, definition.parent, map_of)
    others = _parent_columns(context, parent, definition)
    if len(columns) != len(others):
        error = InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree"
        )
        raise placed(context, error, definition.columns[0])
    if not is_key(parent, others):
        no_key = InvalidForeignKey(
            "there is no unique constraint matching given keys for referenced table "
            f'"{parent.local}"'
        )
        raise placed(context, no_key, definition.parent)
    name = _name(context, schema, definition, columns)
    for column, other in zip(columns, others, strict=True):
        _compare(context, schema, parent, (name, column, other), definition.columns[0])
    try:
        refuse(parent, is_parent=True)
        refuse(schema, is_parent=False)
    except RemudaError as problem:
        raise placed(context, problem, definition.parent) from None
    set_columns = _set_columns(context, schema, definition, columns)
    return ForeignKey(
        name,
        columns,
        parent.name,
        others,
        definition.on_delete,
        definition.on_update,
        parent.namespace,
        set_columns,
        full=definition.full,
        valid=definition.valid or not schema.map_id,  # a new map has no rows
        deferrable=definition.deferrable,
        deferred=definition.deferred,
    )


def _set_columns(
    context: Context,
    schema: MapSchema,
    definition: ForeignKeyDefinition,
    columns: Sequence[str],
) -> tuple[str, ...]:
    """The columns that ON DELETE sets, each once, if it does not set all. Raises UndefinedColumn,
    InvalidColumnReference for other columns, SqlSyntaxError for actions that would change a
    generated column."""
    for name in definition.set_columns:
        if _column(context, schema, name) not in columns:
            error = InvalidColumnReference(
                f'column "{name.text}" referenced in ON DELETE SET action must be part of foreign '
                "key"
            )
            raise placed(context, error, name)
    if any(schema.column(name).generated for name in columns):
        changes = {
            "DELETE": not (
                definition.on_delete.refuses or definition.on_delete is KeyAction.CASCADE
            ),
            "UPDATE": not definition.on_update.refuses,
        }
        for event, changed in changes.items():
            if changed:
                problem = SqlSyntaxError(
                    f"invalid ON {event} action for foreign key constraint containing generated "
                    "column",
                    hint="Write NO ACTION or RESTRICT.",
                )
                raise placed(context, problem, definition.columns[0])
    return tuple(dict.fromkeys(name.text for name in definition.set_columns))


def _column(context: Context, schema: MapSchema, name: Name) -> str:
    names = [column.name for column in schema.shown]
    if name.text not in names:
        error = UndefinedColumn(
            f'column "{name.text}" referenced in foreign key constraint does not exist',
            hint=did_you_mean(name.text, names),
        )
        raise placed(context, error, name)
    return name.text


def _parent(context: Context, schema: MapSchema, name: Name, map_of: MapOf) -> MapSchema:
    """A map that is just being made may be its own parent."""
    if not schema.map_id and _is_own(context, schema, name):
        return schema
    found = context.relation(name)
    if found is not None and found.name == schema.name:
        return schema
    return map_of(context, name)


def _is_own(context: Context, schema: MapSchema, name: Name) -> bool:
    """Whether ``name`` means the map that is being made: no other one is found before it."""
    if name.text != schema.local or name.schema:
        return name.text == schema.local and name.schema == schema.namespace
    if schema.namespace in (PG_TEMP, *context.path[:1]):
        return True
    found = context.relation(name)
    return schema.namespace in context.path and (
        found is None or context.path.index(found.namespace) > context.path.index(schema.namespace)
    )


def _parent_columns(
    context: Context, parent: MapSchema, definition: ForeignKeyDefinition
) -> tuple[str, ...]:
    if definition.parent_columns:
        columns = tuple(_column(context, parent, name) for name in definition.parent_columns)
        if len(set(columns)) < len(columns):
            repeated = InvalidForeignKey(
                "foreign key referenced-columns list must not contain duplicates"
            )
            raise placed(context, repeated, definition.parent_columns[0])
        return columns
    if not parent.has_row_ids:
        return parent.key
    if parent.added_key is not None:
        return parent.added_key.names
    error = UndefinedObject(f'there is no primary key for referenced table "{parent.local}"')
    raise placed(context, error, definition.parent)


def _name(
    context: Context,
    schema: MapSchema,
    definition: ForeignKeyDefinition,
    columns: Sequence[str],
) -> str:
    taken = constraint_names(schema)
    if definition.name is not None:
        if definition.name.text in taken:
            error = DuplicateObject(
                f'constraint "{definition.name.text}" for map "{schema.name}" already exists'
            )
            raise placed(context, error, definition.name)
        return definition.name.text
    base = name = "_".join([schema.local, *columns, "fkey"])
    number = 0
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name


def constraint_names(schema: MapSchema) -> set[str]:
    """Those that are taken in a map."""
    names = {schema.primary_key, *(check.name for check in schema.checks)}
    names.update(index.name for index in schema.uniques)
    names.update(key.name for key in schema.foreign_keys)
    return names


def _compare(
    context: Context,
    schema: MapSchema,
    parent: MapSchema,
    names: tuple[str, str, str],
    place: Name,
) -> None:
    """``names``: of the constraint, the column of the child and that of the parent."""
    constraint, column, other = names
    child_type, parent_type = schema.column(column).type, parent.column(other).type
    if _compares(child_type, parent_type):
        return
    detail = (
        f'Key columns "{column}" and "{other}" are of incompatible types: '
        f"{child_type} and {parent_type}."
    )
    message = f'foreign key constraint "{constraint}" cannot be implemented'
    error: RemudaError = TypeMismatch(message, detail=detail)
    if _alike(child_type, parent_type):
        error = NotSupported(message, detail=detail, hint="Give both columns one type.")
    raise placed(context, error, place)


def _compares(child: SqlType, parent: SqlType) -> bool:
    """Whether values of the two types are equal exactly if they are stored as the same value."""
    if child.is_integer or child.kind is Kind.VARCHAR:
        return parent.is_integer if child.is_integer else parent.kind is Kind.VARCHAR
    return child == parent


def _alike(child: SqlType, parent: SqlType) -> bool:
    """Whether SQL compares values of the types, which are stored differently."""
    return (child.is_text and parent.is_text) or (child.is_numeric and parent.is_numeric)


# --- rows that are there -------------------------------------------------------------------------


def verification(schema: MapSchema, key: ForeignKey, parent: MapSchema) -> Verification:
    """Finds rows that are there and name no row of the parent."""
    shown = ", ".join(f"c.{quoted_name(name)}" for name in key.columns)
    present = " AND ".join(f"c.{quoted_name(name)} IS NOT NULL" for name in key.columns)
    absent = " AND ".join(f"c.{quoted_name(name)} IS NULL" for name in key.columns)
    mixed = f"(NOT ({present}) AND NOT ({absent})) OR " if key.full else ""
    same = " AND ".join(
        f"p.{quoted_name(other)} = c.{quoted_name(name)}"
        for name, other in zip(key.columns, key.parent_columns, strict=True)
    )
    return Verification(
        f"SELECT {shown} FROM {sql_name(schema)} AS c WHERE {mixed}({present} "  # noqa: S608 (quoted)
        f"AND NOT EXISTS (SELECT 1 FROM {sql_name(parent)} AS p WHERE {same})) LIMIT 1",
        partial(missing_parent, schema, key, parent.local),
        tuple(schema.column(name).type for name in key.columns),
    )


def parent_of(catalog: CatalogReader, schema: MapSchema, key: ForeignKey) -> MapSchema:
    """The parent of a foreign key of ``schema``, which may be newer than the one in the catalog."""
    found = catalog.find(key.parent)
    return schema if found is None or key.parent == schema.name else found


def keep_comparable(context: Context, schema: MapSchema, name: Name, new: SqlType) -> None:
    """The columns of foreign keys are compared as they are stored. Raises NotSupported for a column
    of one that is about to get another type."""
    used = {column for key in schema.foreign_keys for column in key.columns}
    for child in _maps(context.catalog):
        for key in child.foreign_keys:
            if key.parent == schema.name:
                used.update(key.parent_columns)
    if name.text in used:
        error = NotSupported(
            f'the type of column "{name.text}", which is in a foreign key, cannot become {new}',
            hint="Drop the foreign key, change the types of both columns, and add it again.",
        )
        raise placed(context, error, name)


def _maps(catalog: CatalogReader) -> list[MapSchema]:
    return [found for name in catalog.names() if (found := catalog.find(name)) is not None]


# --- what goes with a parent ---------------------------------------------------------------------


def without_children(catalog: CatalogReader, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """``edits``, and for CASCADE the removal of the foreign keys that name what they take away."""
    gone = {edit.name for edit in edits if isinstance(edit, DropMap)}
    put = {edit.schema.name: edit.schema for edit in edits if isinstance(edit, PutMap)}
    found = list(edits)
    for schema in _maps(catalog):
        if schema.name in gone or not schema.foreign_keys:
            continue
        child = put.get(schema.name, schema)
        left = tuple(_left(child.foreign_keys, gone, put))
        if left == child.foreign_keys:
            continue
        if child is not schema:
            found.remove(PutMap(child))
        found.append(PutMap(replace(child, foreign_keys=left)))
    return tuple(found)


def truncated_with(
    context: Context, schemas: Sequence[MapSchema], *, cascade: bool
) -> list[MapSchema]:
    """The maps whose rows name rows of ``schemas``: they are truncated, too, if ``cascade``. Raises
    NotSupported."""
    found = {schema.name: schema for schema in schemas}
    added: list[MapSchema] = []
    waiting = list(schemas)
    while waiting:
        parent = waiting.pop(0)
        for child in _maps(context.catalog):
            named = any(key.parent == parent.name for key in child.foreign_keys)
            if not named or child.name in found:
                continue
            if not cascade:
                raise NotSupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                    detail=f'Table "{child.local}" references "{parent.local}".',
                    hint=f'Truncate table "{child.local}" at the same time, or use TRUNCATE ... '
                    "CASCADE.",
                )
            found[child.name] = child
            added.append(child)
            waiting.append(child)
    return added


def _left(
    keys: Sequence[ForeignKey], gone: Collection[str], put: dict[str, MapSchema]
) -> Iterator[ForeignKey]:
    for key in keys:
        parent = put.get(key.parent)
        if key.parent in gone or (parent is not None and not is_key(parent, key.parent_columns)):
            continue
        yield key
