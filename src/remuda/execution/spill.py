"""Rows on disk: where operators put what does not fit into their memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.errors import DiskFull, OutOfMemory
from remuda.execution.batch import Batch
from remuda.execution.evaluate.decimals import canonical

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(slots=True)
class Usage:
    """The bytes that one operator holds now and at most, and the compressed bytes and the files
    that it has put on disk so far. One thread at a time counts here."""

    held: int = 0
    peak: int = 0
    spilled: int = 0
    files: int = 0

    def hold(self, size: int) -> None:
        self.held += size
        self.peak = max(self.peak, self.held)


class DiskUse:
    """Bytes that all statements have on a member's disk now. Thread-safe."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            self.bytes += size


class SpillSpace:
    """The disk space of one statement on one member. Thread-safe.

    ``scratch`` opens a file that vanishes when it is closed or its process ends; ``limit`` bounds
    the bytes of all files together, which count in ``member``, too.
    """

    def __init__(
        self, scratch: Callable[[], BinaryIO], limit: int, member: DiskUse | None = None
    ) -> None:
        self._member = member or DiskUse()
        self._scratch = scratch
        self._limit = limit
        self._lock = threading.Lock()
        self.used = 0
        self.written = 0
        self.opened = 0
        """Bytes on disk now, bytes ever written, files ever made."""

    def file(self, types: Sequence[SqlType], usage: Usage | None = None) -> SpillFile:
        """An empty file for rows of ``types``. Raises DiskFull."""
        return SpillFile(self, self._open(), types, usage or Usage())

    def blocks(self, types: Sequence[SqlType], usage: Usage | None = None) -> SpilledBlocks:
        """An empty file of blocks. Raises DiskFull."""
        return SpilledBlocks(self, self._open(), types, usage or Usage())

    def _open(self) -> BinaryIO:
        file = self._scratch()
        with self._lock:
            self.opened += 1
        return file

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
        self._member.add(size)

    def give(self, size: int) -> None:
        with self._lock:
            self.used -= size
        self._member.add(-size)


class SpillFile:
    """Rows in the order in which they were written: an Arrow IPC stream, compressed.

    First written, then read once from its beginning; ``rows`` and ``bytes`` (compressed) count what
    was written.
    """

    def __init__(
        self, space: SpillSpace, file: BinaryIO, types: Sequence[SqlType], usage: Usage
    ) -> None:
        self._space = space
        self._file = file
        self._form = _Form(types)
        self._usage = usage
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._reader: pa.ipc.RecordBatchStreamReader | None = None
        self.rows = 0
        self.bytes = 0

    def write(self, batch: Batch) -> None:
        """Raises DiskFull, and OutOfMemory above the limit of the space."""
        rows = self._form.rows(batch)
        try:
            if self._writer is None:
                self._usage.files += 1
                self._writer = pa.ipc.new_stream(self._file, self._form.schema, options=_OPTIONS)
            self._writer.write_batch(rows)
            end = self._file.tell()
        except OSError as problem:
            raise _full(problem) from problem
        self._space.take(end - self.bytes)
        self._usage.spilled += end - self.bytes
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


class SpilledBlocks:
    """Blocks of rows by number, in the order in which they were written, each read as often as it
    is wanted. Thread-safe once all are written."""

    def __init__(
        self, space: SpillSpace, file: BinaryIO, types: Sequence[SqlType], usage: Usage
    ) -> None:
        self._space = space
        self._file = file
        self._form = _Form(types)
        self._usage = usage
        self._places: list[tuple[int, int]] = []
        """(where it begins, bytes) of every block."""
        self._lock = threading.Lock()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._places)

    def write(self, batch: Batch) -> None:
        """One more block. Raises DiskFull, and OutOfMemory above the limit of the space."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._form.schema, options=_OPTIONS) as writer:
            writer.write_batch(self._form.rows(batch))
        block = sink.getvalue()
        self._space.take(block.size)
        self._usage.files += not self._places
        self._usage.spilled += block.size
        with self._lock:
            place = self._bytes
            self._bytes += block.size
            self._places.append((place, block.size))
            try:
                self._file.seek(place)
                self._file.write(block)
            except OSError as problem:
                raise _full(problem) from problem

    def read(self, number: int) -> Batch:
        place, size = self._places[number]
        try:
            with self._lock:
                self._file.seek(place)
                block = self._file.read(size)
        except OSError as problem:
            raise _full(problem) from problem
        with pa.ipc.open_stream(block) as reader:
            return Batch.of(reader.read_next_batch())

    def close(self) -> None:
        """Free the space on disk; may be called again."""
        with self._lock:
            self._file.close()
            self._space.give(self._bytes)
            self._bytes = 0
            self._places = []


class _Form:
    """Rows as they are on disk: columns of the types that the operator declared."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = types
        self.schema = pa.schema(
            [pa.field(f"c{place}", engine_type(type_)) for place, type_ in enumerate(types)]
        )

    def rows(self, batch: Batch) -> pa.RecordBatch:
        columns = [
            canonical(column, type_)
            for column, type_ in zip(batch.columns(), self._types, strict=True)
        ]
        if columns:
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.rows, pa.struct([])))


def _full(problem: OSError) -> DiskFull:
    return DiskFull(
        f"rows cannot be spilled to disk: {problem.strerror or problem}",
        hint="Free space below spill_directory, or name another one.",
    )
