"""A hash aggregate whose groups may be more than fit into memory (hybrid hashing; Shapiro 1986)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operators.aggregate import HashAggregateOperator
from remuda.execution.operators.input import EMPTY
from remuda.execution.operators.row_partitions import DEPTH_MAX, FileScan, RowPartitions
from remuda.execution.spill import SpillFile

Overflow: TypeAlias = Callable[[], RowPartitions]
MakeAggregate: TypeAlias = Callable[[Operator, Overflow | None, bool], HashAggregateOperator]
"""(source, where rows of further groups go, whether it is the first) -> an aggregate. Only the
first one puts out what comes out without rows."""


class PartitionedAggregateOperator(Operator):
    """The groups that came first stay in memory; rows of others go to files, split by the hash of
    the group, and each file is aggregated in turn."""

    def __init__(
        self,
        source: Operator,
        make: MakeAggregate,
        *,
        types: Sequence[SqlType],
        group: Sequence[int],
        memory: Reservation,
    ) -> None:
        """``types`` are those of all columns of the source, ``group`` positions of them."""
        self._make = make
        self._types = types
        self._group = group
        self._memory = memory
        self._depth = 0
        self._files: list[tuple[SpillFile, int]] = []
        self._running: HashAggregateOperator | None = make(source, self._overflow, True)
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._running is None:
            return self._next_file()
        progress = self._running.advance()
        if progress is Progress.WAIT:
            return progress
        self._batch = self._running.current_batch()
        if progress is Progress.FETCHED:
            return progress
        if self._running.overflowed is not None:
            files = self._running.overflowed.finish()
            self._files += [(file, self._depth + 1) for file in files]
            self._memory.clear()
        self._running.close()
        self._running = None
        return Progress.FETCHED if self._files else Progress.FETCHED_DONE

    def _next_file(self) -> Progress:
        self._batch = EMPTY
        file, self._depth = self._files.pop()
        if file.rows:
            overflow = self._overflow if self._depth < DEPTH_MAX else None
            self._running = self._make(FileScan(file), overflow, False)
            return Progress.FETCHED
        file.close()
        return Progress.FETCHED if self._files else Progress.FETCHED_DONE

    def _overflow(self) -> RowPartitions:
        types = [self._types[position] for position in self._group]
        return RowPartitions(self._types, self._group, types, self._depth, self._memory)

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        if self._running is not None:
            self._running.close()
            self._running = None
        for file, _ in self._files:
            file.close()
        self._files = []
        self._memory.clear()
