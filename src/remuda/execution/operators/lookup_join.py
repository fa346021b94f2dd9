"""LookupJoin: each left row finds its matches by key or by secondary index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import arrays_to_rows, values_to_array
from remuda.execution.arrays import Indices
from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext, ScanOf
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.execution.operators.ordering import places_of
from remuda.limits import BATCH_ROWS
from remuda.plan.logical import JoinKind
from remuda.plan.physical import LookupJoin

ROWS_MAX: Final = 4096
"""So many left rows are looked up at a time, and fewer where each has many matches."""

Find: TypeAlias = Callable[[Sequence[pa.Array]], "tuple[pa.RecordBatch, Indices] | None"]
"""Key columns without NULLs -> the rows that have one of these keys, and for each the number of the
key; None for no row."""


class LookupJoinOperator(Operator):
    """``output`` are positions in (left columns, inner columns)."""

    def __init__(
        self,
        *,
        kind: JoinKind,
        left: Operator,
        keys: Sequence[int],
        key_types: Sequence[SqlType],
        inner_types: Sequence[pa.DataType],
        find: Find,
        ready: Callable[[], bool],
        residual: Predicate | None,
        output: Sequence[int],
    ) -> None:
        self._kind = kind
        self._left = Upstream(left)
        self._keys = keys
        self._key_types = key_types
        self._nothing = [pa.nulls(0, type_) for type_ in inner_types]
        self._find = find
        self._ready = ready
        self._residual = residual
        self._output = list(output)
        self._current: Batch | None = None
        self._next = 0
        self._rows = ROWS_MAX // 4
        self._batch = EMPTY

    def advance(self) -> Progress:
        if not self._ready():
            return Progress.WAIT
        self._batch = EMPTY
        if self._current is None:
            if self._left.done:
                return Progress.FETCHED_DONE
            batch = self._left.fetch()
            if batch is None:
                return Progress.WAIT
            if batch.rows == 0:
                return Progress.FETCHED_DONE if self._left.done else Progress.FETCHED
            self._current, self._next = batch, 0
        piece = self._current.slice(self._next, self._rows)
        self._next += piece.rows
        if self._next >= self._current.rows:
            self._current = None
        self._batch = self._joined(piece)
        done = self._current is None and self._left.done
        return Progress.FETCHED_DONE if done else Progress.FETCHED

    def _joined(self, piece: Batch) -> Batch:
        left, inner = self._matches(piece)
        if inner.rows > BATCH_ROWS:
            self._rows = max(1, self._rows // 4)
        elif inner.rows < BATCH_ROWS // 8:
            self._rows = min(ROWS_MAX, self._rows * 2)
        pairs = piece.narrow(left).beside(inner)
        if self._residual is not None and pairs.rows:
            passed = self._residual.select(pairs)
            if passed is not None:
                pairs, left = pairs.narrow(passed), left[passed]
        if self._kind is JoinKind.INNER:
            return pairs.project(self._output)
        matched = np.zeros(piece.rows, np.bool_)
        matched[left] = True
        if self._kind is JoinKind.SEMI:
            return piece.narrow(np.flatnonzero(matched)).project(self._output)
        rest = np.flatnonzero(~matched)
        alone = piece.narrow(rest)
        if self._kind is JoinKind.ANTI:
            return alone.project(self._output)
        if not len(rest):
            return pairs.project(self._output)
        nothing = Batch([pa.nulls(len(rest), column.type) for column in self._nothing], len(rest))
        if not pairs.rows:
            return alone.beside(nothing).project(self._output)
        # Rows without a match stay in their place: who is above may count on the order.
        order = np.argsort(np.concatenate([left, rest]), kind="stable")
        return _above(pairs, alone.beside(nothing)).narrow(order).project(self._output)

    def _matches(self, piece: Batch) -> tuple[Indices, Batch]:
        """(left rows, their matches), pair by pair."""
        columns = [
            canonical(piece.column(position), type_)
            for position, type_ in zip(self._keys, self._key_types, strict=True)
        ]
        rows: Indices | None = None
        if any(column.null_count for column in columns):
            valid = np.ones(piece.rows, np.bool_)
            for column in columns:
                valid &= pc.is_valid(column).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(valid)
            columns = [column.take(pa.array(rows)) for column in columns]
        found = self._find(columns) if len(columns[0]) else None
        if found is None:
            return np.zeros(0, np.int64), Batch(self._nothing, 0)
        inner, numbers = found
        order = np.argsort(numbers, kind="stable")  # left rows keep their order
        left = numbers[order] if rows is None else rows[numbers[order]]
        return left, Batch.of(inner).narrow(order)

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._current = None
        self._left.close()


def _above(first: Batch, second: Batch) -> Batch:
    """The rows of both."""
    columns = [
        pa.concat_arrays([a, b if a.type == b.type else b.cast(a.type)])
        for a, b in zip(first.columns(), second.columns(), strict=True)
    ]
    return Batch(columns, first.rows + second.rows)


@builds(LookupJoin)
def _lookup_join(node: LookupJoin, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    context = build.context
    outer = node.input.output
    columns = (*outer, *node.inner)
    places = places_of(columns)
    keys = [places[key] for key in node.outer_keys]
    key_types = [outer[place].type for place in keys]
    residual = None
    if node.residual is not None:
        residual = Predicate(node.residual, build.compiler(columns))
    return LookupJoinOperator(
        kind=node.kind,
        left=inputs[0],
        keys=keys,
        key_types=key_types,
        inner_types=[engine_type(column.type) for column in node.inner],
        find=_by_index(node, context, build.partitions if node.limited else None)
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
