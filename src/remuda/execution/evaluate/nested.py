"""The tables of functions of ARRAY, ROW, JSON and UUID, and the operators they share."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import JSON
from remuda.execution.evaluate.arithmetic import arithmetic
from remuda.execution.evaluate.json_values import (
    JSON_CONTAINED,
    JSON_CONTAINS,
    JSON_JOIN,
    JSON_MINUS,
    OWN_JSON,
    STRICT_JSON,
)
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.lists import (
    ARRAY_CONTAINED,
    ARRAY_CONTAINS,
    OWN_LISTS,
    STRICT_LISTS,
    OwnNulls,
)
from remuda.execution.evaluate.lookups import LOOKUPS
from remuda.execution.evaluate.text import TEXT_FUNCTIONS
from remuda.plan.expression import Call


def _by_first(
    json: Callable[[Call], Kernel], other: Callable[[Call], Kernel]
) -> Callable[[Call], Kernel]:
    """One operator for JSON and for another type."""
    return lambda call: (json if call.arguments[0].type == JSON else other)(call)


def random_uuids(rows: int) -> pa.Array:
    """Random UUIDs, version 4 of RFC 9562: 122 random bits each."""
    data = np.frombuffer(os.urandom(16 * rows), np.uint8).reshape(rows, 16).copy()
    data[:, 6] = data[:, 6] & 0x0F | 0x40
    data[:, 8] = data[:, 8] & 0x3F | 0x80
    offsets = np.arange(0, 16 * (rows + 1), 16, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


STRICT_NESTED: dict[str, Callable[[Call], Kernel]] = {
    **STRICT_LISTS,
    **LOOKUPS,
    **STRICT_JSON,
    "@>": _by_first(JSON_CONTAINS, ARRAY_CONTAINS),
    "<@": _by_first(JSON_CONTAINED, ARRAY_CONTAINED),
    "-": _by_first(JSON_MINUS, arithmetic),
    "||": _by_first(JSON_JOIN, TEXT_FUNCTIONS["||"]),
}
OWN_NESTED: dict[str, Callable[[Call], OwnNulls]] = {**OWN_LISTS, **OWN_JSON}
