"""Which statements begin a transaction, and which are none of its business: by their first word."""

from __future__ import annotations

import re
from typing import Final

DEFINITIONS: Final = frozenset(
    {"create", "alter", "drop", "truncate", "comment", "analyze", "discard"}
)
"""They take effect at once."""
OUTSIDE: Final = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort"}
    | {"set", "reset", "show", "describe", "desc", "prepare", "deallocate"}
)
"""They take part in a transaction that is open, and begin none."""
_FIRST: Final = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]+)", re.IGNORECASE | re.DOTALL
)


def first_word(operation: str) -> str:
    """In lower case; "" for none."""
    match = _FIRST.match(operation)
    return "" if match is None else match[1].lower()
