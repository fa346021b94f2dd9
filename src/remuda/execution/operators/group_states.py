"""The states of all calls of an aggregate, by the slots of its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Indices, Mask, take
from remuda.execution.batch import Batch
from remuda.execution.evaluate.comparison import true_mask
from remuda.execution.memory import Reservation
from remuda.execution.operators.aggregate_choice import new_state
from remuda.execution.operators.aggregate_states import CountState, State
from remuda.execution.operators.distinct_values import DistinctValues
from remuda.execution.operators.ordering import BoundKey
from remuda.plan.functions.aggregates import aggregate_function

_BYTES_PER_STATE = 16


@dataclass
class BoundCall:
    """One aggregate call with its columns resolved: the arguments, none for count(*), then the
    columns that ``keys`` sort by. ``packs``: it puts out states as bytes; ``merges``: it is given
    such."""

    function: str
    columns: Sequence[Callable[[Batch], pa.Array]]
    types: Sequence[SqlType]
    result: SqlType
    distinct: bool = False
    condition: Callable[[Batch], pa.Array] | None = None
    keys: Sequence[BoundKey] = ()
    packs: bool = False
    merges: bool = False

    def new_state(self) -> State:
        return new_state(self.function, self.types, self.result, self.keys)


class GroupStates:
    """One state per call; a call with DISTINCT lets each value of a group pass once."""

    def __init__(self, calls: Sequence[BoundCall]) -> None:
        self._calls = calls
        self._states = [call.new_state() for call in calls]
        self._distinct = [
            DistinctValues(call.types, keeps_nulls=aggregate_function(call.function).keeps_nulls)
            if call.distinct and call.types
            else None
            for call in calls
        ]

    def add(self, groups: Indices | None, slots: int, batch: Batch) -> None:
        """``groups`` are the slots of the rows, below ``slots``; None: all are of slot 0."""
        for call, state, distinct in zip(self._calls, self._states, self._distinct, strict=True):
            state.resize(slots)
            _add_call(call, state, distinct, groups, batch)

    def bytes(self, slots: int) -> int:
        size = slots * _BYTES_PER_STATE * len(self._states)
        size += sum(distinct.bytes for distinct in self._distinct if distinct is not None)
        return size + sum(state.bytes for state in self._states)

    # --- values of DISTINCT calls on disk -----------------------------------------------------

    def spill(self, memory: Reservation) -> bool:
        """Have DISTINCT calls keep no further values in memory; False: there are no such calls, or
        they do so already. Raises DiskFull."""
        found = [d for d in self._distinct if d is not None and not d.spilled and d.bytes]
        for distinct in found:
            distinct.spill(memory.beside())
        return bool(found)

    @property
    def spilled(self) -> bool:
        return any(distinct is not None and distinct.spilled for distinct in self._distinct)

    def replay(self) -> bool:
        """After all rows have come: add some of the values that were spilled; False: none left."""
        for state, distinct in zip(self._states, self._distinct, strict=True):
            if distinct is not None and distinct.spilled:
                found = distinct.replay()
                if found is not None:
                    groups, columns = found
                    if len(groups):
                        state.add_columns(groups, columns)
                    return True
        return False

    def close(self) -> None:
        for distinct in self._distinct:
            if distinct is not None:
                distinct.close()

    def results(self, slots: Indices) -> list[pa.Array]:
        """The output columns of the calls for ``slots`` (in ascending order, at least one)."""
        for state in self._states:
            state.resize(int(slots[-1]) + 1)
        return [
            state.packed(slots) if call.packs else state.finish(slots)
            for call, state in zip(self._calls, self._states, strict=True)
        ]


def _add_call(
    call: BoundCall,
    state: State,
    distinct: DistinctValues | None,
    groups: Indices | None,
    batch: Batch,
) -> None:
    if call.condition is not None:
        mask: Mask = true_mask(call.condition(batch), batch.rows)
        hits = np.flatnonzero(mask)
        if len(hits) == 0:
            return
        if len(hits) < batch.rows:
            batch = batch.narrow(hits)
            groups = None if groups is None else groups[hits]
    if not call.columns:
        assert isinstance(state, CountState)
        state.add_rows(groups, batch.rows)
        return
    columns = [column(batch) for column in call.columns]
    if call.merges:
        state.merge(groups, columns[0])
        return
    if distinct is not None:
        places = np.zeros(batch.rows, np.int64) if groups is None else groups
        rows = distinct.first_rows(places, columns)
        columns, groups = [take(column, rows) for column in columns], places[rows]
    if len(columns[0]):
        state.add_columns(groups, columns)
