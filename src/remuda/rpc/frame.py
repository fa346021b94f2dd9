"""Drill's frames, byte for byte: bytes <-> ``Frame``. Pure.

One frame is a length-prefixed protobuf message whose fields stand in a fixed order::

    varint32 length
    0A varint header length    header: 08 mode, 10 coordination id, 18 rpc type (zeros written)
    12 varint pbody length     pbody: the operation's protobuf message (may be empty, always there)
    1A varint dbody length     dbody: raw bytes up to the end of the frame (only when not empty)

The header is read and written by hand: it is three small integers, and a protobuf call per frame
costs more than all the rest of this module. Byte layout: design D8 and the golden frames of
tests/rpc/test_frame.py.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa

from remuda.errors import FrameCorrupt, FrameTooLarge, ProtocolError
from remuda.limits import FRAME_SIZE_MAX, KIB

Buffer: TypeAlias = bytes | bytearray | memoryview

RECEIVE_BUFFER_SIZE = 128 * KIB
LARGE_FRAME_SIZE = 32 * KIB
"""An incomplete frame above this size gets a buffer of its own, into which the rest is received."""
_HEADER_SIZE_MAX = 64
_LENGTH_DIGITS_MAX = 5
_INT32_MAX = 2**31 - 1
_SMALL_PBODY = 16000

assert LARGE_FRAME_SIZE * 2 <= RECEIVE_BUFFER_SIZE


class Mode(IntEnum):
    REQUEST = 0
    RESPONSE = 1
    RESPONSE_FAILURE = 2
    PING = 3
    PONG = 4


REQUEST, RESPONSE, RESPONSE_FAILURE, PING, PONG = 0, 1, 2, 3, 4
"""Plain integers for the hot path: looking up an enum member costs as much as parsing a field."""


class Frame(NamedTuple):
    """One frame. ``dbody`` is b"" when absent; a large one is a memoryview of its own buffer."""

    mode: int
    coordination_id: int
    rpc_type: int
    pbody: bytes = b""
    dbody: bytes | memoryview = b""

    def __repr__(self) -> str:
        return (
            f"<{Mode(self.mode).name} {self.coordination_id} type {self.rpc_type}"
            f" pbody {len(self.pbody)} dbody {len(self.dbody)}>"
        )


_new_frame = tuple.__new__  # a third of the cost of Frame(...)


def varint(value: int) -> bytes:
    """``value`` as a protobuf varint; an int32 below 0 takes ten bytes, as protobuf has it."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if value < 0:
        value += 2**64
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(128))
_KNOWN_VARINTS = tuple(varint(value) for value in range(1024))
"""Of the types and sizes of most frames."""
_KNOWN_MAX = len(_KNOWN_VARINTS)


def encode_head(
    mode: int, coordination_id: int, rpc_type: int, pbody: bytes, dbody_size: int = 0
) -> bytes:
    """Everything of a frame but the bytes of its dbody, which follow it on the wire.

    Raises FrameTooLarge when the frame would exceed limits.FRAME_SIZE_MAX.
    """
    pbody_size = len(pbody)
    if dbody_size == 0 and pbody_size < 100 and rpc_type < 128:  # the hot path: one format each
        if 0 <= coordination_id < 128:
            return b"%c\x0a\x06\x08%c\x10%c\x18%c\x12%c%b" % (
                pbody_size + 10,
                mode,
                coordination_id,
                rpc_type,
                pbody_size,
                pbody,
            )
        if 0 <= coordination_id < 16384:
            return b"%c\x0a\x07\x08%c\x10%c%c\x18%c\x12%c%b" % (
                pbody_size + 11,
                mode,
                coordination_id & 127 | 128,
                coordination_id >> 7,
                rpc_type,
                pbody_size,
                pbody,
            )
    if (
        dbody_size == 0 and pbody_size < _SMALL_PBODY and 0 <= rpc_type < 16384
        and 0 <= coordination_id < 16384
    ):  # fmt: skip
        known = _KNOWN_VARINTS
        kind = known[rpc_type] if rpc_type < _KNOWN_MAX else varint(rpc_type)
        if coordination_id < 128:
            header = b"\x0a%c\x08%c\x10%c\x18%b\x12" % (
                len(kind) + 5,
                mode,
                coordination_id,
                kind,
            )
        else:
            header = b"\x0a%c\x08%c\x10%c%c\x18%b\x12" % (
                len(kind) + 6,
                mode,
                coordination_id & 127 | 128,
                coordination_id >> 7,
                kind,
            )
        pbody_length = known[pbody_size] if pbody_size < _KNOWN_MAX else varint(pbody_size)
        size = len(header) + len(pbody_length) + pbody_size
        length = known[size] if size < _KNOWN_MAX else varint(size)
        return b"%b%b%b%b" % (length, header, pbody_length, pbody)
    identifier = varint(coordination_id)
    header = b"\x08%c\x10%b\x18%b" % (mode, identifier, varint(rpc_type))
    head = b"\x0a%c%b\x12%b%b" % (len(header), header, varint(pbody_size), pbody)
    if dbody_size:
        head += b"\x1a" + varint(dbody_size)
    size = len(head) + dbody_size
    if size > FRAME_SIZE_MAX:
        raise too_large(size, FRAME_SIZE_MAX)
    return varint(size) + head


def encode(frame: Frame) -> bytes:
    """The whole frame in one piece (tests, small frames)."""
    head = encode_head(
        frame.mode, frame.coordination_id, frame.rpc_type, frame.pbody, len(frame.dbody)
    )
    return head + bytes(frame.dbody)


def too_large(size: int, size_max: int) -> FrameTooLarge:
    return FrameTooLarge(
        f"a frame of {size} bytes is larger than the limit of {size_max} bytes",
        hint="Send the rows in smaller batches.",
    )


class FrameReader:
    """Cuts a byte stream into frames; the transport writes straight into its buffers.

    ::

        n = recv_into(reader.room);  for frame in reader.received(n): ...
        if reader.error is not None: close the connection

    Small frames are cut out of one reused buffer. The dbody of a large frame gets an aligned
    buffer of exactly its size as soon as its head is known, so that the bulk of it is received
    without a copy and the Arrow data in it is used where it lies.
    """

    __slots__ = ("_body", "_body_filled", "_buffer", "_end", "_frame", "_start", "_view",
                 "_wanted", "error", "refused_id", "room", "size_max")  # fmt: skip

    def __init__(self, size_max: int = FRAME_SIZE_MAX) -> None:
        self.size_max = size_max
        self.error: ProtocolError | None = None
        """The stream is broken; frames before the break were returned."""
        self.refused_id: int | None = None
        """The coordination id of a REQUEST that was too large, to answer it."""
        self._buffer = bytearray(RECEIVE_BUFFER_SIZE)
        self._view = memoryview(self._buffer)
        self._start = 0  # of the first frame that is not complete
        self._end = 0  # of the received bytes
        self._wanted = 0  # bytes from _start that must fit before progress is possible
        self._frame: Frame | None = None  # whose dbody is being received
        self._body: memoryview = self._view[:0]
        self._body_filled = 0
        self.room = self._view
        """Where to receive the next bytes; never empty. It changes when bytes are taken in."""

    def _next_room(self) -> memoryview:
        if self._frame is not None:
            return self._body[self._body_filled :]
        if self._end == 0:
            return self._view
        if self._start + max(self._wanted, LARGE_FRAME_SIZE) > len(self._buffer):
            self._make_room()
        return self._view[self._end :]

    def _make_room(self) -> None:
        """Move the incomplete frame to the front, into a larger buffer if it must be."""
        held = self._end - self._start
        size = max(RECEIVE_BUFFER_SIZE, self._wanted)
        if size != len(self._buffer):
            buffer = bytearray(size)
            view = memoryview(buffer)
            view[:held] = self._view[self._start : self._end]
            self._buffer, self._view = buffer, view
        else:
            self._view[:held] = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, held

    def opening(self) -> bytes:
        """The first two bytes of a frame that could not be cut tell the protocol of a stranger."""
        return bytes(self._view[self._start : min(self._start + 2, self._end)])

    def single(self, count: int) -> Frame | None:
        """The frame, if ``count`` new bytes are exactly one small one: the hot path of requests and
        replies. None: nothing has been taken in, call ``received``."""
        if self._end or self._frame is not None or self.error is not None:
            return None
        length = self._buffer[0]
        if length < 128:
            return self._small(1, count) if length + 1 == count else None
        digit = self._buffer[1]
        if digit < 128 and (length & 127 | digit << 7) + 2 == count:
            return self._small(2, count)
        return None

    def received(self, count: int) -> list[Frame]:
        """The frames completed by ``count`` new bytes. After an error everything is swallowed."""
        if self.error is not None:
            self._start = self._end = 0
            self._frame = None
            self.room = self._view
            return []
        frame = self._frame
        if frame is not None:
            self._body_filled += count
            if self._body_filled < len(self._body):
                self.room = self._body[self._body_filled :]
                return []
            self._frame = None
            self._body = self._view[:0]
            self.room = self._next_room()
            return [frame]
        self._end += count
        frames: list[Frame] = []
        try:
            cut = self._cut
            while cut(frames) and self._start < self._end:
                pass
        except ProtocolError as error:
            self.error = error
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) != RECEIVE_BUFFER_SIZE:
                self._buffer = bytearray(RECEIVE_BUFFER_SIZE)
                self._view = memoryview(self._buffer)
        self.room = self._next_room()
        return frames

    def _cut(self, frames: list[Frame]) -> bool:
        """Cut one frame off the front; False when it needs more bytes."""
        buffer = self._buffer
        start, end = self._start, self._end
        length = buffer[start]
        position = start + 1
        if length > 127:
            digits = min(end - start, _LENGTH_DIGITS_MAX)
            for index in range(1, digits):
                digit = buffer[start + index]
                length += (digit - 1) << (7 * index)
                if digit < 128:
                    position = start + index + 1
                    break
            else:
                if digits == _LENGTH_DIGITS_MAX:
                    raise FrameCorrupt("the length of a frame is not a varint of at most 5 bytes")
                return False
        if length > self.size_max:
            return self._refuse(position, length)
        if length == 0:
            raise FrameCorrupt("a frame of length 0")
        stop = position + length
        if stop > end:
            self._wanted = stop - start
            return self._begin_large(position, stop, end)
        if length < 16384 and (frame := self._small(position, stop)) is not None:
            frames.append(frame)
        else:
            mode, identifier, rpc_type, pbody, dbody = _head(buffer, position, stop, stop)
            view = self._view
            body = bytes(view[dbody:stop]) if dbody < stop else b""
            frames.append(Frame(mode, identifier, rpc_type, bytes(view[pbody[0] : pbody[1]]), body))
        self._start = stop
        self._wanted = 0
        return True

    def _small(self, position: int, stop: int) -> Frame | None:
        """A complete frame of the most usual form, or None: the hot path of requests and replies.

        Usual: below 16 KiB, without dbody, header fields in order. Reading beyond ``stop`` is
        harmless (the buffer is longer than any small frame, and the result is then refused).
        """
        buffer = self._buffer
        if stop + 32 > len(buffer):
            return None
        after = position + 2 + buffer[position + 1]
        if after + 2 > stop:
            return None
        size, body = buffer[after + 1], after + 2
        if size > 127:
            size += (buffer[body] - 1) << 7
            body += 1
        if (
            buffer[position] != 0x0A
            or body > stop
            or buffer[position + 2] != 0x08
            or buffer[position + 4] != 0x10
            or body + size != stop
            or buffer[after] != 0x12
            or (body - after == 3 and buffer[body - 1] > 127)
        ):
            return None
        cursor = position + 6
        digit = buffer[position + 5]
        identifier = digit & 127
        shift = 7
        while digit > 127 and shift < 35:
            digit = buffer[cursor]
            identifier |= (digit & 127) << shift
            shift += 7
            cursor += 1
        mode = buffer[position + 3]
        rpc_type = buffer[cursor + 1]
        end = cursor + 2
        if rpc_type > 127:  # our own messages between members: two digits
            rpc_type += (buffer[end] - 1) << 7
            end += 1
        if (
            buffer[cursor] != 0x18
            or end != after
            or mode > PONG
            or (end - cursor == 3 and buffer[end - 1] > 127)
            or identifier > _INT32_MAX
        ):
            return None
        fields = (mode, identifier, rpc_type, bytes(buffer[body:stop]), b"")
        return _new_frame(Frame, fields)

    def _refuse(self, position: int, length: int) -> bool:
        """A frame above the limit: wait for its header, to know which request to answer."""
        buffer, end = self._buffer, self._end
        if end - position < 2 or end - position < 2 + min(buffer[position + 1], _HEADER_SIZE_MAX):
            return False
        mode, identifier, _, _ = _header(buffer, position, end)
        if mode == REQUEST:
            self.refused_id = identifier
        raise too_large(length, self.size_max)

    def _begin_large(self, position: int, stop: int, end: int) -> bool:
        """Look into an incomplete frame: fail early, and give a large dbody its own buffer."""
        if position < end and self._buffer[position] != 0x0A:
            raise _no_frame(self._buffer[position - 1])
        if stop - position <= LARGE_FRAME_SIZE:
            return False
        try:
            mode, identifier, rpc_type, pbody, dbody = _head(self._buffer, position, end, stop)
        except _Incomplete:
            return False
        if dbody == stop:
            return False  # a large pbody: it is wanted in one piece
        body = memoryview(pa.allocate_buffer(stop - dbody)).cast("B")
        held = end - dbody
        body[:held] = self._view[dbody:end]
        pbody_bytes = bytes(self._view[pbody[0] : pbody[1]])
        self._frame = Frame(mode, identifier, rpc_type, pbody_bytes, body)
        self._body, self._body_filled = body, held
        self._start = self._end = self._wanted = 0
        return False


class _Incomplete(Exception):
    """More bytes are needed."""


def _head(
    buffer: bytearray, position: int, end: int, stop: int
) -> tuple[int, int, int, tuple[int, int], int]:
    """Mode, coordination id, rpc type, the bounds of the pbody, and the start of the dbody.

    ``end`` is where the received bytes end, ``stop`` the frame (``end`` <= ``stop``). A dbody that
    starts at ``stop`` is absent. Raises _Incomplete when the head reaches beyond ``end``.
    """
    mode, identifier, rpc_type, position = _header(buffer, position, end, stop)
    if position + 2 > end:
        _short(end, stop, "pbody")
    if buffer[position] != 0x12:
        raise FrameCorrupt(f"a frame has tag {buffer[position]:#04x} where its pbody should be")
    size = buffer[position + 1]
    position += 2
    if size > 127:
        size, position = _varint(buffer, position - 1, end, stop, "pbody")
    pbody_stop = position + size
    if pbody_stop > stop:
        raise FrameCorrupt("the pbody of a frame is longer than the frame")
    bounds = (position, pbody_stop)
    if pbody_stop == stop:
        return mode, identifier, rpc_type, bounds, stop
    if pbody_stop + 2 > end:
        _short(end, stop, "dbody")
    if buffer[pbody_stop] != 0x1A:
        raise FrameCorrupt(f"a frame has tag {buffer[pbody_stop]:#04x} where its dbody should be")
    size, position = _varint(buffer, pbody_stop + 1, end, stop, "dbody")
    if position + size != stop:
        raise FrameCorrupt("the dbody does not end its frame")
    return mode, identifier, rpc_type, bounds, position


_STRANGERS: Final = {
    ord("E"): "PostgreSQL's clients are served at this address. Give the address for Remuda's own "
    "clients, which remuda start prints as well.",
    ord("H"): "A web server answers at this address. Give the one of a member.",
}
"""By the first byte of an ErrorResponse and of HTTP/1.1, which reads as the length of a frame."""


def _no_frame(first: int) -> FrameCorrupt:
    message = "the bytes are not a frame: the header's tag is missing"
    return FrameCorrupt(message, hint=_STRANGERS.get(first, ""))


def _header(
    buffer: bytearray, position: int, end: int, stop: int | None = None
) -> tuple[int, int, int, int]:
    """Mode, coordination id, rpc type and the position behind the header."""
    stop = end if stop is None else stop
    if position + 2 > end:
        _short(end, stop, "header")
    if buffer[position] != 0x0A:
        raise _no_frame(buffer[position - 1])
    size = buffer[position + 1]
    if size > _HEADER_SIZE_MAX:
        raise FrameCorrupt(f"a frame header of {size} bytes")
    position += 2
    after = position + size
    if after > end:
        _short(end, stop, "header")
    # The usual form: mode and type of one byte each, the three fields in order.
    if size >= 6 and buffer[position] == 0x08 and buffer[position + 2] == 0x10:
        mode = buffer[position + 1]
        identifier = buffer[position + 3]
        cursor = position + 4
        if identifier > 127:
            identifier, cursor = _varint(buffer, cursor - 1, after, after, "header", digits_max=10)
        if cursor + 2 == after and buffer[cursor] == 0x18 and mode <= PONG:
            rpc_type = buffer[cursor + 1]
            if rpc_type < 128 and identifier <= _INT32_MAX:
                return mode, identifier, rpc_type, after
    return *_any_header(buffer, position, after), after


def _any_header(buffer: bytearray, position: int, stop: int) -> tuple[int, int, int]:
    """The header's fields in any order, unknown integers skipped, as protobuf reads it."""
    fields = {1: 0, 2: 0, 3: 0}
    while position < stop:
        tag, position = _varint(buffer, position, stop, stop, "header")
        if tag & 7:
            raise FrameCorrupt(f"a frame header has a field of wire type {tag & 7}")
        value, position = _varint(buffer, position, stop, stop, "header", digits_max=10)
        fields[tag >> 3] = (value + 2**31) % 2**32 - 2**31  # int32: truncated, sign-extended
    mode, identifier, rpc_type = fields[1], fields[2], fields[3]
    if not REQUEST <= mode <= PONG:
        raise FrameCorrupt(f"unknown mode {mode}")
    return mode, identifier, rpc_type


def _varint(
    buffer: bytearray, position: int, end: int, stop: int, what: str, *, digits_max: int = 5
) -> tuple[int, int]:
    value = shift = 0
    for index in range(position, min(end, position + digits_max)):
        digit = buffer[index]
        value |= (digit & 127) << shift
        if digit < 128:
            return value, index + 1
        shift += 7
    if end - position >= digits_max:
        raise FrameCorrupt(f"a number in the {what} of a frame has too many digits")
    _short(end, stop, what)
    raise AssertionError


def _short(end: int, stop: int, what: str) -> None:
    """The received bytes end within ``what``: incomplete, or corrupt if the frame does too."""
    if end >= stop:
        raise FrameCorrupt(f"a frame ends within its {what}")
    raise _Incomplete
