"""HashAggregate: groups get dense slots as they appear; every call keeps one state per slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.execution.arrays import Indices, Mask, take, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.comparison import true_mask
from remuda.execution.group_keys import GroupKeys
from remuda.execution.keys import IntegerIds, KeyIds
from remuda.execution.memory import Reservation
from remuda.execution.operators.aggregate_choice import KEEPS_NULLS, new_state
from remuda.execution.operators.aggregate_states import CountState, State
from remuda.execution.operators.input import Upstream
from remuda.execution.operators.ordering import BoundKey
from remuda.execution.operators.row_partitions import RowPartitions
from remuda.limits import AGGREGATE_BUFFER_ROWS, BATCH_ROWS

_EMPTY = Batch([], 0)
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


class HashAggregateOperator(Operator):
    """``group`` are positions of the input. ``always_one``: without groups there is one row even
    over no input (SINGLE and FINAL). ``flushes``: with very many groups put out what there is and
    start over (PARTIAL: the final phase merges). ``always``: groups that come out even if no row
    falls into them. ``overflow``: where rows of further groups go once the memory is used up; they
    are for another aggregate then (``overflowed``), whose groups are others."""

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
        always: Sequence[tuple[PhysicalValue, ...]] = (),
        overflow: Callable[[], RowPartitions] | None = None,
    ) -> None:
        self._source = Upstream(source)
        self._always = [
            values_to_array([key[place] for key in always], type_)
            for place, type_ in enumerate(group_types)
            if always
        ]
        self._group = group
        self._group_types = group_types
        self._calls = calls
        self._always_one = always_one
        self._flushes = flushes
        self._memory = memory
        self._overflow = overflow if group else None
        self.overflowed: RowPartitions | None = None
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
            _Distinct(call.types, keeps_nulls=call.function in KEEPS_NULLS)
            if call.distinct and call.types
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
            if self.overflowed is not None:
                batch = self._of_known_groups(batch, self.overflowed)
            fits = self._add(batch)
            full = self._keys is not None and self._keys.count >= AGGREGATE_BUFFER_ROWS
            if self._flushes and (full or not fits):
                self._finish()
            elif not fits:
                self._begin_to_overflow()
        if self._source.done:
            self._finish()
        return Progress.FETCHED

    # --- rows in ------------------------------------------------------------------------------

    def _add(self, batch: Batch) -> bool:
        """False when the memory is used up."""
        if batch.rows == 0:
            return True
        groups = self._slots(batch)
        self._any_rows = True
        slots = 1 if self._keys is None else self._keys.count + 1
        for call, state, distinct in zip(self._calls, self._states, self._distinct, strict=True):
            state.resize(slots)
            self._add_call(call, state, distinct, groups, batch)
        return self._account(slots)

    def _begin_to_overflow(self) -> None:
        if self._overflow is None or self.overflowed is not None:
            return
        if self._always:  # they are groups of this aggregate from now on
            self._encoded(self._always)
        self.overflowed = self._overflow()

    def _of_known_groups(self, batch: Batch, others: RowPartitions) -> Batch:
        """The rows of groups that are here; the rest goes to ``others``."""
        assert self._keys is not None
        _, known = self._keys.known([batch.column(position) for position in self._group])
        if known.all():
            return batch
        others.add(batch.narrow(np.flatnonzero(~known)))
        return batch.narrow(np.flatnonzero(known))

    def _slots(self, batch: Batch) -> Indices | None:
        """The slot of each row: the id of its group (0 for a lone NULL)."""
        if self._keys is None:
            return None
        return self._encoded([batch.column(position) for position in self._group])

    def _encoded(self, columns: list[pa.Array]) -> Indices:
        assert self._keys is not None
        if len(columns) == 1 and columns[0].null_count:
            self._null_seen = True
        return self._keys.encode(columns)

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

    def _account(self, slots: int) -> bool:
        size = slots * _BYTES_PER_STATE * len(self._states)
        if self._keys is not None:
            size += self._keys.bytes
        size += sum(distinct.bytes for distinct in self._distinct if distinct is not None)
        size += sum(state.bytes for state in self._states)
        if size <= self._memory.size:
            self._memory.resize(size)
            return True
        fits = self._memory.try_grow(size - self._memory.size)
        if not fits:  # it is held already
            self._memory.resize(size)
        return fits

    # --- results out --------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._keys is None:
            rows = 1 if self._any_rows or self._always_one else 0
            slots = np.zeros(rows, np.int64)
            keys: list[pa.Array] = []
        else:
            if self._always:
                self._encoded(self._always)
            first = 0 if self._null_seen else 1
            slots = np.arange(first, self._keys.count + 1)
            keys = self._keys.decode(slots) if len(slots) else []
        if len(slots):
            for state in self._states:
                state.resize(int(slots[-1]) + 1)
            results = [
                state.packed(slots) if call.packs else state.finish(slots)
                for call, state in zip(self._calls, self._states, strict=True)
            ]
            self._results = Batch([*keys, *results], len(slots))
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
        if self.overflowed is not None:
            self.overflowed.close()
        self._memory.clear()
        self._source.close()
