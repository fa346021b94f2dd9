"""Batches as messages in pieces: the bytes of Arrow's own message, long columns not copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.execution.exchange.encoding import BatchEncoder, encoded_size

ROWS = 64 * 1024


def doubles(count: int = 4) -> pa.RecordBatch:
    chance = np.random.default_rng(3)
    names = [f"c{number}" for number in range(count)]
    return pa.record_batch([pa.array(chance.random(ROWS)) for _ in names], names=names)


def mixed() -> pa.RecordBatch:
    """Nulls, texts and bits: buffers that end anywhere."""
    numbers = range(ROWS)
    columns = [
        pa.array([None if number % 7 == 0 else "x" * (number % 90) for number in numbers]),
        pa.array([number if number % 3 else None for number in numbers]),
        pa.array([bool(number & 2) for number in numbers]),
    ]
    return pa.record_batch(columns, names=["text", "number", "bit"])


def message(parts: tuple[pa.Buffer, ...]) -> bytes:
    return b"".join(memoryview(part) for part in parts)


@pytest.mark.parametrize("batch", [doubles(), mixed()], ids=["doubles", "mixed"])
@pytest.mark.parametrize(
    ("start", "rows"), [(0, ROWS), (5, ROWS - 9), (1000, ROWS), (3, 10), (0, 0)]
)
def test_the_pieces_are_the_message(batch: pa.RecordBatch, start: int, rows: int) -> None:
    encoder = BatchEncoder(batch.schema)
    part = batch.slice(start, rows)
    size = encoded_size(part)
    for _ in range(2):  # the first of an encoder, and any other
        pieces = encoder.encode(part, size)
        assert message(pieces) == part.serialize().to_pybytes()
        assert sum(piece.size for piece in pieces) == size


def test_long_columns_are_not_copied() -> None:
    batch = doubles()
    pieces = BatchEncoder(batch.schema).encode(batch, encoded_size(batch))
    own = [column.buffers()[1].address for column in batch.columns]
    assert [piece.address for piece in pieces[1:]] == own


def test_the_pieces_outlive_their_batch() -> None:
    batch = doubles()
    expected = batch.serialize().to_pybytes()
    pieces = BatchEncoder(batch.schema).encode(batch, encoded_size(batch))
    del batch
    assert message(pieces) == expected


def test_short_columns_are_one_piece() -> None:
    batch = doubles(40).slice(0, 100)
    assert len(BatchEncoder(batch.schema).encode(batch, encoded_size(batch))) == 1


def test_batches_without_columns() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 7, pa.struct([])))
    pieces = BatchEncoder(empty.schema).encode(empty, encoded_size(empty))
    assert message(pieces) == empty.serialize().to_pybytes()
