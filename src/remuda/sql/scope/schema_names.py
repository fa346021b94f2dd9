"""Names with a schema: ``public.flights``, ``information_schema.tables``, ``pg_class``."""

from __future__ import annotations

from remuda.catalog.system_relations import (
    DATABASE,
    PUBLIC,
    SYSTEM,
    SystemRelation,
    system_relation,
)
from remuda.errors import NotSupported, UndefinedMap, UndefinedSchema
from remuda.plan.logical import Supplied
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.supplied import supplied
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast


def schema_name(context: Context, node: ast.Node) -> str | None:
    """The schema that a relation (or the qualifier of a column) is written with, None without one.
    Raises UndefinedSchema, and NotSupported for another database."""
    db = node.args.get("db")
    catalog = node.args.get("catalog")
    if catalog is not None and identifier(catalog) != DATABASE:
        raise context.error(NotSupported, "cross-database references are not implemented", catalog)
    if db is None:
        return None
    name = identifier(db)
    if name != PUBLIC and name not in SYSTEM:
        raise context.error(
            UndefinedSchema,
            f'schema "{name}" does not exist',
            db,
            hint=did_you_mean(name, (PUBLIC, *SYSTEM)) or "Maps and views are in schema public.",
        )
    return name


def check_qualifier(context: Context, node: ast.Column) -> None:
    """``schema.relation.column`` names a schema that there is. Raises UndefinedMap."""
    db = node.args.get("db")
    if db is not None and identifier(db) not in (PUBLIC, *SYSTEM):
        table = identifier(node.args["table"])
        raise context.error(
            UndefinedMap,
            f'missing FROM-clause entry for table "{table}"',
            node,
            hint=f'"{identifier(db)}" is no schema.',
        )


def system_scan(
    context: Context, schema: str | None, name: str, node: ast.Node, alias: str
) -> Supplied | None:
    """The rows of a system relation; None if the name means a map or a view. Raises UndefinedMap
    for one that its schema does not have."""
    if schema == PUBLIC:
        return None
    found = system_relation(schema, name)
    if found is None:
        if schema is None:
            return None
        raise context.error(
            UndefinedMap,
            f'relation "{schema}.{name}" does not exist',
            node,
            hint=did_you_mean(name, SYSTEM[schema]),
        )
    return _scan(context, found, alias)


def _scan(context: Context, relation: SystemRelation, alias: str) -> Supplied:
    return supplied(context, relation.qualified, relation.columns, alias=alias)
