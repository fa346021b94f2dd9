"""The first line of a text object: its format with a version, and the SHA-256 of the rest."""

from __future__ import annotations

import hashlib

from remuda.errors import DataCorrupted


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_headline(line: bytes, body: bytes, expected: str, what: str) -> None:
    """Raises DataCorrupted unless ``line`` is ``expected`` (a format and its version) and the
    digest of ``body``; the error tells another version from damage. ``what`` is read."""
    name, version = expected.encode().split(b" ")
    words = line.split(b" ")
    if len(words) != 3 or words[0] != name:
        raise DataCorrupted(f"it is no {what}", detail=f"it begins with {line[:40]!r}")
    if words[1] != version:
        raise DataCorrupted(
            f"the {what} has format version {words[1].decode(errors='replace')[:20]}; this release "
            f"of Remuda understands {version.decode()}",
            hint="Another release of Remuda wrote it, or it is damaged.",
        )
    if words[2] != sha256(body).encode():
        raise DataCorrupted(f"the {what} is damaged: its digest is another one")
