"""``1e5+1``: sqlglot takes a sign after the digits of an exponent for a part of the number, and
what follows it as well. Such a token becomes the numbers and the signs that PostgreSQL reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_JOINED: Final = re.compile(r"(?P<number>[0-9.]*[eE][0-9]+)(?P<sign>[+-])")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE](?:[+-]?[0-9]+)?)?")
_SIGNS: Final = {"+": TokenType.PLUS, "-": TokenType.DASH}


def with_own_signs(text: str, tokens: list[Token]) -> list[Token]:
    """``tokens`` of ``text``, each sign behind an exponent a token of its own."""
    if not any(_is_joined(token) for token in tokens):
        return tokens
    found: list[Token] = []
    read = 0
    for token in tokens:
        if token.end < read:
            continue  # what the number before it has taken along, as "e3" in 1e5+1e3
        if _is_joined(token):
            parts = list(_parts(text, token))
            found += parts
            read = parts[-1].end + 1
        elif token.start < read:
            rest = text[read : token.end + 1]
            found.append(Token(token.token_type, rest, token.line, token.col, read, token.end))
        else:
            found.append(token)
    return found


def _is_joined(token: Token) -> bool:
    return token.token_type is TokenType.NUMBER and _JOINED.match(token.text) is not None


def _parts(text: str, token: Token) -> Iterator[Token]:
    """The numbers and signs that begin with ``token``."""
    at = token.start

    def part(kind: TokenType, end: int) -> Token:
        # sqlglot counts columns by the ends of tokens.
        column = token.col - (token.end - end + 1)
        return Token(kind, text[at:end], token.line, column, at, end - 1)

    while (joined := _JOINED.match(text, at)) is not None:
        yield part(TokenType.NUMBER, joined.end("number"))
        at = joined.end("number")
        yield part(_SIGNS[joined["sign"]], joined.end())
        at = joined.end()
    number = _NUMBER.match(text, at)
    if number is not None:
        yield part(TokenType.NUMBER, number.end())
