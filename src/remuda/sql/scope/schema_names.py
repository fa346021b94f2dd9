"""Names with a schema: ``public.flights``, ``information_schema.tables``, ``pg_class``."""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.system_relations import SYSTEM, SystemRelation
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import NotSupported, UndefinedMap
from remuda.plan.logical import Supplied
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.resolution import exists, find_any, namespaces, reference
from remuda.sql.scope.supplied import supplied
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast


def schema_name(context: Context, node: ast.Node) -> str | None:
    """The schema that a relation (or the qualifier of a column) is written with, None without one.
    Raises NotSupported for another database."""
    db = node.args.get("db")
    catalog = node.args.get("catalog")
    if catalog is not None and identifier(catalog) not in context.databases:
        raise context.error(
            NotSupported,
            "cross-database references are not implemented",
            catalog,
            hint="Leave out the name of the database.",
        )
    return None if db is None else identifier(db)


def written(node: ast.Table) -> str:
    """The name of a relation as messages have it: with the schema that it is written with."""
    db = node.args.get("db")
    local = identifier(node.this)
    return local if db is None else f"{identifier(db)}.{local}"


def relation_named(
    context: Context, node: ast.Table
) -> MapSchema | ViewDefinition | SystemRelation | None:
    """The relation that a query or a change names. Raises NotSupported for another database,
    UndefinedMap where a schema does not have it."""
    schema, local = schema_name(context, node) or "", identifier(node.this)
    catalog = context.catalog
    found = find_any(catalog, context.path, schema, local)
    if found is None and schema in SYSTEM:
        raise context.error(
            UndefinedMap,
            f'relation "{schema}.{local}" does not exist',
            node.this,
            hint=did_you_mean(local, SYSTEM[schema]),
        )
    if found is None and schema and not exists(catalog, schema):
        raise context.error(
            UndefinedMap,
            f'relation "{schema}.{local}" does not exist',
            node.args["db"],
            hint=f'There is no schema "{schema}". '
            + (did_you_mean(schema, namespaces(catalog)) or "CREATE SCHEMA makes one."),
        )
    if context.kept is not None and found is not None and not isinstance(found, SystemRelation):
        first = node.args.get("catalog") or node.args.get("db") or node.this
        kept = reference(catalog, found, schema, first.start, node.this.end)
        if "catalog" in node.args:  # other sessions call the database otherwise
            kept = replace(kept, plain=False)
        context.kept.references.append(kept)
    return found


def check_qualifier(context: Context, node: ast.Column) -> None:
    """``schema.relation.column`` names a schema that there is. Raises UndefinedMap."""
    db = node.args.get("db")
    if db is not None and not exists(context.catalog, identifier(db)):
        table = identifier(node.args["table"])
        raise context.error(
            UndefinedMap,
            f'missing FROM-clause entry for table "{table}"',
            node,
            hint=f'"{identifier(db)}" is no schema.',
        )


def system_scan(context: Context, relation: SystemRelation, alias: str) -> Supplied:
    """The rows of a system relation."""
    return supplied(context, relation.qualified, relation.columns, alias=alias)
