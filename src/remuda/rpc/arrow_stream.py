"""Record batches as Arrow IPC streams in the dbody of a frame.

A stream may come from anybody: it is checked before a kernel or the store
reads it, for Arrow itself trusts offsets, lengths and text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import pyarrow as pa

from remuda.errors import ProtocolError

HEADER, COMPRESSION = 2, 3
"""Places of fields in the flatbuffer tables ``Message`` and ``RecordBatch`` (Message.fbs of Arrow).
"""
LARGE = 64 * 1024
"""Batches of so many bytes are measured before memory is taken for them."""
END_SIZE = 8


def encode(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> memoryview:
    """Schema message, batches, end of stream."""
    return memoryview(encode_buffer(schema, list(batches)))


def encode_buffer(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """The same in Arrow's memory."""
    if sum(batch.nbytes for batch in batches) >= LARGE and not _has_dictionaries(schema):
        sizes = [pa.ipc.get_record_batch_size(batch) for batch in batches]
        memory = pa.allocate_buffer(schema.serialize().size + sum(sizes) + END_SIZE)
        target = pa.FixedSizeBufferWriter(memory)
        _write(target, schema, batches)
        return memory.slice(0, target.tell())
    grown = pa.BufferOutputStream()  # it doubles, and copies all that is there
    _write(grown, schema, batches)
    return grown.getvalue()


def _write(target: pa.NativeFile, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(target, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _has_dictionaries(schema: pa.Schema) -> bool:
    """Their values are batches of their own, whose sizes nobody tells."""
    return any("dictionary" in str(field.type) for field in schema)


def decode(body: memoryview | bytes) -> list[pa.RecordBatch]:
    """The batches, without copying, and safe to compute with. Raises ProtocolError for anything
    that is not a stream of plain batches: compressed ones could be of any size when unpacked.
    """
    try:
        schema: pa.Schema | None = None
        batches = []
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
            if schema is None:
                schema = pa.ipc.read_schema(message)
                schema.names  # noqa: B018 (Arrow leaves it to us whether they are text)
            else:
                batches.append(_batch(message, schema))
    except (pa.ArrowException, OSError, struct.error, UnicodeDecodeError) as problem:
        raise ProtocolError(f"the body is not an Arrow stream: {problem}") from problem
    if schema is None:
        raise ProtocolError("the body is not an Arrow stream: it has no schema")
    return batches


def _batch(message: pa.ipc.Message, schema: pa.Schema) -> pa.RecordBatch:
    if message.type != "record batch":
        raise ProtocolError(f"a {message.type} message is not expected in an Arrow stream here")
    if _is_compressed(memoryview(message.metadata)):
        raise ProtocolError("compressed Arrow batches are not accepted")
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    return batch


def _is_compressed(metadata: memoryview) -> bool:
    """Whether the RecordBatch in a ``Message`` says how its buffers are compressed."""
    root = _unsigned(metadata, 0)
    header = _field(metadata, root, HEADER)
    if header is None:
        return False
    record_batch = header + _unsigned(metadata, header)
    return _field(metadata, record_batch, COMPRESSION) is not None


def _field(data: memoryview, table: int, place: int) -> int | None:
    """Where a field of a flatbuffer table is; None if it is absent."""
    (to_vtable,) = struct.unpack_from("<i", data, table)
    vtable = table - to_vtable
    (size,) = struct.unpack_from("<H", data, vtable)
    entry = 4 + 2 * place
    if entry >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + entry)
    return table + offset if offset else None


def _unsigned(data: memoryview, position: int) -> int:
    value: int
    (value,) = struct.unpack_from("<I", data, position)
    return value
