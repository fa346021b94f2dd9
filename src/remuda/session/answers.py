"""Results that are made here and not by a plan: SHOW, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.definition_text import definition_of, generated_text
from remuda.datatypes.arrow import external_schema
from remuda.datatypes.schema import Column, MapSchema, ViewDefinition
from remuda.datatypes.sql import BOOLEAN, INTEGER, VARCHAR
from remuda.sql.definitions.constraints import condition_columns
from remuda.sql.scope.statements import ShowKind, ShowStatement

Answer = tuple[tuple[Column, ...], pa.RecordBatch]
"""Columns, and their rows in external form."""

PLAN_COLUMNS = (Column("plan", VARCHAR, nullable=False),)
MAP_COLUMNS = (
    Column("name", VARCHAR, nullable=False),
    Column("columns", INTEGER, nullable=False),
    Column("key", VARCHAR, nullable=False),
    Column("replicated", BOOLEAN, nullable=False),
    Column("comment", VARCHAR),
)
VIEW_COLUMNS = (
    Column("name", VARCHAR, nullable=False),
    Column("columns", INTEGER, nullable=False),
    Column("definition", VARCHAR, nullable=False),
    Column("comment", VARCHAR),
)
CREATE_COLUMNS = (
    Column("name", VARCHAR, nullable=False),
    Column("definition", VARCHAR, nullable=False),
)
COLUMN_COLUMNS = (
    Column("column", VARCHAR, nullable=False),
    Column("type", VARCHAR, nullable=False),
    Column("nullable", BOOLEAN, nullable=False),
    Column("key", BOOLEAN, nullable=False),
    Column("default", VARCHAR),
    Column("checks", VARCHAR),
    Column("comment", VARCHAR),
)


def shown(statement: ShowStatement, catalog: Catalog) -> Answer:
    relation = statement.relation
    if statement.kind is ShowKind.COLUMNS:
        assert relation is not None
        return COLUMN_COLUMNS, _rows(COLUMN_COLUMNS, _column_rows(relation))
    if statement.kind is ShowKind.CREATE:
        assert relation is not None
        return CREATE_COLUMNS, _rows(CREATE_COLUMNS, [(relation.name, definition_of(relation))])
    if statement.kind is ShowKind.VIEWS:
        return VIEW_COLUMNS, _rows(VIEW_COLUMNS, _view_rows(catalog))
    rows = [
        (
            schema.name,
            len(schema.shown),
            "" if schema.has_row_ids else ", ".join(schema.key),
            schema.replicated,
            schema.comment or None,
        )
        for schema in sorted(catalog.tables, key=lambda schema: schema.name)
    ]
    return MAP_COLUMNS, _rows(MAP_COLUMNS, rows)


def _view_rows(catalog: Catalog) -> list[tuple[object, ...]]:
    return [
        (view.name, len(view.columns), view.text, view.comment or None)
        for view in sorted(catalog.views, key=lambda view: view.name)
    ]


def _column_rows(relation: MapSchema | ViewDefinition) -> list[tuple[object, ...]]:
    schema = relation if isinstance(relation, MapSchema) else None
    return [
        (
            column.name,
            str(column.type),
            column.nullable,
            schema is not None and column.name in schema.key,
            given_value(column),
            "; ".join(_conditions(schema, column)) or None if schema is not None else None,
            column.comment or None,
        )
        for column in (relation.columns if schema is None else schema.shown)
    ]


def given_value(column: Column) -> str | None:
    """The default of a column, or the clause of a generated one."""
    if column.generated:
        return generated_text(column)
    return column.default.text if column.default is not None else None


def _conditions(schema: MapSchema, column: Column) -> list[str]:
    """The CHECK constraints that look at a column."""
    position = schema.position[column.name]
    return [
        f"CHECK ({check.text})"
        for check in schema.checks
        if position in condition_columns(schema, check)
    ]


def answer_rows(columns: tuple[Column, ...], rows: Sequence[tuple[object, ...]]) -> Answer:
    return columns, _rows(columns, rows)


def _rows(columns: tuple[Column, ...], rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    schema = external_schema(columns)
    values = list(zip(*rows, strict=True)) or [() for _ in columns]
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
