"""How many rows a call of a set function may give."""

from __future__ import annotations

from remuda.datatypes.sql import Kind
from remuda.plan.expression import Literal
from remuda.plan.functions.set_functions import GIVEN_ROWS, SET_FUNCTIONS, SetCall

ROWS_MAX = 1e15


def expected_rows(call: SetCall) -> float:
    """Exactly for a series between known numbers, else what the catalog says."""
    if call.function == GIVEN_ROWS:
        return float(len(call.arguments) // len(call.types))
    literals = [part.value for part in call.arguments if isinstance(part, Literal)]
    scale = call.types[0].scale or 0
    counts = call.types[0].is_integer or call.types[0].kind is Kind.DECIMAL
    if call.function == "generate_series" and counts and len(literals) == len(call.arguments):
        start, stop, *rest = literals
        step = rest[0] if rest else 10**scale
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step:
            return float(min(max(0, (stop - start) // step + 1), ROWS_MAX))
    return SET_FUNCTIONS[call.function].rows
