"""Functions whose value is another one for each row, or at each moment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.errors import InputError
from remuda.execution.arrays import array_from, data_of
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.nested import random_uuids
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call


class _Numbers:
    """One sequence of random numbers for the process (NumPy's generators lock themselves)."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng()

    def fractions(self, rows: int) -> pa.Array:
        return array_from(self._generator.random(rows), pa.float64())

    def restart(self, seed: float) -> None:
        self._generator = np.random.default_rng(np.float64(seed).view(np.uint64))

    def renew(self) -> None:
        self._generator = np.random.default_rng()


_NUMBERS: Final = _Numbers()
if hasattr(os, "register_at_fork"):
    # Two members that were forked from one process would give the same numbers.
    os.register_at_fork(after_in_child=_NUMBERS.renew)


def _now(rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(time.time_ns() // 1000, pa.timestamp("us", "UTC")), rows)


def set_seed(_: Call) -> Kernel:
    """``random`` of this member's process begins anew; the result is an empty text."""

    def kernel(values: list[Value], rows: int) -> pa.Array:
        for seed in data_of(column(values[0], rows)).tolist():
            if not -1.0 <= seed <= 1.0:
                raise InputError(f"setseed parameter {seed:g} is out of allowed range [-1,1]")
            _NUMBERS.restart(seed)
        return pa.repeat(pa.scalar(""), rows)

    return kernel


VOLATILE: Final[dict[str, Callable[[int], pa.Array]]] = {
    "random": _NUMBERS.fractions,
    "clock_timestamp": _now,
    "gen_random_uuid": random_uuids,
}
"""Name -> what makes a column of that many rows."""
