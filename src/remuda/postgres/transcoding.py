"""Texts in the client's encoding, where that is not UTF-8: messages are converted at the edge.

Behind it all texts are UTF-8. A ``Transcoder`` stands in front of the reader and behind the writer
of a connection whose client has chosen another encoding; other connections have none. Data of COPY
passes as it is: COPY converts it by its option ENCODING, which is the client's unless it is given.
Results are sent in text form, also where the client has asked for the binary one.
"""

from __future__ import annotations

import struct
from typing import Final

from remuda.errors import UntranslatableCharacter
from remuda.postgres.reports import error_message

_HEAD: Final = struct.Struct("!ci")
_INT32: Final = struct.Struct("!i")
_INT16: Final = struct.Struct("!H")
_UTF8_END: Final = b"\0"
_ORIGIN: Final = 18
"""Bytes behind the name of a column in a RowDescription."""


class Transcoder:
    """``name`` is PostgreSQL's name of the encoding, ``codec`` Python's."""

    def __init__(self, name: str, codec: str) -> None:
        self._name = name
        self._codec = codec
        self._rest = b""
        """The beginning of a message whose end was not written yet."""
        self._failed = False
        """A row could not be sent: nothing follows until the next ReadyForQuery."""

    # --- from the client ----------------------------------------------------------------------

    def read(self, kind: int, body: bytes) -> bytes:
        """The body of a message of the client in UTF-8. One that is wrong is left as it is; its
        reader finds that."""
        try:
            match chr(kind):
                case "Q" | "D" | "C" | "f":
                    return self._utf8(body)
                case "P":
                    text = body.index(_UTF8_END, body.index(_UTF8_END) + 1) + 1
                    return self._utf8(body[:text]) + body[text:]
                case "E":
                    name = body.index(_UTF8_END) + 1
                    return self._utf8(body[:name]) + body[name:]
                case "B":
                    return self._bind(body)
        except (ValueError, struct.error):
            pass
        return body

    def _utf8(self, data: bytes) -> bytes:
        return data if data.isascii() else data.decode(self._codec).encode()

    def _bind(self, body: bytes) -> bytes:
        at = body.index(_UTF8_END, body.index(_UTF8_END) + 1) + 1
        parts = [self._utf8(body[:at])]
        (count,) = _INT16.unpack_from(body, at)
        formats = struct.unpack_from(f"!{count}h", body, at + 2)
        parts.append(body[at : at + 2 + 2 * count])
        at += 2 + 2 * count
        (values,) = _INT16.unpack_from(body, at)
        parts.append(body[at : at + 2])
        at += 2
        for place in range(values):
            (size,) = _INT32.unpack_from(body, at)
            at += 4
            value = body[at : at + max(size, 0)]
            at += max(size, 0)
            is_text = not (formats[place] if len(formats) > 1 else sum(formats))
            shown = self._utf8(value) if is_text else value
            parts.append(_INT32.pack(size if size < 0 else len(shown)) + shown)
        return b"".join([*parts, _INT16.pack(0)])

    # --- to the client ------------------------------------------------------------------------

    def written(self, data: bytes | memoryview) -> bytes:
        """Messages of the server in the client's encoding."""
        data, at = self._rest + bytes(data), 0
        parts: list[bytes] = []
        while at + _HEAD.size <= len(data):
            kind, size = _HEAD.unpack_from(data, at)
            end = at + 1 + size
            if end > len(data):
                break
            parts.append(self._message(kind, data[at:end]))
            at = end
        self._rest = data[at:]
        return b"".join(parts)

    def _message(self, kind: bytes, whole: bytes) -> bytes:
        if self._failed and kind not in (b"Z", b"N", b"S"):
            return b""
        if kind == b"Z":
            self._failed = False
        if kind in (b"d", b"Z") or whole.isascii():
            return whole
        try:
            body = self._body(kind, whole[_HEAD.size :])
        except UnicodeEncodeError as problem:
            self._failed = True
            return error_message(self._untranslatable(problem))
        return _HEAD.pack(kind, len(body) + 4) + body

    def _body(self, kind: bytes, body: bytes) -> bytes:
        match kind:
            case b"D":
                return self._row(body)
            case b"T":
                return self._description(body)
            case b"A":
                return body[:4] + self._own(body[4:])
            case b"E" | b"N" | b"S" | b"C":
                return body.decode("utf-8", "replace").encode(self._codec, "replace")
        return body

    def _own(self, data: bytes) -> bytes:
        return data if data.isascii() else data.decode("utf-8", "surrogatepass").encode(self._codec)

    def _row(self, body: bytes) -> bytes:
        (count,) = _INT16.unpack_from(body)
        parts, at = [body[:2]], 2
        for _ in range(count):
            (size,) = _INT32.unpack_from(body, at)
            at += 4
            value = self._own(body[at : at + max(size, 0)])
            at += max(size, 0)
            parts.append(_INT32.pack(size if size < 0 else len(value)) + value)
        return b"".join(parts)

    def _description(self, body: bytes) -> bytes:
        (count,) = _INT16.unpack_from(body)
        parts, at = [body[:2]], 2
        for _ in range(count):
            end = body.index(_UTF8_END, at) + 1
            parts += [self._own(body[at:end]), body[end : end + _ORIGIN]]
            at = end + _ORIGIN
        return b"".join(parts)

    def _untranslatable(self, problem: UnicodeEncodeError) -> UntranslatableCharacter:
        letter = problem.object[problem.start].encode("utf-8", "surrogatepass")
        shown = " ".join(f"0x{byte:02x}" for byte in letter)
        return UntranslatableCharacter(
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
            f'encoding "{self._name}"'
        )
