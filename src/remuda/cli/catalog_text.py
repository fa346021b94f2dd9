"""Maps and their columns as text, as ``\\d`` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.cli.table import Alignment, harmless_name, text_table
from remuda.client.requests.requests import MapDescription
from remuda.datatypes.schema import MapSchema

_LEFT = Alignment.LEFT


def maps(schemas: Sequence[MapSchema]) -> str:
    if not schemas:
        return "no maps\n"
    rows = [
        (harmless_name(schema.name), _key(schema.key), _layout(schema), str(len(schema.columns)))
        for schema in sorted(schemas, key=lambda schema: schema.name)
    ]
    sides = (_LEFT, _LEFT, _LEFT, Alignment.RIGHT)
    return text_table(("map", "key", "layout", "columns"), rows, sides)


def describe(found: MapDescription) -> str:
    schema = found.schema
    rows = [
        (
            harmless_name(column.name),
            str(column.type),
            "" if column.nullable else "not null",
            _part(schema, i),
        )
        for i, column in enumerate(schema.columns)
    ]
    table = text_table(("column", "type", "null", "key"), rows, (_LEFT,) * 4)
    name = harmless_name(schema.name)
    return f'map "{name}", {_layout(schema)}, about {found.rows:,} rows\n{table}'


def map_name(text: str) -> str:
    """A name as SQL reads it: lower case unless quoted."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text.lower()


def _part(schema: MapSchema, position: int) -> str:
    if position not in schema.key_positions:
        return ""
    return f"key {schema.key_positions.index(position) + 1}" if len(schema.key) > 1 else "key"


def _key(names: Sequence[str]) -> str:
    return ", ".join(map(harmless_name, names))


def _layout(schema: MapSchema) -> str:
    if schema.replicated:
        return "replicated"
    if schema.partition_by != schema.key:
        return f"partitioned by {_key(schema.partition_by)}"
    return "partitioned"
