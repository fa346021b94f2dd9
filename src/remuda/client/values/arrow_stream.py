"""Arrow IPC streams as they travel in a dbody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from remuda.errors import ProtocolError
from remuda.limits import ENCODED_BATCH_SIZE_MAX

END_OF_STREAM: Final = memoryview(b"\xff\xff\xff\xff\0\0\0\0")


def encode_stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> list[memoryview]:
    """One IPC stream, schema and batches (no dictionaries), as the buffers of a dbody."""
    # Not a stream that grows: each time it doubles, it copies all that it has.
    messages = [memoryview(batch.serialize()) for batch in batches]
    return [memoryview(schema.serialize()), *messages, END_OF_STREAM]


def decode_stream(dbody: memoryview | bytes) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """Schema and batches of an IPC stream; the batches point into ``dbody``."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(dbody)) as reader:
            return reader.schema, list(reader)
    except pa.ArrowInvalid as error:
        raise ProtocolError(f"a result page is no Arrow stream: {error}") from error


def pieces(
    batch: pa.RecordBatch, size_max: int = ENCODED_BATCH_SIZE_MAX
) -> Iterator[pa.RecordBatch]:
    """``batch`` in slices of about ``size_max`` bytes at most, for one frame each."""
    count = max(1, -(-batch.nbytes // size_max))
    step = max(1, -(-batch.num_rows // count))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
