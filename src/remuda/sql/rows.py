"""Rows to be inserted: which columns they give, and which they may leave out."""

from __future__ import annotations

from sqlglot import exp

from remuda.datatypes.schema import ROW_ID, MapSchema
from remuda.errors import DuplicateColumn, NotNullViolation, UndefinedColumn
from remuda.sql.context import Context, identifier
from remuda.sql.suggest import did_you_mean


def insert_positions(context: Context, schema: MapSchema, names: list[exp.Expr]) -> list[int]:
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


def require_key(context: Context, schema: MapSchema, positions: list[int], node: exp.Expr) -> None:
    """Columns that are left out get their default: keys and NOT NULL columns need one."""
    for position, column in enumerate(schema.columns):
        if (
            position not in positions
            and column.default is None
            and column.name != ROW_ID
            and (not column.nullable or position in schema.key_positions)
        ):
            raise context.error(
                NotNullViolation,
                f'column "{column.name}" of map "{schema.name}" is NOT NULL and gets no value',
                node,
            )
