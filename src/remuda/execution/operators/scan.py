"""TableScan: visible rows of the local primaries that pass the pushed filter."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.execution.batch import Batch
from remuda.execution.context import Cursor, FragmentContext, ScanOf
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.shared_scan import SharedScan
from remuda.plan.physical import Placement, TableScan


def scan_positions(node: TableScan) -> tuple[list[int], dict[int, int]]:
    """(schema positions to read, column id -> place among them) of output and filter."""
    read: list[int] = []
    places: dict[int, int] = {}
    ids = [
        (column.id, position) for column, position in zip(node.output, node.positions, strict=True)
    ]
    for identity, position in (*ids, *node.filter_columns):
        if identity not in places:
            if position not in read:
                read.append(position)
            places[identity] = read.index(position)
    return read, places


class TableScanOperator(Operator):
    """Reads only the columns of output and filter; filtered rows leave as a selection.

    ``partitions`` limits it (None: all of this member); ``shared``: with the other instances of the
    fragment."""

    def __init__(
        self,
        node: TableScan,
        context: FragmentContext,
        partitions: frozenset[int] | None = None,
        shared: SharedScan | None = None,
    ) -> None:
        self._node = node
        self._context = context
        self._read, places = scan_positions(node)
        self._output = [places[column.id] for column in node.output]
        self._plain = self._output == list(range(len(self._read)))
        self._predicate = (
            None
            if node.filter is None
            else Predicate(node.filter, Compiler(places, context.parameters))
        )
        self._shared = shared
        self._partitions = self._partitions_to_scan(partitions)
        self._cursor: Cursor | None = None
        self._rest: pa.RecordBatch | None = None
        self._batch = Batch([], 0)

    def _partitions_to_scan(self, pruned: frozenset[int] | None) -> frozenset[int] | None:
        if self._node.partitioned_replica:
            member = self._context.member
            owned = frozenset(
                partition for partition, owner in enumerate(self._context.owners) if owner == member
            )
            return owned if pruned is None else owned & pruned
        if self._node.traits.distribution.placement is Placement.REPLICATED:
            return None
        return pruned

    def advance(self) -> Progress:
        if self._cursor is None:
            node, context = self._node, self._context
            if not context.sources.ready(node.map_id, context.read_timestamp):
                return Progress.WAIT
            self._cursor = self._open()
            self._count = context.sources.counter(node.map_id)
        rows = self._next_rows(self._cursor)
        if rows is None:
            self._batch = Batch([], 0)
            return Progress.FETCHED_DONE
        batch = Batch.of(rows)
        if self._predicate is not None:
            batch = self._predicate.filter(batch)
        self._batch = batch if self._plain else batch.project(self._output)
        return Progress.FETCHED

    def _open(self) -> Cursor:
        sources = self._context.sources
        if self._shared is None:
            return sources.scan(self._what())
        return self._shared.open(lambda: sources.scan(self._what()))

    def _what(self) -> ScanOf:
        node = self._node
        at = self._context.read_timestamp
        return ScanOf(node.map_id, node.schema_version, at, self._read, self._partitions)

    def _next_rows(self, cursor: Cursor) -> pa.RecordBatch | None:
        rows = self._rest
        if rows is None:
            rows = cursor.next()
            if rows is not None:
                self._count(rows.num_rows)
        limit = self._context.batch_rows
        if rows is None or not 0 < limit < rows.num_rows:
            self._rest = None
            return rows
        self._rest = rows.slice(limit)
        return rows.slice(0, limit)

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._rest = None
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


@builds(TableScan)
def _table_scan(node: TableScan, _inputs: Sequence[Operator], build: BuildContext) -> Operator:
    shared = None
    if node.traits.distribution.placement is not Placement.REPLICATED:
        shared = build.next_shared_scan()
    return TableScanOperator(node, build.context, build.partitions, shared)
