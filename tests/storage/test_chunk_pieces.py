"""Batches become chunks: which are taken as they are, and which are copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.storage.chunks.chunk import CHUNK_ROWS_MAX
from remuda.storage.chunks.chunk_table import pieces

HALF = CHUNK_ROWS_MAX // 2


def rows(count: int, start: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"k": np.arange(start, start + count)})


def sizes(batches: list[pa.RecordBatch]) -> list[int]:
    made = pieces(batches)
    joined = pa.Table.from_batches(made) if made else pa.table({"k": pa.array([], pa.int64())})
    expected = [value for batch in batches for value in batch.column(0).to_pylist()]
    assert joined.column(0).to_pylist() == expected
    return [batch.num_rows for batch in made]


def is_copy(made: pa.RecordBatch, of: pa.RecordBatch) -> bool:
    return made.column(0).buffers()[1].address != of.column(0).buffers()[1].address


def test_what_fills_half_a_chunk_is_taken_as_it_is() -> None:
    first, second = rows(HALF), rows(CHUNK_ROWS_MAX, HALF)
    assert sizes([first, second]) == [HALF, CHUNK_ROWS_MAX]
    made = pieces([first, second])
    assert not is_copy(made[0], first)
    assert not is_copy(made[1], second)


def test_small_ones_are_put_together() -> None:
    assert sizes([rows(10), rows(20, 10), rows(HALF - 1, 30)]) == [HALF + 29]
    assert sizes([rows(10), rows(CHUNK_ROWS_MAX, 10)]) == [CHUNK_ROWS_MAX, 10]


def test_parts_of_a_larger_batch_are_copied() -> None:
    """They would keep all of it in memory."""
    whole = rows(2 * CHUNK_ROWS_MAX)
    part = whole.slice(5, HALF)
    [made] = pieces([part, rows(0)])
    assert is_copy(made, part)
    assert made.get_total_buffer_size() < part.get_total_buffer_size() // 2
    assert sizes([whole]) == [CHUNK_ROWS_MAX, CHUNK_ROWS_MAX]
