"""Filters: conditions to the row numbers that pass.

Conjuncts are applied one after the other. Null-free comparisons run on NumPy views; the selection
shrinks in between when few rows are left (gathering the columns of the next conjunct then costs
less than testing all rows), or when the next conjunct may raise and must not see rows that an
earlier one has excluded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from remuda.execution.arrays import Indices, Mask, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.evaluate.comparison import COMPARISONS, comparer, true_mask
from remuda.execution.evaluate.compile import Compiler, can_fail
from remuda.plan.expression import Call, Expression, conjuncts

Masker: TypeAlias = Callable[[Batch], Mask | bool]
"""True where a condition holds; one bool when it is the same for all rows."""

_NARROW_BELOW = 8
"""Narrow when less than one row in so many is left."""


class Predicate:
    def __init__(self, condition: Expression, compiler: Compiler) -> None:
        self._parts = [(_masker(part, compiler), can_fail(part)) for part in conjuncts(condition)]

    def select(self, batch: Batch) -> Indices | None:
        """The numbers of the rows that pass, ascending; None when all do."""
        rows: Indices | None = None
        mask: Mask | None = None
        current = batch
        for masker, guarded in self._parts:
            if mask is not None:
                kept = np.count_nonzero(mask)
                if guarded or kept * _NARROW_BELOW < len(mask):
                    hits = np.flatnonzero(mask)
                    rows = hits if rows is None else rows[hits]
                    current = batch.narrow(rows)
                    mask = None
            if current.rows == 0:
                break
            holds = masker(current)
            if holds is True:
                continue
            if holds is False:
                return np.zeros(0, np.int64)
            mask = holds if mask is None else mask & holds
        if mask is None:
            return rows
        if rows is None and mask.all():
            return None
        hits = np.flatnonzero(mask)
        return hits if rows is None else rows[hits]

    def filter(self, batch: Batch) -> Batch:
        rows = self.select(batch)
        return batch if rows is None else batch.narrow(rows)


def _masker(condition: Expression, compiler: Compiler) -> Masker:
    if isinstance(condition, Call) and condition.function in COMPARISONS:
        return _comparison_masker(condition, compiler)
    evaluator = compiler.compile(condition)

    def masker(batch: Batch) -> Mask | bool:
        value = evaluator(batch)
        if isinstance(value, pa.Scalar):
            return value.as_py() is True
        return true_mask(value, batch.rows)

    return masker


def _comparison_masker(condition: Call, compiler: Compiler) -> Masker:
    compare = comparer(condition)
    left, right = (compiler.compile(argument) for argument in condition.arguments)

    def masker(batch: Batch) -> Mask | bool:
        values = [left(batch), right(batch)]
        constants = 0
        for value in values:
            if isinstance(value, pa.Scalar):
                if not value.is_valid:
                    return False
                constants += 1
        if constants == 2:
            return bool(compare([pa.repeat(values[0], 1), values[1]])[0])
        mask = compare(values)
        for value in values:
            valid = validity_mask(value) if isinstance(value, pa.Array) else None
            if valid is not None:
                mask = mask & valid
        return mask

    return masker
