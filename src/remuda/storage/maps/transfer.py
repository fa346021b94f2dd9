"""Row versions on their way from one store of a map to another one: of some partitions, exactly as
they are, with begins and ends (design rule 20).

A transfer is a row of *rounds*. A round takes the versions that began or ended after ``low`` and at
or before ``high``; the next one begins where it stopped. At ``high`` everything must be decided:
the clock is past it, and nothing is pending at or below it. The receiver adds versions that began
after ``low``, and ends the others, which it has, where they end.

Between two stores of one process a transfer is exact without timestamps: rows that are read on
another thread are read again where they have changed (``Extraction.refreshed``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import EXPIRY_MARK, FOREVER
from remuda.errors import SchemaChanged
from remuda.limits import MIB, PARTITIONS
from remuda.storage.chunks.chunk import Chunk, Flags, Offsets, Times
from remuda.storage.chunks.chunk_table import TableView
from remuda.storage.chunks.handovers import goes_on
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.scan import partition_flags
from remuda.storage.staging.staging import PreparedRows, arrange

EVERY_PARTITION = frozenset(range(PARTITIONS))
NOT_KEPT = FOREVER
"""No transfer has told others anything."""
ALWAYS = -1
"""The ``low`` of a first round."""
NEVER = 0
"""The end of a version that no reader may see: before every begin."""


@dataclass(slots=True)
class Versions:
    """Versions of rows; ``ends`` may be FOREVER. The columns are those of ``schema``."""

    schema: MapSchema
    batch: pa.RecordBatch
    begins: Times
    ends: Times

    @property
    def rows(self) -> int:
        count: int = self.batch.num_rows
        return count

    def where(self, chosen: Flags) -> Versions:
        """Some of them, in their order."""
        batch = self.batch.filter(pa.array(chosen))
        return Versions(self.schema, batch, self.begins[chosen], self.ends[chosen])

    def on_wire(self) -> pa.RecordBatch:
        """One batch with two columns more."""
        arrays = [*self.batch.columns, pa.array(self.begins), pa.array(self.ends)]
        fields = [*self.batch.schema, pa.field("#begin", pa.int64()), pa.field("#end", pa.int64())]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def from_wire(batch: pa.RecordBatch, schema: MapSchema) -> Versions:
    """The opposite of ``on_wire``. Raises SchemaChanged for rows of another schema."""
    wanted = engine_schema(schema)
    if batch.schema.types[:-2] != wanted.types or batch.schema.names[:-2] != wanted.names:
        raise SchemaChanged(f'map "{schema.name}" was altered while its rows were copied')
    begins, ends = (batch.column(batch.num_columns - back).to_numpy() for back in (2, 1))
    columns = pa.RecordBatch.from_arrays(batch.columns[:-2], schema=wanted)
    return Versions(schema, columns, begins, ends)


SENT_ROWS: Final = 16 * 1024
SENT_SIZE: Final = 8 * MIB
"""Rows of a copy travel in batches of at most so many rows, and of about so many bytes."""


def joined(pieces: Iterable[Versions], rows: int = 0) -> Iterator[Versions]:
    """The same versions in pieces of at least so many rows (0: ``SENT_ROWS``) or ``SENT_SIZE``
    bytes, but for the last one: each atomic write leaves a chunk, and a request for each of
    thousands of small chunks takes longer than writers take to make as many new ones."""
    waiting: list[Versions] = []
    count = size = 0
    for piece in pieces:
        waiting.append(piece)
        count += piece.rows
        size += piece.batch.nbytes
        if count >= (rows or SENT_ROWS) or size >= SENT_SIZE:
            yield _whole(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield _whole(waiting)


def wire_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch in order, as batches that may be sent: halves of halves, since rows may
    differ much in size. A batch of one row may be larger."""
    if batch.num_rows <= 1 or (batch.num_rows <= SENT_ROWS and batch.nbytes <= SENT_SIZE):
        yield batch
        return
    half = batch.num_rows // 2
    yield from wire_batches(batch.slice(0, half))
    yield from wire_batches(batch.slice(half))


def _whole(pieces: list[Versions]) -> Versions:
    if len(pieces) == 1:
        return pieces[0]
    return Versions(
        pieces[0].schema,
        pa.concat_batches([each.batch for each in pieces]),
        np.concatenate([each.begins for each in pieces]),
        np.concatenate([each.ends for each in pieces]),
    )


@dataclass(frozen=True, slots=True)
class Described:
    """Versions at ``offsets`` of a chunk; ``keys``: the columns of their keys."""

    chunk: Chunk
    offsets: Offsets
    keys: pa.RecordBatch
    begins: Times
    ends: Times


class Extraction:
    """The versions of some partitions in chunks that were pinned by the event loop. ``versions``
    may be read on any thread, once."""

    def __init__(  # noqa: PLR0917 (what, where, when)
        self,
        view: TableView,
        layouts: Layouts,
        partitions: frozenset[int],
        low: int = ALWAYS,
        high: int = FOREVER - 1,
        returned: Times | None = None,
    ) -> None:
        self.schema = layouts.schema
        self.chunks = [(chunk, chunk.length) for chunk in view.chunks]
        """With the rows that they had."""
        self.layouts = layouts
        self._partitions = partitions
        self._low, self._high = low, high
        self._returned = returned
        """See ``handovers.goes_on``."""
        self.later_ends = False
        """Show what something has ended after ``high`` with that end, not as if it lived on."""
        self._taken: list[tuple[Chunk, Offsets]] = []

    def versions(self) -> Iterator[Versions]:
        """Chunk by chunk, never empty."""
        for chunk, count in self.chunks:
            found = self._of(chunk, 0, count)
            if found is not None:
                yield found

    def descriptions(self) -> Iterator[Described]:
        """Chunk by chunk, never empty, what ``versions`` would give, with the columns of the key
        alone. ``rows`` gives the others."""
        positions = self.schema.key_positions
        for chunk, count in self.chunks:
            found = self._chosen(chunk, 0, count)
            if found is not None:
                offsets, begins, ends = found
                keys = self.layouts.columns(chunk, count, positions)
                yield Described(chunk, offsets, keys.take(pa.array(offsets)), begins, ends)

    def rows(self, chunk: Chunk, offsets: Offsets) -> pa.RecordBatch:
        """Whole rows that ``descriptions`` has named."""
        count = int(offsets.max(initial=-1)) + 1
        return self.layouts.columns(chunk, count).take(pa.array(offsets))

    def _of(self, chunk: Chunk, start: int, count: int) -> Versions | None:
        """Of the rows from ``start`` to ``count``."""
        found = self._chosen(chunk, start, count)
        if found is None:
            return None
        offsets, begins, ends = found
        batch = self.layouts.columns(chunk, count).slice(start)
        if len(offsets) < batch.num_rows:
            batch = batch.take(pa.array(offsets - start))
        self._taken.append((chunk, offsets))
        return Versions(self.layouts.schema, batch, begins, ends)

    def _chosen(self, chunk: Chunk, start: int, count: int) -> tuple[Offsets, Times, Times] | None:
        """Of the rows from ``start`` to ``count``: their offsets in the chunk, begins and ends."""
        if chunk.begin <= self._low and not chunk.closed:
            return None
        wanted = partition_flags(self._partitions)
        begins, ends = _begins(chunk, count)[start:], _ends(chunk, count)[start:]
        chosen: Flags = begins < ends
        if chunk.origins is not None:
            begins = chunk.origins[start:count]
        if self._returned is not None:
            chosen &= np.logical_not(goes_on(self._returned, chunk.partitions[start:count], ends))
        chosen &= begins <= self._high
        chosen &= (begins > self._low) | ((ends > self._low) & (ends <= self._high))
        if wanted is not None:
            chosen &= wanted[chunk.partitions[start:count]]
        offsets = np.flatnonzero(chosen)
        if not len(offsets):
            return None
        ends = ends[offsets]
        if not self.later_ends:
            ends[(ends > self._high) & (ends & EXPIRY_MARK != EXPIRY_MARK)] = FOREVER
        return offsets + start, begins[offsets], ends

    def refreshed(self, view: TableView) -> tuple[Times, list[Versions]]:
        """On the loop, while the upkeep of the map has rested since: the ends of what ``versions``
        gave, in that order, as they are now, and the versions that have come since."""
        ends = [_ends(chunk, chunk.length)[offsets] for chunk, offsets in self._taken]
        seen = {id(chunk): count for chunk, count in self.chunks}
        more = []
        for chunk in view.chunks:
            found = self._of(chunk, seen.get(id(chunk), 0), chunk.length)
            if found is not None:
                more.append(found)
        return np.concatenate(ends) if ends else np.empty(0, dtype=np.int64), more


def _begins(chunk: Chunk, count: int) -> Times:
    if chunk.begins is None:
        return np.full(count, chunk.begin, dtype=np.int64)
    return chunk.begins[:count]


def _ends(chunk: Chunk, count: int) -> Times:
    """A copy: the loop may close rows meanwhile."""
    ends = chunk.ends
    return np.full(count, chunk.end, dtype=np.int64) if ends is None else ends[:count].copy()


@dataclass(slots=True)
class Arrival:
    """Versions in the form in which a store takes them, in the order in which they came."""

    rows: PreparedRows
    begins: Times
    ends: Times
    origins: Times | None = None
    """When the versions were written, if that is not when their rows begin."""

    def begin_after(self, cuts: Times) -> None:
        """As if nothing had been before ``cuts``, by partition: versions that ended there are never
        seen."""
        begins = np.maximum(self.begins, cuts[self.rows.partitions])
        if (begins != self.begins).any():
            self.origins, self.begins = self.begins, begins


def arrival(keys: KeyRule, versions: Sequence[Versions]) -> Arrival:
    """Put versions (at least one) in order. Any thread. Raises what ``KeyRule.check`` raises."""
    for each in versions:
        keys.check(each.batch)
    batches = [each.batch for each in versions]
    hashes = np.concatenate([keys.hashes(batch) for batch in batches])
    rows = arrange(keys, batches, hashes, hash_order(hashes))
    return Arrival(
        rows,
        np.concatenate([each.begins for each in versions]),
        np.concatenate([each.ends for each in versions]),
    )


def split(versions: Versions, low: int) -> tuple[Versions | None, Versions | None]:
    """Those that the receiver does not have yet, and those that it has and must end."""
    fresh = versions.begins > low
    return _where(versions, fresh), _where(versions, ~fresh)


def _where(versions: Versions, chosen: Flags) -> Versions | None:
    if chosen.all():
        return versions if versions.rows else None
    if not chosen.any():
        return None
    return versions.where(chosen)


def last_write(ends: Times) -> int:
    """The latest of the ends that something has made; 0 if there is none."""
    return int(ends[ends & EXPIRY_MARK != EXPIRY_MARK].max(initial=0))


def expire(ends: Times) -> bool:
    """Whether some of the versions end by themselves."""
    return bool(((ends & EXPIRY_MARK == EXPIRY_MARK) & (ends != FOREVER)).any())


def last_ends(chunks: Sequence[Chunk], partitions: frozenset[int]) -> Times:
    """By partition, the latest timestamp at which something ended a row of it; 0 if none is there,
    and for all other partitions."""
    latest = np.zeros(PARTITIONS, dtype=np.int64)
    for chunk, inside in _inside(chunks, partitions):
        ends = _ends(chunk, chunk.length)
        ended = inside & (ends & EXPIRY_MARK != EXPIRY_MARK)
        np.maximum.at(latest, chunk.partitions[: chunk.length][ended], ends[ended])
    return latest


def close(chunks: Sequence[Chunk], partitions: frozenset[int], at: int) -> int:
    """End at ``at`` what exists then; returns how many rows had no end before."""
    fresh = 0
    for chunk, inside in _inside(chunks, partitions):
        ends = _ends(chunk, chunk.length)
        offsets = np.flatnonzero(inside & (_begins(chunk, chunk.length) <= at) & (ends > at))
        if len(offsets):
            fresh += chunk.close_many(offsets, at)
    return fresh


def discard(chunks: Sequence[Chunk], partitions: frozenset[int]) -> int:
    """Make every version invisible; returns how many rows had no end before."""
    fresh = 0
    for chunk, inside in _inside(chunks, partitions):
        offsets = np.flatnonzero(inside)
        if len(offsets):
            fresh += chunk.close_many(offsets, NEVER)
    return fresh


def _inside(
    chunks: Sequence[Chunk], partitions: frozenset[int]
) -> Iterator[tuple[Chunk, npt.NDArray[np.bool_]]]:
    wanted = partition_flags(partitions)
    for chunk in chunks:
        if chunk.length:
            everything = np.ones(chunk.length, dtype=np.bool_)
            yield chunk, everything if wanted is None else wanted[chunk.partitions[: chunk.length]]
