"""COMMENT ON: parsed trees -> statements checked against the catalog."""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.edits import PutMap, PutView
from remuda.datatypes.schema import HIDDEN, MapSchema, ViewDefinition
from remuda.errors import UndefinedObject
from remuda.sql.definitions.index_definitions import find_index
from remuda.sql.definitions.schemas import kind_of, map_of, missing, wrong_kind
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import known_name
from remuda.sql.scope.statements import CatalogStatement, told
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import CommentTree, Name


def bind_comment(context: Context, tree: CommentTree) -> CatalogStatement:
    """Raises UndefinedMap, UndefinedColumn, UndefinedObject, WrongObjectType."""
    commented: MapSchema | ViewDefinition
    match tree:
        case CommentTree(kind="INDEX"):
            commented = _index(context, tree)
        case CommentTree(kind="CONSTRAINT", part=Name() as constraint):
            commented = _constraint(context, map_of(context, tree.name), constraint, tree.comment)
        case _:
            commented = _relation(context, tree)
    edit = PutMap(commented) if isinstance(commented, MapSchema) else PutView(commented)
    return CatalogStatement("COMMENT", context.catalog.version, (edit,))


def _relation(context: Context, tree: CommentTree) -> MapSchema | ViewDefinition:
    found = context.relation(tree.name)
    if found is None:
        raise missing(context, tree.name, "VIEW" if tree.kind == "VIEW" else "TABLE")
    if tree.kind != "COLUMN" and kind_of(found) != tree.kind:
        raise placed(context, wrong_kind(found, tree.kind), tree.name)
    if tree.part is None:
        return replace(found, comment=tree.comment)
    names = [column.name for column in found.columns if column.name not in HIDDEN]
    name = known_name(context, tree.part, names, found.name)
    columns = tuple(
        replace(column, comment=tree.comment) if column.name == name else column
        for column in found.columns
    )
    return replace(found, columns=columns)


def _index(context: Context, tree: CommentTree) -> MapSchema:
    name = tree.name.text
    schema = find_index(context, tree.name)
    if schema is not None:
        indexes = tuple(
            replace(index, comment=tree.comment) if index.name == name else index
            for index in schema.indexes
        )
        return replace(schema, indexes=indexes)
    for map_name in context.catalog.names():
        schema = context.catalog.find(map_name)
        if (
            schema is not None
            and not schema.has_row_ids
            and schema.primary_key == name
            and schema.namespace in ((tree.name.schema,) if tree.name.schema else context.path)
        ):
            return replace(schema, key_index_comment=tree.comment)
    every = [
        index.name
        for map_name in told(context.catalog).names()
        if (known := context.catalog.find(map_name)) is not None
        for index in known.indexes
    ]
    problem = UndefinedObject(f'index "{name}" does not exist', hint=did_you_mean(name, every))
    raise placed(context, problem, tree.name)


def _constraint(context: Context, schema: MapSchema, name: Name, comment: str) -> MapSchema:
    if not schema.has_row_ids and schema.primary_key == name.text:
        return replace(schema, key_comment=comment)
    indexes = tuple(
        replace(index, constraint_comment=comment)
        if index.constraint and index.name == name.text
        else index
        for index in schema.indexes
    )
    checks = tuple(
        replace(check, comment=comment) if check.name == name.text else check
        for check in schema.checks
    )
    foreign_keys = tuple(
        replace(key, comment=comment) if key.name == name.text else key
        for key in schema.foreign_keys
    )
    known = [
        *([] if schema.has_row_ids else [schema.primary_key]),
        *(index.name for index in schema.indexes if index.constraint),
        *(check.name for check in schema.checks),
        *(key.name for key in schema.foreign_keys),
    ]
    if name.text not in known:
        problem = UndefinedObject(
            f'constraint "{name.text}" for table "{schema.name}" does not exist',
            hint=did_you_mean(name.text, known),
        )
        raise placed(context, problem, name)
    return replace(schema, indexes=indexes, checks=checks, foreign_keys=foreign_keys)
