"""Segments of the log: a header, then frames of one record each.

::

    header  8 magic · 4 format version · 4 zero · 16 cluster · 16 member · 8 segment number
            8 sequence of the first record · 4 checksum of the last frame of the segment before
            4 checksum of the header
    frame   2 magic · 4 checksum · 4 size of the payload · 8 sequence · 8 durable · 1 kind · payload

Little-endian. Checksums are CRC-32C (Castagnoli). That of a frame begins with that of the header,
so bytes that were a frame in another segment are none here. ``durable`` is the highest sequence
that was known to be on the disk when the frame was written: it tells a torn tail (what is missing
was never promised) from damage (it was).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

import google_crc32c

from remuda.errors import DataCorrupted
from remuda.formats import LOG_SEGMENT
from remuda.limits import LOG_RECORD_SIZE_MAX

SEGMENT_MAGIC: Final = b"REMUDLOG"
FRAME_MAGIC: Final = b"\xc7\x4c"
IDENTITY_SIZE: Final = 16

_header: Final = struct.Struct("<8sII16s16sQQI")
_checksum: Final = struct.Struct("<I")
_frame: Final = struct.Struct("<IQQB")
_front: Final = struct.Struct("<2sI")

HEADER_SIZE: Final = _header.size + _checksum.size
FRAME_OVERHEAD: Final = len(FRAME_MAGIC) + _checksum.size + _frame.size


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose log it is: 16 bytes each, given when the cluster and the member were made."""

    cluster: bytes
    member: bytes

    def __post_init__(self) -> None:
        assert len(self.cluster) == len(self.member) == IDENTITY_SIZE

    def __str__(self) -> str:
        return f"member {self.member.hex()} of cluster {self.cluster.hex()}"


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """``previous``: the checksum of the last frame of the segment before; 0 without one."""

    identity: Identity
    number: int
    first: int
    previous: int = 0

    def encode(self) -> bytes:
        data = _header.pack(
            SEGMENT_MAGIC,
            LOG_SEGMENT.number,
            0,
            self.identity.cluster,
            self.identity.member,
            self.number,
            self.first,
            self.previous,
        )
        return data + _checksum.pack(google_crc32c.value(data))

    @property
    def checksum(self) -> int:
        checksum: int = _checksum.unpack(self.encode()[-4:])[0]
        return checksum


def decode_header(data: bytes) -> SegmentHeader:
    """Raises ``DataCorrupted``, ``UnknownFormat``."""
    if len(data) < HEADER_SIZE:
        raise DataCorrupted(f"the header has {len(data)} bytes instead of {HEADER_SIZE}")
    magic, version, zero, cluster, member, number, first, previous = _header.unpack_from(data)
    (checksum,) = _checksum.unpack_from(data, _header.size)
    if magic != SEGMENT_MAGIC:
        raise DataCorrupted("the file does not begin as a segment of the log does")
    if google_crc32c.value(data[: _header.size]) != checksum:
        raise DataCorrupted("the header's checksum is wrong")
    LOG_SEGMENT.check(version)
    if zero:
        raise DataCorrupted("the header has bytes that should be zero")
    return SegmentHeader(Identity(cluster, member), number, first, previous)


class Frame(NamedTuple):
    """A frame at ``offset`` of its segment; the next one begins at ``end``."""

    offset: int
    end: int
    checksum: int
    sequence: int
    durable: int
    kind: int
    payload: bytes


def encode_front(  # noqa: PLR0917 (a frame's parts, in order)
    salt: int, sequence: int, durable: int, kind: int, payload: bytes, rest: bytes
) -> bytes:
    """A frame without ``rest``, the second part of its payload, which is to follow."""
    body = _frame.pack(len(payload) + len(rest), sequence, durable, kind) + payload
    checksum = google_crc32c.extend(google_crc32c.extend(salt, body), rest)
    return _front.pack(FRAME_MAGIC, checksum) + body


def encode_frame(salt: int, sequence: int, durable: int, kind: int, payload: bytes) -> bytes:
    """``salt`` is the checksum of the segment's header."""
    body = _frame.pack(len(payload), sequence, durable, kind) + payload
    return _front.pack(FRAME_MAGIC, google_crc32c.extend(salt, body)) + body


def frame_checksum(frame: bytes) -> int:
    """The checksum that an encoded frame carries."""
    checksum: int = _checksum.unpack_from(frame, len(FRAME_MAGIC))[0]
    return checksum


def read_frame(data: bytes, offset: int, salt: int) -> Frame | None:
    """The frame that begins at ``offset``, whole and unharmed; None if there is none."""
    body = offset + len(FRAME_MAGIC) + _checksum.size
    start = offset + FRAME_OVERHEAD
    if start > len(data) or not data.startswith(FRAME_MAGIC, offset):
        return None
    size, sequence, durable, kind = _frame.unpack_from(data, body)
    end = start + size
    if size > LOG_RECORD_SIZE_MAX or end > len(data):
        return None
    (checksum,) = _checksum.unpack_from(data, offset + len(FRAME_MAGIC))
    if google_crc32c.extend(salt, data[body:end]) != checksum:
        return None
    return Frame(offset, end, checksum, sequence, durable, kind, data[start:end])


class FrameFront(NamedTuple):
    """A frame's own words about itself, right or wrong. ``size`` is that of its payload."""

    size: int
    sequence: int
    durable: int
    kind: int

    @property
    def whole(self) -> int:
        """Bytes of the frame."""
        return FRAME_OVERHEAD + self.size


def read_front(data: bytes, offset: int) -> FrameFront | None:
    """None where the bytes end before it does."""
    if offset + FRAME_OVERHEAD > len(data):
        return None
    return FrameFront(*_frame.unpack_from(data, offset + _front.size))


def is_frame_of_size(data: bytes, offset: int, end: int, salt: int) -> bool:
    """Whether the bytes are a frame, but for the size that it says it has."""
    body = offset + _front.size
    _, sequence, durable, kind = _frame.unpack_from(data, body)
    right = _frame.pack(end - offset - FRAME_OVERHEAD, sequence, durable, kind)
    checksum: int = _front.unpack_from(data, offset)[1]
    rest = data[body + _frame.size : end]
    return bool(google_crc32c.extend(google_crc32c.extend(salt, right), rest) == checksum)


def next_frame(data: bytes, offset: int, salt: int) -> Frame | None:
    """The first unharmed frame that begins at ``offset`` or later."""
    while (offset := data.find(FRAME_MAGIC, offset)) >= 0:
        frame = read_frame(data, offset, salt)
        if frame is not None:
            return frame
        offset += 1
    return None
