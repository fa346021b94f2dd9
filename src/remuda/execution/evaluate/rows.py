"""Kernels that call a Python function for each row, where no vectorized one is worth its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.result_size import gathered
from remuda.plan.expression import Call


def per_row(function: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """A kernel that calls ``function`` for each row without NULLs."""

    def make(call: Call) -> Kernel:
        type_ = engine_type(call.type)
        sized = pa.types.is_string(type_) or pa.types.is_binary(type_)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            columns = [
                value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * rows
                for value in values
            ]
            results = (
                None if None in row else function(*row) for row in zip(*columns, strict=True)
            )
            return pa.array(gathered(results, call.function) if sized else list(results), type_)

        return kernel

    return make
