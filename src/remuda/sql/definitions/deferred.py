"""SET CONSTRAINTS: the foreign keys that it names. Others are checked by each statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from remuda.datatypes.schema import MapSchema
from remuda.errors import UndefinedObject, WrongObjectType
from remuda.sql.definitions.foreign_keys import constraint_names
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import absent_schema
from remuda.sql.trees.session import SetConstraintsTree
from remuda.sql.trees.syntax import Name


def with_keys(context: Context, tree: SetConstraintsTree) -> SetConstraintsTree:
    """Raises UndefinedSchema, WrongObjectType for a constraint that cannot be deferred,
    UndefinedObject if there is none."""
    found: set[tuple[int, str]] = set()
    for name in tree.names or ():
        found.update(_keys(context, name))
    return replace(tree, keys=frozenset(found))


def _keys(context: Context, name: Name) -> set[tuple[int, str]]:
    """Of the first schema of the search path that has a constraint of this name."""
    absent = absent_schema(context, name)
    if absent is not None:
        raise absent
    for namespace in (name.schema,) if name.schema else context.path:
        having = [s for s in _maps(context, namespace) if name.text in constraint_names(s)]
        if not having:
            continue
        found = {
            (schema.map_id, key.name)
            for schema in having
            for key in schema.foreign_keys
            if key.name == name.text and key.deferrable
        }
        if not found:
            raise WrongObjectType(
                f'constraint "{name.shown}" is not deferrable',
                position=name.position,
                statement=context.text,
                hint="A FOREIGN KEY that is DEFERRABLE can be deferred.",
            )
        return found
    raise UndefinedObject(
        f'constraint "{name.shown}" does not exist',
        position=name.position,
        statement=context.text,
    )


def _maps(context: Context, namespace: str) -> Iterator[MapSchema]:
    for map_name in context.catalog.names():
        schema = context.catalog.find(map_name)
        if schema is not None and schema.namespace == namespace:
            yield schema
