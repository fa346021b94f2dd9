"""Tokens: words, names, constants, parameters and symbols, by PostgreSQL's lexical rules."""

from __future__ import annotations

from enum import Enum
from typing import Final

from remuda.errors import LimitExceeded, Position, SqlSyntaxError
from remuda.limits import EXPRESSION_DEPTH_MAX, STATEMENT_LENGTH_MAX
from remuda.sql.text.places import position_at


class TokenKind(Enum):
    WORD = "word"
    """A keyword, or a name without quotes."""
    NAME = "name"
    """A name in double quotes."""
    STRING = "string"
    UNICODE_STRING = "unicode string"
    """``U&'...'``; its text is not decoded, because UESCAPE may follow."""
    UNICODE_NAME = "unicode name"
    BITS = "bits"
    HEX = "hex"
    NUMBER = "number"
    PARAMETER = "parameter"
    """``$1``"""
    SYMBOL = "symbol"
    """An operator, a bracket, a separator; ``?`` may be a parameter or an operator."""
    END = "end"
    """Stands behind the last token of a statement."""


class Token:
    """``text``: its meaning: of quoted texts the inside, of a parameter its number. ``word``: of
    words and symbols the text in lower case, "" for all others. ``start`` and ``end`` are the
    offsets of its first and its last character."""

    __slots__ = ("end", "kind", "start", "text", "word")

    def __init__(self, kind: TokenKind, text: str, word: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.word = word
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Token({self.kind.name}, {self.text!r}, {self.start})"


STRINGS: Final = frozenset({TokenKind.STRING, TokenKind.UNICODE_STRING})
NAMES: Final = frozenset({TokenKind.NAME, TokenKind.UNICODE_NAME})
CONSTANTS: Final = STRINGS | {TokenKind.NUMBER, TokenKind.BITS, TokenKind.HEX}


def end_of(text: str) -> Position:
    return position_at(text, len(text.rstrip()))


def position_of_token(text: str, token: Token) -> Position:
    if token.kind is TokenKind.END:
        return end_of(text)
    return position_at(text, token.start, token.end - token.start + 1)


def near(text: str, token: Token, hint: str = "") -> SqlSyntaxError:
    """``syntax error at or near "..."`` at ``token``."""
    if token.kind is TokenKind.END:
        return SqlSyntaxError("syntax error at end of input", position=end_of(text), hint=hint)
    shown = text[token.start : token.end + 1]
    if len(shown) > 40:
        shown = shown[:37] + "..."
    return SqlSyntaxError(
        f'syntax error at or near "{shown}"', position=position_of_token(text, token), hint=hint
    )


def too_deep(position: Position | None) -> LimitExceeded:
    return LimitExceeded(
        f"the statement is nested too deeply; the limit is {EXPRESSION_DEPTH_MAX} levels",
        position=position,
    )


def check_text(text: str) -> None:
    """Raises LimitExceeded for a text that is too long, SqlSyntaxError for a zero byte."""
    if len(text) > STATEMENT_LENGTH_MAX:
        raise LimitExceeded(
            f"the statement has {len(text)} characters; the limit is {STATEMENT_LENGTH_MAX}",
            hint="Pass long values as parameters, load many rows with put_all or remuda load.",
        )
    if "\x00" in text:
        at = text.index("\x00")
        raise SqlSyntaxError(
            "invalid character '\\x00' in the statement", position=position_at(text, at)
        )
