"""What the tests of spilling share: operators over given batches, with little memory."""

from __future__ import annotations

import io
import random
import string
from collections.abc import Sequence
from functools import lru_cache

from remuda.datatypes.sql import BIGINT, DOUBLE, VARCHAR, SqlType, decimal
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import MemoryAccount
from remuda.execution.spill import SpillSpace

Rows = list[tuple[PhysicalValue, ...]]

TYPES = (BIGINT, VARCHAR, DOUBLE, decimal(30, 4))


class Given(Operator):
    """Puts out given rows in batches, and waits before every other one."""

    def __init__(self, rows: Rows, types: Sequence[SqlType], batch_rows: int) -> None:
        self._batches = [
            batch_of(rows[at : at + batch_rows], types) for at in range(0, len(rows), batch_rows)
        ] or [batch_of([], types)]
        self._waited = False
        self.closed = 0

    def advance(self) -> Progress:
        self._waited = not self._waited
        if self._waited:
            return Progress.WAIT
        self._batch = self._batches.pop(0)
        return Progress.FETCHED if self._batches else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self.closed += 1


def batch_of(rows: Rows, types: Sequence[SqlType]) -> Batch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return Batch(
        [
            values_to_array(list(column), type_)
            for column, type_ in zip(columns, types, strict=True)
        ],
        len(rows),
    )


def rows_of(batch: Batch, types: Sequence[SqlType]) -> Rows:
    if batch.rows == 0:  # it may come without columns
        return []
    columns = [
        array_to_values(column, type_) for column, type_ in zip(batch.columns(), types, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.rows


def drained(operator: Operator, types: Sequence[SqlType]) -> Rows:
    """All rows; the operator is closed."""
    try:
        return all_rows(operator, types)
    finally:
        operator.close()


def all_rows(operator: Operator, types: Sequence[SqlType]) -> Rows:
    """All rows that it gives from now on."""
    rows: Rows = []
    while True:
        progress = operator.advance()
        if progress is not Progress.WAIT:
            rows += rows_of(operator.current_batch(), types)
        if progress is Progress.FETCHED_DONE:
            return rows


def small_account(limit: int, spill_limit: int = 1 << 30) -> MemoryAccount:
    """Spills to files in memory: thousands of small files on a busy disk take longer than the work.
    ``test_sorted_exchange.py`` and the tests of members spill to a disk."""
    return MemoryAccount(limit, SpillSpace(io.BytesIO, spill_limit))


def some_rows(count: int, seed: int, distinct: int) -> Rows:
    """Rows of ``TYPES`` with NULLs and many equal values."""
    return list(_rows(count, seed, distinct))


@lru_cache(maxsize=4)
def _rows(count: int, seed: int, distinct: int) -> Rows:
    chance = random.Random(seed)
    words = [
        "".join(chance.choices(string.ascii_letters + "äß€", k=k % 30)) for k in range(distinct)
    ]

    def null(value: PhysicalValue) -> PhysicalValue:
        return None if chance.random() < 0.1 else value

    return [
        (
            null(chance.randrange(-distinct, distinct)),
            null(chance.choice(words)),
            null(chance.choice([chance.uniform(-9, 9), float("nan"), -0.0, 0.0, float("inf")])),
            null(chance.randrange(-distinct, distinct) * 10**18),
        )
        for _ in range(count)
    ]
