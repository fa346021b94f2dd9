"""All secondary indexes of one map on one member: making, dropping, asking and keeping them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.datatypes.index import IndexDefinition, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import SchemaChanged
from remuda.storage.chunks.chunk import Chunk, Offsets, Row
from remuda.storage.chunks.chunk_table import ChunkTable, TableView
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.row_set import RowSet
from remuda.storage.chunks.scan import ScanCursor
from remuda.storage.indexes.access import Access, AllOf, AnyOf, Probe, Tests, spans_of
from remuda.storage.indexes.bitmap import BitmapIndex
from remuda.storage.indexes.few_rows import Declined, changed_after, rows_at
from remuda.storage.indexes.hash import HashForm, HashIndex
from remuda.storage.indexes.keys import KeyForm, Span
from remuda.storage.indexes.scan import IndexCursor, OrderedIndexCursor, match_keys
from remuda.storage.indexes.secondary_index import Candidates, Pinned, SecondaryIndex
from remuda.storage.indexes.sizes import index_size
from remuda.storage.indexes.sorted import SortedIndex, keys_between

GROUP_ROWS: Final = 64 * 1024
"""Small chunks are covered together, up to about so many rows."""

DROPPED_KEPT: Final = 64
SCAN_ANYWAY_ENTRIES: Final = 4096
SCAN_ANYWAY_RATIO: Final = 16
"""Fetching a row from where it lies takes as long as scanning so many."""

Pin: TypeAlias = Callable[[int, int], tuple[TableView, Layouts]]
"""(timestamp, version of the schema) -> the chunks now, and how to read them. Raises
``SnapshotTooOld`` and ``SchemaChanged``."""


class IndexSet:
    """Any thread may read; ``by_id`` is replaced as a whole, by the event loop.

    ``positions`` are those of the version of the schema that is given (0: the newest).
    """

    def __init__(self, layouts: Layouts, table: ChunkTable, pin: Pin) -> None:
        self._table = table
        self._pin = pin
        self.by_id: Mapping[int, SecondaryIndex] = {}
        self._dropped: dict[int, SecondaryIndex] = {}
        self._work: Iterator[None] | None = None
        self.define(layouts)

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for index in self.by_id.values())

    def expected(self, schema: MapSchema) -> int:
        """Bytes of the indexes of ``schema``, the next one of the map, that are not here yet."""
        known = {index.definition.name for index in self.by_id.values()}
        wanted = [each for each in schema.indexes if each.name not in known]
        chunks = self._table.snapshot() if wanted else ()
        return sum(index_size(schema, definition, chunks) for definition in wanted)

    @property
    def unbuilt(self) -> int:
        """Bytes that the indexes will take besides ``nbytes`` when all of them are built."""
        total = 0
        for index in self.by_id.values():
            if not index.built:
                schema, chunks = index.layouts.schema, self._table.snapshot()
                total += max(0, index_size(schema, index.definition, chunks) - index.nbytes)
        return total

    def define(self, layouts: Layouts) -> None:
        """Have the indexes of the newest schema and no others; new ones are built by ``step``."""
        made: dict[int, SecondaryIndex] = {}
        empty = not any(chunk.length for chunk in self._table.snapshot())
        for definition in layouts.schema.indexes:
            index = _new_index(definition, layouts)
            known = self.by_id.get(definition.index_id)
            if known is not None:
                index.take_over(known)
            index.built = empty if known is None else known.built
            made[definition.index_id] = index
        self._work = None
        for index_id, old in self.by_id.items():
            if index_id not in made:
                self._dropped[index_id] = type(old)(old.definition, old.form, old.layouts)
        while len(self._dropped) > DROPPED_KEPT:
            del self._dropped[next(iter(self._dropped))]
        self.by_id = made

    def get(self, index_id: int) -> SecondaryIndex:
        """An index, or one that was dropped just now, without its entries: a query that is running
        gets its answer, only slower. Raises ``SchemaChanged`` when it was dropped long ago."""
        index = self.by_id.get(index_id) or self._dropped.get(index_id)
        if index is None:
            raise SchemaChanged(
                "an index was dropped while a query was about to use it", hint="Run it again."
            )
        return index

    @property
    def built(self) -> frozenset[int]:
        """The ids of the indexes that have been built here."""
        return frozenset(number for number, index in self.by_id.items() if index.built)

    # --- lookups (any thread) ---

    def scan(
        self,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
        version: int,
        access: Access,
    ) -> ScanCursor:
        """The rows at ``at`` that pass ``access``, and perhaps others: of hashes, of chunks that no
        index covers yet, and all rows where the index names so many that a scan is faster. (A plan
        is made without the values of its parameters.)
        """
        view, layouts = self._pin(at, version)
        entries = self._entries(access)
        if entries is not None and entries > SCAN_ANYWAY_ENTRIES:
            rows = sum(chunk.length for chunk in view.chunks)
            if entries * SCAN_ANYWAY_RATIO > rows:
                return ScanCursor(view.chunks, view.tail, at, positions, partitions, layouts)
        pinned = Pinned(view, layouts)
        return IndexCursor(pinned, self.candidates(access, pinned), at, positions, partitions)

    def ordered(  # noqa: PLR0917 (what a scan takes, then the index)
        self,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
        version: int,
        index_id: int,
        choices: Sequence[Tests],
        descending: bool,
    ) -> OrderedIndexCursor:
        """The rows at ``at`` that pass one of ``choices``, in the order of a SORTED index or
        backwards."""
        index = self._sorted(index_id)
        spans = spans_of(index.form, choices)
        pinned = Pinned(*self._pin(at, version))
        return OrderedIndexCursor(index, pinned, spans, descending, at, positions, partitions)

    def few(  # noqa: PLR0917 (what a scan takes, then how much of it)
        self,
        at: int,
        positions: tuple[int, ...],
        index_id: int,
        spans: Sequence[Span],
        limit: int,
        now: int | None,
    ) -> list[Row] | Declined:
        """The rows at ``at`` whose keys lie in ``spans`` (others, too, where they are hashes), if
        there are at most ``limit`` versions of them; in no order. With ``now``, the time on the
        clock, only if none of them has changed after ``at``. On the event loop."""
        index = self.by_id.get(index_id)
        if not isinstance(index, SortedIndex):
            return Declined.UNCOVERED
        view, layouts = self._pin(at, 0)
        versions = index.few(view.chunks, spans, limit)
        if isinstance(versions, Declined):
            return versions
        if now is not None and changed_after(versions, at, now):
            return Declined.NEWER
        return rows_at(versions, at, positions, layouts)

    def match(  # noqa: PLR0917 (what a scan takes, then the index)
        self,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
        version: int,
        index_id: int,
        columns: Sequence[pa.Array],
    ) -> tuple[pa.RecordBatch, Offsets] | None:
        """The rows at ``at`` whose first indexed columns equal a row of ``columns`` (without
        NULLs), and for each the number of that row. A HASH index gives others, too. None: no row.
        """
        pinned = Pinned(*self._pin(at, version))
        return match_keys(self._sorted(index_id), pinned, columns, at, positions, partitions)

    def _sorted(self, index_id: int) -> SortedIndex:
        index = self.get(index_id)
        assert isinstance(index, SortedIndex)
        return index

    def _entries(self, access: Access) -> int | None:
        """How many entries of sorted runs ``access`` names at most; None: it is not known."""
        match access:
            case Probe(index=index_id, choices=choices):
                index = self.get(index_id)
                if not isinstance(index, SortedIndex):
                    return None
                return keys_between(index.runs, spans_of(index.form, choices))
            case AnyOf(parts=parts):
                counts = [self._entries(part) for part in parts]
                known = [count for count in counts if count is not None]
                return sum(known) if len(known) == len(counts) else None
            case AllOf(parts=parts):
                return min((n for p in parts if (n := self._entries(p)) is not None), default=None)

    def candidates(self, access: Access, pinned: Pinned) -> Candidates:
        """Where rows can be that pass ``access``."""
        match access:
            case Probe(index=index_id, choices=choices, negated=negated):
                index = self.get(index_id)
                return index.candidates(pinned, spans_of(index.form, choices), negated=negated)
            case AnyOf(parts=parts):
                return _any_of([self.candidates(part, pinned) for part in parts])
            case AllOf(parts=parts):
                return _all_of([self.candidates(part, pinned) for part in parts])

    # --- upkeep (event loop) ---

    def step(self) -> bool:
        """One slice of work (a few ms); True = there is more to do."""
        if not self.by_id:
            return False
        if self._work is None:
            self._work = self._due()
            if self._work is None:
                return False
        try:
            next(self._work)
        except StopIteration:
            self._work = None
        return True

    def _due(self) -> Iterator[None] | None:
        chunks = self._table.snapshot()
        sealed = {chunk.number: chunk for chunk in chunks if chunk.tuples is None}
        alive = frozenset(sealed)
        tails = frozenset(chunk.number for chunk in chunks if chunk.tuples is not None)
        for index in self.by_id.values():
            index.forget_tails(tails)
            index.drop_dead(alive)
            missing = sorted(alive - index.covered())
            group = _group([sealed[number] for number in missing if sealed[number].length])
            if group:
                return index.cover(group)
            index.built = True
        rows = {number: chunk.length for number, chunk in sealed.items()}
        for index in self.by_id.values():
            work = index.tidy(alive, rows)
            if work is not None:
                return work
        return None


def _new_index(definition: IndexDefinition, layouts: Layouts) -> SecondaryIndex:
    schema = layouts.schema
    positions = [schema.position[name] for name in definition.names]
    types: list[SqlType] = [schema.columns[position].type for position in positions]
    if definition.kind is IndexKind.HASH:
        return HashIndex(definition, HashForm(positions, types), layouts)
    form = KeyForm(positions, types, [column.descending for column in definition.columns])
    made = BitmapIndex if definition.kind is IndexKind.BITMAP else SortedIndex
    return made(definition, form, layouts)


def _group(chunks: Sequence[Chunk]) -> list[Chunk]:
    group: list[Chunk] = []
    rows = 0
    for chunk in chunks:
        rows += chunk.length
        if group and rows > GROUP_ROWS:
            break
        group.append(chunk)
    return group


def _any_of(parts: Sequence[Candidates]) -> Candidates:
    found: dict[int, RowSet | None] = dict(parts[0])
    for part in parts[1:]:
        for number, rows in part.items():
            if number not in found:
                found[number] = rows
                continue
            known = found[number]
            found[number] = None if known is None or rows is None else known | rows
    return found


def _all_of(parts: Sequence[Candidates]) -> Candidates:
    found: dict[int, RowSet | None] = dict(parts[0])
    for part in parts[1:]:
        for number in list(found):
            if number not in part:
                del found[number]
                continue
            known, rows = found[number], part[number]
            if rows is not None:
                found[number] = rows if known is None else known & rows
    return found
