"""ANALYZE and VACUUM [map [(column, ...)], ...], REINDEX [name]"""

from __future__ import annotations

from remuda.datatypes.schema import MapSchema
from remuda.errors import UndefinedColumn, UndefinedMap, UndefinedObject
from remuda.sql.definitions.index_definitions import find_index
from remuda.sql.scope.context import Context
from remuda.sql.scope.statements import AnalyzeStatement, told
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import AnalyzeTree


def bind_analyze(context: Context, tree: AnalyzeTree) -> AnalyzeStatement:
    """Columns are looked up, but the statistics of all of them are taken together."""
    catalog = context.catalog
    for name in tree.indexes:
        known = context.relation(name)
        if not isinstance(known, MapSchema) and find_index(context, name) is None:
            raise UndefinedObject(
                f'there is no map or index "{name.text}"',
                position=name.position,
                hint=did_you_mean(name.text, told(catalog).names()),
            )
    found: dict[str, MapSchema] = {}
    for name, columns in tree.maps:
        schema = context.relation(name)
        if not isinstance(schema, MapSchema):
            raise UndefinedMap(
                f'map "{name.shown}" does not exist',
                position=name.position,
                hint=did_you_mean(name.text, told(catalog).names()),
            )
        for column in columns:
            if column.text not in schema.position:
                raise UndefinedColumn(
                    f'column "{column.text}" of map "{schema.name}" does not exist',
                    position=column.position,
                    hint=did_you_mean(column.text, schema.position),
                )
        found[schema.name] = schema
    if not tree.maps:
        every = (catalog.find(name) for name in catalog.names())
        found = {schema.name: schema for schema in every if schema is not None}
    return AnalyzeStatement(tuple(found.values()) if tree.measures else (), tree.tag)
