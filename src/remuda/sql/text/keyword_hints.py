"""Hints for misspelt keywords, where a statement cannot be read on."""

from __future__ import annotations

from typing import Final

from remuda.sql.text.keywords import KEYWORDS
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.text.suggest import closest

_KEYWORDS: Final = (
    "and", "as", "asc", "between", "by", "case", "cross", "desc", "distinct", "else",
    "except", "exists", "fetch", "first", "from", "full", "group", "having", "ilike", "in", "inner",
    "intersect", "into", "is", "join", "last", "lateral", "left", "like", "limit", "matched",
    "natural", "not", "null", "nulls", "offset", "on", "only", "or", "order", "outer", "over",
    "partition", "returning", "right", "rows", "select", "set", "then", "union", "using", "values",
    "when", "where", "with",
)  # fmt: skip
_RIGHT: Final = KEYWORDS | {"cube", "grouping", "int", "percent", "rollup"}
"""They are no misspelt keywords."""
_LEAST: Final = 3
"""Shorter words resemble too many keywords."""


def keyword_hint(tokens: list[Token], index: int) -> str:
    """A keyword that the token which does not fit, or a name right before it, may have meant. A
    name with a keyword or a sign behind it was read well."""
    for place in range(index, max(-1, index - 3), -1):
        token = tokens[place]
        word = token.text.lower()
        is_name = token.kind is TokenKind.WORD and word not in _RIGHT
        if not is_name and place < index:
            break
        if not is_name or len(word) < _LEAST:
            continue
        found = closest(word, _KEYWORDS)
        if found is not None and found != word and abs(len(found) - len(word)) <= 1:
            return f"Did you mean {found.upper()} instead of {token.text}?"
    return ""
