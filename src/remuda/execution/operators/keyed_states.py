"""States of aggregates over types that compare by an order key, and over intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.hashes.orderkeys import interval_parts, order_keys
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.errors import IntervalOverflow
from remuda.execution.arrays import Data, Indices, array_from, data_of, take, validity_mask
from remuda.execution.evaluate.intervals import interval_array
from remuda.execution.operators.aggregate_states import State, grown, mark_seen


class KeyedExtremeState(State):
    """min and max: of each batch the best row of each group is found by the ranks of the order
    keys, then compared with what the group has."""

    def __init__(self, result: SqlType, largest: bool) -> None:
        super().__init__(result)
        self._largest = largest
        self._keys: list[bytes | None] = []
        self._best: list[PhysicalValue] = []

    def resize(self, size: int) -> None:
        self._keys.extend([None] * (size - len(self._keys)))
        self._best.extend([None] * (size - len(self._best)))
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if pa.types.is_null(values.type) or values.null_count == len(values):
            return
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        valid = validity_mask(values)
        if valid is not None:
            rows = np.flatnonzero(valid)
            slots, values = slots[rows], take(values, rows)
        keys = order_keys(values, self.result)
        ranks = pc.rank(keys, sort_keys="ascending", tiebreaker="dense")
        order = data_of(ranks.cast(pa.int64()))
        by_slot = np.lexsort((order, slots))
        sorted_slots = slots[by_slot]
        edge = sorted_slots[1:] != sorted_slots[:-1]
        chosen = by_slot[np.append(edge, True) if self._largest else np.append(True, edge)]
        found = array_to_values(take(values, chosen), self.result)
        best_keys = take(keys, chosen).to_pylist()
        for slot, key, value in zip(slots[chosen].tolist(), best_keys, found, strict=True):
            old = self._keys[slot]
            if old is None or (key > old if self._largest else key < old):
                self._keys[slot], self._best[slot] = key, value

    def finish(self, slots: Indices) -> pa.Array:
        return values_to_array([self._best[slot] for slot in slots.tolist()], self.result)


class IntervalSumState(State):
    """sum: months, days and microseconds each for themselves."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result)
        self._sums: list[Data] = [np.zeros(0, np.int64) for _ in range(3)]
        self._seen: Data = np.zeros(0, np.bool_)
        self._reach = 0.0
        """No sum of microseconds can be larger than this."""

    def resize(self, size: int) -> None:
        self._sums = [grown(part, size) for part in self._sums]
        self._seen = grown(self._seen, size, False)
        self.size = size

    def add(self, groups: Indices | None, values: pa.Array) -> None:
        if pa.types.is_null(values.type) or values.null_count == len(values):
            return
        slots = np.zeros(len(values), np.int64) if groups is None else groups
        parts = interval_parts(values)
        valid = validity_mask(values)
        mark_seen(self._seen, self.size, slots if valid is None else slots[valid])
        self._reach += float(np.abs(parts[2].astype(np.float64)).sum())
        if self._reach >= 2.0**63:
            raise IntervalOverflow("interval out of range")
        for total, part in zip(self._sums, parts, strict=True):
            np.add.at(total, slots, part)

    def finish(self, slots: Indices) -> pa.Array:
        seen = self._seen[slots]
        months, days, micros = (part[slots] for part in self._sums)
        known = array_from(np.zeros(len(slots), np.int64), pa.int64())
        if not seen.all():
            known = pa.array(np.zeros(len(slots), np.int64), mask=~seen)
        return interval_array((months, days, micros), known)
