"""KeyLookup: rows by their whole key."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import values_to_array
from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.lookup_keys import lookup_keys
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.ordering import places_of
from remuda.plan.expression import ColumnRef, walk
from remuda.plan.physical import KeyLookup, Placement


class KeyLookupOperator(Operator):
    """Each key once, however often it is named; a key with a NULL part finds nothing."""

    def __init__(
        self, node: KeyLookup, context: FragmentContext, partitions: frozenset[int] | None = None
    ) -> None:
        """``partitions`` limits it (None: all of this member), unless all members have the map."""
        self._node = node
        everywhere = node.traits.distribution.placement is Placement.REPLICATED
        self._partitions = None if everywhere else partitions
        self._context = context
        self._types: list[SqlType] = [column.type for column in node.output]
        self._positions = list(node.positions)
        places = places_of(node.output)
        filter_types = {
            part.column: part.type
            for part in (walk(node.filter) if node.filter is not None else ())
            if isinstance(part, ColumnRef)
        }
        for identity, position in node.filter_columns:
            if identity not in places and identity in filter_types:
                places[identity] = len(self._positions)
                self._positions.append(position)
                self._types.append(filter_types[identity])
        self._predicate = (
            None
            if node.filter is None
            else Predicate(node.filter, Compiler(places, context.parameters))
        )
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        node, context = self._node, self._context
        if not context.sources.ready(node.map_id, context.read_timestamp):
            return Progress.WAIT
        keys = dict.fromkeys(lookup_keys(node.keys, context.parameters))
        found = context.sources.lookup(
            node.map_id, node.schema_version, context.read_timestamp, list(keys), self._partitions
        )
        rows = [row for row in found if row is not None]
        columns = [
            values_to_array([row[position] for row in rows], type_)
            for position, type_ in zip(self._positions, self._types, strict=True)
        ]
        batch = Batch(columns, len(rows))
        if self._predicate is not None and rows:
            batch = self._predicate.filter(batch)
        self._batch = batch.project(range(len(node.output)))
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch


@builds(KeyLookup)
def _key_lookup(node: KeyLookup, _inputs: Sequence[Operator], build: BuildContext) -> Operator:
    return KeyLookupOperator(node, build.context, build.partitions)
