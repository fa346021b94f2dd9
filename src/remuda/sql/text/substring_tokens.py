"""``substring(x SIMILAR pattern ESCAPE e)`` is written ``substring(x FROM pattern FOR e)`` for the
parser, which only knows the latter; both mean the same in PostgreSQL."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_WORDS: Final = {"SIMILAR": _T.FROM, "ESCAPE": _T.FOR}


def with_plain_substrings(tokens: list[Token]) -> list[Token]:
    """``tokens``; SIMILAR and ESCAPE directly inside of ``substring(...)`` become FROM and FOR."""
    if not any(token.text.upper() == "SIMILAR" for token in tokens):
        return tokens
    result: list[Token] = []
    inside: list[bool] = []
    for index, token in enumerate(tokens):
        if token.token_type is _T.L_PAREN:
            inside.append(index > 0 and tokens[index - 1].text.upper() == "SUBSTRING")
        elif token.token_type is _T.R_PAREN and inside:
            inside.pop()
        word = token.text.upper()
        if inside and inside[-1] and word in _WORDS:
            kind = _WORDS[word]
            token = Token(kind, kind.name, token.line, token.col, token.start, token.end)  # noqa: PLW2901
        result.append(token)
    return result
