"""SET CONSTRAINTS: every constraint is checked by the statement that changes its rows, so that none
can be deferred."""

from __future__ import annotations

from remuda.errors import UndefinedObject, WrongObjectType
from remuda.sql.scope.context import Context
from remuda.sql.trees.session import SetConstraintsTree


def refuse_to_defer(context: Context, tree: SetConstraintsTree) -> None:
    """Raises WrongObjectType for a constraint that is named, UndefinedObject if there is none."""
    for name in tree.names or ():
        namespaces = (name.schema,) if name.schema else context.path
        if any(name.text in _constraints(context, namespace) for namespace in namespaces):
            raise WrongObjectType(
                f'constraint "{name.shown}" is not deferrable',
                position=name.position,
                statement=context.text,
                hint="Every constraint is checked at once: leave the statement out.",
            )
        raise UndefinedObject(
            f'constraint "{name.shown}" does not exist',
            position=name.position,
            statement=context.text,
        )


def _constraints(context: Context, namespace: str) -> set[str]:
    """Names of the constraints of a schema."""
    found: set[str] = set()
    for map_name in context.catalog.names():
        schema = context.catalog.find(map_name)
        if schema is not None and schema.namespace == namespace:
            found.update(check.name for check in schema.checks)
            found.update(index.name for index in schema.uniques if index.constraint)
            found.add(schema.primary_key)
    return found
