"""Staged rows that bring their ends along: a last column besides those of the map.

Restored entries keep the moment at which they end by themselves, each its own; rows of all other
jobs live as long as their commit says. The column goes where the rows go: to copies, into the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.timestamp import FOREVER

ENDS: Final = pa.field("#end", pa.int64(), nullable=False)


def with_ends(batch: pa.RecordBatch, ends: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
    """The rows and their ends; None: as they are."""
    if ends is None:
        return batch
    schema = batch.schema.append(ENDS)
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(ends)], schema=schema)


def has_ends(batch: pa.RecordBatch, columns: int) -> bool:
    """Whether there is one column more than the map has, and it is that of the ends."""
    return batch.num_columns == columns + 1 and bool(batch.schema.field(columns).equals(ENDS))


def without_ends(batch: pa.RecordBatch, columns: int) -> pa.RecordBatch:
    """The rows alone, of a map of so many columns."""
    return batch.select(list(range(columns))) if has_ends(batch, columns) else batch


def aligned(batches: Sequence[pa.RecordBatch], columns: int) -> list[pa.RecordBatch]:
    """All with ends, or none: the rows that bring none live for ever beside others that do."""
    brought = [has_ends(batch, columns) for batch in batches]
    if all(brought) or not any(brought):
        return list(batches)
    return [
        batch if there else with_ends(batch, np.full(batch.num_rows, FOREVER, dtype=np.int64))
        for batch, there in zip(batches, brought, strict=True)
    ]


def ends_of(batches: Sequence[pa.RecordBatch], columns: int) -> npt.NDArray[np.int64] | None:
    """Of all rows, in their order; None when they bring none."""
    if not batches or not has_ends(batches[0], columns):
        return None
    return np.concatenate([batch.column(columns).to_numpy() for batch in batches])
