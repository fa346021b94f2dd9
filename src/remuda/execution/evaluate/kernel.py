"""The shapes of evaluation: kernels over values, evaluators over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.execution.batch import Batch
from remuda.execution.evaluate.decimals import compact
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.result_size import check_repeated

Kernel: TypeAlias = Callable[[list[Value], int], Value]
"""A strict function: no argument is a NULL scalar, at least one is a column of that many rows."""
Evaluator: TypeAlias = Callable[[Batch], Value]


def strict(kernel: Kernel, arguments: list[Evaluator], type_: pa.DataType) -> Evaluator:
    """NULL in, NULL out; constants are computed as columns of one row."""
    null = pa.scalar(None, type_)

    def evaluate(batch: Batch) -> Value:
        values = [argument(batch) for argument in arguments]
        constant = True
        for value in values:
            if isinstance(value, pa.Scalar):
                if not value.is_valid:
                    return null
            else:
                constant = False
        if not constant:
            return kernel(values, batch.rows)
        if values:
            values[0] = pa.repeat(values[0], 1)
        result = kernel(values, 1)
        return result[0] if isinstance(result, pa.Array) else result

    return evaluate


def column(value: Value, rows: int) -> pa.Array:
    """``value`` as a column of ``rows`` rows. Raises OutOfMemory for a huge text in many rows."""
    if isinstance(value, pa.Array):
        return value
    check_repeated(value, rows)
    return pa.repeat(value, rows)


def scalar_of(value: PhysicalValue, type_: SqlType) -> pa.Scalar:
    """A physical value as an Arrow scalar; a long decimal is int64 when it fits."""
    return compact(values_to_array([value], type_))[0]


def physical_of(value: pa.Scalar, type_: SqlType) -> PhysicalValue:
    """The inverse of ``scalar_of``."""
    if not value.is_valid:
        return None
    return array_to_values(pa.repeat(value, 1), type_)[0]
