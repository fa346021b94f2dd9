"""approx_count_distinct: HyperLogLog (Flajolet et al. 2007) over 64-bit hashes, 2^14 registers, so
that the standard error is 0.8 percent; the estimator is Ertl's of 2017, which needs no tables and
holds for small and large numbers alike.

Registers that are not zero are kept as a sorted list over all groups: many small groups cost no
more than their values.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Data, Indices, array_from
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.operators.aggregate_states import State
from remuda.execution.operators.moments import without_nulls

_BITS: Final = 14
_REGISTERS: Final = 1 << _BITS
_RANKS: Final = 64 - _BITS + 1
"""The highest rank: all other bits of a hash are 0."""
_ENTRY: Final = np.dtype([("register", "<u2"), ("rank", "u1")])


class DistinctEstimateState(State):
    def __init__(self, argument: SqlType, result: SqlType) -> None:
        super().__init__(result)
        self._type = argument
        self._places: Indices = np.zeros(0, np.int64)
        """Sorted: group * registers + register."""
        self._ranks: Data = np.zeros(0, np.uint8)
        self._pending: list[tuple[Indices, Data]] = []
        self._waiting = 0

    def resize(self, size: int) -> None:
        self.size = size

    @property
    def bytes(self) -> int:
        return 9 * (len(self._places) + self._waiting)

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        slots, (values,) = without_nulls(groups, [values])
        if len(slots) == 0:
            return
        column = canonical(values, self._type)
        hashes = np.asarray(hash_arrays([column], [self._type])).view(np.uint64)
        register = (hashes >> np.uint64(64 - _BITS)).astype(np.int64)
        rest = hashes << np.uint64(_BITS)
        self._insert(slots * _REGISTERS + register, _leading_zeros(rest) + 1)

    def _insert(self, places: Indices, ranks: Data) -> None:
        self._pending.append((places, ranks.astype(np.uint8)))
        self._waiting += len(places)
        if self._waiting > max(1 << 16, len(self._places)):
            self._settle()

    def _settle(self) -> None:
        """The largest rank of each register."""
        if not self._pending:
            return
        places = np.concatenate([self._places, *(places for places, _ in self._pending)])
        ranks = np.concatenate([self._ranks, *(ranks for _, ranks in self._pending)])
        order = np.argsort(places, kind="stable")
        places, ranks = places[order], ranks[order]
        first = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        self._places, self._ranks = places[first], np.maximum.reduceat(ranks, first)
        self._pending, self._waiting = [], 0

    def _ranges(self, slots: Indices) -> tuple[Indices, Indices]:
        self._settle()
        starts = np.searchsorted(self._places, slots * _REGISTERS)
        return starts, np.searchsorted(self._places, (slots + 1) * _REGISTERS)

    def packed(self, slots: Indices) -> pa.Array:
        starts, ends = self._ranges(slots)
        entries = np.empty(len(self._places), _ENTRY)
        entries["register"] = self._places % _REGISTERS
        entries["rank"] = self._ranks
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return pa.array([entries[start:end].tobytes() for start, end in pairs], pa.binary())

    def merge(self, groups: Indices | None, values: pa.Array) -> None:
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        for slot, state in zip(slots.tolist(), values.to_pylist(), strict=True):
            if state:
                entries = np.frombuffer(state, _ENTRY)
                places = slot * _REGISTERS + entries["register"].astype(np.int64)
                self._insert(places, entries["rank"])

    def finish(self, slots: Indices) -> pa.Array:
        starts, ends = self._ranges(slots)
        counts = [
            np.bincount(self._ranks[start:end], minlength=_RANKS + 1)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        estimates = np.array([_estimate(count) for count in counts], np.float64)
        return array_from(np.rint(estimates).astype(np.int64), engine_type(self.result))


def _leading_zeros(words: Data) -> Data:
    """Of the upper 50 bits of each word, whose lower 14 are 0."""
    zeros = np.zeros(len(words), np.int64)
    left = words.copy()
    for step in (32, 16, 8, 4, 2, 1):
        short = left < np.uint64(1) << np.uint64(64 - step)
        zeros[short] += step
        left[short] <<= np.uint64(step)
    return np.minimum(zeros, 64 - _BITS)


def _estimate(counts: Data) -> float:
    """``counts[r]``: registers of rank r, those that are 0 not counted yet."""
    filled = int(counts.sum())
    if filled == 0:
        return 0.0
    total = _REGISTERS * _tau(1.0 - counts[_RANKS] / _REGISTERS)
    for rank in range(_RANKS - 1, 0, -1):
        total = 0.5 * (total + float(counts[rank]))
    total += _REGISTERS * _sigma((_REGISTERS - filled) / _REGISTERS)
    return float(_REGISTERS * _REGISTERS / (2.0 * np.log(2.0)) / total)


def _sigma(x: float) -> float:
    if x == 1.0:
        return float("inf")
    power, result = 1.0, x
    while True:
        x *= x
        before = result
        result += x * power
        power += power
        if result == before:
            return result


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    power, result = 1.0, 1.0 - x
    while True:
        x = float(np.sqrt(x))
        before = result
        power *= 0.5
        result -= (1.0 - x) ** 2 * power
        if result == before:
            return result / 3.0
