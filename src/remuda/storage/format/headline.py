"""The first line of a text object: its name, the number of its format, the SHA-256 of the rest."""

from __future__ import annotations

import hashlib

from remuda.errors import DataCorrupted
from remuda.formats import Format


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def with_headline(name: str, kind: Format, body: bytes, number: int | None = None) -> bytes:
    """``body`` below its headline. ``number``: the format it has, if not the latest one."""
    return f"{name} {number or kind.number} {sha256(body)}\n".encode() + body


def below_headline(data: bytes, name: str, kind: Format) -> tuple[int, bytes]:
    """The format of an object and what is below its headline. Raises UnknownFormat, and
    DataCorrupted where a byte is not as it was written."""
    line, _, body = data.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 3 or words[0] != name.encode():
        raise DataCorrupted(f"it is not {kind.what}", detail=f"it begins with {line[:40]!r}")
    if not words[1].isdigit():
        raise DataCorrupted(f"{kind.what} is damaged: its format is {words[1][:20]!r}")
    number = kind.check(int(words[1]))
    if words[2] != sha256(body).encode():
        raise DataCorrupted(f"{kind.what} is damaged: its digest is another one")
    return number, body
