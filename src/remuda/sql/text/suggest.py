"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that ``name`` most likely means, or None."""
    pool = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), list(pool), n=1, cutoff=0.6)
    return pool[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str], what: str = "") -> str:
    """``Did you mean "x"?`` or ""."""
    found = closest(name, candidates)
    if found is None:
        return ""
    return f'Did you mean {what} "{found}"?' if what else f'Did you mean "{found}"?'
