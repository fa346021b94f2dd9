"""HashAggregate: groups get dense slots as they appear; every call keeps one state per slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Indices, Mask, take
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.comparison import true_mask
from remuda.execution.group_keys import GroupKeys
from remuda.execution.keys import IntegerIds, KeyIds
from remuda.execution.memory import Reservation
from remuda.execution.operators.aggregate_states import CountState, State, new_state
from remuda.execution.operators.input import Upstream
from remuda.limits import AGGREGATE_BUFFER_ROWS, BATCH_ROWS

_EMPTY = Batch([], 0)
_BYTES_PER_STATE = 16


@dataclass
class BoundCall:
    """One aggregate call with its columns resolved. ``argument`` is None for count(*)."""

    function: str
    argument: Callable[[Batch], pa.Array] | None
    argument_type: SqlType | None
    result: SqlType
    distinct: bool = False
    condition: Callable[[Batch], pa.Array] | None = None

    def new_state(self) -> State:
        return new_state(self.function, self.argument_type, self.result)


class _Distinct:
    """Lets each pair (group, value) pass once."""

    def __init__(self, type_: SqlType) -> None:
        self._values = KeyIds([type_])
        self._pairs = IntegerIds()

    def first_rows(self, groups: Indices, values: pa.Array) -> Indices:
        """The rows whose pair was not there before (NULL values never pass)."""
        ids = self._values.encode([values])
        rows = np.flatnonzero(ids)
        before = self._pairs.count
        pairs = self._pairs.encode(groups[rows] << 32 | ids[rows])
        new = np.flatnonzero(pairs > before)
        _, first = np.unique(pairs[new], return_index=True)
        return rows[new[first]]

    @property
    def bytes(self) -> int:
        return self._values.bytes + self._pairs.bytes


class HashAggregateOperator(Operator):
    """``group`` are positions of the input. ``always_one``: without groups there is one row even
    over no input (SINGLE and FINAL). ``flushes``: with very many groups put out what there is and
    start over (PARTIAL: the final phase merges)."""

    def __init__(
        self,
        source: Operator,
        group: Sequence[int],
        group_types: Sequence[SqlType],
        calls: Sequence[BoundCall],
        *,
        always_one: bool,
        flushes: bool,
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source)
        self._group = group
        self._group_types = group_types
        self._calls = calls
        self._always_one = always_one
        self._flushes = flushes
        self._memory = memory
        self._results: Batch | None = None
        self._next = 0
        self._any_rows = False
        self._null_seen = False
        self._batch = _EMPTY
        self._reset()

    def _reset(self) -> None:
        self._keys = GroupKeys(self._group_types) if self._group else None
        self._states = [call.new_state() for call in self._calls]
        self._distinct = [
            _Distinct(call.argument_type)
            if call.distinct and call.argument_type is not None
            else None
            for call in self._calls
        ]
        self._null_seen = False
        self._any_rows = False

    def advance(self) -> Progress:
        if self._results is not None:
            return self._put_out()
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        self._batch = _EMPTY
        if batch.rows:
            self._add(batch)
            full = self._keys is not None and self._keys.count >= AGGREGATE_BUFFER_ROWS
            if full and self._flushes:
                self._finish()
        if self._source.done:
            self._finish()
        return Progress.FETCHED

    # --- rows in ------------------------------------------------------------------------------

    def _add(self, batch: Batch) -> None:
        groups = self._slots(batch)
        self._any_rows = True
        slots = 1 if self._keys is None else self._keys.count + 1
        for call, state, distinct in zip(self._calls, self._states, self._distinct, strict=True):
            state.resize(slots)
            self._add_call(call, state, distinct, groups, batch)
        self._account(slots)

    def _slots(self, batch: Batch) -> Indices | None:
        """The slot of each row: the id of its group (0 for a lone NULL)."""
        if self._keys is None:
            return None
        groups = self._keys.encode([batch.column(position) for position in self._group])
        if len(self._group) == 1 and batch.column(self._group[0]).null_count:
            self._null_seen = True
        return groups

    def _add_call(
        self,
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
            batch = batch.narrow(hits)
            groups = None if groups is None else groups[hits]
        if call.argument is None:
            assert isinstance(state, CountState)
            state.add_rows(groups, batch.rows)
            return
        values = call.argument(batch)
        if distinct is not None:
            places = np.zeros(batch.rows, np.int64) if groups is None else groups
            rows = distinct.first_rows(places, values)
            values, groups = take(values, rows), places[rows]
        if len(values):
            state.add(groups, values)

    def _account(self, slots: int) -> None:
        size = slots * _BYTES_PER_STATE * len(self._states)
        if self._keys is not None:
            size += self._keys.bytes
        size += sum(distinct.bytes for distinct in self._distinct if distinct is not None)
        self._memory.resize(size)

    # --- results out --------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._keys is None:
            rows = 1 if self._any_rows or self._always_one else 0
            slots = np.zeros(rows, np.int64)
            keys: list[pa.Array] = []
        else:
            first = 0 if self._null_seen else 1
            slots = np.arange(first, self._keys.count + 1)
            keys = self._keys.decode(slots) if len(slots) else []
        if len(slots):
            for state in self._states:
                state.resize(int(slots[-1]) + 1)
            columns = [*keys, *(state.finish(slots) for state in self._states)]
            self._results = Batch(columns, len(slots))
        else:
            self._results = _EMPTY
        self._next = 0
        self._reset()

    def _put_out(self) -> Progress:
        results = self._results
        assert results is not None
        self._batch = results
        if results.rows > BATCH_ROWS:
            self._batch = results.slice(self._next, BATCH_ROWS)
        self._next += BATCH_ROWS
        if self._next < results.rows:
            return Progress.FETCHED
        if self._source.done:
            return Progress.FETCHED_DONE
        self._results = None
        self._memory.clear()
        return Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = _EMPTY
        self._results = None
        self._keys = None
        self._states = []
        self._distinct = []
        self._memory.clear()
        self._source.close()
