"""Rows split into files come back, each exactly once, whatever the size of what is written."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes.sql import BIGINT
from remuda.errors import DiskFull
from remuda.execution.batch import Batch
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.row_partitions import FAN_OUT, FileScan, RowPartitions
from remuda.execution.spill import SpillSpace
from remuda.limits import BATCH_ROWS

sys.path.insert(0, str(Path(__file__).parent))

from spilling import drained, small_account


@pytest.mark.parametrize("memory", [1 << 16, 1 << 32], ids=["small-blocks", "large-blocks"])
@pytest.mark.parametrize("distinct", [1, 1 << 40], ids=["one-key", "many-keys"])
def test_every_row_comes_back_once(memory: int, distinct: int) -> None:
    """Of one key: blocks of more rows than a batch usually has, when the memory allows."""
    account = small_account(memory)
    numbers = np.arange(5 * BATCH_ROWS + 7)
    parts = RowPartitions([BIGINT, BIGINT], [0], [BIGINT], 0, Reservation(account, "test"))
    step = 3 * BATCH_ROWS // 2
    for at in range(0, len(numbers), step):
        piece = numbers[at : at + step]
        parts.add(Batch([pa.array(piece % distinct), pa.array(piece)], len(piece)))

    files = parts.finish()
    assert len(files) == FAN_OUT
    assert (sum(file.rows > 0 for file in files) == 1) == (distinct == 1)
    found = [row for file in files for row in drained(FileScan(file), [BIGINT, BIGINT])]

    assert sorted(row[1] for row in found) == numbers.tolist()
    assert all(key == number % distinct for key, number in found)
    assert account.spill is not None
    assert account.spill.used == 0


def test_a_disk_that_is_full_leaves_no_file_open() -> None:
    """There was room for some of the files when they were made."""
    opened: list[BinaryIO] = []

    def scratch() -> BinaryIO:
        if len(opened) == FAN_OUT // 2:
            raise DiskFull("no space left")
        opened.append(io.BytesIO())
        return opened[-1]

    account = MemoryAccount(1 << 20, SpillSpace(scratch, 1 << 20))
    with pytest.raises(DiskFull):
        RowPartitions([BIGINT], [0], [BIGINT], 0, Reservation(account, "test"))
    assert all(file.closed for file in opened)
    assert len(opened) == FAN_OUT // 2
