"""UUID: 16 bytes inside the engine, so that their order is the order of the values."""

from __future__ import annotations

import re
import uuid
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.buffers import validity_of
from remuda.errors import InvalidText

_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_PLACES: Final = [place for place in range(36) if place not in (8, 13, 18, 23)]
"""Where the digits stand among the 36 characters."""

_FORM: Final = re.compile(r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}\Z", re.IGNORECASE)


def parse_uuid(text: str) -> bytes:
    """32 hexadecimal digits, in braces or not, with a hyphen after any group of four.

    Raises InvalidText, without a position.
    """
    stripped = text.strip()
    inner = stripped
    if stripped.startswith("{") and stripped.endswith("}"):
        inner = stripped[1:-1]
    if _FORM.match(inner) is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InvalidText(f'invalid input syntax for type uuid: "{shown}"')
    return bytes.fromhex(inner.replace("-", ""))


def uuid_texts(array: pa.Array) -> pa.Array:
    """The texts of an engine-form array: 36 characters each."""
    fixed = array.cast(pa.binary(16))
    rows = len(fixed)
    buffer = fixed.buffers()[1]
    if rows == 0 or buffer is None:
        return pa.nulls(rows, pa.string())
    data = np.frombuffer(buffer, np.uint8, 16 * rows, 16 * fixed.offset).reshape(rows, 16)
    digits = np.empty((rows, 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _DIGITS[data >> 4], _DIGITS[data & 15]
    text = np.full((rows, 36), ord("-"), np.uint8)
    text[:, _PLACES] = digits
    offsets = np.arange(0, 36 * (rows + 1), 36, dtype=np.int32)
    buffers = [validity_of(array), pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))
