"""Frames: Drill's bytes, any cut of the stream, and garbage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.errors import FrameCorrupt, FrameTooLarge
from remuda.limits import FRAME_SIZE_MAX
from remuda.rpc.frame import (
    LARGE_FRAME_SIZE,
    PING,
    PONG,
    RECEIVE_BUFFER_SIZE,
    REQUEST,
    RESPONSE,
    Frame,
    FrameReader,
    encode,
    encode_head,
    varint,
)

# Frames as Drill writes them (seen on the wire).
GOLDEN = {
    "ping": ("0c0a0608031000180012020801", Frame(PING, 0, 0, b"\x08\x01")),
    "pong": ("0c0a0608041000180012020801", Frame(PONG, 0, 0, b"\x08\x01")),
    "ack": ("0c0a0608011007180112020801", Frame(RESPONSE, 7, 1, b"\x08\x01")),
    "run query": (
        "180a06080010021803120e080110011a0873656c6563742031",
        Frame(REQUEST, 2, 3, b"\x08\x01\x10\x01\x1a\x08select 1"),
    ),
    "with dbody": (
        "120a07080010ac021806120208011a03ffffff",
        Frame(REQUEST, 300, 6, b"\x08\x01", b"\xff\xff\xff"),
    ),
}


def feed(reader: FrameReader, data: bytes, step: int | None = None) -> list[Frame]:
    """Receive as a socket would: into the reader's buffer, at most ``step`` bytes at a time."""
    frames = []
    position = 0
    while position < len(data):
        view = reader.room
        count = min(len(view), len(data) - position, step or len(view))
        assert count > 0
        view[:count] = data[position : position + count]
        frames += reader.received(count)
        position += count
    return frames


@settings(deadline=None)
@given(
    st.sampled_from([REQUEST, RESPONSE, PING]),
    st.sampled_from([0, 1, 127, 128, 16383, 16384, 2**31 - 1]),
    st.sampled_from([0, 3, 127, 128]),
    st.sampled_from([0, 1, 99, 100, 115, 116, 117, 118, 119, 127, 128, 15_999, 16_000, 16_384]),
    st.sampled_from([0, 0, 5]),
    st.integers(0, 30),
    st.none() | st.integers(0, 255),
)
def test_a_single_frame_is_read_as_by_the_general_way(
    mode, identifier, rpc_type, size, dbody, position, wrong
):
    data = bytearray(encode(Frame(mode, identifier, rpc_type, bytes(size), bytes(dbody))))
    if wrong is not None and position < len(data):
        data[position] = wrong
    general, reader = FrameReader(), FrameReader()
    expected = feed(general, bytes(data), 1)
    reader.room[: len(data)] = data
    found = reader.single(len(data))
    assert ([found] if found else reader.received(len(data))) == expected
    assert type(reader.error) is type(general.error)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_frames_are_drills_bytes(name):
    data, frame = bytes.fromhex(GOLDEN[name][0]), GOLDEN[name][1]
    assert encode(frame) == data
    assert feed(FrameReader(), data) == [frame]


def test_every_split_of_a_stream_gives_the_same_frames():
    frames = [frame for _, frame in GOLDEN.values()]
    data = b"".join(map(encode, frames))
    for cut in range(len(data) + 1):
        reader = FrameReader()
        assert feed(reader, data[:cut]) + feed(reader, data[cut:]) == frames
        assert reader.error is None
    assert feed(FrameReader(), data, step=1) == frames


def test_large_bodies_arrive_in_their_own_buffer_whatever_the_split():
    dbody = bytes(range(256)) * 1024
    frames = [Frame(REQUEST, 1, 3, b"p" * 50, dbody), Frame(PING, 0, 0, b"\x08\x01")]
    data = b"".join(map(encode, frames))
    for step in (len(data), 70_000, 4096, 1000):
        reader = FrameReader()
        got = feed(reader, data * 2, step)
        assert got == frames * 2
        assert [bytes(frame.dbody) for frame in got] == [dbody, b"", dbody, b""]
    assert isinstance(feed(FrameReader(), data, 4096)[0].dbody, memoryview)


def test_a_large_pbody_arrives_in_one_piece():
    frame = Frame(REQUEST, 1, 3, b"q" * (3 * RECEIVE_BUFFER_SIZE), b"tail")
    reader = FrameReader()
    assert feed(reader, encode(frame) * 2) == [frame] * 2
    assert len(reader.room) == RECEIVE_BUFFER_SIZE, "the large buffer is given back"


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2, 13])
def test_frames_around_the_size_where_buffers_change(offset):
    for size in (LARGE_FRAME_SIZE + offset, RECEIVE_BUFFER_SIZE + offset):
        frames = [Frame(REQUEST, i, 3, b"p", b"d" * size) for i in range(5)]
        data = b"".join(map(encode, frames))
        assert feed(FrameReader(), data) == frames
        assert feed(FrameReader(), data, 9999) == frames


@pytest.mark.parametrize("identifier", [0, 1, 127, 128, 16383, 16384, 2**21, 2**31 - 1, -1])
@pytest.mark.parametrize("rpc_type", [0, 1, 127, 128, 1000])
@pytest.mark.parametrize("size", [0, 99, 100, 127, 128, 20000])
def test_round_trip_of_every_width(identifier, rpc_type, size):
    for dbody in (b"", b"x" * 200):
        frame = Frame(RESPONSE, identifier, rpc_type, b"b" * size, dbody)
        assert feed(FrameReader(), encode(frame)) == [frame]


def test_header_fields_may_come_in_any_order_or_be_absent():
    header = b"\x18\x07\x30\x09\x08\x01"  # type 7, an unknown field, mode 1, no id
    body = b"\x0a" + varint(len(header)) + header + b"\x12\x00"
    assert feed(FrameReader(), varint(len(body)) + body) == [Frame(RESPONSE, 0, 7)]
    negative = b"\x08\x00\x10" + b"\xff" * 9 + b"\x01" + b"\x18\x03"  # id -1 as int32
    body = b"\x0a" + varint(len(negative)) + negative + b"\x12\x00"
    assert feed(FrameReader(), varint(len(body)) + body) == [Frame(REQUEST, -1, 3)]


CORRUPT = {
    "length 0": "00",
    "length of six bytes": "ffffffffff01",
    "no frame at all": b"GET / HTTP/1.1\r\n\r\n".hex(),
    "no header": "0412020801",
    "header beyond the frame": "040a200801",
    "header too long": "0f0aff080110071801120208010000ffff",
    "mode 5": "0c0a0608051007180112020801",
    "header with a string": "0c0a060a0110071801120208010000",
    "number of eleven bytes": "160a10080010" + "ff" * 10 + "01" + "1801" + "12020801",
    "no pbody": "080a060801100718010000",
    "pbody beyond the frame": "0c0a060801100718011203080100",
    "wrong tag for the pbody": "0c0a060801100718011a020801",
    "wrong tag for the dbody": "100a0608011007180112020801120100ff",
    "dbody does not end the frame": "110a06080110071801120208011a01ff0000",
    "dbody beyond the frame": "100a06080110071801120208011a05ff00",
    "frame ends in the header": "020a06",
}


@pytest.mark.parametrize("name", CORRUPT)
def test_corrupt_frames_break_the_stream_after_the_good_ones(name):
    good = Frame(RESPONSE, 7, 1, b"\x08\x01")
    reader = FrameReader()
    assert feed(reader, encode(good) + bytes.fromhex(CORRUPT[name]) + bytes(64)) == [good]
    assert isinstance(reader.error, FrameCorrupt)
    assert feed(reader, encode(good)) == [], "nothing is read behind a break"


def test_a_stranger_is_recognized_before_its_frame_is_complete():
    reader = FrameReader()
    feed(reader, b"GET")
    assert isinstance(reader.error, FrameCorrupt)


def test_frames_above_the_limit_are_refused_on_both_sides():
    with pytest.raises(FrameTooLarge, match=str(FRAME_SIZE_MAX)):
        encode_head(REQUEST, 1, 3, b"", FRAME_SIZE_MAX)
    head = encode_head(REQUEST, 300, 3, b"body", FRAME_SIZE_MAX - 100)
    for step in (1, 5, None):
        reader = FrameReader(size_max=1 << 20)
        assert feed(reader, head, step) == []
        assert isinstance(reader.error, FrameTooLarge)
        assert reader.refused_id == 300, "the request can be answered"
    reader = FrameReader(size_max=1 << 20)
    feed(reader, encode_head(RESPONSE, 300, 3, b"body", 1 << 21))
    assert reader.refused_id is None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 50))
def test_random_bytes_never_do_more_than_break_the_stream(data, step):
    reader = FrameReader(size_max=4096)
    for frame in feed(reader, data, step):
        assert 0 <= frame.mode <= PONG


frames_of_any_kind = st.builds(
    Frame,
    st.integers(0, 4),
    st.integers(0, 2**31 - 1),
    st.integers(0, 300),
    st.binary(max_size=300),
    st.binary(max_size=300),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(frames_of_any_kind, max_size=8), st.data())
def test_cut_flipped_and_truncated_streams(frames, data):
    stream = b"".join(map(encode, frames))
    step = data.draw(st.integers(1, 400))
    assert feed(FrameReader(), stream, step) == frames
    cut = data.draw(st.integers(0, len(stream)))
    reader = FrameReader()
    got = feed(reader, stream[:cut], step)
    assert got == frames[: len(got)]
    assert reader.error is None, "a truncated stream is only incomplete"
    if stream:
        damaged = bytearray(stream)
        damaged[data.draw(st.integers(0, len(stream) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        feed(FrameReader(), bytes(damaged), step)
