"""HashAggregate: groups get dense slots as they appear; every call keeps one state per slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.execution.arrays import Indices
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.group_keys import GroupKeys
from remuda.execution.memory import Reservation
from remuda.execution.operators.group_states import BoundCall, GroupStates
from remuda.execution.operators.input import EMPTY, Outgoing, Upstream
from remuda.execution.operators.row_partitions import RowPartitions
from remuda.limits import AGGREGATE_BUFFER_ROWS

_BYTES_PER_ROW: Final = 1024
"""The most bytes that a row may need while it is added, but for long texts."""
_PIECE_ROWS_MIN: Final = 256


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
        self._source = Upstream(source, memory)
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
        self._results: Outgoing | None = None
        self._pieces: Outgoing | None = None
        self._piece_rows = max(_PIECE_ROWS_MIN, memory.share // _BYTES_PER_ROW)
        self._any_rows = False
        self._null_seen = False
        self._batch = EMPTY
        self._reset()

    def _reset(self) -> None:
        self._keys = GroupKeys(self._group_types) if self._group else None
        self._states = GroupStates(self._calls)
        self._null_seen = False
        self._any_rows = False

    def advance(self) -> Progress:
        if self._results is not None:
            return self._put_out()
        if self._pieces:
            return self._next_piece()
        if self._source.done:
            return self._replay()
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        self._batch = EMPTY
        if batch.rows:
            if batch.rows <= self._piece_rows:
                self._take(batch)
            else:
                self._pieces = Outgoing(batch, self._piece_rows)
                return self._next_piece()
        # What was put out early because of the last batch is all that there is.
        if self._source.done and not self._states.spilled and self._results is None:
            self._finish()
        return Progress.FETCHED

    def _next_piece(self) -> Progress:
        """Of a batch that could need more memory at once than there is."""
        assert self._pieces is not None
        self._batch = EMPTY
        self._take(self._pieces.next())
        if not self._pieces:
            self._pieces = None
            if self._source.done and not self._states.spilled and self._results is None:
                self._finish()
        return Progress.FETCHED

    def _take(self, batch: Batch) -> None:
        if self.overflowed is not None:
            batch = self._of_known_groups(batch, self.overflowed)
        fits = self._add(batch)
        full = self._keys is not None and self._keys.count >= AGGREGATE_BUFFER_ROWS
        if self._flushes and (full or not fits):
            self._finish()
        elif not fits and not self._spill_distinct():
            self._begin_to_overflow()

    def _replay(self) -> Progress:
        """Values of DISTINCT calls that were put on disk come back before the results."""
        self._batch = EMPTY
        if self._states.replay():
            self._account(1 if self._keys is None else self._keys.count + 1)
        else:
            self._states.close()
            self._finish()
        return Progress.FETCHED

    def _spill_distinct(self) -> bool:
        return self._memory.spill is not None and self._states.spill(self._memory)

    # --- rows in ------------------------------------------------------------------------------

    def _add(self, batch: Batch) -> bool:
        """False when the memory is used up."""
        if batch.rows == 0:
            return True
        groups = self._slots(batch)
        self._any_rows = True
        slots = 1 if self._keys is None else self._keys.count + 1
        self._states.add(groups, slots, batch)
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

    def _account(self, slots: int) -> bool:
        size = self._states.bytes(slots)
        if self._keys is not None:
            size += self._keys.bytes
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
            results = self._states.results(slots)
            self._results = Outgoing(Batch([*keys, *results], len(slots)))
        else:
            self._results = Outgoing()
        self._reset()

    def _put_out(self) -> Progress:
        assert self._results is not None
        self._batch = self._results.next()
        if self._results:
            return Progress.FETCHED
        if self._source.done and not self._pieces:
            return Progress.FETCHED_DONE
        self._results = None
        self._memory.clear()
        return Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._results = self._pieces = None
        self._keys = None
        self._states.close()
        self._states = GroupStates([])
        if self.overflowed is not None:
            self.overflowed.close()
        self._memory.clear()
        self._source.close()
