"""A result that several places of a plan read: computed once per member, read by fragments there.

The fragment that stores runs to its end whatever the readers do, and readers wait for all of it.
So no reader can hold up another one through it, as two receivers of one stream could (design 12).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.plan.explain import preorder
from remuda.plan.physical import Fragment, SpoolScan, Store


class Spool:
    """One stored result on one member. One thread writes; after ``complete`` any may read.

    The rows are freed when all ``readers`` have closed. Readers close in threads of their own.
    """

    def __init__(self, readers: int, memory: Reservation) -> None:
        self.complete = False
        self.batches: list[Batch] = []
        self._memory = memory
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

    def add(self, batch: Batch) -> None:
        columns = batch.columns()
        with self._lock:
            if not self.unwanted:
                self._memory.grow(sum(column.nbytes for column in columns))
                self.batches.append(Batch(columns, batch.rows))

    def finish(self) -> None:
        self.complete = True
        for schedule in self._waiting:
            schedule()

    def release(self) -> None:
        """One reader needs it no more."""
        with self._lock:
            self._readers -= 1
            if self.unwanted:
                self.batches = []
                self._memory.clear()


class StoreOperator(Operator):
    """The root of a fragment that fills a spool."""

    def __init__(self, source: Operator, spool: Spool) -> None:
        self._source = Upstream(source)
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
        if self._next == len(spool.batches):
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        stored = spool.batches[self._next]
        self._next += 1
        columns = [stored.column(position) for position in self._positions]
        self._batch = Batch(columns, stored.rows)
        return Progress.FETCHED_DONE if self._next == len(spool.batches) else Progress.FETCHED

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
        node.spool for f in fragments for node in preorder(f.root) if isinstance(node, SpoolScan)
    )
    return {
        f.root.spool: Spool(readers[f.root.spool], Reservation(context.memory, "Store"))
        for f in fragments
        if isinstance(f.root, Store)
    }
