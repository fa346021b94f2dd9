"""CREATE INDEX, DROP INDEX and SHOW INDEXES: parsed trees -> statements checked against the
catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from remuda.catalog.edits import PutMap
from remuda.catalog.indexes import check
from remuda.catalog.pg_objects import METHODS
from remuda.catalog.pg_operator_classes import accepts
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    DependentObjects,
    DuplicateMap,
    InvalidDefinition,
    RemudaError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
    UndefinedObject,
)
from remuda.sql.definitions.schemas import map_of
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import absent_schema
from remuda.sql.scope.notices import Notice, not_there
from remuda.sql.scope.resolution import found_in
from remuda.sql.scope.statements import (
    CatalogStatement,
    CreateIndexStatement,
    DropIndexStatement,
    told,
)
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.names import Name
from remuda.sql.trees.syntax import AlterTree, CreateIndexTree, DropIndexTree, Rename

NAME_LENGTH_MAX: Final = 255


def bind_create_index(context: Context, tree: CreateIndexTree) -> CreateIndexStatement:
    schema = map_of(context, tree.target)
    text = tree.name.text if tree.name is not None else _free_name(context, schema, tree)
    place = tree.name or tree.target
    columns = tuple(
        IndexedColumn(name.text, down)
        for name, down in zip(tree.columns, tree.descending, strict=True)
    )
    definition = IndexDefinition(
        text, tree.kind, columns, unique=tree.unique, nulls_distinct=tree.nulls_distinct
    )
    existing = index_in(context, schema.namespace, text)
    if existing is not None and not tree.if_not_exists:
        raise DuplicateMap(
            f'index "{text}" exists already',
            position=place.position,
            statement=context.text,
            hint="CREATE INDEX IF NOT EXISTS keeps the existing index.",
        )
    if found_in(context.catalog, schema.namespace, text) is not None:
        raise DuplicateMap(
            f'relation "{text}" already exists', position=place.position, statement=context.text
        )
    if len(text) > NAME_LENGTH_MAX:
        raise InvalidDefinition(
            f"the name of an index has 1 to {NAME_LENGTH_MAX} characters",
            position=place.position,
            statement=context.text,
        )
    for name in (*tree.columns, *tree.included):
        if name.text not in schema.position:
            raise UndefinedColumn(
                f'column "{name.text}" does not exist',
                position=name.position,
                statement=context.text,
                hint=did_you_mean(name.text, schema.position),
            )
    _check_operator_classes(context, tree, schema)
    try:
        check(schema, definition)
    except RemudaError as error:
        raise error.at(tree.columns[0].position, context.text) from error.__cause__
    return CreateIndexStatement(schema, definition, existing is not None, tree.concurrently)


def _check_operator_classes(context: Context, tree: CreateIndexTree, schema: MapSchema) -> None:
    """Those that are named compare as the index does, or are refused."""
    kind = "btree" if tree.kind is IndexKind.SORTED else tree.kind.value
    for column, name in zip(tree.columns, tree.operator_classes, strict=True):
        if name is None:
            continue
        column_type = schema.column(column.text).type
        found = accepts(METHODS[kind], name.text, column_type)
        if found is None or name.schema not in ("", "pg_catalog"):
            raise UndefinedObject(
                f'operator class "{name.shown}" does not exist for access method "{kind}"',
                position=name.position,
                statement=context.text,
                hint="Leave it out: an index compares as its column does.",
            )
        if not found:
            raise TypeMismatch(
                f'operator class "{name.shown}" does not accept data type {column_type}',
                position=name.position,
                statement=context.text,
                hint="Leave it out: an index compares as its column does.",
            )


def _free_name(context: Context, schema: MapSchema, tree: CreateIndexTree) -> str:
    """As PostgreSQL names an index that has no name."""
    base = "_".join([schema.local, *(name.text for name in tree.columns), "idx"])[:NAME_LENGTH_MAX]
    name, number = base, 0
    while index_in(context, schema.namespace, name) is not None:
        number += 1
        name = f"{base}{number}"
    return name


def index_in(context: Context, namespace: str, name: str) -> MapSchema | None:
    """The map of the schema that has an index of this name. An index is in the schema of its
    map."""
    for map_name in context.catalog.names():
        schema = context.catalog.find(map_name)
        if (
            schema is not None
            and schema.namespace == namespace
            and any(index.name == name for index in schema.indexes)
        ):
            return schema
    return None


def find_index(context: Context, name: Name) -> MapSchema | None:
    """The map that has the index which a statement names."""
    for namespace in (name.schema,) if name.schema else context.path:
        found = index_in(context, namespace, name.text)
        if found is not None:
            return found
    return None


def bind_drop_index(context: Context, tree: DropIndexTree) -> DropIndexStatement:
    found: list[tuple[int, str]] = []
    notices: list[Notice] = []
    target = None if tree.target is None else map_of(context, tree.target)
    for name in tree.names:
        schema = find_index(context, name)
        if schema is not None and target is not None and schema.map_id != target.map_id:
            schema = None
        if schema is not None and any(
            index.constraint for index in schema.indexes if index.name == name.text
        ):
            raise DependentObjects(
                f'cannot drop index "{name.text}" because constraint "{name.text}" on map '
                f'"{schema.name}" requires it',
                position=name.position,
                statement=context.text,
                hint="ALTER TABLE ... DROP CONSTRAINT drops both.",
            )
        if schema is not None:
            found.append((schema.map_id, name.text))
        elif tree.if_exists:
            absent = absent_schema(context, name) is not None
            notices.append(
                not_there(*(("schema", name.schema) if absent else ("index", name.text)))
            )
        elif (error := absent_schema(context, name)) is not None:
            raise error
        else:
            every = [
                index.name
                for map_name in told(context.catalog).names()
                if (known := context.catalog.find(map_name)) is not None
                for index in known.indexes
            ]
            raise UndefinedObject(
                f'index "{name.shown}" does not exist',
                position=name.position,
                statement=context.text,
                hint=did_you_mean(name.text, every),
            )
    return DropIndexStatement(tuple(found), tree.if_exists, tuple(notices), tree.concurrently)


def _own_key(schema: MapSchema) -> str | None:
    """The name of the primary key of the map's own key columns, which is no index here, but one
    in PostgreSQL's catalog. None: it has no such key."""
    return None if schema.has_row_ids else schema.primary_key


def _added_key(schema: MapSchema) -> str | None:
    return None if schema.added_key is None else schema.added_key.name


def _of_key(context: Context, name: Name) -> MapSchema | None:
    """The map whose own primary key has this name."""
    namespaces = (name.schema,) if name.schema else context.path
    found = (_key_in(context, namespace, name.text) for namespace in namespaces)
    return next((schema for schema in found if schema is not None), None)


def _key_in(context: Context, namespace: str, name: str) -> MapSchema | None:
    every = (context.catalog.find(map_name) for map_name in context.catalog.names())
    known = (s for s in every if s is not None and s.namespace == namespace)
    return next((schema for schema in known if _own_key(schema) == name), None)


def bind_rename_index(context: Context, tree: AlterTree) -> CatalogStatement:
    """``ALTER INDEX name RENAME TO name``. A constraint is called as its index. Every other action
    changes nothing."""
    (action,) = tree.actions
    version = context.catalog.version
    schema = find_index(context, tree.name) or _of_key(context, tree.name)
    if schema is None and tree.if_exists:
        skipped = not_there("relation", tree.name.text)
        return CatalogStatement("ALTER INDEX", version, (), notices=(skipped,))
    if schema is None:
        raise UndefinedMap(
            f'relation "{tree.name.shown}" does not exist',
            position=tree.name.position,
            statement=context.text,
        )
    if not isinstance(action, Rename):
        return CatalogStatement("ALTER INDEX", version, ())
    old, new = tree.name.text, action.new.text
    namespace = schema.namespace
    if index_in(context, namespace, new) is not None or _key_in(context, namespace, new):
        raise DuplicateMap(
            f'index "{new}" exists already', position=action.new.position, statement=context.text
        )
    if len(new) > NAME_LENGTH_MAX:
        raise InvalidDefinition(
            f"the name of an index has 1 to {NAME_LENGTH_MAX} characters",
            position=action.new.position,
            statement=context.text,
        )
    renamed = replace(
        schema,
        key_name=new if old in (_own_key(schema), _added_key(schema)) else schema.key_name,
        indexes=tuple(replace(i, name=new) if i.name == old else i for i in schema.indexes),
    )
    return CatalogStatement("ALTER INDEX", version, (PutMap(renamed),))
