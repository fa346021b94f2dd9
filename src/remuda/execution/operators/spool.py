"""A result that several places of a plan read: computed once per member, read by fragments there.

The fragment that stores runs to its end whatever the readers do, and readers wait for all of it.
So no reader can hold up another one through it, as two receivers of one stream could (design 12).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.execution.spill import SpilledBlocks, Usage
from remuda.plan.physical import Fragment, SpoolScan, Store


class Spool:
    """One stored result on one member. One thread writes; after ``complete`` any may read.

    Rows that do not fit into memory go to disk, from there on all of them. The rows are freed when
    all ``readers`` have closed. Readers close in threads of their own.
    """

    def __init__(self, readers: int, types: Sequence[SqlType], memory: Reservation) -> None:
        self.complete = False
        self._types = types
        self._batches: list[Batch] = []
        self._blocks: SpilledBlocks | None = None
        self.memory = memory
        self._readers = readers
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], None]] = []

    def subscribe(self, schedule: Callable[[], None]) -> None:
        """``schedule`` is called when the result is complete."""
        self._waiting.append(schedule)

    @property
    def unwanted(self) -> bool:
        """No reader needs any more rows."""
        return self._readers == 0

    @property
    def usage(self) -> Usage:
        return self.memory.usage

    def add(self, batch: Batch) -> None:
        """Raises OutOfMemory where nothing spills, DiskFull."""
        columns = batch.columns()
        size = sum(column.nbytes for column in columns)
        with self._lock:
            if self.unwanted:
                return
            if self._blocks is None and self.memory.try_grow(size):
                self._batches.append(Batch(columns, batch.rows))
                return
            if self._blocks is None:
                self._blocks = self.memory.blocks(self._types)
            self._blocks.write(Batch(columns, batch.rows))

    def __len__(self) -> int:
        """Batches that are stored."""
        return len(self._batches) + (0 if self._blocks is None else len(self._blocks))

    def read(self, number: int) -> Batch:
        held = len(self._batches)
        if number < held:
            return self._batches[number]
        assert self._blocks is not None
        return self._blocks.read(number - held)

    def finish(self) -> None:
        self.complete = True
        for schedule in self._waiting:
            schedule()

    def release(self) -> None:
        """One reader needs it no more."""
        with self._lock:
            self._readers -= 1
            if self.unwanted:
                self._batches = []
                self._waiting = []
                self.memory.clear()
                if self._blocks is not None:
                    self._blocks.close()


class StoreOperator(Operator):
    """The root of a fragment that fills a spool."""

    def __init__(self, source: Operator, spool: Spool) -> None:
        self._source = Upstream(source, spool.memory)
        self._spool = spool

    def advance(self) -> Progress:
        if self._spool.unwanted:
            return Progress.FETCHED_DONE
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._spool.add(batch)
        if not self._source.done:
            return Progress.FETCHED
        self._spool.finish()
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return EMPTY

    def close(self) -> None:
        self._source.close()


class SpoolScanOperator(Operator):
    """Reads a spool from its start; ``positions`` are columns of what was stored."""

    def __init__(self, spool: Spool, positions: Sequence[int]) -> None:
        self._spool = spool
        self._positions = positions
        self._next = 0
        self._batch = EMPTY
        self._open = True

    def advance(self) -> Progress:
        spool = self._spool
        if not spool.complete:
            return Progress.WAIT
        if self._next == len(spool):
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        stored = spool.read(self._next)
        self._next += 1
        columns = [stored.column(position) for position in self._positions]
        self._batch = Batch(columns, stored.rows)
        return Progress.FETCHED_DONE if self._next == len(spool) else Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        if self._open:
            self._open = False
            self._spool.release()


def spools_of(fragments: Sequence[Fragment], context: FragmentContext) -> dict[int, Spool]:
    """The spools that these fragments of one member fill, by number."""
    readers = Counter(
        node.spool for f in fragments for node in f.nodes if isinstance(node, SpoolScan)
    )
    return {
        f.root.spool: Spool(
            readers[f.root.spool],
            [column.type for column in f.root.output],
            Reservation(context.memory, "Store"),
        )
        for f in fragments
        if isinstance(f.root, Store)
    }
