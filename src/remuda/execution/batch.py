"""Batches: columns of Arrow arrays under selections that are applied late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from remuda.execution.arrays import Indices, size_of, take, take_or_null


class Selection:
    """Row numbers into base arrays, shared by the columns that they select.

    ``outer`` says that negative numbers may occur and stand for rows of NULLs (outer joins).
    A selection of a selection is composed only when a column under it is asked for.
    """

    __slots__ = ("_indices", "_parent", "outer")

    def __init__(
        self, indices: Indices, outer: bool = False, parent: Selection | None = None
    ) -> None:
        self._indices = indices
        self._parent = parent
        self.outer: bool = outer or (parent is not None and parent.outer)

    def indices(self) -> Indices:
        if self._parent is not None:
            base = self._parent.indices()
            composed = base.take(self._indices, mode="clip")
            if self.outer:
                composed = np.where(self._indices < 0, -1, composed)
            self._indices = composed
            self._parent = None
        return self._indices

    def apply(self, array: pa.Array) -> pa.Array:
        indices = self.indices()
        return take_or_null(array, indices) if self.outer else take(array, indices)


class Batch:
    """``rows`` rows of columns in the order of the operator's output.

    Columns are engine-form arrays; one of a long DECIMAL type may be int64 (its unscaled values,
    when they fit) instead of decimal128. Batches are never changed once made, and may share
    arrays; ``column`` materializes a selected column once and remembers it.
    """

    __slots__ = ("_bases", "_ready", "_selections", "rows")

    def __init__(
        self,
        bases: Sequence[pa.Array],
        rows: int,
        selections: Sequence[Selection | None] | None = None,
    ) -> None:
        self.rows = rows
        self._bases = bases
        self._selections = selections
        self._ready: dict[int, pa.Array] = {}

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Batch:
        return cls(batch.columns, batch.num_rows)

    @property
    def width(self) -> int:
        return len(self._bases)

    def column(self, position: int) -> pa.Array:
        """The column as one array of ``rows`` values."""
        if self._selections is None:
            return self._bases[position]
        selection = self._selections[position]
        if selection is None:
            return self._bases[position]
        ready = self._ready.get(position)
        if ready is None:
            ready = selection.apply(self._bases[position])
            self._ready[position] = ready
        return ready

    def columns(self) -> list[pa.Array]:
        return [self.column(position) for position in range(len(self._bases))]

    def narrow(self, indices: Indices, outer: bool = False) -> Batch:
        """The rows at ``indices``, in that order, applied late. ``outer``: negative = NULL row."""
        made: dict[int, Selection] = {}
        selections: list[Selection | None] = []
        bases: list[pa.Array] = []
        old = self._selections
        for position, original in enumerate(self._bases):
            base = original
            parent = None if old is None else old[position]
            if parent is not None and position in self._ready:
                base, parent = self._ready[position], None
            selection = made.get(id(parent))
            if selection is None:
                selection = made[id(parent)] = Selection(indices, outer, parent)
            bases.append(base)
            selections.append(selection)
        return Batch(bases, len(indices), selections)

    def slice(self, offset: int, length: int) -> Batch:
        """Zero-copy for plain columns; selected columns are materialized."""
        length = min(length, self.rows - offset)
        if offset == 0 and length == self.rows:
            return self
        return Batch([column.slice(offset, length) for column in self.columns()], length)

    def project(self, positions: Iterable[int]) -> Batch:
        wanted = list(positions)
        selections = None if self._selections is None else [self._selections[p] for p in wanted]
        batch = Batch([self._bases[p] for p in wanted], self.rows, selections)
        if self._ready:
            batch._ready = {
                new: self._ready[old] for new, old in enumerate(wanted) if old in self._ready
            }
        return batch

    def beside(self, other: Batch) -> Batch:
        """The columns of both, row by row."""
        assert self.rows == other.rows
        left = self._selections or [None] * len(self._bases)
        right = other._selections or [None] * len(other._bases)
        batch = Batch([*self._bases, *other._bases], self.rows, [*left, *right])
        batch._ready = dict(self._ready)
        shift = len(self._bases)
        batch._ready.update((shift + position, array) for position, array in other._ready.items())
        return batch

    def estimated_bytes(self) -> int:
        """Bytes of the columns, by the average width of those that are not materialized yet."""
        total = 0
        for position, base in enumerate(self._bases):
            array = self._ready.get(position, base)
            total += size_of(array) * self.rows // max(len(array), 1)
        return total

    def record_batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Columns must have the types of ``schema`` already (``decimals.canonical``)."""
        return pa.RecordBatch.from_arrays(self.columns(), schema=schema)
