"""Chunks: the rows of a map on one member, each with its partition and its begin and end
timestamps.

A chunk is open or sealed. An open chunk (a *tail*) is a list of row tuples that single puts append
to; sealing turns the tuples into one Arrow batch and changes nothing else, so slots stay valid.
Columns never change after that; only ``ends`` does, and only by the event loop.

A *slot* is a row's address: the chunk's number shifted left by ``OFFSET_BITS``, plus its offset.
"""

from __future__ import annotations

from itertools import repeat
from operator import call
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.limits import TAIL_PIECE_ROWS
from remuda.storage.chunks.readers import Reader, reader
from remuda.storage.chunks.row_sizes import RowSizes

Row: TypeAlias = tuple[PhysicalValue, ...]
Flags: TypeAlias = npt.NDArray[np.bool_]
Times: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int64]

OFFSET_BITS: Final = 17
CHUNK_ROWS_MAX: Final = 1 << OFFSET_BITS
OFFSET_MASK: Final = CHUNK_ROWS_MAX - 1


class Chunk:
    """Up to ``CHUNK_ROWS_MAX`` rows of the ``schema`` that they were written with. ``begin`` is the
    latest begin; ``begins`` is None when all are equal. ``origins``, if there are any, say when the
    versions were written, and the begins only from when on these rows show them (``handovers``).

    ``ends`` is None as long as all rows have the same end, ``end`` (``FOREVER``, or the time at
    which the whole map was replaced); ``first_end`` is the earliest end, ``closed`` the number of
    rows with an end. ``reclosed`` counts ends that were changed to others.

    Other threads read a chunk while the loop appends to it and closes rows. All that they meet in
    between is right for their read timestamp, because every write comes after it: an ``ends`` that
    has just been allocated holds the ends that were there before, each end is one aligned word, and
    ``begin`` is raised before ``length`` is.
    """

    __slots__ = (
        "_batch_size",
        "_bounds",
        "_getters",
        "_measured",
        "_prefix",
        "_sizes",
        "_variable",
        "base",
        "batch",
        "begin",
        "begin_view",
        "begins",
        "closed",
        "end",
        "end_view",
        "ends",
        "first_end",
        "length",
        "origins",
        "partition_view",
        "partitions",
        "reclosed",
        "schema",
        "sketches",
        "tuples",
    )

    def __init__(self, number: int, schema: MapSchema) -> None:
        self.base = number << OFFSET_BITS
        self.length = 0
        self.batch: pa.RecordBatch | None = None
        self.tuples: list[Row] | None = None
        self.partitions: npt.NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
        self.partition_view: memoryview | None = None
        self.begin = 0
        self.begins: Times | None = None
        self.begin_view: memoryview | None = None
        self.origins: Times | None = None
        self.end = FOREVER
        self.ends: Times | None = None
        self.end_view: memoryview | None = None
        self.first_end = FOREVER
        self.reclosed = 0
        self.closed = 0
        self.schema = schema
        self._getters: list[Reader] | None = None
        self._prefix: pa.RecordBatch | None = None
        self._batch_size = 0
        self._sizes: RowSizes | None = None
        self._measured = self._variable = 0
        """Of a tail: the rows whose texts have been measured, and the bytes of these."""
        self._bounds: dict[int, tuple[Any, Any]] = {}
        self.sketches: dict[tuple[int, int], tuple[int, Any]] = {}
        """Kept for ``storage.maps.statistics``: (version, position) -> (rows, sketch)."""

    # --- making ---

    @classmethod
    def open(cls, number: int, schema: MapSchema) -> Chunk:
        """An empty tail with room for ``TAIL_PIECE_ROWS`` rows."""
        chunk = cls(number, schema)
        chunk.tuples = []
        chunk._sizes = RowSizes(schema)
        chunk.partitions = np.zeros(TAIL_PIECE_ROWS, dtype=np.uint16)
        chunk.partition_view = chunk.partitions.data
        chunk.begins = np.zeros(TAIL_PIECE_ROWS, dtype=np.int64)
        chunk.begin_view = chunk.begins.data
        chunk.ends = np.full(TAIL_PIECE_ROWS, FOREVER, dtype=np.int64)
        chunk.end_view = chunk.ends.data
        return chunk

    @classmethod
    def sealed(  # noqa: PLR0917 (a row's parts, in order)
        cls,
        number: int,
        schema: MapSchema,
        batch: pa.RecordBatch,
        partitions: npt.NDArray[np.uint16],
        begins: Times | int,
        ends: Times | None = None,
        origins: Times | None = None,
    ) -> Chunk:
        chunk = cls(number, schema)
        chunk.origins = origins
        chunk.length = batch.num_rows
        assert chunk.length <= CHUNK_ROWS_MAX
        chunk.batch = batch
        chunk._batch_size = batch.nbytes
        chunk.partitions = partitions
        if isinstance(begins, int):
            chunk.begin = begins
        else:
            chunk.begin = int(begins.max())
            if int(begins.min()) != chunk.begin:
                chunk.begins = begins
                chunk.begin_view = begins.data
        if ends is not None:
            chunk.closed = int(np.count_nonzero(ends != FOREVER))
            if chunk.closed:
                chunk.first_end = int(ends.min())
                if chunk.first_end == int(ends.max()):
                    chunk.end = chunk.first_end
                else:
                    chunk.ends = ends
                    chunk.end_view = ends.data
        return chunk

    @property
    def number(self) -> int:
        return self.base >> OFFSET_BITS

    # --- reading ---

    def row(self, offset: int) -> Row:
        tuples = self.tuples
        if tuples is not None:
            return tuples[offset]
        return tuple(map(call, self._getters or self._open_getters(), repeat(offset)))

    def _open_getters(self) -> list[Reader]:
        assert self.batch is not None
        columns = self.schema.columns
        self._getters = [
            reader(array, column.type)
            for array, column in zip(self.batch.columns, columns, strict=True)
        ]
        return self._getters

    def values_at(self, offset: int, positions: tuple[int, ...]) -> Row:
        tuples = self.tuples
        if tuples is not None:
            row = tuples[offset]
            return tuple([row[position] for position in positions])
        getters = self._getters or self._open_getters()
        return tuple([getters[position](offset) for position in positions])

    def columns(self, count: int) -> pa.RecordBatch:
        """The first ``count`` rows in engine form; any thread may call it, tails are converted
        once.
        """
        tuples = self.tuples  # read before `batch`: sealing sets `batch` first
        if tuples is None:
            batch = self.batch
            assert batch is not None
            return batch if count == batch.num_rows else batch.slice(0, count)
        prefix = self._prefix
        done = 0 if prefix is None else prefix.num_rows
        if done < count:
            fresh = rows_to_batch(tuples[done:count], self.schema)
            prefix = fresh if prefix is None else pa.concat_batches([prefix, fresh])
            if self.tuples is not None:  # not sealed meanwhile
                self._prefix = prefix
        assert prefix is not None
        return prefix if prefix.num_rows == count else prefix.slice(0, count)

    def bounds(self, position: int) -> tuple[Any, Any]:
        """Smallest and largest value of a column as Arrow scalars (hidden rows included),
        cached.
        """
        found = self._bounds.get(position)
        if found is None:
            both = pc.min_max(self.columns(self.length).column(position))
            found = (both["min"], both["max"])
            if self.tuples is None:
                self._bounds[position] = found
        return found

    def begins_of(self, offsets: Offsets) -> Times | int:
        return self.begin if self.begins is None else self.begins[offsets]

    def origins_of(self, offsets: Offsets) -> Times | int:
        """When the versions were written that rows show."""
        return self.begins_of(offsets) if self.origins is None else self.origins[offsets]

    def exists_at(self, offset: int, at: int) -> bool:
        """Whether a row exists at ``at``."""
        begins, ends = self.begin_view, self.end_view
        begin: int = self.begin if begins is None else begins[offset]
        end: int = self.end if ends is None else ends[offset]
        return begin <= at < end

    def ends_of(self, offsets: Offsets) -> Times | int:
        return self.end if self.ends is None else self.ends[offsets]

    def last_end(self) -> int:
        """The latest end of any row."""
        if self.closed < self.length:
            return FOREVER
        return self.end if self.ends is None else int(self.ends[: self.length].max())

    def visible(self, count: int, at: int) -> Flags | bool:
        """Which of the first ``count`` rows exist at ``at``: flags, or one answer for all."""
        shown: Flags | bool = True
        if self.begin > at:
            if self.begins is None:
                return False
            shown = self.begins[:count] <= at
        ends = self.ends
        if ends is None:
            return shown if self.end > at else False
        if self.first_end <= at:
            alive = ends[:count] > at
            shown = alive if shown is True else shown & alive
        return shown

    @property
    def nbytes(self) -> int:
        """Estimated memory. Event loop only."""
        size: int = self.partitions.nbytes
        size += 0 if self.begins is None else self.begins.nbytes
        size += 0 if self.origins is None else self.origins.nbytes
        size += 0 if self.ends is None else self.ends.nbytes
        if self.tuples is not None:
            return size + self._tuples_size(self.tuples)
        return size + self._batch_size

    def _tuples_size(self, tuples: list[Row]) -> int:
        """Rows of a tail never change, so each is measured once, and no write waits for that."""
        sizes, length, prefix = self._sizes, self.length, self._prefix
        assert sizes is not None, "a tail knows the sizes of its rows"
        if self._measured < length:
            self._variable += sizes.variable(tuples[self._measured : length])
            self._measured = length
        converted: int = 0 if prefix is None else prefix.nbytes
        return length * sizes.fixed + self._variable + converted

    # --- writing (event loop only) ---

    def append(self, row: Row, partition: int, timestamp: int) -> int:
        """Add a row to a tail that has room; returns its slot."""
        assert self.tuples is not None
        offset = self.length
        self.tuples.append(row)
        self.partition_view[offset] = partition  # type: ignore[index]
        self.begin_view[offset] = timestamp  # type: ignore[index]
        if timestamp > self.begin:  # noqa: PLR1730 (half the cost of max)
            self.begin = timestamp
        self.length = offset + 1
        return self.base | offset

    def close(self, offset: int, timestamp: int) -> None:
        """End a row at ``timestamp``."""
        view = self.end_view
        if view is None:
            view = self._allocate_ends()
        if view[offset] == FOREVER:
            self.closed += 1
        else:
            self.reclosed += 1
        view[offset] = timestamp
        if timestamp < self.first_end:  # noqa: PLR1730 (half the cost of min)
            self.first_end = timestamp

    def reopen(self, offset: int) -> None:
        """Let a row live on. Nobody reads it yet at or above the end that it has."""
        view = self.end_view
        if view is None:
            view = self._allocate_ends()
        if view[offset] != FOREVER:
            self.closed -= 1
            self.reclosed += 1
        view[offset] = FOREVER

    def close_many(self, offsets: Offsets, timestamp: int) -> int:
        """End many different rows at ``timestamp``; returns how many had no end before."""
        if self.ends is None:
            self._allocate_ends()
        assert self.ends is not None
        if self.closed:
            fresh = int(np.count_nonzero(self.ends[offsets] == FOREVER))
        else:
            fresh = len(offsets)
        self.ends[offsets] = timestamp
        self.closed += fresh
        self.reclosed += len(offsets) - fresh
        self.first_end = min(self.first_end, timestamp)
        return fresh

    def close_each(self, offsets: Offsets, ends: Times) -> int:
        """End different rows, each at its own time; returns how many had no end before."""
        if self.ends is None:
            self._allocate_ends()
        assert self.ends is not None
        fresh = int(np.count_nonzero(self.ends[offsets] == FOREVER))
        self.ends[offsets] = ends
        self.closed += fresh
        self.reclosed += len(offsets) - fresh
        self.first_end = min(self.first_end, int(ends.min()))
        return fresh

    def close_all(self, timestamp: int) -> int:
        """End every row of a sealed chunk without any end; returns how many rows that are."""
        assert self.closed == 0
        assert self.tuples is None
        self.closed = self.length
        self.first_end = timestamp
        self.end = timestamp
        self.ends = self.end_view = None
        return self.length

    def _allocate_ends(self) -> memoryview:
        ends = np.full(self.length, self.end, dtype=np.int64)
        self.ends = ends
        self.end_view = ends.data
        return self.end_view

    def seal(self) -> None:
        """Turn a full tail into Arrow."""
        batch = self.columns(self.length)
        self.batch = batch
        self._batch_size = batch.nbytes
        self.tuples = None
        self._sizes = None
        self._prefix = None
        self.partition_view = None
        if self.closed == 0:
            self.ends = self.end_view = None


def rows_to_batch(rows: list[Row], schema: MapSchema) -> pa.RecordBatch:
    """Row tuples as one engine-form batch."""
    if not rows:
        return _empty(schema)
    arrays = [
        values_to_array(values, column.type)
        for values, column in zip(zip(*rows, strict=True), schema.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))


def _empty(schema: MapSchema) -> pa.RecordBatch:
    arrow_schema = engine_schema(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array([], type=field.type) for field in arrow_schema], schema=arrow_schema
    )
