"""The running states of aggregate calls, one array slot per group.

``add(groups, values)`` folds a batch in; ``groups`` are slot numbers per row. Sums of integers and
short decimals are exact: int64 while a bound over all that was added shows that no group can
overflow, then three limbs of 32, 32 and 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import NumericOverflow
from remuda.execution.arrays import (
    Data,
    Indices,
    array_from,
    array_with_mask,
    boolean_array,
    data_of,
    mask_of,
    pack_bits,
    take,
    take_or_null,
    validity_mask,
)
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.numbers import (
    bounds,
    decimal_array,
    decimal_limbs,
    integer_array,
    shrink,
)
from remuda.execution.operators.input import unify
from remuda.limits import AGGREGATE_BUFFER_ROWS

_LOW = 2**32 - 1


class State:
    """One aggregate over all groups. Values are whole columns; NULLs in them are skipped."""

    def __init__(self, result: SqlType) -> None:
        self.result = result
        self.size = 0

    def resize(self, size: int) -> None:
        """Have at least ``size`` slots."""
        raise NotImplementedError

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        """``groups`` None: every row belongs to slot 0."""
        raise NotImplementedError

    def add_columns(self, groups: Indices | None, columns: Sequence[pa.Array]) -> None:
        """``add`` for calls of several arguments; most take one."""
        self.add(groups, columns[0])

    def finish(self, slots: Indices) -> pa.Array:
        """The results of ``slots``, in that order."""
        raise NotImplementedError

    def packed(self, slots: Indices) -> pa.Array:
        """The states of ``slots`` as bytes, for aggregates whose results cannot be combined."""
        raise NotImplementedError

    def merge(self, groups: Indices | None, values: pa.Array) -> None:
        """Fold in what ``packed`` made, perhaps several states of one group."""
        raise NotImplementedError

    @property
    def bytes(self) -> int:
        """The bytes that are held beyond a few words per slot."""
        return 0


def grown(data: Data, size: int, fill: Any = 0) -> Data:
    if size <= len(data):
        return data
    larger = np.full(max(size, 2 * len(data), 16), fill, data.dtype)
    larger[: len(data)] = data
    return larger


def packed_bytes(words: Data) -> pa.Array:
    """Rows of 64-bit words as a binary column."""
    rows, width = words.shape
    ends = np.arange(0, (rows + 1) * 8 * width, 8 * width, dtype=np.int32)
    data = np.ascontiguousarray(words)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def fixed_width_bytes(values: pa.Array, width: int) -> Data:
    """The argument of ``packed_bytes``, as rows of ``width`` words."""
    rows = len(values)
    _, ends, data = values.buffers()
    if rows == 0 or data is None:
        return np.zeros((0, width), np.int64)
    first = int(np.frombuffer(ends, np.int32, 1, 4 * values.offset)[0])
    words = np.frombuffer(data, np.uint8, rows * 8 * width, first)
    return np.frombuffer(words.tobytes(), np.int64).reshape(rows, width)


def mark_seen(seen: Data, size: int, groups: Indices | None) -> None:
    """Note that the groups have a value; skipped when all groups are known to have one."""
    if groups is None:
        seen[0] = True
    elif size > len(groups) or not seen[1:size].all():
        seen[groups] = True
    elif not seen[0]:
        seen[0] = groups.min() == 0  # slot 0 is the group of NULL, which seldom exists


def valid_rows(groups: Indices | None, data: Data, values: pa.Array) -> tuple[Indices | None, Data]:
    """Only the rows whose value is not NULL."""
    valid = validity_mask(values)
    if valid is None:
        return groups, data
    return (None if groups is None else groups[valid]), data[valid]


class CountState(State):
    """count(x); ``add_rows`` serves count(*)."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result)
        self._counts: Data = np.zeros(0, np.int64)

    def resize(self, size: int) -> None:
        self._counts = grown(self._counts, size)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if groups is None:
            self._counts[0] += len(values) - values.null_count
            return
        valid = validity_mask(values)
        self.add_rows(groups if valid is None else groups[valid], len(values))

    def add_rows(self, groups: Indices | None, rows: int) -> None:
        if groups is None:
            self._counts[0] += rows
            return
        self._counts[: self.size] += np.bincount(groups, minlength=self.size)

    def finish(self, slots: Indices) -> pa.Array:
        return array_from(self._counts[slots], engine_type(self.result))


@contextmanager
def range_checked() -> Iterator[None]:
    """Raises NumericOverflow where floating arithmetic makes an infinity of finite operands. One
    that an operand holds already passes, and so does NaN."""
    try:
        with np.errstate(all="ignore", over="raise"):
            yield
    except FloatingPointError as problem:
        raise NumericOverflow("value out of range: overflow") from problem


class ExactSumState(State):
    """sum of integers or decimals; the result type is BIGINT or DECIMAL(38, s)."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result)
        self._limbs: list[Data] = [np.zeros(0, np.int64)]
        """One array of plain sums, or four of 32 bits each, lowest first; the last is signed."""
        self._seen: Data = np.zeros(0, np.bool_)
        self._reach = 0
        """No plain sum can be larger than this."""

    def resize(self, size: int) -> None:
        self._limbs = [grown(limb, size) for limb in self._limbs]
        self._seen = grown(self._seen, size, False)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if pa.types.is_null(values.type) or values.null_count == len(values):
            return
        if pa.types.is_decimal(values.type):
            groups, pairs = valid_rows(groups, decimal_limbs(values), values)
            self._see(groups)
            self._widen()
            self._add_halves(groups, pairs[:, 0], 0)
            self._add_halves(groups, pairs[:, 1], 2)
            return
        groups, data = valid_rows(groups, data_of(values), values)
        low, high = bounds(data)
        self._see(groups)
        if len(self._limbs) == 1:
            self._reach += max(-low, high) * len(data)
            if self._reach < 2**63:
                self._accumulate(0, groups, data)
                return
            self._widen()
        data = data.astype(np.int64)
        self._add_halves(groups, data, 0)
        self._accumulate(2, groups, (data >> 63) & _LOW)
        self._accumulate(3, groups, data >> 63)

    def _add_halves(self, groups: Indices | None, data: Data, limb: int) -> None:
        """The low 32 bits to ``limb``, the high ones to the next; signed in the last limb only."""
        high = data >> 32
        self._accumulate(limb, groups, data & _LOW)
        self._accumulate(limb + 1, groups, high if limb == 2 else high & _LOW)

    def _see(self, groups: Indices | None) -> None:
        mark_seen(self._seen, self.size, groups)

    def _accumulate(self, limb: int, groups: Indices | None, data: Data) -> None:
        if groups is None:
            self._limbs[limb][0] += data.sum(dtype=np.int64)
        else:
            np.add.at(self._limbs[limb], groups, data)

    def _widen(self) -> None:
        if len(self._limbs) == 1:
            sums = self._limbs[0]
            sign = sums >> 63
            self._limbs = [sums & _LOW, (sums >> 32) & _LOW, sign & _LOW, sign]

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        invalid = None if seen.all() else ~seen
        data: Data = self._limbs[0][slots]
        if len(self._limbs) > 1:
            exact: Data = data.astype(object)
            for place, limb in enumerate(self._limbs[1:], 1):
                exact = exact + limb[slots].astype(object) * 2 ** (32 * place)
            narrow = shrink(exact)
            assert isinstance(narrow, np.ndarray)
            data = narrow
        if self.result.kind is Kind.DECIMAL:
            return decimal_array(data, self.result, invalid=invalid)
        return integer_array(data, self.result, engine_type(self.result), invalid=invalid)


class FloatSumState(State):
    """sum of floats. Infinite values give an infinite sum; finite ones whose sum leaves the range
    of the type raise NumericOverflow."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result)
        self._sums: Data = np.zeros(0, np.float64)
        self._seen: Data = np.zeros(0, np.bool_)

    def resize(self, size: int) -> None:
        self._sums = grown(self._sums, size)
        self._seen = grown(self._seen, size, False)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        groups, data = valid_rows(groups, data_of(values), values)
        if len(data) == 0:
            return
        mark_seen(self._seen, self.size, groups)
        with range_checked():
            if groups is None:
                self._sums[0] += data.sum(dtype=np.float64)
            else:
                np.add.at(self._sums, groups, data.astype(np.float64))

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        with range_checked():
            return array_with_mask(
                self._sums[slots], engine_type(self.result), None if seen.all() else seen
            )


class ExtremeState(State):
    """min and max of fixed-width values. NaN is larger than every number."""

    def __init__(self, result: SqlType, largest: bool) -> None:
        super().__init__(result)
        self._arrow = engine_type(result)
        floating = result.is_float
        self._boolean = result.kind is Kind.BOOLEAN
        self._dtype: Any = np.float64 if floating else np.int64
        if floating:
            self._fill: Any = -np.inf if largest else np.nan
            self._fold: Any = np.maximum if largest else np.fmin
        else:
            self._fill = -(2**63) if largest else 2**63 - 1
            self._fold = np.maximum if largest else np.minimum
        self._best: Data = np.zeros(0, self._dtype)
        self._seen: Data = np.zeros(0, np.bool_)

    def resize(self, size: int) -> None:
        self._best = grown(self._best, size, self._fill)
        self._seen = grown(self._seen, size, False)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        data = mask_of(values) if self._boolean else data_of(values)
        groups, data = valid_rows(groups, data, values)
        if len(data) == 0:
            return
        mark_seen(self._seen, self.size, groups)
        data = data.astype(self._dtype)
        with np.errstate(invalid="ignore"):
            if groups is None:
                self._best[0] = self._fold(self._best[0], self._fold.reduce(data))
            else:
                self._fold.at(self._best, groups, data)

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        best = self._best[slots]
        if self._boolean:
            return boolean_array(best == 1, None if seen.all() else pack_bits(seen))
        best = np.where(seen, best, 0)
        return array_with_mask(best, self._arrow, None if seen.all() else seen)


def _repeated(slots: Data, size: int) -> Indices | None:
    """The rows whose slot (below ``size``) occurs again; None when they are many."""
    rows = len(slots)
    if size < rows // 2:
        return None
    if size < 8 * rows:
        again = np.bincount(slots, minlength=size)[slots] > 1
    else:
        order = np.argsort(slots)
        same = slots[order[1:]] == slots[order[:-1]]
        again = np.zeros(rows, np.bool_)
        again[order[1:][same]] = True
        again[order[:-1][same]] = True
    return None if np.count_nonzero(again) > rows // 2 else np.flatnonzero(again)


class ObjectExtremeState(State):
    """min and max of text, binary and long decimals: each batch is reduced to its groups by Arrow,
    and the results of several batches again whenever they have doubled."""

    def __init__(self, result: SqlType, largest: bool) -> None:
        super().__init__(result)
        self._function = "max" if largest else "min"
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._reduced_rows = 0

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def resize(self, size: int) -> None:
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if values.null_count == len(values):
            return
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        columns = [pa.array(slots), canonical(values, self.result)]
        part = self._reduced(pa.table(columns, names=["slot", "value"]))
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > max(2 * self._reduced_rows, AGGREGATE_BUFFER_ROWS):
            self._reduce()

    def _reduced(self, part: pa.Table) -> pa.Table:
        """Rows that are alone in their slot stay as they are: Arrow copies each text that it
        compares into memory of its own, which for millions of groups takes most of the time."""
        repeated = _repeated(part.column("slot").to_numpy(), self.size)
        if repeated is None:
            return self._best_of(part)
        if not len(repeated):
            return part
        alone = np.ones(part.num_rows, np.bool_)
        alone[repeated] = False
        return pa.concat_tables([part.filter(pa.array(alone)), self._best_of(part.take(repeated))])

    def _best_of(self, part: pa.Table) -> pa.Table:
        found = part.group_by("slot", use_threads=False).aggregate([("value", self._function)])
        return found.rename_columns(["slot", "value"])

    def _reduce(self) -> None:
        if len(self._parts) > 1:
            self._parts = [self._reduced(pa.concat_tables(self._parts))]
        self._rows = self._reduced_rows = sum(part.num_rows for part in self._parts)

    def finish(self, slots: Indices) -> pa.Array:
        self._reduce()
        if not self._parts:
            return pa.nulls(len(slots), engine_type(self.result))
        (best,) = self._parts
        places = np.full(self.size, -1, np.int64)
        places[best.column("slot").to_numpy()] = np.arange(best.num_rows)
        return take_or_null(unify(best.column("value").chunks, self.result), places[slots])


class AnyValueState(State):
    """The first value that is not NULL."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result)
        self._values: list[pa.Array] = []
        self._count = 0
        self._places: Indices = np.zeros(0, np.int64)

    @property
    def bytes(self) -> int:
        return sum(values.nbytes for values in self._values)

    def resize(self, size: int) -> None:
        self._places = grown(self._places, size, -1)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        wanted = self._places[slots] < 0
        valid = validity_mask(values)
        rows = np.flatnonzero(wanted if valid is None else wanted & valid)
        if len(rows) == 0:
            return
        new, first = np.unique(slots[rows], return_index=True)
        self._places[new] = self._count + np.arange(len(new))
        self._values.append(take(values, rows[first]))
        self._count += len(new)

    def finish(self, slots: Indices) -> pa.Array:
        return take_or_null(unify(self._values, self.result), self._places[slots])


class BitState(State):
    """bit_and, bit_or, bit_xor of integers."""

    def __init__(self, function: str, result: SqlType) -> None:
        super().__init__(result)
        self._fold: Any = {
            "bit_and": np.bitwise_and,
            "bit_or": np.bitwise_or,
            "bit_xor": np.bitwise_xor,
        }[function]
        self._fill = -1 if function == "bit_and" else 0
        self._bits: Data = np.zeros(0, np.int64)
        self._seen: Data = np.zeros(0, np.bool_)

    def resize(self, size: int) -> None:
        self._bits = grown(self._bits, size, self._fill)
        self._seen = grown(self._seen, size, False)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        groups, data = valid_rows(groups, data_of(values), values)
        if len(data) == 0:
            return
        mark_seen(self._seen, self.size, groups)
        slots = np.zeros(len(data), np.int64) if groups is None else groups
        self._fold.at(self._bits, slots, data.astype(np.int64))

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        bits = np.where(seen, self._bits[slots], 0)
        return array_with_mask(bits, engine_type(self.result), None if seen.all() else seen)
