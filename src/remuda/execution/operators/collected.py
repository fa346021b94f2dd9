"""Aggregates that need all rows of a group at once: sorted, joined, counted when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import NumericOverflow
from remuda.execution.arrays import (
    Data,
    Indices,
    array_with_mask,
    data_of,
    take,
    take_or_null,
    validity_mask,
)
from remuda.execution.operators.aggregate_states import State
from remuda.execution.operators.input import unify
from remuda.execution.operators.ordering import BoundKey, codes, order_of

_COMPACT_ROWS: Final = 1 << 16


class CollectedState(State):
    """Keeps the rows whose first column is not NULL. ``keys`` sort the rows of a group; their
    positions are those of the columns given to ``add_columns``: arguments, then sort columns."""

    def __init__(
        self, result: SqlType, types: Sequence[SqlType], keys: Sequence[BoundKey] = ()
    ) -> None:
        super().__init__(result)
        self.types = types
        self._keys = keys
        self._groups: list[Indices] = []
        self._columns: list[list[pa.Array]] = [[] for _ in types]
        self._bytes = 0

    def resize(self, size: int) -> None:
        self.size = size

    def add_columns(self, groups: Indices | None, columns: Sequence[pa.Array]) -> None:
        slots = np.zeros(len(columns[0]), np.int64) if groups is None else groups
        valid = self.wanted(columns)
        if valid is not None:
            rows = np.flatnonzero(valid)
            slots, columns = slots[rows], [take(column, rows) for column in columns]
        if len(slots) == 0:
            return
        self._groups.append(slots)
        for kept, column in zip(self._columns, columns, strict=True):
            kept.append(column)
        self._bytes += slots.nbytes + sum(column.nbytes for column in columns)

    def wanted(self, columns: Sequence[pa.Array]) -> Data | None:
        """The rows that count; None for all."""
        return validity_mask(columns[0])

    @property
    def bytes(self) -> int:
        return self._bytes

    def finish(self, slots: Indices) -> pa.Array:
        if not self._groups:
            return pa.nulls(len(slots), engine_type(self.result))
        groups = np.concatenate(self._groups)
        columns = [
            unify(parts, type_) for parts, type_ in zip(self._columns, self.types, strict=True)
        ]
        parts: list[Data] = [groups]
        for key in self._keys:
            parts += codes(columns[key.position], key)
        order = order_of(parts)
        groups = groups[order]
        columns = [take(column, order) for column in columns]
        starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
        ends = np.append(starts[1:], len(groups))
        results = self.computed(starts, ends, columns)
        places = np.full(max(self.size, int(slots.max(initial=-1)) + 1), -1, np.int64)
        places[groups[starts]] = np.arange(len(starts))
        return take_or_null(results, places[slots])

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        """One result for the rows from each of ``starts`` to its end (exclusive)."""
        raise NotImplementedError


class JoinedState(CollectedState):
    """string_agg: (text, delimiter); the delimiter of a row stands before its text, none before the
    first. NULL as delimiter is empty."""

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        values, delimiters = columns[:2]
        different = delimiters.unique()
        if len(different) == 1:
            offsets = pa.array(np.append(starts, ends[-1]).astype(np.int32))
            lists = pa.ListArray.from_arrays(offsets, values)
            delimiter = different[0]
            if not delimiter.is_valid:
                delimiter = pa.scalar(b"", values.type) if pa.types.is_binary(values.type) else ""
            return pc.binary_join(lists, delimiter)
        empty = b"" if pa.types.is_binary(values.type) else ""
        texts, between = values.to_pylist(), delimiters.to_pylist()
        joined = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            pieces = [texts[start]]
            for row in range(start + 1, end):
                pieces += [between[row] or empty, texts[row]]
            joined.append(empty.join(pieces))
        return pa.array(joined, values.type)


class PercentileState(CollectedState):
    """percentile_cont and percentile_disc: (sorted value, fraction or array of fractions), all of a
    group the same. Without a fraction: median."""

    def __init__(
        self, function: str, types: Sequence[SqlType], result: SqlType, keys: Sequence[BoundKey]
    ) -> None:
        super().__init__(result, types, keys)
        self._discrete = function == "percentile_disc"
        self._several = len(types) > 1 and types[1].element is not None

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        if len(columns) == 1:
            return self._at(starts, ends, columns[0], pa.repeat(0.5, len(starts)))
        fractions = take(columns[1], starts)
        if not self._several:
            return self._at(starts, ends, columns[0], fractions)
        lists = fractions.to_pylist()
        lengths = np.array([len(part or ()) for part in lists])
        flat = pa.array([item for part in lists for item in part or ()], pa.float64())
        found = self._at(np.repeat(starts, lengths), np.repeat(ends, lengths), columns[0], flat)
        values = iter(array_to_values(found, self.types[0]))
        made = [None if part is None else tuple(next(values) for _ in part) for part in lists]
        return values_to_array(made, self.result)

    def _at(
        self, starts: Indices, ends: Indices, values: pa.Array, fractions: pa.Array
    ) -> pa.Array:
        """At each fraction of the rows from start to end; NULL for NULL."""
        valid = validity_mask(fractions)
        places = data_of(fractions)
        if valid is not None:
            places = np.where(valid, places, 0.0)
        wrong = ~((places >= 0) & (places <= 1))
        if wrong.any():
            raise NumericOverflow(f"percentile value {places[wrong][0]:g} is not between 0 and 1")
        counts = ends - starts
        if self._discrete:
            rows = starts + np.maximum(np.ceil(places * counts).astype(np.int64) - 1, 0)
            return take_or_null(values, rows if valid is None else np.where(valid, rows, -1))
        data = data_of(values)
        rank = places * (counts - 1)
        low = np.floor(rank).astype(np.int64)
        lower, upper = data[starts + low], data[starts + np.ceil(rank).astype(np.int64)]
        with np.errstate(all="ignore"):
            between = lower + (upper - lower) * (rank - low)
        return array_with_mask(np.where(lower == upper, lower, between), pa.float64(), valid)


class ModeState(CollectedState):
    """The most frequent value; of several the first in the order of WITHIN GROUP."""

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:  # noqa: ARG002
        (same,) = codes(columns[0], BoundKey(0, self.types[0]))
        changes = np.append(True, same[1:] != same[:-1])
        changes[starts] = True
        runs = np.flatnonzero(changes)
        lengths = np.append(runs[1:], len(same)) - runs
        group = np.searchsorted(starts, runs, "right") - 1
        best = np.lexsort((runs, -lengths, group))
        first = best[np.flatnonzero(np.append(True, group[best][1:] != group[best][:-1]))]
        return take(columns[0], runs[first])


class ExtremeRowState(CollectedState):
    """min_by and max_by: (value, key); rows with a NULL in either do not count. Of equal keys the
    first row wins. Rows that lost are let go of from time to time."""

    def __init__(self, result: SqlType, types: Sequence[SqlType], *, largest: bool) -> None:
        super().__init__(result, types, [BoundKey(1, types[1], descending=largest)])
        self._since = 0

    def wanted(self, columns: Sequence[pa.Array]) -> Data | None:
        masks = [m for m in (validity_mask(column) for column in columns) if m is not None]
        return np.logical_and.reduce(masks) if masks else None

    def add_columns(self, groups: Indices | None, columns: Sequence[pa.Array]) -> None:
        super().add_columns(groups, columns)
        self._since += len(columns[0])
        if self._since > max(_COMPACT_ROWS, 2 * self.size):
            self._compact()

    def _compact(self) -> None:
        if self._groups:
            groups = np.concatenate(self._groups)
            columns = [
                unify(parts, type_) for parts, type_ in zip(self._columns, self.types, strict=True)
            ]
            order = order_of([groups, *codes(columns[1], self._keys[0])])
            groups = groups[order]
            winners = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
            rows = order[winners]
            self._groups = [groups[winners]]
            self._columns = [[take(column, rows)] for column in columns]
            self._bytes = self._groups[0].nbytes + sum(c[0].nbytes for c in self._columns)
        self._since = 0

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:  # noqa: ARG002
        return take(columns[0], starts)
