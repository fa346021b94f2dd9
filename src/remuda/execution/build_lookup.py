"""From LookupJoin nodes to operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import arrays_to_rows, values_to_array
from remuda.execution.arrays import Indices
from remuda.execution.context import FragmentContext, ScanOf
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operators.lookup_join import Find, LookupJoinOperator
from remuda.execution.operators.ordering import places_of
from remuda.plan.physical import LookupJoin


def lookup_join(
    node: LookupJoin,
    source: Operator,
    context: FragmentContext,
    partitions: frozenset[int] | None,
) -> LookupJoinOperator:
    outer = node.input.output
    columns = (*outer, *node.inner)
    places = places_of(columns)
    keys = [places[key] for key in node.outer_keys]
    key_types = [outer[place].type for place in keys]
    residual = None
    if node.residual is not None:
        residual = Predicate(node.residual, Compiler(places, context.parameters))
    return LookupJoinOperator(
        kind=node.kind,
        left=source,
        keys=keys,
        key_types=key_types,
        inner_types=[engine_type(column.type) for column in node.inner],
        find=_by_index(node, context, partitions if node.limited else None)
        if node.index_id
        else _by_key(node, context, key_types),
        ready=lambda: context.sources.ready(node.map_id, context.read_timestamp),
        residual=residual,
        output=[places[column.id] for column in node.output],
    )


def _by_index(
    node: LookupJoin, context: FragmentContext, partitions: frozenset[int] | None
) -> Find:
    of = ScanOf(
        node.map_id, node.schema_version, context.read_timestamp, node.positions, partitions
    )

    def find(columns: Sequence[pa.Array]) -> tuple[pa.RecordBatch, Indices] | None:
        return context.sources.index_match(of, node.index_id, columns)

    return find


def _by_key(node: LookupJoin, context: FragmentContext, types: Sequence[SqlType]) -> Find:
    """Each key once, however many rows have it."""

    def find(columns: Sequence[pa.Array]) -> tuple[pa.RecordBatch, Indices] | None:
        keys = arrays_to_rows(columns, types)
        unique = list(dict.fromkeys(keys))
        found = context.sources.lookup(
            node.map_id, node.schema_version, context.read_timestamp, unique
        )
        by_key = {key: row for key, row in zip(unique, found, strict=True) if row is not None}
        hits = [number for number, key in enumerate(keys) if key in by_key]
        if not hits:
            return None
        rows = [by_key[keys[number]] for number in hits]
        arrays = [
            values_to_array([row[position] for row in rows], column.type)
            for position, column in zip(node.positions, node.inner, strict=True)
        ]
        names = [str(place) for place in range(len(arrays))]
        if not arrays:
            empty = pa.RecordBatch.from_arrays([pa.nulls(len(rows))], names=["rows"]).select([])
            return empty, np.array(hits, dtype=np.int64)
        return pa.RecordBatch.from_arrays(arrays, names=names), np.array(hits, dtype=np.int64)

    return find
