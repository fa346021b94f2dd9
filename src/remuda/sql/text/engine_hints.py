"""The hint ``/*+ ENGINE(spark) */``: which engine runs one query. It stands anywhere in it."""

from __future__ import annotations

import re
from typing import Final

from remuda.errors import InputError

ENGINES: Final = ("grid", "spark", "auto")
_SKIPPED: Final = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|(\$\w*\$).*?\1|/\*(?P<comment>.*?)\*/""", re.DOTALL
)
"""Texts, names and comments; only a comment can be a hint."""
_HINT: Final = re.compile(r"\+\s*engine\s*\(\s*(.*?)\s*\)\s*", re.IGNORECASE | re.DOTALL)


def engine_hint(text: str) -> str | None:
    """The engine that the statement asks for; None: it does not say. Raises InputError for one
    that does not exist, or for two different ones."""
    if "/*+" not in text:
        return None
    found: str | None = None
    for part in _SKIPPED.finditer(text):
        comment = part["comment"]
        hint = None if comment is None else _HINT.fullmatch(comment)
        if hint is None:
            continue
        engine = hint[1].lower()
        if engine not in ENGINES:
            raise InputError(
                f'there is no engine "{hint[1]}"', hint=f"Possible: {', '.join(ENGINES)}."
            )
        if found not in (None, engine):
            raise InputError(f"the statement asks for two engines: {found} and {engine}")
        found = engine
    return found
