"""Columns whose values are computed for the rows that a map has: generated ones, and new ones
whose default has another value for each row (SERIAL, IDENTITY, ``nextval``, ``random``).

First the columns come, with their defaults, so that new rows have values of their own. Then UPDATEs
give values to the other rows. Constraints of the same statement come after that: until then, rows
that others write may have no value yet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.schema import Column, MapSchema
from remuda.plan.functions.catalog import is_volatile
from remuda.sql.definitions.constraints import default_of


def needs_filling(column: Column) -> bool:
    """Whether each row that is there gets a value of its own when this column is added."""
    return bool(column.generated) or (
        column.default is not None and is_volatile(default_of(column))
    )


def fill_texts(schema: MapSchema, names: Sequence[str]) -> tuple[str, ...]:
    """The UPDATEs that compute these columns for the rows that are there. Generated columns come
    last: they may be computed from the others."""
    kept = [schema.column(name) for name in names if name in schema.position]
    generated = [column.name for column in kept if column.generated]
    given = [column for column in kept if not column.generated and column.default is not None]
    texts = []
    if given:
        # A row that was written since the columns came has its values. NULL tells the others best
        # in a column that will be NOT NULL.
        sign = next((column for column in given if not column.nullable), given[0])
        text = _update(schema, [column.name for column in given])
        texts.append(f"{text} WHERE {quoted_name(sign.name)} IS NULL")
    if generated:
        texts.append(_update(schema, generated))
    return tuple(texts)


def _update(schema: MapSchema, names: Sequence[str]) -> str:
    sets = ", ".join(f"{quoted_name(name)} = DEFAULT" for name in names)
    return f"UPDATE {sql_name(schema)} SET {sets}"  # noqa: S608 (quoted names)


def while_filling(
    schema: MapSchema, not_null: Collection[str], demanded: Collection[str]
) -> MapSchema:
    """``schema`` without what the statement demands of all rows: NOT NULL columns, and the CHECK
    constraints, unique indexes and foreign keys named in ``demanded``."""
    return replace(
        schema,
        columns=tuple(
            replace(column, nullable=True) if column.name in not_null else column
            for column in schema.columns
        ),
        checks=tuple(check for check in schema.checks if check.name not in demanded),
        indexes=tuple(index for index in schema.indexes if index.name not in demanded),
        foreign_keys=tuple(key for key in schema.foreign_keys if key.name not in demanded),
        key_name="" if schema.key_name in demanded else schema.key_name,
    )
