"""Cuts received bytes into messages, and bounds how many of them wait."""

from __future__ import annotations

import struct
from typing import Final

from remuda.errors import FrameTooLarge, ProtocolError
from remuda.limits import FRAME_SIZE_MAX, KIB
from remuda.postgres.transcoding import Transcoder

UNAUTHENTICATED_SIZE_MAX: Final = 64 * KIB
"""Bytes that a stranger may leave here before the server knows who it is."""
STARTUP_SIZE_MAX: Final = 10_000
"""Of a startup packet, as in PostgreSQL."""
MESSAGE_SIZE_MAX: Final = FRAME_SIZE_MAX
_HEAD: Final = struct.Struct("!i")
_TYPED_HEAD: Final = struct.Struct("!Bi")
_BIND: Final = ord("B")
_COPY_DATA: Final = ord("d")
_DESCRIBE_UNNAMED: Final = b"D\0\0\0\6P\0"
_EXECUTE_UNNAMED: Final = b"E\0\0\0\x09\0"
_SYNC: Final = b"S\0\0\0\4"
_TURN_END: Final = len(_EXECUTE_UNNAMED) + _HEAD.size + len(_SYNC)
_TURN_SIZE_MAX: Final = 64 * KIB


class Reader:
    """``feed`` bytes, then ``take`` messages until there is none. Raises FrameTooLarge and
    ProtocolError, after which the connection is of no use."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0
        self._before_turn = 0
        self._authenticated = False
        self._transcoder: Transcoder | None = None

    def __len__(self) -> int:
        """The bytes that wait."""
        return len(self._data) - self._at

    @property
    def empty(self) -> bool:
        return self._at == len(self._data)

    def authenticated(self) -> None:
        """From now on messages may have up to ``MESSAGE_SIZE_MAX`` bytes."""
        self._authenticated = True

    def reads(self, transcoder: Transcoder | None) -> None:
        """From now on messages are in the encoding that this converts; None: in UTF-8."""
        self._transcoder = transcoder

    def feed(self, data: bytes | memoryview) -> None:
        """Raises FrameTooLarge when a stranger sends more than it may."""
        if self._at:
            self._compact()
        self._data += data
        if not self._authenticated and len(self) > UNAUTHENTICATED_SIZE_MAX:
            raise FrameTooLarge(
                f"more than {UNAUTHENTICATED_SIZE_MAX} bytes before the authentication"
            )

    def _compact(self) -> None:
        if self._at == len(self._data):
            self._data.clear()
            self._at = 0
        elif self._at > 64 * KIB:
            del self._data[: self._at]
            self._at = 0

    def take_startup(self) -> tuple[int, bytes] | None:
        """The code and the rest of a packet without a type; None until it is whole."""
        if len(self) < 4:
            return None
        (size,) = _HEAD.unpack_from(self._data, self._at)
        if not 8 <= size <= STARTUP_SIZE_MAX:
            raise ProtocolError(
                "invalid length of startup packet",
                hint="This port speaks PostgreSQL's protocol alone.",
            )
        if len(self) < size:
            return None
        (code,) = _HEAD.unpack_from(self._data, self._at + 4)
        body = bytes(self._data[self._at + 8 : self._at + size])
        self._at += size
        return code, body

    def peek(self) -> int:
        """The type of the next message; 0 if nothing of it is here."""
        return self._data[self._at] if self._at < len(self._data) else 0

    def take_turn(self) -> tuple[bytes, bool, int] | None:
        """A Bind, a Describe of the unnamed portal if there is one, an Execute of it and a Sync, if
        these are all that is here: the body of the Bind, whether there was a Describe, and the
        limit of the Execute. None: they are not, and nothing is taken."""
        data, at = self._data, self._at
        if len(data) - at < 5 + _TURN_END or data[at] != _BIND:
            return None
        if self._transcoder is not None:
            return None
        (size,) = _HEAD.unpack_from(data, at + 1)
        end = at + 1 + size
        left = len(data) - end
        described = left == _TURN_END + len(_DESCRIBE_UNNAMED)
        if not 4 <= size <= _TURN_SIZE_MAX or not (described or left == _TURN_END):
            return None
        execute = end
        if described:
            execute += len(_DESCRIBE_UNNAMED)
            if data[end:execute] != _DESCRIBE_UNNAMED:
                return None
        limit = execute + len(_EXECUTE_UNNAMED)
        if data[execute:limit] != _EXECUTE_UNNAMED or data[limit + 4 :] != _SYNC:
            return None
        self._before_turn, self._at = at, len(data)
        return bytes(data[at + 5 : end]), described, max(_HEAD.unpack_from(data, limit)[0], 0)

    def put_back(self) -> None:
        """Undo ``take_turn``, before anything else is done."""
        self._at = self._before_turn

    def take_copied(self, first: bytes) -> bytes:
        """``first``, the body of a CopyData, with those of all CopyData that follow it whole."""
        data, at = self._data, self._at
        size = len(data)
        parts = [first]
        while at + 5 <= size and data[at] == _COPY_DATA:
            (length,) = _HEAD.unpack_from(data, at + 1)
            end = at + 1 + length
            if length < 4 or end > size:
                break
            parts.append(bytes(data[at + 5 : end]))
            at = end
        self._at = at
        return b"".join(parts) if len(parts) > 1 else first

    def take(self) -> tuple[int, bytes] | None:
        """The type and the body of the next message; None until it is whole."""
        data, at = self._data, self._at
        waiting = len(data) - at
        if waiting < 5:
            return None
        kind, size = _TYPED_HEAD.unpack_from(data, at)
        most = MESSAGE_SIZE_MAX if self._authenticated else UNAUTHENTICATED_SIZE_MAX
        if size < 4:
            raise ProtocolError(f"invalid message length {size}")
        if size > most:
            raise FrameTooLarge(
                f"a message of {size} bytes is longer than {most}",
                hint="Send the rows in several statements.",
            )
        if waiting < size + 1:
            return None
        self._at = end = at + 1 + size
        body = bytes(data[at + 5 : end])
        return kind, body if self._transcoder is None else self._transcoder.read(kind, body)
