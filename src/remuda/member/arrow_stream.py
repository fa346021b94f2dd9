"""Record batches as Arrow IPC streams in the dbody of a frame."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from remuda.errors import ProtocolError


def encode(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> memoryview:
    """Schema message, batches, end of stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return memoryview(sink.getvalue())


def decode(body: memoryview | bytes) -> list[pa.RecordBatch]:
    """The batches, without copying. Raises ProtocolError for anything that is not a stream."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches = list(reader)
        for batch in batches:
            batch.validate()
    except (pa.ArrowInvalid, OSError, pa.ArrowException) as problem:
        raise ProtocolError(f"the body is not an Arrow stream: {problem}") from problem
    return batches
