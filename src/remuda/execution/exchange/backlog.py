"""The pieces that wait for one receiver, in order; beyond a bound on disk (design rule 12)."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from remuda.execution.batch import Batch
from remuda.execution.exchange.encoding import BatchForm, pieces
from remuda.execution.memory import Reservation
from remuda.execution.spill import SpillFile


class Waiting:
    """A piece on its way to some receivers; encoded at most once."""

    __slots__ = ("batch", "encoded", "reserved", "size")

    def __init__(self, batch: pa.RecordBatch, size: int, reserved: int = 0) -> None:
        self.batch = batch
        self.size = size
        self.reserved = reserved
        """Bytes that are counted for it."""
        self.encoded: tuple[pa.Buffer, ...] | None = None


class Backlog:
    """First in, first out. Without ``memory`` whoever puts rows here bounds them.

    With it, pieces are counted there, and those that do not fit are written to disk. A file is
    first written and then read, so pieces that come while one is read go to the next.
    """

    def __init__(self, form: BatchForm, size_max: int, memory: Reservation | None = None) -> None:
        self._form = form
        self._size_max = size_max
        self._memory = memory
        self._head: deque[Waiting] = deque()
        self._files: deque[SpillFile] = deque()
        self._reading: SpillFile | None = None

    def put(self, batch: pa.RecordBatch) -> None:
        """Raises DiskFull, and OutOfMemory where rows may not be spilled."""
        memory = self._memory
        if memory is None:
            self._head.extend(Waiting(*piece) for piece in pieces(batch, self._size_max))
            return
        for piece, size in pieces(batch, self._size_max):
            on_disk = self._files or self._reading is not None
            if not on_disk and memory.try_grow(size):
                self._head.append(Waiting(piece, size, reserved=size))
                continue
            if not self._files:
                assert memory.spill is not None
                self._files.append(memory.spill.file(self._form.types))
            self._files[-1].write(Batch.of(piece))

    @property
    def first(self) -> Waiting | None:
        if not self._head and self._memory is not None:
            self._refill()
        return self._head[0] if self._head else None

    def popleft(self) -> Waiting:
        """The piece that ``first`` gave."""
        waiting = self._head.popleft()
        if waiting.reserved and self._memory is not None:
            self._memory.resize(self._memory.size - waiting.reserved)
        return waiting

    def _refill(self) -> None:
        """The next batch from disk. It counts no more: it is less than half a window."""
        while not self._head:
            if self._reading is None:
                if not self._files:
                    return
                self._reading = self._files.popleft()
            batch = self._reading.read()
            if batch is None:
                self._reading.close()
                self._reading = None
            else:
                rows = self._form.record_batch(batch)
                self._head.extend(Waiting(*piece) for piece in pieces(rows, self._size_max))

    def __bool__(self) -> bool:
        return bool(self._head or self._files) or self._reading is not None

    def __len__(self) -> int:
        """Pieces in memory."""
        return len(self._head)

    def clear(self) -> None:
        if self._memory is not None:
            held = sum(waiting.reserved for waiting in self._head)
            self._memory.resize(self._memory.size - held)
        self._head.clear()
        for file in (*self._files, *([self._reading] if self._reading is not None else [])):
            file.close()
        self._files.clear()
        self._reading = None
