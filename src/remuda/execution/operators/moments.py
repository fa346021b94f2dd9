"""Variances, covariances and regressions.

A state holds, per group, the number of rows, the means and the sums of squares and products about
them (Welford 1962). Parts are combined by the update of Chan, Golub and LeVeque (1979), so the
order of rows and members hardly matters, and nothing cancels. All values are taken relative to the
first one of their group: equal values thus give exactly 0, and integers and decimals of any
size keep their differences exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import NumericOverflow
from remuda.execution.arrays import Data, Indices, array_from, array_with_mask, data_of
from remuda.execution.evaluate.numbers import exact_of
from remuda.execution.keys import null_rows
from remuda.execution.operators.aggregate_states import (
    State,
    fixed_width_bytes,
    grown,
    packed_bytes,
)

_INT_SAFE: Final = 2**62
_LOW: Final = 2**64 - 1
_INFINITE: Final = 2**62
"""The bit of a packed count that says: infinite values were among these."""


class _Part:
    """Rows, or states, to be folded in: per entry its group, weight, means (relative to the
    group's origin) and sums of squares and products about them."""

    def __init__(self, groups: Indices, weight: Data, means: list[Data], sums: list[Data]) -> None:
        self.groups = groups
        self.weight = weight
        self.means = means
        self.sums = sums


class _Moments(State):
    """``width`` values per row; ``sums`` are, for one value, its squares; for (y, x) the squares of
    y, those of x, and the products."""

    pairs: tuple[tuple[int, int], ...]

    def __init__(self, result: SqlType, width: int) -> None:
        super().__init__(result)
        self.pairs = ((0, 0),) if width == 1 else ((0, 0), (1, 1), (0, 1))
        self._count: Data = np.zeros(0, np.int64)
        self._infinite: Data = np.zeros(0, np.bool_)
        """Groups with an infinity or NaN among their values; packed as a bit of the count."""
        self._means: list[Data] = [np.zeros(0, np.float64) for _ in range(width)]
        self._sums: list[Data] = [np.zeros(0, np.float64) for _ in self.pairs]

    def resize(self, size: int) -> None:
        self._count = grown(self._count, size)
        self._infinite = grown(self._infinite, size, False)
        self._means = [grown(mean, size) for mean in self._means]
        self._sums = [grown(part, size) for part in self._sums]
        self.size = size

    def fold(self, part: _Part) -> None:
        """Add ``part``: first its entries of one group together, then these to the group."""
        slots, which = np.unique(part.groups, return_inverse=True)
        which = which.reshape(-1)
        size = len(slots)

        def total(values: Data) -> Data:
            added: Data = np.bincount(which, values, size)
            return added

        with np.errstate(all="ignore"):
            weight = total(part.weight)
            means = [total(part.weight * mean) / weight for mean in part.means]
            offsets = [mean - new[which] for mean, new in zip(part.means, means, strict=True)]
            sums = [
                total(own + part.weight * offsets[a] * offsets[b])
                for own, (a, b) in zip(part.sums, self.pairs, strict=True)
            ]
            before = self._count[slots].astype(np.float64)
            after = before + weight
            deltas = [new - old[slots] for new, old in zip(means, self._means, strict=True)]
            for own, new, (a, b) in zip(self._sums, sums, self.pairs, strict=True):
                between = deltas[a] * deltas[b] * (before * weight / after)
                own[slots] += np.where(before == 0, new, new + between)
            for mean, delta in zip(self._means, deltas, strict=True):
                mean[slots] += delta * (weight / after)
        self._count[slots] += np.rint(weight).astype(np.int64)

    def note_infinite(self, groups: Indices, *columns: Data) -> None:
        for data in columns:
            self._infinite[groups[~np.isfinite(data)]] = True

    def packed_counts(self, slots: Indices) -> Data:
        counts: Data = self._count[slots] | np.where(self._infinite[slots], _INFINITE, 0)
        return counts

    def unpack_counts(self, groups: Indices, words: Data) -> Data:
        """The counts of packed states; notes which of these have infinite values."""
        self._infinite[groups[words & _INFINITE != 0]] = True
        counts: Data = words & ~_INFINITE
        return counts

    def check_range(self, slots: Indices) -> None:
        """Raises NumericOverflow if the sums of finite values have left the range of floats."""
        finite = ~self._infinite[slots]
        if not all(np.isfinite(part[slots][finite]).all() for part in self._sums):
            raise NumericOverflow("value out of range: overflow")


class SpreadState(_Moments):
    """stddev and variance of one column: integers and decimals (as scaled integers) or floats."""

    def __init__(self, function: str, argument: SqlType, result: SqlType) -> None:
        super().__init__(result, 1)
        self._function = function
        self._exact = not argument.is_float
        self._scale = (argument.scale or 0) if argument.kind is Kind.DECIMAL else 0
        wide = argument.kind is Kind.DECIMAL and not argument.is_short_decimal
        origin: Any = object if wide else np.int64 if self._exact else np.float64
        self._origin: Data = np.zeros(0, origin)

    def resize(self, size: int) -> None:
        super().resize(size)
        self._origin = grown(self._origin, size)

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        groups, (values,) = without_nulls(groups, [values])
        if len(groups) == 0:
            return
        data: Any = exact_of(values) if self._exact else data_of(values).astype(np.float64)
        if self._origin.dtype == object:
            data = data.astype(object)
        if not self._exact:
            self.note_infinite(groups, data)
        self._set_origin(groups, data)
        nothing = np.zeros(len(groups))
        weight = np.ones(len(groups))
        self.fold(_Part(groups, weight, [self._relative(groups, data)], [nothing]))

    def _set_origin(self, groups: Indices, data: Data) -> None:
        new = np.flatnonzero(self._count[groups] == 0)
        if len(new):
            first = data[new][::-1]
            if not self._exact:
                first = np.where(np.isfinite(first), first, 0.0)
            self._origin[groups[new][::-1]] = first  # the last one written is the first row

    def _relative(self, groups: Indices, data: Data) -> Data:
        """Exact differences from the origins, then rounded to floats."""
        origin = self._origin[groups]
        if self._origin.dtype == np.int64 and not (_small(data) and _small(origin)):
            data, origin = data.astype(object), origin.astype(object)
        with np.errstate(all="ignore"):
            difference: Data = (data - origin).astype(np.float64)
        return difference

    def packed(self, slots: Indices) -> pa.Array:
        origin = self._origin[slots]
        words = np.zeros((len(slots), 5), np.int64)
        words[:, 0] = self.packed_counts(slots)
        words[:, 1] = self._means[0][slots].view(np.int64)
        words[:, 2] = self._sums[0][slots].view(np.int64)
        if origin.dtype == object:
            low = [value & _LOW for value in origin]
            words[:, 3] = np.array(low, np.uint64).view(np.int64)
            words[:, 4] = [value >> 64 for value in origin]
        else:
            words[:, 3] = origin.view(np.int64)
        return packed_bytes(words)

    def merge(self, groups: Indices | None, values: pa.Array) -> None:
        words = fixed_width_bytes(values, 5)
        groups = np.zeros(len(words), np.int64) if groups is None else groups
        some = words[:, 0] > 0
        words, groups = words[some], groups[some]
        if len(groups) == 0:
            return
        origin: Data = np.ascontiguousarray(words[:, 3])
        if self._origin.dtype == object:
            low = origin.view(np.uint64).astype(object)
            origin = low + (words[:, 4].astype(object) * 2**64)
        elif not self._exact:
            origin = origin.view(np.float64)
        self._set_origin(groups, origin)
        mean = self._relative(groups, origin) + floats(words[:, 1])
        weight = self.unpack_counts(groups, words[:, 0]).astype(np.float64)
        self.fold(_Part(groups, weight, [mean], [floats(words[:, 2])]))

    def finish(self, slots: Indices) -> pa.Array:
        self.check_range(slots)
        count = self._count[slots]
        divisor = count - 1 if self._function.endswith("_samp") else count
        known = divisor > 0
        with np.errstate(all="ignore"):
            result = self._sums[0][slots] / np.where(known, divisor, 1)
            # dividing each time by the scale keeps more than multiplying by its inverse
            result = result / 10.0**self._scale / 10.0**self._scale
            if self._function.startswith("stddev"):
                result = np.sqrt(result)
        return checked(result, known, self.result)


class RegressionState(_Moments):
    """corr, covar and regr of (y, x); rows with a NULL in either do not count."""

    def __init__(self, function: str, result: SqlType) -> None:
        super().__init__(result, 2)
        self._function = function
        self._origin: list[Data] = [np.zeros(0, np.float64) for _ in range(2)]

    def resize(self, size: int) -> None:
        super().resize(size)
        self._origin = [grown(origin, size) for origin in self._origin]

    def add_columns(self, groups: Indices | None, columns: Sequence[pa.Array]) -> None:
        groups, columns = without_nulls(groups, columns)
        if len(groups) == 0:
            return
        nothing = np.zeros(len(groups))
        values = [data_of(column) for column in columns]
        self.note_infinite(groups, *values)
        self._fold(groups, np.ones(len(groups)), values, [nothing] * 3)

    def _fold(self, groups: Indices, weight: Data, values: list[Data], sums: list[Data]) -> None:
        new = np.flatnonzero(self._count[groups] == 0)
        means = []
        for origin, data in zip(self._origin, values, strict=True):
            if len(new):
                first = data[new][::-1]
                origin[groups[new][::-1]] = np.where(np.isfinite(first), first, 0.0)
            with np.errstate(all="ignore"):
                means.append(data - origin[groups])
        self.fold(_Part(groups, weight, means, sums))

    def packed(self, slots: Indices) -> pa.Array:
        words = np.zeros((len(slots), 8), np.int64)
        words[:, 0] = self.packed_counts(slots)
        for place, part in enumerate((*self._origin, *self._means, *self._sums), 1):
            words[:, place] = part[slots].view(np.int64)
        return packed_bytes(words)

    def merge(self, groups: Indices | None, values: pa.Array) -> None:
        words = fixed_width_bytes(values, 8)
        groups = np.zeros(len(words), np.int64) if groups is None else groups
        some = words[:, 0] > 0
        words, groups = words[some], groups[some]
        if len(groups) == 0:
            return
        parts = [floats(words[:, place]) for place in range(1, 8)]
        new = np.flatnonzero(self._count[groups] == 0)
        means = []
        for origin, data, mean in zip(self._origin, parts[:2], parts[2:4], strict=True):
            origin[groups[new][::-1]] = data[new][::-1]
            with np.errstate(all="ignore"):
                means.append((data - origin[groups]) + mean)
        weight = self.unpack_counts(groups, words[:, 0]).astype(np.float64)
        self.fold(_Part(groups, weight, means, parts[4:]))

    def finish(self, slots: Indices) -> pa.Array:
        count = self._count[slots]
        if self._function == "regr_count":
            return array_from(count, engine_type(self.result))
        self.check_range(slots)
        syy, sxx, sxy = (part[slots] for part in self._sums)
        y, x = (m[slots] + o[slots] for m, o in zip(self._means, self._origin, strict=True))
        with np.errstate(all="ignore"):
            result, known = self._computed(count, (y, x), (syy, sxx, sxy))
        return checked(result, known & (count > 0), self.result)

    def _computed(
        self, count: Data, means: tuple[Data, Data], sums: tuple[Data, Data, Data]
    ) -> tuple[Data, Data]:
        """(results, where there is one)"""
        (y, x), (syy, sxx, sxy) = means, sums
        always = count > 0
        match self._function:
            case "covar_pop":
                return sxy / count, always
            case "covar_samp":
                return sxy / (count - 1), count > 1
            case "corr":
                return np.clip(sxy / np.sqrt(sxx * syy), -1.0, 1.0), (sxx != 0) & (syy != 0)
            case "regr_avgx":
                return x, always
            case "regr_avgy":
                return y, always
            case "regr_sxx":
                return sxx, always
            case "regr_syy":
                return syy, always
            case "regr_sxy":
                return sxy, always
            case "regr_slope":
                return sxy / sxx, sxx != 0
            case "regr_intercept":
                return y - x * (sxy / sxx), sxx != 0
            case _:  # regr_r2
                return np.where(syy == 0, 1.0, sxy * sxy / (sxx * syy)), sxx != 0


def _small(data: Data) -> bool:
    return len(data) == 0 or (data.min() > -_INT_SAFE and data.max() < _INT_SAFE)


def floats(words: Data) -> Data:
    return np.ascontiguousarray(words).view(np.float64)


def without_nulls(
    groups: Indices | None, columns: Sequence[pa.Array]
) -> tuple[Indices, list[pa.Array]]:
    """The rows in which every column has a value, and the group of each."""
    slots = np.zeros(len(columns[0]), np.int64) if groups is None else groups
    missing = null_rows(columns)
    if missing is None:
        return slots, list(columns)
    rows = pa.array(~missing)
    return slots[~missing], [column.filter(rows) for column in columns]


def checked(result: Data, known: Data, type_: SqlType) -> pa.Array:
    """``result`` where ``known``, else NULL; an infinite one has left the range of floats, because
    infinite arguments give NaN."""
    if np.isinf(result[known]).any():
        raise NumericOverflow("value out of range: overflow")
    return array_with_mask(
        np.where(known, result, 0.0), engine_type(type_), None if known.all() else known
    )
