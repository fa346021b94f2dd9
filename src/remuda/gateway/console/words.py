"""Names that the editor completes: maps with their columns, functions."""

from __future__ import annotations

from typing import Any

from remuda.aio import Client
from remuda.catalog.system_relations import SYS, SYSTEM
from remuda.plan.functions.catalog import callable_names

_COLUMNS = """SELECT table_schema, table_name, column_name, data_type
FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema', 'pg_catalog')
ORDER BY table_schema, table_name, ordinal_position"""


async def words_of(client: Client) -> dict[str, Any]:
    """``relations``: by name, the columns with their types; ``functions``: names."""
    found: dict[str, list[list[str]]] = {}
    cursor = await client.sql(_COLUMNS)
    for schema, table, column, kind in await cursor.fetchall():
        name = table if schema == "public" else f"{schema}.{table}"
        found.setdefault(name, []).append([column, kind])
    for relation in SYSTEM[SYS].values():
        columns = [[column.name, str(column.type)] for column in relation.columns]
        found.setdefault(relation.qualified, columns)
    return {"relations": found, "functions": callable_names()}
