"""Cuts received bytes into messages, and bounds how many of them wait."""

from __future__ import annotations

import struct
from typing import Final

from remuda.errors import FrameTooLarge, ProtocolError
from remuda.limits import FRAME_SIZE_MAX, KIB

UNAUTHENTICATED_SIZE_MAX: Final = 64 * KIB
"""Bytes that a stranger may leave here before the server knows who it is."""
STARTUP_SIZE_MAX: Final = 10_000
"""Of a startup packet, as in PostgreSQL."""
MESSAGE_SIZE_MAX: Final = FRAME_SIZE_MAX
_HEAD: Final = struct.Struct("!i")
_TYPED_HEAD: Final = struct.Struct("!Bi")


class Reader:
    """``feed`` bytes, then ``take`` messages until there is none. Raises FrameTooLarge and
    ProtocolError, after which the connection is of no use."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0
        self._authenticated = False

    def __len__(self) -> int:
        """The bytes that wait."""
        return len(self._data) - self._at

    def authenticated(self) -> None:
        """From now on messages may have up to ``MESSAGE_SIZE_MAX`` bytes."""
        self._authenticated = True

    def feed(self, data: bytes | memoryview) -> None:
        """Raises FrameTooLarge when a stranger sends more than it may."""
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
        if len(self) < 8:
            return None
        (size,) = _HEAD.unpack_from(self._data, self._at)
        if not 8 <= size <= STARTUP_SIZE_MAX:
            raise ProtocolError("invalid length of startup packet")
        if len(self) < size:
            return None
        (code,) = _HEAD.unpack_from(self._data, self._at + 4)
        body = bytes(self._data[self._at + 8 : self._at + size])
        self._at += size
        return code, body

    def peek(self) -> int:
        """The type of the next message; 0 if nothing of it is here."""
        return self._data[self._at] if self._at < len(self._data) else 0

    def take(self) -> tuple[int, bytes] | None:
        """The type and the body of the next message; None until it is whole."""
        if len(self) < 5:
            return None
        kind, size = _TYPED_HEAD.unpack_from(self._data, self._at)
        most = MESSAGE_SIZE_MAX if self._authenticated else UNAUTHENTICATED_SIZE_MAX
        if size < 4:
            raise ProtocolError(f"invalid message length {size}")
        if size > most:
            raise FrameTooLarge(
                f"a message of {size} bytes is longer than {most}",
                hint="Send the rows in several statements.",
            )
        if len(self) < size + 1:
            return None
        start = self._at + 5
        body = bytes(self._data[start : self._at + 1 + size])
        self._at += 1 + size
        return kind, body
