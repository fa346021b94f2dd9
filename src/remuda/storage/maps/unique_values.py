"""The values of unique indexes that a prepared job writes to a store, and the stored rows that have
the same ones (decision 0085).

Values are compared as SQL compares them: by the keys of the index, in which -0.0 is 0.0, NaN equals
itself, and texts of type CHAR have no blanks at their end. Hashes of the keys, in order, say which
rows can be equal; the keys decide. Any thread, while nobody writes to the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.hashes.wordhash import hash_bytes, hash_words
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue, arrays_to_rows
from remuda.limits import KEY_HASH_SEED
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Flags, Offsets
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.keys import Hashes
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.scan import partition_flags, shown
from remuda.storage.indexes.keys import KeyForm
from remuda.storage.indexes.scan import fetch, slots_of_keys
from remuda.storage.indexes.secondary_index import Pinned, SecondaryIndex
from remuda.storage.indexes.sorted import SortedIndex
from remuda.storage.staging.staging import Match, PreparedRows

Columns: TypeAlias = list[pa.Array]
Replaced: TypeAlias = Mapping[int, Offsets]
"""Rows of chunks, by number, that the job writes or removes."""

INDEX_RATIO: Final = 16
"""Finding the rows of a value by the index takes as long as comparing so many rows."""
NAMED_AT_ONCE: Final = 1 << 20
"""Equal values lie side by side, so few are found twice."""
NOTHING: Final[Hashes] = np.empty(0, dtype=np.uint64)


class UniqueForm:
    """How the values of a unique index are taken out of rows and compared."""

    def __init__(self, schema: MapSchema, index: IndexDefinition) -> None:
        self.index = index
        self.positions = [schema.position[name] for name in index.names]
        self.types = [schema.columns[position].type for position in self.positions]
        self._keys = KeyForm(self.positions, self.types, [False] * len(self.types))

    def of(self, batch: pa.RecordBatch) -> Columns:
        """The columns of the index, of rows of the map."""
        return [batch.column(position) for position in self.positions]

    def counted(self, columns: Columns) -> Flags | None:
        """Which rows can be equal to others (None: all)."""
        if not self.index.nulls_distinct or not any(column.null_count for column in columns):
            return None
        flags = np.ones(len(columns[0]), dtype=np.bool_)
        for column in columns:
            flags &= column.is_valid().to_numpy(zero_copy_only=False)
        return flags

    def keys(self, columns: Columns) -> pa.Array:
        """Equal for values that are equal; NULL where the only column is."""
        trimmed = [
            pc.utf8_rtrim(column, characters=" ") if sql_type.kind is Kind.CHAR else column
            for column, sql_type in zip(columns, self.types, strict=True)
        ]
        keys, nulls = self._keys.keys_of(trimmed)
        return pa.array(keys, mask=nulls) if isinstance(keys, np.ndarray) else keys

    def hashes(self, columns: Columns) -> Hashes:
        keys = self.keys(columns)
        if not pa.types.is_integer(keys.type):
            return hash_bytes(keys, KEY_HASH_SEED)
        words = keys.fill_null(0) if keys.null_count else keys
        return hash_words(words.to_numpy().view(np.uint64), 8, KEY_HASH_SEED)

    def values(self, columns: Columns, row: int) -> tuple[PhysicalValue, ...]:
        """Of one row."""
        return next(iter(arrays_to_rows([column.slice(row, 1) for column in columns], self.types)))


class WrittenValues:
    """The values that the rows of a job here have in one unique index, by the order of their
    hashes. A *place* is a position in this order."""

    def __init__(self, form: UniqueForm, rows: PreparedRows, at: int) -> None:
        self.form = form
        self._batches = rows.batches
        self._starts = np.cumsum([0, *(batch.num_rows for batch in rows.batches)])
        hashes, numbers = [NOTHING], [np.empty(0, dtype=np.int64)]
        for batch, start in zip(rows.batches, self._starts, strict=False):
            columns = form.of(batch)
            found, counted = form.hashes(columns), form.counted(columns)
            if rows.ends is not None:  # nobody sees a row that is over when the job commits
                lives = rows.ends[start : start + batch.num_rows] > at
                counted = lives if counted is None else counted & lives
            chosen = np.arange(len(found)) if counted is None else np.flatnonzero(counted)
            hashes.append(found if counted is None else found[chosen])
            numbers.append(chosen + start)
        together = np.concatenate(hashes)
        order = hash_order(together)
        self.hashes: Final[Hashes] = together[order]
        self._rows = np.concatenate(numbers)[order]

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        return self.hashes.nbytes + self._rows.nbytes

    def columns(self, places: Offsets) -> Columns:
        """The values at some places, at least one."""
        return list(self.batch(places).columns)

    def batch(self, places: Offsets) -> pa.RecordBatch:
        """The same together."""
        rows = self._rows[places]
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        bounds = np.searchsorted(ordered, self._starts)
        parts = [
            batch.select(self.form.positions).take(pa.array(ordered[low:high] - start))
            for batch, start, low, high in zip(
                self._batches, self._starts, bounds, bounds[1:], strict=False
            )
            if high > low
        ]
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_batches(parts).take(pa.array(back))

    def repeated(self) -> tuple[PhysicalValue, ...] | None:
        """Values that two of the rows have, if there are such."""
        same = np.flatnonzero(self.hashes[1:] == self.hashes[:-1])
        if not len(same):
            return None
        columns = self.columns(np.union1d(same, same + 1))
        found = repeat_in(self.form.keys(columns))
        return None if found is None else self.form.values(columns, found)


class JobValues:
    """Values that a prepared job writes into the unique indexes of its map on this member, and the
    stored rows that it leaves there."""

    def __init__(  # noqa: PLR0917 (what is pinned)
        self,
        rows: PreparedRows,
        pinned: Pinned,
        indexes: Mapping[int, SecondaryIndex],
        replaced: Replaced | None,
        partitions: frozenset[int] | None,
        at: int,
    ) -> None:
        """``replaced`` None: all rows are. ``partitions`` are those of this member."""
        self.schema = rows.keys.schema
        self._prepared = rows
        self._pinned = pinned
        self._indexes = indexes
        self._replaced = replaced
        self._partitions = partitions
        self._at = at

    @cached_property
    def written(self) -> Mapping[int, WrittenValues]:
        """By the id of the index."""
        return {
            index.index_id: WrittenValues(UniqueForm(self.schema, index), self._prepared, self._at)
            for index in self.schema.uniques
        }

    def named(self, columns: Sequence[str]) -> list[tuple[PhysicalValue, ...]]:
        """The different values, without those with a NULL, that the rows have in some columns."""
        indexed = tuple(map(IndexedColumn, columns))
        form = UniqueForm(self.schema, IndexDefinition("", IndexKind.SORTED, indexed))
        values = WrittenValues(form, self._prepared, self._at)
        found: list[tuple[PhysicalValue, ...]] = []
        for start in range(0, len(values), NAMED_AT_ONCE):
            places = np.arange(start, min(start + NAMED_AT_ONCE, len(values)))
            part = values.columns(places)
            codes = form.keys(part).dictionary_encode().indices.to_numpy(zero_copy_only=False)
            first = np.sort(np.unique(codes, return_index=True)[1])
            once = [column.take(pa.array(first)) for column in part]
            found += arrays_to_rows(once, form.types)
        return list(dict.fromkeys(found))

    def mixed(self, columns: Sequence[str]) -> tuple[PhysicalValue, ...] | None:
        """The values of a row that is NULL in some of the columns and not in others."""
        places = [self.schema.position[name] for name in columns]
        types = [self.schema.columns[place].type for place in places]
        for batch in self._prepared.batches:
            nulls = [batch.column(place).is_null() for place in places]
            some, every = reduce(pc.or_, nulls), reduce(pc.and_, nulls)
            found = pc.index(pc.and_not(some, every), True).as_py()
            if found >= 0:
                row = batch.select(places).slice(found, 1)
                return next(iter(arrays_to_rows(row.columns, types)))
        return None

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in vars(self).get("written", {}).values())

    @property
    def stored(self) -> int:
        """Versions of rows that lie here."""
        return sum(self._pinned.count(chunk) for chunk in self._pinned.by_number.values())

    def index_serves(self, index_id: int, values: int) -> bool:
        """Whether looking for so many values in the index takes less than reading all rows."""
        index = self._indexes.get(index_id)
        if self._replaced is None or not isinstance(index, SortedIndex) or not index.built:
            return False
        return values * INDEX_RATIO < self.stored

    def twins(self, form: UniqueForm, sought: Hashes) -> Iterator[Columns | None]:
        """The values of stored rows that the job leaves and whose hash is one of ``sought``, which
        are in order: chunk by chunk, None for one that has no such row."""
        if self._replaced is None or not len(sought):
            return
        wanted = partition_flags(self._partitions)
        for number, chunk in self._pinned.by_number.items():
            count = self._pinned.count(chunk)
            visible = shown(chunk, count, self._at, wanted)
            if visible is False:
                continue
            batch = self._layouts.columns(chunk, count, form.positions)
            columns: Columns = list(batch.columns)
            flags = among(form.hashes(columns), sought)
            counted = form.counted(columns)
            if visible is not True:
                flags &= visible
            if counted is not None:
                flags &= counted
            gone = self._replaced.get(number)
            if gone is not None:
                flags[gone] = False
            offsets = np.flatnonzero(flags)
            yield list(batch.take(pa.array(offsets)).columns) if len(offsets) else None

    def twins_by_index(self, form: UniqueForm, columns: Columns) -> Iterator[Columns | None]:
        """The same of rows that the index of ``form`` has of the values ``columns``."""
        if any(column.null_count for column in columns):  # which indexes do not look for
            yield from self.twins(form, np.sort(form.hashes(columns)))
            return
        index = self._indexes[form.index.index_id]
        assert isinstance(index, SortedIndex)
        slots = np.unique(slots_of_keys(index, self._pinned, columns))
        slots = slots[~np.isin(slots, self._replaced_slots)]
        wanted = partition_flags(self._partitions)
        found = fetch(self._pinned, slots, self._at, form.positions, wanted)
        if found is not None:
            yield list(found[0].columns)

    @property
    def _layouts(self) -> Layouts:
        return self._pinned.layouts

    @cached_property
    def _replaced_slots(self) -> Offsets:
        none: Offsets = np.empty(0, dtype=np.int64)
        parts = [
            self._pinned.by_number[number].base + offsets
            for number, offsets in (self._replaced or {}).items()
            if number in self._pinned.by_number
        ]
        return np.concatenate([none, *parts])


def offsets_by_chunk(matched: Iterable[Match], slots: Sequence[int]) -> Replaced:
    """Stored rows that were found by their keys, and others by their slots."""
    parts: dict[int, list[Offsets]] = {}
    for chunk, _, offsets in matched:
        parts.setdefault(chunk.number, []).append(offsets)
    for slot in slots:
        parts.setdefault(slot >> OFFSET_BITS, []).append(np.array([slot & OFFSET_MASK]))
    return {number: np.concatenate(found) for number, found in parts.items()}


def among(hashes: Hashes, ordered: Hashes) -> npt.NDArray[np.bool_]:
    """Which of the hashes are among others that are in order."""
    if not len(ordered):
        return np.zeros(len(hashes), dtype=np.bool_)
    places = np.searchsorted(ordered, hashes)
    np.minimum(places, len(ordered) - 1, out=places)
    found: npt.NDArray[np.bool_] = ordered[places] == hashes
    return found


def repeat_in(keys: pa.Array) -> int | None:
    """The row of a key that another row has as well."""
    codes = keys.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    same = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    return int(order[same[0]]) if len(same) else None


def equal_to(keys: pa.Array, others: pa.Array) -> int | None:
    """The first row of ``keys`` that one of the others equals; NULL equals NULL."""
    found = np.flatnonzero(pc.is_in(keys, value_set=others).to_numpy(zero_copy_only=False))
    return int(found[0]) if len(found) else None
