"""StreamingAggregate: rows of a group follow each other, so a group is finished when another begins
(sort-based grouping; Graefe 1993, section 4). Groups come out in the order of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.execution.arrays import Mask, take, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.comparison import true_mask
from remuda.execution.memory import Reservation
from remuda.execution.operators.group_states import BoundCall, GroupStates
from remuda.execution.operators.input import EMPTY, Outgoing, Upstream, unify
from remuda.execution.operators.ordering import BoundKey, codes

_KEPT_GROUPS: Final = 4096
"""Finished groups are kept until there are so many, or the next batch brings as many."""


class StreamingAggregateOperator(Operator):
    """``group``: where the group columns are; there is at least one. The first groups come out at
    once, for a LIMIT above; then ever more of them at a time. Only the states of groups not put out
    yet are held."""

    def __init__(
        self,
        source: Operator,
        group: Sequence[BoundKey],
        calls: Sequence[BoundCall],
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source, memory)
        self._group = group
        self._calls = calls
        self._memory = memory
        self._wait_for = 1
        """Finished groups that are put out at once."""
        self._last: list[pa.Array] = []
        """The group columns of the last row."""
        self._begin()
        self._out = Outgoing()
        self._batch = EMPTY

    def _begin(self) -> None:
        self._states = GroupStates(self._calls)
        self._keys: list[list[pa.Array]] = [[] for _ in self._group]
        self._count = 0
        """Groups so far, in slots from 1; the last one is open."""

    def advance(self) -> Progress:
        if self._out:
            return self._put_out()
        if not self._source.done:
            batch = self._source.fetch()
            if batch is None:
                return Progress.WAIT
            if batch.rows:
                self._add(batch)
        elif self._count:
            self._end_groups()
        return self._put_out()

    # --- rows in ------------------------------------------------------------------------------

    def _add(self, batch: Batch) -> None:
        columns = [batch.column(key.position) for key in self._group]
        begins = self._group_begins(columns, batch.rows)
        starts = np.flatnonzero(begins)
        self._last = [take(column, np.array([batch.rows - 1])) for column in columns]
        finished = self._count + len(starts) - 1
        if len(starts) and finished >= self._wait_for:
            cut = int(starts[-1])
            if cut:
                self._fold(batch.slice(0, cut), begins[:cut])
            self._end_groups()
            self._wait_for = min(2 * self._wait_for, _KEPT_GROUPS)
            batch, begins = batch.slice(cut, batch.rows - cut), begins[cut:]
        self._fold(batch, begins)
        self._account()

    def _group_begins(self, columns: Sequence[pa.Array], rows: int) -> Mask:
        """Where another group begins than that of the row before."""
        found: Mask = np.zeros(rows, np.bool_)
        found[0] = not self._last
        for place, (column, key) in enumerate(zip(columns, self._group, strict=True)):
            found[1:] |= _changes(column, key)
            if self._last and not found[0]:
                pair = unify([self._last[place], column.slice(0, 1)], key.type)
                found[0] = _changes(pair, key)[0]
        return found

    def _fold(self, batch: Batch, begins: Mask) -> None:
        starts = np.flatnonzero(begins)
        slots = self._count + np.cumsum(begins)
        if len(starts):
            for kept, key in zip(self._keys, self._group, strict=True):
                kept.append(take(batch.column(key.position), starts))
        self._count += len(starts)
        self._states.add(slots, self._count + 1, batch)

    def _account(self) -> None:
        size = self._states.bytes(self._count + 1)
        size += sum(array.nbytes for kept in self._keys for array in kept)
        if size > self._memory.size and not self._memory.try_grow(size - self._memory.size):
            self._wait_for = 1  # nothing can be spilled, but what is finished can go
        self._memory.resize(size)

    # --- results out --------------------------------------------------------------------------

    def _end_groups(self) -> None:
        """All groups so far are finished."""
        slots = np.arange(1, self._count + 1)
        keys = [unify(kept, key.type) for kept, key in zip(self._keys, self._group, strict=True)]
        self._out = Outgoing(Batch([*keys, *self._states.results(slots)], self._count))
        self._begin()

    def _put_out(self) -> Progress:
        self._batch = self._out.next()
        if self._out:
            return Progress.FETCHED
        self._out = Outgoing()
        if not self._source.done or self._count:
            return Progress.FETCHED
        self._memory.clear()
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._out = Outgoing()
        self._last = []
        self._begin()
        self._memory.clear()
        self._source.close()


def _changes(column: pa.Array, key: BoundKey) -> Mask:
    """For every row but the first, whether its value is another one than that before it. NULLs are
    equal to each other, and so are NaNs."""
    rows = len(column) - 1
    found: Mask = np.zeros(rows, np.bool_)
    if rows == 0:
        return found
    if pa.types.is_null(column.type) or key.type.is_float or key.type.ordered_by_key:
        for part in codes(column, key):
            found |= part[1:] != part[:-1]
        return found
    found |= true_mask(pc.not_equal(column.slice(1), column.slice(0, rows)), rows)
    valid = validity_mask(column)
    if valid is not None:
        found |= valid[1:] != valid[:-1]
    return found
