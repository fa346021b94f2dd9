"""Texts of errors in PostgreSQL's words, which programs search for: a map is a relation to them."""

from __future__ import annotations

import re
from typing import Final

_MAP: Final = re.compile(r'^((?:[a-z ]+ (?:"[^"]*" )?of |rows of )?)map (?=")')
_EXISTS: Final = re.compile(
    r'^(?:map|index|a [a-z ]+ of the name) ("(?:[^"]|"")*") (?:exists already|already exists)\b'
)
_TEXTS: Final = {
    "only one statement is allowed here": (
        "cannot insert multiple commands into a prepared statement"
    ),
}


def worded(message: str) -> str:
    """``message`` as PostgreSQL puts it, if it names a relation at its beginning; otherwise as it
    is: a value that an error quotes stays what it was."""
    message = _EXISTS.sub(r"relation \1 already exists", _TEXTS.get(message, message))
    return _MAP.sub(r"\1relation ", message)
