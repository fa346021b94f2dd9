"""Code points, digests, encodings of bytes as text, and the functions that bytes share with
text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any, Final

from remuda.datatypes.texts.text import unescaped_bytes
from remuda.errors import (
    InputError,
    InvalidByteSequence,
    InvalidSubstring,
    LimitExceeded,
    SubscriptOutOfRange,
)
from remuda.execution.evaluate.byte_sizes import size_bytes
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.rows import per_row
from remuda.plan.expression import Call

_WIDTHS: Final = 2**64
_SURROGATES: Final = range(0xD800, 0xE000)
_CODECS: Final = {"utf8": "utf-8", "utf-8": "utf-8", "unicode": "utf-8", "latin1": "latin-1",
    "iso88591": "latin-1", "iso-8859-1": "latin-1", "iso_8859_1": "latin-1",
    "latin9": "iso8859-15", "iso885915": "iso8859-15", "win1252": "cp1252", "win1250": "cp1250",
    "win1251": "cp1251", "sjis": "shift_jis", "euc_jp": "euc_jp", "gbk": "gbk", "big5": "big5",
    "koi8r": "koi8_r", "sql_ascii": "utf-8"}  # fmt: skip
_UNICODE: Final = re.compile(
    r"\\(?:(\\)|\+([0-9A-Fa-f]{6})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-9A-Fa-f]{4}))|\\"
)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _chr(code: int) -> str:
    if code < 0:
        raise InputError("character number must be positive")
    if code == 0:
        raise LimitExceeded("null character not permitted")
    if code > 0x10FFFF or code in _SURROGATES:
        raise LimitExceeded(f"requested character too large for encoding: {code}")
    return chr(code)


def _unistr(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return "\\"
        digits = match[2] or match[3] or match[4] or match[5]
        if not digits:
            raise InputError("invalid Unicode escape", hint="Unicode escapes must be \\XXXX, "
                             "\\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")  # fmt: skip
        code = int(digits, 16)
        if code == 0 or code > 0x10FFFF:
            raise InputError("invalid Unicode code point")
        return chr(code)

    decoded = _UNICODE.sub(character, text)
    try:
        return decoded.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InputError("invalid Unicode surrogate pair") from None


def _to_hex(call: Call) -> Kernel:
    bits = 64 if str(call.arguments[0].type) == "BIGINT" else 32
    return per_row(lambda number: f"{number % (1 << bits):x}")(call)


def _md5(data: str | bytes) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()


def _sha(name: str) -> Callable[[bytes], bytes]:
    return lambda data: hashlib.new(name, data).digest()


def _encode(data: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        case "escape":
            return "".join(
                "\\\\" if byte == 92 else f"\\{byte:03o}" if byte == 0 or byte > 127 else chr(byte)
                for byte in data
            )
    raise InputError(f'unrecognized encoding: "{form}"')


def _decode(text: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            compact = re.sub(r"[ \n\t\r]", "", text)
            wrong = re.search(r"[^0-9A-Fa-f]", compact)
            if wrong:
                raise InputError(f'invalid hexadecimal digit: "{wrong[0]}"')
            if len(compact) % 2:
                raise InputError("invalid hexadecimal data: odd number of digits")
            return bytes.fromhex(compact)
        case "base64":
            return _from_base64(text)
        case "escape":
            return unescaped_bytes(text)
    raise InputError(f'unrecognized encoding: "{form}"')


def _from_base64(text: str) -> bytes:
    compact = re.sub(r"[ \n\t\r]", "", text)
    wrong = re.search(r"[^A-Za-z0-9+/=]", compact)
    if wrong:
        raise InputError(f'invalid symbol "{wrong[0]}" found while decoding base64 sequence')
    try:
        return base64.b64decode(compact, validate=True)
    except binascii.Error:
        raise InputError(
            "invalid base64 end sequence",
            hint="Input data is missing padding, is truncated, or is otherwise corrupted.",
        ) from None


def _codec(name: str, what: str) -> str:
    codec = _CODECS.get(name.lower())
    if codec is None:
        raise InputError(f'invalid {what} encoding name "{name}"')
    return codec


def _convert_to(text: str, name: str) -> bytes:
    try:
        return text.encode(_codec(name, "destination"))
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
        raise InvalidByteSequence(
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
            f'encoding "{name.upper()}"'
        ) from None


def _convert_from(data: bytes, name: str) -> str:
    try:
        text = data.decode(_codec(name, "source"))
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end])
        raise InvalidByteSequence(
            f'invalid byte sequence for encoding "{name.upper()}": {shown}'
        ) from None
    if "\0" in text:
        raise InvalidByteSequence(f'invalid byte sequence for encoding "{name.upper()}": 0x00')
    return text


def _place(data: bytes, at: int) -> None:
    if not 0 <= at < len(data):
        raise SubscriptOutOfRange(f"index {at} out of valid range, 0..{len(data) - 1}")


def _get_byte(data: bytes, at: int) -> int:
    _place(data, at)
    return data[at]


def _set_byte(data: bytes, at: int, value: int) -> bytes:
    _place(data, at)
    return data[:at] + bytes([value & 255]) + data[at + 1 :]


def _overlay(text: Any, new: Any, start: int, length: int | None = None) -> Any:
    """Text or bytes: ``length`` items from ``start`` (from 1) give way to ``new``."""
    if start <= 0:
        raise InvalidSubstring("negative substring length not allowed")
    end = start - 1 + (len(new) if length is None else length)
    return text[: start - 1] + new + text[max(end, 0) :]


ENCODING_FUNCTIONS: Final[dict[str, Callable[[Call], Kernel]]] = {
    "ascii": per_row(_ascii),
    "chr": per_row(_chr),
    "unistr": per_row(_unistr),
    "pg_size_bytes": per_row(size_bytes),
    "to_hex": _to_hex,
    "md5": per_row(_md5),
    **{name: per_row(_sha(name)) for name in ("sha224", "sha256", "sha384", "sha512")},
    "encode": per_row(_encode),
    "decode": per_row(_decode),
    "convert_to": per_row(_convert_to),
    "convert_from": per_row(_convert_from),
    "get_byte": per_row(_get_byte),
    "set_byte": per_row(_set_byte),
    "overlay": per_row(_overlay),
}
