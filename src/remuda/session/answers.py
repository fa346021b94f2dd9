"""Results that are made here and not by a plan: SHOW, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.arrow import external_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BOOLEAN, INTEGER, VARCHAR
from remuda.execution.context import FragmentProfile
from remuda.plan.explain import OperatorProfile, explain
from remuda.session.planning import PlannedChange, PlannedExplain, PlannedInsert
from remuda.sql.statements import ShowKind, ShowStatement

Answer = tuple[tuple[Column, ...], pa.RecordBatch]
"""Columns, and their rows in external form."""

PLAN_COLUMNS = (Column("plan", VARCHAR, nullable=False),)
MAP_COLUMNS = (
    Column("name", VARCHAR, nullable=False),
    Column("columns", INTEGER, nullable=False),
    Column("key", VARCHAR, nullable=False),
    Column("replicated", BOOLEAN, nullable=False),
)
COLUMN_COLUMNS = (
    Column("column", VARCHAR, nullable=False),
    Column("type", VARCHAR, nullable=False),
    Column("nullable", BOOLEAN, nullable=False),
    Column("key", BOOLEAN, nullable=False),
)


def explained(
    planned: PlannedExplain, profiles: Sequence[FragmentProfile] = (), seconds: float | None = None
) -> Answer:
    """The plan, one line per row; with ``profiles`` what each operator did on each member."""
    statement = planned.statement
    query = statement.source if isinstance(statement, PlannedInsert | PlannedChange) else statement
    profile: dict[tuple[int, int], dict[int, OperatorProfile]] = {}
    for fragment in profiles:
        for operator in fragment.operators:
            by_member = profile.setdefault((fragment.fragment, operator.index), {})
            by_member[fragment.member] = OperatorProfile(
                operator.rows, operator.batches, operator.seconds
            )
    text = explain(query.plan, verbose=planned.verbose, profile=profile or None)
    lines = text.splitlines()
    if isinstance(statement, PlannedChange):
        lines.insert(0, _modify(statement))
    if isinstance(statement, PlannedInsert):
        how = "INSERT INTO" if statement.insert_only else "SINK INTO"
        lines.insert(0, f"{how} {statement.schema.name} (staged on the owners, then committed)")
    if seconds is not None:
        lines.append(f"Execution time: {seconds * 1000:.3f} ms")
    return PLAN_COLUMNS, _rows(PLAN_COLUMNS, [(line,) for line in lines])


def _modify(change: PlannedChange) -> str:
    """The line above the plan of the rows that change."""
    verb = {"INSERT": "INSERT INTO", "SINK": "SINK INTO", "DELETE": "DELETE FROM"}.get(change.verb)
    returning = ", returning" if change.returning else ""
    return (
        f"Modify: {verb or change.verb} {change.schema.name} "
        f"(staged on the owners, then committed{returning})"
    )


def shown(statement: ShowStatement, catalog: Catalog) -> Answer:
    if statement.kind is ShowKind.COLUMNS:
        assert statement.schema is not None
        return COLUMN_COLUMNS, _rows(COLUMN_COLUMNS, _column_rows(statement.schema))
    rows = [
        (schema.name, len(schema.columns), ", ".join(schema.key), schema.replicated)
        for schema in sorted(catalog.maps, key=lambda schema: schema.name)
    ]
    return MAP_COLUMNS, _rows(MAP_COLUMNS, rows)


def _column_rows(schema: MapSchema) -> list[tuple[object, ...]]:
    return [
        (column.name, str(column.type), column.nullable, column.name in schema.key)
        for column in schema.columns
    ]


def _rows(columns: tuple[Column, ...], rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    schema = external_schema(columns)
    values = list(zip(*rows, strict=True)) or [() for _ in columns]
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
