"""sqrt, exp, ln, log and power of DECIMAL columns: exact to the digits that PostgreSQL gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from remuda.datatypes.numeric import (
    EXACT_FUNCTIONS,
    Numeric,
    at_scale,
)
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import (
    DECIMAL_LIMIT,
    Value,
    decimal_array,
    exact_of,
    invalid_mask,
    numeric_overflow,
    shrink,
)
from remuda.plan.expression import Call


def exact_analysis(call: Call) -> Kernel:
    """Each distinct combination of arguments is computed once in a batch."""
    apply = EXACT_FUNCTIONS[call.function]
    scales = [argument.type.scale or 0 for argument in call.arguments]
    scale = call.type.scale or 0

    def kernel(values: list[Value], rows: int) -> pa.Array:
        invalid = invalid_mask(*values)
        parts = [_integers(value, rows) for value in values]
        known: dict[tuple[int, ...], int] = {}
        found = np.zeros(rows, object)
        for row, arguments in enumerate(zip(*parts, strict=True)):
            if invalid is not None and invalid[row]:
                continue
            result = known.get(arguments)
            if result is None:
                pairs = zip(arguments, scales, strict=True)
                result = at_scale(apply(*(Numeric(v, s) for v, s in pairs)), scale).unscaled
                if abs(result) >= DECIMAL_LIMIT:
                    raise _too_large()
                known[arguments] = result
            found[row] = result
        data: Any = shrink(found)
        return decimal_array(data, call.type, *values, invalid=invalid)

    return kernel


def _integers(value: Value, rows: int) -> list[int]:
    data = exact_of(column(value, rows))
    assert isinstance(data, np.ndarray)
    found: list[int] = data.tolist()
    return found


def _too_large() -> Exception:
    hint = "Convert an argument to DOUBLE PRECISION if 15 digits will do."
    return numeric_overflow().advising(hint)
