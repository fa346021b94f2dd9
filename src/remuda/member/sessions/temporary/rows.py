"""The rows of a temporary table after a statement: keys and unique values hold here as well.

Rows are columns, so an INSERT of many rows makes no Python objects unless keys have several
columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from remuda.catalog.temporary import TemporaryTable
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sequences import SequenceState
from remuda.datatypes.values import PhysicalValue, arrays_to_rows, values_to_array
from remuda.datatypes.violations import duplicate_key, duplicate_values
from remuda.errors import UniqueViolation
from remuda.transaction.own_writes import Key, Row, canonical_key


def with_rows(table: TemporaryTable, batches: Sequence[pa.RecordBatch]) -> TemporaryTable:
    """With more rows, which fulfil all conditions on rows. Raises UniqueViolation."""
    added = tuple(batch for batch in batches if batch.num_rows)
    for positions, index in _distinct(table.schema):
        _refuse_equals(table, added, positions, index)
    return replace(table, batches=(*table.batches, *added))


def changed(
    table: TemporaryTable,
    stored: Mapping[Key, Row],
    removed: Collection[Key],
    *,
    insert_only: bool,
) -> TemporaryTable:
    """Without the rows whose keys are in ``removed``, and with ``stored`` in place of the rows of
    their keys. ``insert_only``: a key of ``stored`` that is not removed is a new one. Raises
    UniqueViolation."""
    schema = table.schema
    gone = set(removed) if insert_only else {*removed, *stored}
    kept = replace(table, batches=tuple(_without(table, gone)) if gone else table.batches)
    rows = list(stored.values())
    if not rows:
        return kept
    arrays = [
        values_to_array(list(values), column.type)
        for values, column in zip(zip(*rows, strict=True), schema.columns, strict=True)
    ]
    return with_rows(kept, [pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))])


def state_row(schema: MapSchema, state: SequenceState) -> pa.RecordBatch:
    """The state of a temporary sequence, as reading the sequence shows it."""
    values = (state.last_value, 0, state.is_called, state.generation, 0)
    arrays = [
        values_to_array([value], column.type)
        for value, column in zip(values, schema.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))


def _without(table: TemporaryTable, keys: Collection[Key]) -> Iterator[pa.RecordBatch]:
    schema = table.schema
    positions = schema.key_positions
    types = [schema.columns[position].type for position in positions]
    values = values_to_array([key[0] for key in keys], types[0]) if len(positions) == 1 else None
    for batch in table.batches:
        columns = [batch.column(position) for position in positions]
        if values is not None:
            found = pc.is_in(columns[0], value_set=values)
        else:
            found = pa.array(canonical_key(row) in keys for row in arrays_to_rows(columns, types))
        left = batch.filter(pc.invert(found))
        if left.num_rows:
            yield batch if left.num_rows == batch.num_rows else left


def _distinct(schema: MapSchema) -> Iterator[tuple[tuple[int, ...], IndexDefinition | None]]:
    """The positions of columns whose values no two rows share; None stands for the key."""
    if not schema.has_row_ids:
        yield schema.key_positions, None
    for index in schema.uniques:
        yield tuple(schema.position[name] for name in index.names), index


def _refuse_equals(
    table: TemporaryTable,
    added: Sequence[pa.RecordBatch],
    positions: Sequence[int],
    index: IndexDefinition | None,
) -> None:
    schema = table.schema
    nulls = index is not None and not index.nulls_distinct
    if len(positions) == 1:
        found = _equal_value(table.batches, added, positions[0], nulls)
        if found is not None:
            sql_type = schema.columns[positions[0]].type
            ((value,),) = arrays_to_rows([found], [sql_type])
            raise _refusal(schema, index, (value,))
        return
    new = list(_tuples(schema, added, positions, nulls))
    if not new:
        return
    known = set(_tuples(schema, table.batches, positions, nulls))
    for values in new:
        if values in known:
            raise _refusal(schema, index, values)
        known.add(values)


def _equal_value(
    before: Sequence[pa.RecordBatch], added: Sequence[pa.RecordBatch], position: int, nulls: bool
) -> pa.Array | None:
    """One value that two rows would have, as an array of one."""
    if not added:
        return None
    new = pa.chunked_array([batch.column(position) for batch in added])
    if not nulls:
        new = new.drop_null()
    counted = pc.value_counts(new)
    for group in pa.chunked_array([counted]).chunks:
        twice = pc.filter(group.field("values"), pc.greater(group.field("counts"), 1))
        if len(twice):
            return twice.slice(0, 1)
    values = new.combine_chunks()
    for batch in before:
        column = batch.column(position)
        equal = column.filter(pc.is_in(column, value_set=values, skip_nulls=not nulls))
        if len(equal):
            return equal.slice(0, 1)
    return None


def _tuples(
    schema: MapSchema, batches: Sequence[pa.RecordBatch], positions: Sequence[int], nulls: bool
) -> Iterator[Key]:
    types = [schema.columns[position].type for position in positions]
    for batch in batches:
        for row in arrays_to_rows([batch.column(p) for p in positions], types):
            if nulls or None not in row:
                yield canonical_key(row)


def _refusal(
    schema: MapSchema, index: IndexDefinition | None, values: tuple[PhysicalValue, ...]
) -> UniqueViolation:
    if index is None:
        return duplicate_key(schema, values)
    return duplicate_values(schema, index, values)
