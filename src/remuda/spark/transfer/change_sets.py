"""The effect of a write on the rows of a DataFrame: store them all, delete their keys, or as a
column of theirs says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from remuda.client.operations.job_writer import JobWriter
from remuda.datatypes.schema import ROW_ID, MapSchema
from remuda.errors import (
    InputError,
    InvalidDefinition,
    InvalidParameterValue,
    TypeMismatch,
    UndefinedColumn,
)
from remuda.spark.transfer.fit import MADE, SourceColumn, fit, lossless
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.rows import engine_batch, engine_keys

Kind = Literal["store", "delete"]

OPERATIONS: Final[dict[str, Kind]] = {
    "insert": "store",
    "i": "store",
    "update": "store",
    "u": "store",
    "upsert": "store",
    "snapshot": "store",
    "delete": "delete",
    "d": "delete",
}
"""The words of the operation column, in any case of letters. A stream of the changes of a map says
"snapshot" of the entries that it begins with."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Where each column of the map is in the DataFrame. ``stored``: by map column; empty when
    nothing is stored. ``keys``: by key column. ``operation``: the column that says what to do."""

    stored: tuple[int, ...]
    keys: tuple[int, ...]
    kind: Kind
    operation: int | None = None


def plan_rows(schema: MapSchema, columns: Sequence[SourceColumn], options: Options) -> RowPlan:
    """Raises UndefinedColumn, DuplicateColumn, TypeMismatch: why the DataFrame does not fit."""
    if options.write == "delete":
        return RowPlan((), key_positions(schema, columns), "delete")
    operation = operation_position(columns, options)
    others = [column for index, column in enumerate(columns) if index != operation]
    places = [index for index in range(len(columns)) if index != operation]
    laid = fit(schema, others)
    stored = tuple(position if position < 0 else places[position] for position in laid)
    keys = tuple(stored[position] for position in schema.key_positions)
    if operation is not None and MADE in keys:
        raise InvalidDefinition(
            f"map {schema.name} has no key: a change set cannot say which rows it changes",
            hint="Append rows (write = upsert or insert), or replace all with mode overwrite.",
        )
    return RowPlan(stored, keys, "store", operation)


def without_operation(columns: Sequence[SourceColumn], options: Options) -> list[SourceColumn]:
    """The columns that the map has."""
    operation = operation_position(columns, options)
    return [column for index, column in enumerate(columns) if index != operation]


def operation_position(columns: Sequence[SourceColumn], options: Options) -> int | None:
    if options.operation is None:
        return None
    names = [column.name for column in columns]
    if options.operation not in names:
        raise UndefinedColumn(
            f"the operation column {options.operation} is not in the source",
            detail=f"the source has {', '.join(names)}",
        )
    position = names.index(options.operation)
    kind = columns[position].type
    if kind is None or not kind.is_text:
        raise TypeMismatch(
            f"the operation column {options.operation} is {columns[position].shown}, not text",
            hint=f"Its values are {', '.join(OPERATIONS)}.",
        )
    return position


def key_positions(schema: MapSchema, columns: Sequence[SourceColumn]) -> tuple[int, ...]:
    """Where the key columns are; other columns may be there if they are the map's."""
    names = [column.name for column in columns]
    for name in names:
        if name not in schema.position:
            raise UndefinedColumn(
                f"map {schema.name} has no column {name}",
                detail=f"it has {', '.join(column.name for column in schema.shown)}",
            )
    if schema.has_row_ids and ROW_ID not in names:
        raise InvalidDefinition(
            f"map {schema.name} has no key to delete rows by", hint="DELETE in SQL does it."
        )
    found = []
    for name in schema.key:
        if name not in names:
            raise UndefinedColumn(
                f"key column {name} of map {schema.name} is not in the source",
                hint="A delete needs every column of the key.",
            )
        position = names.index(name)
        expected = schema.column(name)
        if not lossless(columns[position], expected):
            raise TypeMismatch(
                f"column {name} of map {schema.name}: expected {expected.type}, "
                f"found {columns[position].shown}",
                hint="cast the column in the source to the type of the map",
            )
        found.append(position)
    return tuple(found)


def write_rows(writer: JobWriter, schema: MapSchema, plan: RowPlan, batch: pa.RecordBatch) -> None:
    """Send a batch of the DataFrame on. Raises DataError and its kinds, NotNullViolation."""
    for kind, rows in _parts(plan, batch):
        if kind == "store":
            writer.write(engine_batch(schema, plan.stored, rows))
        else:
            writer.remove(engine_keys(schema, plan.keys, rows))


def _parts(plan: RowPlan, batch: pa.RecordBatch) -> Iterator[tuple[Kind, pa.RecordBatch]]:
    if plan.operation is None:
        yield plan.kind, batch
        return
    said = batch.column(plan.operation)
    deletes = pc.equal(_kinds(said), "delete")
    for kind, mask in (("delete", deletes), ("store", pc.invert(deletes))):
        rows = batch.filter(mask)
        if rows.num_rows:
            yield ("delete" if kind == "delete" else "store"), rows


def _kinds(said: pa.Array) -> pa.Array:
    """ "store" or "delete" for each row. Raises InputError for anything else."""
    if said.null_count:
        raise InputError(f"the operation of {said.null_count} rows is NULL")
    words = pc.utf8_lower(said).dictionary_encode()
    kinds = []
    for word in words.dictionary.to_pylist():
        if word not in OPERATIONS:
            raise InvalidParameterValue(
                f"{word!r} is no operation", hint=f"Operations are {', '.join(OPERATIONS)}."
            )
        kinds.append(OPERATIONS[word])
    return pa.array(kinds, pa.string()).take(words.indices)
