"""The fingerprint of a statement: texts that differ only in constants, parameters, comments,
blanks, the case of names, and the length of lists have the same one.

It is made of the tokens alone, so it needs no catalog and is the same on every member. Constants
and parameters are one and the same: ``k = 5``, ``k = ?`` and ``k = $1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from remuda.errors import InputError, SqlSyntaxError
from remuda.sql.text.keywords import KEYWORDS
from remuda.sql.text.lexemes import CONSTANTS, STRINGS, Token, TokenKind
from remuda.sql.text.lexer import tokenize

READ_MAX: Final = 4 * 1024
"""Characters of a text that are read: longer texts that begin alike have one fingerprint."""
SHOWN_MAX: Final = 2000
"""Characters of ``Fingerprint.text``."""

_WORDS: Final = frozenset({"null", "true", "false"})
_NO_VALUE_AFTER: Final = frozenset({"is", "not", "set"})
"""Words by which NULL, TRUE and FALSE are a part of the grammar: IS NULL, NOT NULL, SET NULL."""
_SIGNED_AFTER: Final = frozenset(
    {"(", "[", ",", "=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"}
    | {"and", "or", "between", "select", "where", "when", "then", "else", "limit", "offset"}
    | {"returning", "values", "on"}
)
"""A sign behind these belongs to the number that follows."""
_MAYBE: Final = _WORDS | {"?", "-", "+"}
"""With these a constant or a parameter may begin, and with tokens that are no words."""
_OPERAND_KINDS: Final = frozenset(
    {TokenKind.NAME, TokenKind.STRING, TokenKind.UNICODE_NAME, TokenKind.UNICODE_STRING}
)
_AFTER_COUNT: Final = frozenset({"row", "rows", "percent"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_CONSTANT: Final = "$"
"""The key of every constant; no other token has it."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """``number`` is a signed integer of 64 bits, ``text`` the statement with ``$n`` for its
    constants."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class _Piece:
    key: str
    shown: str
    gap: bool
    """Blanks or comments stand before it."""
    repeats: bool = False
    """Further elements like this one followed in its list."""


def fingerprint(text: str) -> Fingerprint | None:
    """None for a text that cannot be split into tokens, and for an empty one."""
    try:
        pieces = list(_pieces(text))
    except InputError:
        return None
    if not pieces:
        return None
    cut = len(text) > READ_MAX
    squeezed = _squeezed(pieces, cut)
    digest = blake2b("\0".join(piece.key for piece in squeezed).encode(), digest_size=8).digest()
    shown = _shown(squeezed)
    if len(shown) > SHOWN_MAX or cut:
        shown = shown[: SHOWN_MAX - 4] + " ..."
    return Fingerprint(int.from_bytes(digest, signed=True), shown)


def _pieces(text: str) -> Iterator[_Piece]:
    """Raises InputError for what cannot be split into tokens."""
    tokens = _tokens(text)
    while tokens and tokens[-1].word == ";":
        tokens.pop()
    at, end = 0, -1
    while at < len(tokens):
        token = tokens[at]
        count = _constant(tokens, at) if not token.word or token.word in _MAYBE else 0
        gap = token.start > end + 1
        if count:
            yield _Piece(_CONSTANT, "", gap)
        else:
            yield _Piece(_key(token), text[token.start : token.end + 1], gap)
        at += count or 1
        end = tokens[at - 1].end


def _tokens(text: str) -> list[Token]:
    """Those of the first ``READ_MAX`` characters. A token that is cut in two there is left out."""
    if len(text) <= READ_MAX:
        return tokenize(text)
    start = text[:READ_MAX]
    try:
        tokens = tokenize(start)
    except SqlSyntaxError as error:  # the cut is inside of a quoted text or a comment
        if error.position is None:
            raise
        return tokenize(start[: error.position.offset])
    return tokens[:-1]


def _constant(tokens: list[Token], at: int) -> int:
    """How many tokens the constant or parameter at this place has; 0: there is none."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if token.kind in STRINGS:
        count = 1
        while at + count < len(tokens) and tokens[at + count].kind is TokenKind.STRING:
            count += 1  # texts on further lines go on
        return count
    if token.kind in CONSTANTS or token.kind is TokenKind.PARAMETER:
        return 1
    if token.word in _WORDS:
        return int(before is None or before.word not in _NO_VALUE_AFTER)
    if token.word == "?":
        return int(not _is_operator(before, after))
    if token.word in ("-", "+") and after is not None and after.kind is TokenKind.NUMBER:
        return 2 if before is None or before.word in _SIGNED_AFTER else 0
    return 0


def _is_operator(before: Token | None, after: Token | None) -> bool:
    """Whether ``?`` between these is JSON's operator and not a parameter."""
    if before is None or after is None:
        return False
    ends = before.word in (")", "]") or before.kind in _OPERAND_KINDS or _is_name(before)
    begins = after.kind is TokenKind.PARAMETER or after.kind in _OPERAND_KINDS
    begins = begins or after.word in ("?", "(") or _is_name(after)
    return ends and begins and after.word not in _AFTER_COUNT


def _is_name(token: Token) -> bool:
    return token.kind is TokenKind.WORD and token.word not in KEYWORDS


def _key(token: Token) -> str:
    """Names by what they mean, keywords apart from names that are written like them."""
    if token.kind is TokenKind.WORD and token.word in KEYWORDS:
        return token.word.upper()
    return token.word or token.text


# --- lists --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _List:
    """One that is open. ``elements``: it is one whose equal elements count as one; ``closer``: the
    bracket that ends it, "" for the rows of VALUES."""

    elements: bool
    start: int
    """Where the element begins that is read now."""
    end: int
    """Where the element before ends; as ``start`` for the first."""
    closer: str = ""
    before: list[str] = field(default_factory=list)
    """The keys of the element before."""

    @property
    def rows(self) -> bool:
        return not self.closer


def _squeezed(pieces: list[_Piece], cut: bool) -> list[_Piece]:
    """Without the elements of IN (...), ARRAY[...] and VALUES that are like the one before, but for
    their constants. ``cut``: the text goes on; a list that is open then ends with its last whole
    element, so that its length does not matter."""
    squeezer = _Squeezer()
    for at, piece in enumerate(pieces):
        following = pieces[at + 1].key if at + 1 < len(pieces) else ""
        squeezer.take(piece, following)
    if cut:
        squeezer.close()
    return squeezer.finished()


class _Squeezer:
    def __init__(self) -> None:
        self._found: list[_Piece] = []
        self._open: list[_List] = []

    def take(self, piece: _Piece, following: str) -> None:
        """``following`` is the key of the next piece."""
        key = piece.key
        if self._open and self._open[-1].rows and key not in {"(", ","}:
            self._element(self._open.pop())
        if key in {")", "]"} and self._open:
            self._element(self._open.pop())
        elif key == "," and self._open:
            self._element(self._open[-1])
        previous = self._found[-1].key if self._found else ""
        self._found.append(piece)
        here = len(self._found)
        if key in {"(", "["}:
            lists = (key == "(" and previous == "IN") or (key == "[" and previous == "ARRAY")
            closer = ")" if key == "(" else "]"
            self._open.append(_List(lists and following not in _QUERIES, here, here, closer))
        elif key == "," and self._open:
            self._open[-1].start = here
        elif key == "VALUES" and following == "(":
            self._open.append(_List(elements=True, start=here, end=here))

    def close(self) -> None:
        """Leave out the last element of the list that is open, and close all brackets."""
        while self._open and not self._open[-1].elements:
            self._open.pop()
        if self._open:
            del self._found[self._open[-1].end :]
        while self._open:
            closer = self._open.pop().closer
            if closer:
                self._found.append(_Piece(closer, closer, gap=False))

    def finished(self) -> list[_Piece]:
        while self._open:
            self._element(self._open.pop())
        return self._found

    def _element(self, of: _List) -> None:
        """One has ended."""
        keys = [piece.key for piece in self._found[of.start :]] if of.elements else []
        if _CONSTANT in keys and keys == of.before:
            del self._found[of.end :]  # with the comma before it
            self._found[-1] = replace(self._found[-1], repeats=True)
        else:
            of.before, of.end = keys, len(self._found)


def _shown(pieces: list[_Piece]) -> str:
    parts: list[str] = []
    constants = 0
    for piece in pieces:
        if piece.gap and parts:
            parts.append(" ")
        if piece.key == _CONSTANT:
            constants += 1
            parts.append(f"${constants}")
        else:
            parts.append(piece.shown)
        if piece.repeats:
            parts.append(" /*, ... */")
    return "".join(parts)
