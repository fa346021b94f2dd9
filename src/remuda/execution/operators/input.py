"""Work that operators share: reading an input to its end, and gathering batches into one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.errors import OutOfMemory
from remuda.execution.arrays import size_of
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.memory import Reservation
from remuda.limits import BATCH_ROWS

EMPTY = Batch([], 0)


class Upstream:
    """An input that is not asked again after its end. With ``memory``, that of an operator which
    holds what it reads, larger batches come in pieces: nothing is spilled in the middle of one."""

    __slots__ = ("_ends", "_memory", "_rest", "done", "operator")

    def __init__(self, operator: Operator, memory: Reservation | None = None) -> None:
        self.operator = operator
        self.done = False
        self._memory = memory
        self._rest: Outgoing | None = None
        self._ends = False
        """The input has ended, and pieces of its last batch are left."""

    def fetch(self) -> Batch | None:
        """The next batch, possibly empty; None to WAIT. ``done`` is set with the last one."""
        if self._rest is not None:
            return self._next_piece(self._rest)
        progress = self.operator.advance()
        if progress is Progress.WAIT:
            return None
        batch = self.operator.current_batch()
        ends = progress is Progress.FETCHED_DONE
        if self._memory is not None and batch.rows > 1:
            rows = piece_rows(batch, self._memory.piece)
            if rows < batch.rows:
                self._ends = ends
                self._rest = Outgoing(batch, rows)
                return self._next_piece(self._rest)
        self.done = ends
        return batch

    def _next_piece(self, rest: Outgoing) -> Batch:
        piece = rest.next()
        if not rest:
            self._rest = None
            self.done = self.done or self._ends
        return piece

    def restart(self) -> bool:
        """See ``Operator.restart``."""
        if not self.operator.restart():
            return False
        self.done = self._ends = False
        self._rest = None
        return True

    def close(self) -> None:
        self._rest = None
        self.operator.close()


class Borrowed(Operator):
    """An input that outlives the operator which reads it."""

    def __init__(self, source: Operator) -> None:
        self._source = source

    def advance(self) -> Progress:
        return self._source.advance()

    def current_batch(self) -> Batch:
        return self._source.current_batch()

    def restart(self) -> bool:
        return self._source.restart()

    def close(self) -> None:
        """Its owner closes it."""


def piece_rows(batch: Batch, size_max: int) -> int:
    """So many rows of ``batch`` have about ``size_max`` bytes; at least one."""
    size = batch.estimated_bytes()
    return batch.rows if size <= size_max else max(1, batch.rows * size_max // size)


class Outgoing:
    """Results that leave in batches of at most ``batch_rows``."""

    __slots__ = ("_batch_rows", "_next", "_rows")

    def __init__(self, rows: Batch = EMPTY, batch_rows: int = BATCH_ROWS) -> None:
        self._rows = rows
        self._next = 0
        self._batch_rows = batch_rows

    def __bool__(self) -> bool:
        """Whether rows are left."""
        return self._next < self._rows.rows

    def next(self) -> Batch:
        """The next rows; an empty batch when none are left."""
        first = self._next
        self._next += self._batch_rows
        left = self._rows.rows - first
        if left <= 0:
            return EMPTY
        if first == 0 and left <= self._batch_rows:
            return self._rows
        return self._rows.slice(first, self._batch_rows)


class Gathered:
    """Rows held in memory until all have come; ``types`` are those of the columns kept."""

    def __init__(self, types: Sequence[SqlType], memory: Reservation) -> None:
        self._types = types
        self._memory = memory
        self._columns: list[list[pa.Array]] = [[] for _ in types]
        self.rows = 0

    def add(self, columns: Sequence[pa.Array]) -> None:
        self._memory.grow(sum(map(size_of, columns)))
        self._append(columns)

    def try_add(self, columns: Sequence[pa.Array]) -> bool:
        """False, with nothing added, when what is held is to be spilled first. A single batch is
        always taken: there is nothing to spill yet."""
        if self.rows == 0:
            self.add(columns)
            return True
        fits = self._memory.try_grow(sum(map(size_of, columns)))
        if fits:
            self._append(columns)
        return fits

    def _append(self, columns: Sequence[pa.Array]) -> None:
        for kept, array in zip(self._columns, columns, strict=True):
            kept.append(array)
        self.rows += len(columns[0]) if columns else 0

    def add_rows(self, rows: int) -> None:
        """Rows of no columns."""
        self.rows += rows

    def batch(self) -> Batch:
        """All rows as one batch; the gathered batches are given up."""
        columns = [
            unify(kept, type_) for kept, type_ in zip(self._columns, self._types, strict=True)
        ]
        rows = self.rows
        self.clear()
        return Batch(columns, rows)

    def clear(self) -> None:
        """Forget the rows; the memory stays reserved until the owner clears its reservation."""
        self._columns = [[] for _ in self._types]
        self.rows = 0

    def release(self) -> None:
        """Forget the rows and give the whole reservation back."""
        self.clear()
        self._memory.clear()


def unify(arrays: list[pa.Array], type_: SqlType) -> pa.Array:
    """One array; when some of a long decimal's parts are int64 and some decimal128, decimal128."""
    if not arrays:
        return pa.array([], engine_type(type_))
    if len(arrays) == 1:
        return arrays[0]
    first = arrays[0].type
    if any(array.type != first for array in arrays):
        arrays = [canonical(array, type_) for array in arrays]
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid as error:
        raise OutOfMemory(
            "a column of text has more than 2 GiB in one operator", detail=str(error)
        ) from error
