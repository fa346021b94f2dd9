"""The functions that are only called with OVER: types of arguments and results."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.coercion import is_implicit
from remuda.datatypes.sql import (
    BIGINT,
    DOUBLE,
    INTEGER,
    VARCHAR,
)
from remuda.plan.functions.signatures import (
    Signature,
    Types,
    WindowFunction,
    fixed,
    same_type,
    unknown,
)


def _any_value(types: Types) -> Signature | None:
    t = VARCHAR if len(types) == 1 and unknown(types[0]) else types[0] if types else None
    return None if t is None or len(types) != 1 else Signature((t,), t)


def _offset_value(types: Types) -> Signature | None:
    """``lag``, ``lead``: (value, rows, default of the value's type)."""
    if not 1 <= len(types) <= 3:
        return None
    if len(types) > 1 and not (unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    values = same_type((types[0], *types[2:]))
    if values is None:
        return None
    t = VARCHAR if unknown(values.result) else values.result
    return Signature((t, INTEGER, t)[: len(types)], t)


def _nth_value(types: Types) -> Signature | None:
    if len(types) != 2 or not (unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    t = VARCHAR if unknown(types[0]) else types[0]
    return Signature((t, INTEGER), t)


FUNCTIONS: Final = (
    WindowFunction("row_number", fixed(BIGINT), "the row's number in its partition, from 1"),
    WindowFunction("rank", fixed(BIGINT), "the number of the row's first peer"),
    WindowFunction("dense_rank", fixed(BIGINT), "the number of the row's group of peers"),
    WindowFunction("percent_rank", fixed(DOUBLE), "(rank - 1) / (rows - 1); 0 for a single row"),
    WindowFunction("cume_dist", fixed(DOUBLE), "the share of rows up to the row's last peer"),
    WindowFunction("ntile", fixed(INTEGER, INTEGER), "n buckets of equal size, from 1"),
    WindowFunction("lag", _offset_value, "value, rows before (1), default (NULL)"),
    WindowFunction("lead", _offset_value, "value, rows after (1), default (NULL)"),
    WindowFunction("first_value", _any_value, "of the frame", framed=True),
    WindowFunction("last_value", _any_value, "of the frame", framed=True),
    WindowFunction("nth_value", _nth_value, "value, n: of the frame's n-th row", framed=True),
)
