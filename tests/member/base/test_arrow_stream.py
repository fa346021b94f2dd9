"""Arrow streams of unknown origin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.errors import ProtocolError
from remuda.rpc.arrow_stream import decode, encode


def text(offsets: list[int], data: bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def stream(array: pa.Array, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], names=["v"])
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def test_plain_batches_are_read_without_copying() -> None:
    batches = [
        pa.record_batch([pa.array([1, None, 3]), pa.array(["ä", "", None])], names=["k", "v"]),
        pa.record_batch([pa.array([], pa.int64()), pa.array([], pa.string())], names=["k", "v"]),
    ]
    body = bytes(encode(batches[0].schema, batches))
    assert decode(body) == batches
    assert decode(bytes(encode(batches[0].schema, []))) == []
    address = decode(body)[0].column(0).buffers()[1].address
    start = pa.py_buffer(body).address
    assert start <= address < start + len(body)


@pytest.mark.parametrize(
    "array",
    [
        text([0, 1 << 30, 5], b"abcde"),
        text([0, 3, 2, 5], b"abcde"),
        text([0, 2], b"\xff\xfe"),
    ],
    ids=["offset beyond the data", "offsets that fall", "no UTF-8"],
)
def test_arrays_that_would_break_a_kernel_are_refused(array: pa.Array) -> None:
    with pytest.raises(ProtocolError, match="not an Arrow stream"):
        decode(stream(array))


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_batches_are_refused_before_they_are_unpacked(codec: str) -> None:
    bomb = stream(pa.array(np.zeros(1_000_000, np.int64)), compression=codec)
    assert len(bomb) < 100_000
    allocated = pa.total_allocated_bytes()
    with pytest.raises(ProtocolError, match="compressed"):
        decode(bomb)
    assert pa.total_allocated_bytes() == allocated


def test_dictionaries_are_refused() -> None:
    with pytest.raises(ProtocolError, match="dictionary"):
        decode(stream(pa.array(["a", "b"]).dictionary_encode()))


def test_any_damage_is_a_protocol_error_or_still_valid() -> None:
    body = stream(pa.array(["one", None, "three"]))
    for stop in range(1, len(body) - 8):
        try:
            assert decode(body[:stop]) == []  # cut behind the schema
        except ProtocolError:
            continue
    for position in range(len(body)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = body[:position] + bytes([value]) + body[position + 1 :]
            try:
                batches = decode(damaged)
            except ProtocolError:
                continue
            for batch in batches:
                assert all(isinstance(name, str) for name in batch.schema.names)
                batch.validate(full=True)
    for nothing in (b"", b"\0\0\0\0", b"not arrow"):
        with pytest.raises(ProtocolError):
            decode(nothing)
