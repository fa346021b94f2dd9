"""Texts of clients: UTF-8 without a zero, as PostgreSQL has them."""

from __future__ import annotations

from remuda.errors import InvalidByteSequence

_HINT = "Send texts in UTF-8; for other bytes use BYTEA."


def text_of(data: bytes) -> str:
    """Raises InvalidByteSequence (22021)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        raise invalid_bytes(data, problem.start) from None
    if "\0" in text:
        raise InvalidByteSequence(
            'invalid byte sequence for encoding "UTF8": 0x00',
            hint="A text holds no zero; use BYTEA.",
        )
    return text


def invalid_bytes(data: bytes, start: int) -> InvalidByteSequence:
    """The error of a character that begins at ``start``. It shows as many bytes as the first one
    announces, as PostgreSQL does."""
    first = data[start]
    size = 4 if first & 0xF8 == 0xF0 else 3 if first & 0xF0 == 0xE0 else 1 + (first & 0xE0 == 0xC0)
    shown = " ".join(f"0x{byte:02x}" for byte in data[start : start + size])
    return InvalidByteSequence(f'invalid byte sequence for encoding "UTF8": {shown}', hint=_HINT)
