"""An aggregate with calls that keep all rows of a group (array_agg, medians): one group is held
beyond memory, not all of them (sort-based grouping; Graefe 1993, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operators.group_states import BoundCall
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.execution.operators.ordering import BoundKey
from remuda.execution.operators.row_partitions import HeldRows
from remuda.execution.operators.sort import SortOperator
from remuda.execution.operators.streaming_aggregate import StreamingAggregateOperator


class SortingAggregateOperator(Operator):
    """While the rows fit, they are aggregated as ``in_memory`` does. Otherwise all are sorted by
    ``group``, on disk, and a group is aggregated when it is complete."""

    def __init__(
        self,
        source: Operator,
        in_memory: Callable[[Operator], Operator],
        *,
        types: Sequence[SqlType],
        group: Sequence[BoundKey],
        calls: Sequence[BoundCall],
        memory: Reservation,
    ) -> None:
        """``types`` are those of all columns of the source."""
        self._source = Upstream(source, memory)
        self._in_memory = in_memory
        self._types = types
        self._group = group
        self._calls = calls
        self._memory = memory
        self._held: list[Batch] = []
        self._inner: Operator | None = None
        self._sorts = False
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._inner is not None:
            progress = self._inner.advance()
            if progress is not Progress.WAIT:
                self._batch = self._inner.current_batch()
            return progress
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            # Materialized: a selection would hold the whole batch below it.
            self._held.append(Batch(batch.columns(), batch.rows))
            if not self._memory.try_grow(batch.estimated_bytes()):
                self._begin_to_sort()
        if self._source.done and not self._sorts:
            self._memory.clear()  # the aggregate counts them again
            held, self._held = self._held, []
            self._inner = self._in_memory(HeldRows(held))
        self._batch = EMPTY
        return Progress.FETCHED

    def _begin_to_sort(self) -> None:
        self._sorts = True
        self._memory.clear()
        held, self._held = self._held, []
        self._inner = StreamingAggregateOperator(
            SortOperator(
                _HeldAndRest(held, self._source),
                self._group,
                self._types,
                None,
                self._memory.beside(),
            ),
            self._group,
            self._calls,
            self._memory.beside(),
        )

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._held = []
        if self._inner is not None:
            self._inner.close()
            self._inner = None
        self._memory.clear()
        self._source.close()


class _HeldAndRest(Operator):
    """The batches at hand, then the remaining ones of ``rest``; the maker of ``rest`` closes it."""

    def __init__(self, held: list[Batch], rest: Upstream) -> None:
        self._held = held[::-1]
        self._rest = rest
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._held:
            self._batch = self._held.pop()
        elif self._rest.done:
            self._batch = EMPTY
        else:
            batch = self._rest.fetch()
            if batch is None:
                return Progress.WAIT
            self._batch = batch
        return Progress.FETCHED if self._held or not self._rest.done else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._held = []
        self._batch = EMPTY
