"""``E'caf\\u00e9\\n'``: the meaning of backslashes in such strings, by PostgreSQL's rules."""

from __future__ import annotations

import re
from typing import Final

from remuda.errors import InvalidByteSequence, InvalidEscape, SqlSyntaxError
from remuda.sql.text.places import position_at

_ESCAPE: Final = re.compile(
    r"\\(?:(?P<number>u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|(?P<broken>[uU])"
    r"|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<one>.))|''",
    re.DOTALL,
)
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


def decoded(text: str, start: int, end: int) -> str:
    """The text between quotes, from ``start`` to ``end``. Escapes may give single bytes
    that only together are a character.

    Raises InvalidEscape for a broken ``\\u``, SqlSyntaxError for a number that is no character and
    InvalidByteSequence for bytes that are no UTF-8.
    """
    found = bytearray()
    at = start
    high = 0
    """The first half of a pair of surrogates; nothing but the second may follow."""
    for match in _ESCAPE.finditer(text, start, end):
        if high and (match.start() != at or not match["number"]):
            break
        found += text[at : match.start()].encode()
        at = match.end()
        if match["broken"]:
            raise InvalidEscape(
                "invalid Unicode escape",
                hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.",
                position=position_at(text, match.start(), 2),
            )
        if not match["number"]:
            found += _bytes(match)
            continue
        number = int(match["number"][1:], 16)
        if not number or number > 0x10FFFF:
            raise _near("value", text, match.start(), at)
        if bool(high) != (number in _LOW):
            raise _near("surrogate pair", text, match.start(), at)
        if number in _HIGH:
            high = number
            continue
        if high:
            number = 0x10000 + ((high - 0xD800) << 10) + (number - 0xDC00)
            high = 0
        found += chr(number).encode()
    if high:
        raise _near("surrogate pair", text, at, at + 1)
    found += text[at:end].encode()
    return _text(bytes(found), text, start, end)


def _bytes(match: re.Match[str]) -> bytes:
    if match["octal"]:
        return bytes([int(match["octal"], 8) & 0xFF])
    if match["hex"]:
        return bytes([int(match["hex"], 16)])
    one = match["one"]
    return (_CONTROLS.get(one, one) if one else "'").encode()


def _text(found: bytes, text: str, start: int, end: int) -> str:
    try:
        first = found.find(0)
        if first < 0:
            return found.decode()
    except UnicodeDecodeError as problem:
        first = problem.start
    lead = found[first]
    size = 1 if lead < 0xC0 or lead >= 0xF8 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    shown = " ".join(f"0x{byte:02x}" for byte in found[first : first + size])
    raise InvalidByteSequence(
        f'invalid byte sequence for encoding "UTF8": {shown}',
        position=position_at(text, start, end - start),
    )


def _near(what: str, text: str, start: int, end: int) -> SqlSyntaxError:
    return SqlSyntaxError(
        f'invalid Unicode {what} at or near "{text[start:end]}"',
        position=position_at(text, start, end - start),
    )
