"""Rows to be inserted: the columns that they give."""

from __future__ import annotations

from remuda.datatypes.schema import MapSchema
from remuda.errors import DuplicateColumn, UndefinedColumn
from remuda.sql.scope.context import Context, identifier
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast


def insert_positions(context: Context, schema: MapSchema, names: list[ast.Node]) -> list[int]:
    if not names:
        return [schema.position[column.name] for column in schema.shown]
    found: list[int] = []
    for node in names:
        name = identifier(node)
        position = schema.position.get(name)
        if position is None:
            raise context.error(
                UndefinedColumn,
                f'column "{name}" of map "{schema.name}" does not exist',
                node,
                hint=did_you_mean(name, schema.position),
            )
        if position in found:
            raise context.error(DuplicateColumn, f'column "{name}" specified more than once', node)
        found.append(position)
    return found
