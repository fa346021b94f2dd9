"""The elements of CREATE SCHEMA: they are made together with the schema, or nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from remuda.catalog.edits import Edit, PutMap
from remuda.catalog.indexes import with_index
from remuda.datatypes.schema import MapSchema
from remuda.errors import InvalidSchemaDefinition
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.overlay import Overlay
from remuda.sql.scope.statements import (
    BoundStatement,
    CatalogStatement,
    CreateIndexStatement,
    CreateMapStatement,
    NumbersFrom,
    PrivilegeStatement,
)
from remuda.sql.trees.names import Name
from remuda.sql.trees.privileges import PrivilegeTree
from remuda.sql.trees.sequences import CreateSequenceTree
from remuda.sql.trees.syntax import CreateIndexTree, CreateTree, CreateViewTree, SchemaElement

_ORDER: Final = (CreateSequenceTree, CreateTree, CreateViewTree, CreateIndexTree, PrivilegeTree)
"""As in PostgreSQL, so that views and indexes may come before their tables."""


def bind_elements(
    context: Context,
    made: CatalogStatement,
    namespace: str,
    elements: Iterable[SchemaElement],
    bind: Callable[[Context, SchemaElement], BoundStatement],
) -> CatalogStatement:
    """``made`` makes the schema. Raises InvalidSchemaDefinition for the name of another schema, and
    the errors of ``bind``."""
    catalog, path = context.catalog, context.path
    edits: list[Edit] = list(made.edits)
    notices: list[Notice] = list(made.notices)
    numbers: list[NumbersFrom] = []
    grants: list[PrivilegeStatement] = []
    context.path = (namespace, *path)
    try:
        for element in sorted(elements, key=lambda each: _ORDER.index(type(each))):
            context.catalog = Overlay(catalog, edits)
            bound = bind(context, _inside(context, namespace, element))
            match bound:
                case PrivilegeStatement():
                    grants.append(bound)
                    continue
                case CreateMapStatement(schema=schema):
                    _put(edits, [PutMap(schema)])
                case CreateIndexStatement(schema=schema, definition=definition, exists=exists):
                    _put(edits, [] if exists else [PutMap(with_index(schema, definition))])
                case CatalogStatement():
                    _put(edits, bound.edits)
                    numbers += bound.numbers
                case _:
                    raise AssertionError(f"{type(bound).__name__} is no element of a schema")
            notices += bound.notices
    finally:
        context.catalog, context.path = catalog, path
    return replace(
        made,
        edits=tuple(edits),
        notices=tuple(notices),
        numbers=tuple(numbers),
        grants=tuple(grants),
    )


def _inside(context: Context, namespace: str, element: SchemaElement) -> SchemaElement:
    """``element`` with the name of the schema in front of its own name."""
    match element:
        case CreateIndexTree(target=target):
            return replace(element, target=_placed(context, namespace, target))
        case PrivilegeTree():
            return element
        case _:
            return replace(element, name=_placed(context, namespace, element.name))


def _placed(context: Context, namespace: str, name: Name) -> Name:
    if name.schema not in ("", namespace):
        error = InvalidSchemaDefinition(
            f"CREATE specifies a schema ({name.schema}) different from the one being created "
            f"({namespace})",
            hint="Leave the schema out of the names of the elements.",
        )
        raise placed(context, error, name)
    return replace(name, schema=namespace)


def _put(edits: list[Edit], more: Iterable[Edit]) -> None:
    """A map that is new in the same statement has no id yet: it is replaced by its name."""
    for edit in more:
        if isinstance(edit, PutMap) and not edit.schema.map_id:
            same = [place for place, known in enumerate(edits) if _makes(known, edit.schema)]
            if same:
                edits[same[0]] = edit
                continue
        edits.append(edit)


def _makes(edit: Edit, schema: MapSchema) -> bool:
    return isinstance(edit, PutMap) and edit.schema.name == schema.name
