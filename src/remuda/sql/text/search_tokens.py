"""Lists of names in SEARCH and CYCLE: the parser reads a single name there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
BETWEEN: Final = "\x01,"
"""Stands between the names of a list that became one token; no name has it."""


def with_joined_names(tokens: list[Token]) -> list[Token]:
    """``tokens`` with the lists of names in ``SEARCH ... BY a, b SET`` and ``CYCLE a, b SET`` as
    one name each, which is all that the parser reads there."""
    if not any(token.text.upper() in ("SEARCH", "CYCLE") for token in tokens):
        return tokens
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        made.append(tokens[index])
        index += 1
        end = _end_of_names(tokens, index) if _begins_names(tokens, index - 1) else index
        if end > index + 1:
            names = [
                t.text if t.token_type is _T.IDENTIFIER else t.text.lower()
                for t in tokens[index:end:2]
            ]
            first, last = tokens[index], tokens[end - 1]
            text = BETWEEN.join(names)
            made.append(Token(_T.IDENTIFIER, text, first.line, first.col, first.start, last.end))
            index = end
    return made


def _begins_names(tokens: Sequence[Token], index: int) -> bool:
    """Whether a list follows: behind ``SEARCH ... FIRST BY`` or ``) CYCLE``."""
    words = [token.text.upper() for token in tokens[max(0, index - 3) : index + 1]]
    if words[-1:] == ["CYCLE"]:
        return words[-2:-1] == [")"]
    return words[-1:] == ["BY"] and words[:1] == ["SEARCH"]


def _end_of_names(tokens: Sequence[Token], start: int) -> int:
    at = start + 1
    while at + 1 < len(tokens) and tokens[at].token_type is _T.COMMA:
        at += 2
    return at
