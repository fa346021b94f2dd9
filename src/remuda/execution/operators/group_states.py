"""The states of all calls of an aggregate, by the slots of its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Indices, Mask, take, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.evaluate.comparison import true_mask
from remuda.execution.keys import IntegerIds, KeyIds
from remuda.execution.operators.aggregate_choice import KEEPS_NULLS, new_state
from remuda.execution.operators.aggregate_states import CountState, State
from remuda.execution.operators.ordering import BoundKey

_BYTES_PER_STATE = 16


@dataclass
class BoundCall:
    """One aggregate call with its columns resolved: the arguments, none for count(*), then what
    ``keys`` sort by. ``packs``: it puts out states as bytes; ``merges``: it is given such."""

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


class _Distinct:
    """Lets each group and value, or values, pass once."""

    def __init__(self, types: Sequence[SqlType], *, keeps_nulls: bool) -> None:
        self._values = KeyIds(types)
        self._pairs = IntegerIds()
        self._keeps_nulls = keeps_nulls

    def first_rows(self, groups: Indices, columns: Sequence[pa.Array]) -> Indices:
        """The rows that were not there before; those whose first value is NULL only pass if NULLs
        are kept."""
        ids = self._values.encode(columns)
        valid = None if self._keeps_nulls else validity_mask(columns[0])
        rows = np.arange(len(ids)) if valid is None else np.flatnonzero(valid)
        before = self._pairs.count
        pairs = self._pairs.encode(groups[rows] << 32 | ids[rows])
        new = np.flatnonzero(pairs > before)
        _, first = np.unique(pairs[new], return_index=True)
        return rows[new[first]]

    @property
    def bytes(self) -> int:
        return self._values.bytes + self._pairs.bytes


class GroupStates:
    """One state per call; a call with DISTINCT lets each value of a group pass once."""

    def __init__(self, calls: Sequence[BoundCall]) -> None:
        self._calls = calls
        self._states = [call.new_state() for call in calls]
        self._distinct = [
            _Distinct(call.types, keeps_nulls=call.function in KEEPS_NULLS)
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
    distinct: _Distinct | None,
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
