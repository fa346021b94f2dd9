"""``INSERT OR REPLACE``, ``INSERT OR IGNORE`` and ``REPLACE INTO``, as SQLite and MySQL have them:
other words for ON CONFLICT."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.schema import MapSchema
from remuda.sql.scope.context import Context
from remuda.sql.trees import ast

REPLACE: Final = "REPLACE"
_KNOWN: Final = frozenset({REPLACE, "IGNORE", "ABORT"})


def conflict_of(
    context: Context, schema: MapSchema, alternative: str, node: ast.Insert
) -> ast.OnConflict | None:
    """INSERT OR ... in PostgreSQL's words; None for a plain INSERT. Raises NotSupported.

    REPLACE removes all rows that are in the way, of which there is one at most if the map has one
    key: that is what is replaced.
    """
    place = node.this
    if alternative not in _KNOWN:
        raise context.unsupported(
            f"INSERT OR {alternative}", place, "Supported: INSERT OR REPLACE, INSERT OR IGNORE."
        )
    if alternative == "IGNORE":
        return ast.OnConflict(action=ast.Var(this="DO NOTHING"))
    keys = [*(() if schema.has_row_ids else (schema.key,)), *(i.names for i in schema.uniques)]
    if alternative != REPLACE or not keys:
        return None
    if len(keys) > 1:
        raise context.unsupported(
            f'REPLACE of rows of map "{schema.name}", which has several unique keys,',
            place,
            "Say which one counts: INSERT ... ON CONFLICT (column) DO UPDATE.",
        )
    values = [column.name for column in schema.shown if column.name not in schema.key]
    if not values:
        return ast.OnConflict(action=ast.Var(this="DO NOTHING"))
    return ast.OnConflict(
        action=ast.Var(this="DO UPDATE"),
        conflict_keys=[_column(name) for name in keys[0]],
        expressions=[ast.EQ(this=_column(n), expression=_column(n, "excluded")) for n in values],
    )


def _column(name: str, table: str = "") -> ast.Column:
    qualifier = ast.Identifier(this=table, quoted=True) if table else None
    return ast.Column(this=ast.Identifier(this=name, quoted=True), table=qualifier)
