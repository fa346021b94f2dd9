"""Rows on disk: where operators put what does not fit into their memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.errors import DiskFull, OutOfMemory
from remuda.execution.batch import Batch
from remuda.execution.evaluate.decimals import canonical

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class SpillSpace:
    """The disk space of one statement on one member. Thread-safe.

    ``scratch`` opens a file that vanishes when it is closed or its process ends; ``limit`` bounds
    the bytes of all files together.
    """

    def __init__(self, scratch: Callable[[], BinaryIO], limit: int) -> None:
        self._scratch = scratch
        self._limit = limit
        self._lock = threading.Lock()
        self.used = 0
        self.written = 0
        self.opened = 0
        """Bytes on disk now, bytes ever written, files ever made."""

    def file(self, types: Sequence[SqlType]) -> SpillFile:
        """An empty file for rows of ``types``. Raises DiskFull."""
        file = self._scratch()
        with self._lock:
            self.opened += 1
        return SpillFile(self, file, types)

    def take(self, size: int) -> None:
        """Raises OutOfMemory above the limit."""
        with self._lock:
            if self.used + size > self._limit:
                raise OutOfMemory(
                    f"statement needs more than its spill limit of {self._limit} bytes",
                    hint="Raise spill_limit or statement_memory, or select fewer rows or columns.",
                )
            self.used += size
            self.written += size

    def give(self, size: int) -> None:
        with self._lock:
            self.used -= size


class SpillFile:
    """Rows in the order in which they were written: an Arrow IPC stream, compressed.

    First written, then read once from its beginning; ``rows`` and ``bytes`` (compressed) count what
    was written.
    """

    def __init__(self, space: SpillSpace, file: BinaryIO, types: Sequence[SqlType]) -> None:
        self._space = space
        self._file = file
        self._types = types
        self._schema = pa.schema(
            [pa.field(f"c{place}", engine_type(type_)) for place, type_ in enumerate(types)]
        )
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._reader: pa.ipc.RecordBatchStreamReader | None = None
        self.rows = 0
        self.bytes = 0

    def write(self, batch: Batch) -> None:
        """Raises DiskFull, and OutOfMemory above the limit of the space."""
        columns = [
            canonical(column, type_)
            for column, type_ in zip(batch.columns(), self._types, strict=True)
        ]
        if columns:
            rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        else:
            rows = pa.RecordBatch.from_struct_array(pa.array([{}] * batch.rows, pa.struct([])))
        try:
            if self._writer is None:
                self._writer = pa.ipc.new_stream(self._file, self._schema, options=_OPTIONS)
            self._writer.write_batch(rows)
            end = self._file.tell()
        except OSError as problem:
            raise _full(problem) from problem
        self._space.take(end - self.bytes)
        self.bytes = end
        self.rows += batch.rows

    def read(self) -> Batch | None:
        """The next batch as it was written; None at the end. The first call ends the writing."""
        if self._writer is None:
            return None
        try:
            if self._reader is None:
                self._writer.close()
                self._file.seek(0)
                self._reader = pa.ipc.open_stream(self._file)
            return Batch.of(self._reader.read_next_batch())
        except StopIteration:
            return None
        except OSError as problem:
            raise _full(problem) from problem

    def close(self) -> None:
        """Free the space on disk; may be called again."""
        self._writer = self._reader = None
        self._file.close()
        self._space.give(self.bytes)
        self.bytes = 0


def _full(problem: OSError) -> DiskFull:
    return DiskFull(
        f"rows cannot be spilled to disk: {problem.strerror or problem}",
        hint="Free space below spill_directory, or name another one.",
    )
