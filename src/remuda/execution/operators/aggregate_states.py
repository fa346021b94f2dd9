"""The running states of aggregate calls, one array slot per group.

``add(groups, values)`` folds a batch in; ``groups`` are slot numbers per row. Sums of integers and
short decimals are exact: int64 while a bound over all that was added shows that no group can
overflow, then three limbs of 32, 32 and 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import InternalError
from remuda.execution.arrays import (
    Data,
    Indices,
    array_from,
    array_with_mask,
    boolean_array,
    data_of,
    mask_of,
    pack_bits,
    validity_mask,
)
from remuda.execution.evaluate.numbers import (
    bounds,
    decimal_array,
    decimal_limbs,
    integer_array,
    shrink,
)

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

    def finish(self, slots: Indices) -> pa.Array:
        """The results of ``slots``, in that order."""
        raise NotImplementedError


def grown(data: Data, size: int, fill: Any = 0) -> Data:
    if size <= len(data):
        return data
    larger = np.full(max(size, 2 * len(data), 16), fill, data.dtype)
    larger[: len(data)] = data
    return larger


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
        with np.errstate(all="ignore"):
            if groups is None:
                self._sums[0] += data.sum(dtype=np.float64)
            else:
                np.add.at(self._sums, groups, data.astype(np.float64))

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        with np.errstate(over="ignore"):
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


class ObjectExtremeState(State):
    """min and max of text, binary and long decimals: each batch is reduced to its groups by Arrow,
    then merged value by value."""

    def __init__(self, result: SqlType, largest: bool) -> None:
        super().__init__(result)
        self._function = "max" if largest else "min"
        self._best: list[Any] = []

    def resize(self, size: int) -> None:
        self._best.extend([None] * (size - len(self._best)))
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if values.null_count == len(values):
            return
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        reduced = (
            pa.table([pa.array(slots), values], names=["slot", "value"])
            .group_by("slot", use_threads=False)
            .aggregate([("value", self._function)])
        )
        found = array_to_values(reduced.column(f"value_{self._function}"), self.result)
        best, larger = self._best, self._function == "max"
        for slot, value in zip(reduced.column("slot").to_pylist(), found, strict=True):
            old = best[slot]
            if value is None:
                continue
            if old is None or (_key(value) > _key(old)) is larger:
                best[slot] = value

    def finish(self, slots: Indices) -> pa.Array:
        return values_to_array([self._best[slot] for slot in slots.tolist()], self.result)


def _key(value: Any) -> Any:
    """Text is ordered by its bytes, which for UTF-8 is the order of code points."""
    return value


def new_state(function: str, argument: SqlType | None, result: SqlType) -> State:
    """``function`` is count, sum, min or max; ``argument`` is what ``add`` will be given."""
    if function == "count":
        return CountState(result)
    assert argument is not None
    if function == "sum":
        return FloatSumState(result) if argument.is_float else ExactSumState(result)
    if function in ("min", "max", "any_value", "bool_and", "bool_or"):
        largest = function in ("max", "bool_or")
        wide = argument.kind is Kind.DECIMAL and not argument.is_short_decimal
        if wide or argument.is_text or argument.kind is Kind.BYTEA:
            return ObjectExtremeState(result, largest)
        return ExtremeState(result, largest)
    raise InternalError(f"aggregate function {function} has no implementation")
