"""Arrow IPC streams as they travel: rows in a dbody, many keys and their rows in a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.errors import ProtocolError
from remuda.limits import ENCODED_BATCH_SIZE_MAX
from remuda.rpc.messages import user_pb2

Found: TypeAlias = tuple[npt.NDArray[np.int64], pa.RecordBatch]
"""Rows in engine form, and of each the place of its key among those that were asked for."""
_PLACE = np.dtype("<u4")
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


# --- many keys of a request, and their rows ---


def key_batch(schema: MapSchema, keys: Sequence[pa.Array]) -> bytes:
    """The part of a ``KeysRequest`` that holds the keys, whose columns are in engine form."""
    fields = [
        pa.field(schema.columns[position].name, column.type)
        for position, column in zip(schema.key_positions, keys, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(keys, schema=pa.schema(fields))
    stream = b"".join(encode_stream(batch.schema, [batch]))
    return user_pb2.KeysRequest(key_batch=stream).SerializeToString()


def found_of_batch(message: user_pb2.RowsResponse) -> Found:
    """The answer to a ``key_batch``."""
    _, (batch,) = decode_stream(message.batch)
    return np.frombuffer(message.places, dtype=_PLACE).astype(np.int64), batch


def found_of_rows(schema: MapSchema, answers: Sequence[tuple[PhysicalValue, ...] | None]) -> Found:
    """The same of rows, one for each key, or None."""
    rows = {place: row for place, row in enumerate(answers) if row is not None}
    columns = list(zip(*rows.values(), strict=True)) or [()] * len(schema.columns)
    arrays = [
        values_to_array(values, column.type)
        for values, column in zip(columns, schema.columns, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))
    return np.array(list(rows), dtype=np.int64), batch
