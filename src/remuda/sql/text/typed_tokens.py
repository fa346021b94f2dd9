"""Tokens of typed literals and JSON operators, rewritten so that the parser keeps what is written.

- ``DATE '...'`` and the like get parentheses before ``::``, which would else bind to the bare
  string;
- ``INTERVAL '...' DAY TO HOUR`` becomes a marked call, because the parser would take its text
  apart; of a type behind ``::`` or ``AS``, the fields become a number (``fields_of``), because the
  parser does not know all of them;
- the literal behind ``->`` and ``->>`` gets parentheses: the parser would make a path of it;
- ``::bpchar`` gets a length: the parser would make CHAR of it, which has one character;
- ``::integer ARRAY`` becomes ``::integer[]``: the parser would take ARRAY for a name.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from remuda.datatypes.sql import FRACTION_MAX
from remuda.datatypes.times.intervaltext import FIELDS, is_unit

_T = TokenType
_LITERAL_TYPES: Final = frozenset(
    {_T.DATE, _T.TIME, _T.TIMETZ, _T.TIMESTAMP, _T.TIMESTAMPTZ, _T.UUID, _T.JSON, _T.JSONB}
)
_ARROWS: Final = frozenset({_T.ARROW, _T.DARROW})
_REWRITTEN: Final = _LITERAL_TYPES | _ARROWS | {_T.INTERVAL, _T.ARRAY}
_OPERAND_ENDS: Final = frozenset(
    {_T.VAR, _T.IDENTIFIER, _T.STRING, _T.R_PAREN, _T.R_BRACKET, _T.JSON, _T.JSONB}
)
_OPERAND_STARTS: Final = frozenset(
    {_T.STRING, _T.PLACEHOLDER, _T.PARAMETER, _T.L_PAREN, _T.VAR, _T.IDENTIFIER, _T.QDCOLON}
)
_AFTER_COUNT: Final = frozenset({"ROW", "ROWS", "PERCENT"})

INTERVAL_CALL: Final = "interval"
_LONGEST: Final = "10485760"
"""Characters: the most that a type can have."""
_RESTRICTED: Final = 1000
"""From here on a number behind INTERVAL stands for fields."""
_NO_DIGITS: Final = 9


def like(token: Token, kind: TokenType, text: str) -> Token:
    """Another token in the place of ``token``."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def enclose_literals(tokens: list[Token]) -> list[Token]:
    """The tokens with the changes that the module names."""
    if not any(t.token_type in _REWRITTEN or _is_bpchar(t, []) for t in tokens):
        return tokens
    enclosed: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1 : index + 3]
        after_cast = bool(enclosed) and enclosed[-1].token_type is _T.DCOLON
        if _is_literal(token, following) and not after_cast:
            if len(following) == 2 and following[1].token_type is _T.DCOLON:
                enclosed += _in_parentheses([token, following[0]])
            else:
                enclosed += [token, following[0]]
            index += 2
        elif token.token_type is _T.INTERVAL and not after_cast and _literal_at(tokens, index):
            index += _interval(tokens, index, enclosed)
        elif token.token_type is _T.INTERVAL and _is_type(enclosed) and _names_field(following):
            index += _interval_type(tokens, index, enclosed)
        elif _is_bpchar(token, following) and _is_type(enclosed):
            length = [like(token, _T.L_PAREN, "("), like(token, _T.NUMBER, _LONGEST)]
            enclosed += [token, *length, like(token, _T.R_PAREN, ")")]
            index += 1
        elif token.token_type is _T.ARRAY and _ends_cast(enclosed):
            enclosed.append(like(token, _T.L_BRACKET, "["))
            if not (following and following[0].token_type is _T.L_BRACKET):
                enclosed.append(like(token, _T.R_BRACKET, "]"))
            index += 1 if enclosed[-1].token_type is _T.R_BRACKET else 2
        elif token.token_type in _ARROWS and following and _is_constant(following[0]):
            enclosed += [token, *_in_parentheses([following[0]])]
            index += 2
        else:
            enclosed.append(token)
            index += 1
    return enclosed


def _ends_cast(tokens: list[Token]) -> bool:
    """Whether the last token is the one word of a type behind ``::``."""
    return len(tokens) > 1 and tokens[-2].token_type is _T.DCOLON


def _is_literal(token: Token, following: list[Token]) -> bool:
    return token.token_type in _LITERAL_TYPES and _is_string(following)


def _is_string(following: list[Token]) -> bool:
    return bool(following) and following[0].token_type is _T.STRING


def _is_constant(token: Token) -> bool:
    return token.token_type in (_T.STRING, _T.NUMBER)


def _in_parentheses(tokens: list[Token]) -> list[Token]:
    return [like(tokens[0], _T.L_PAREN, "("), *tokens, like(tokens[-1], _T.R_PAREN, ")")]


def _interval(tokens: list[Token], index: int, out: list[Token]) -> int:
    """Writes ``interval('text', 'fields', 'digits')``; returns how many tokens it read."""
    word, start = tokens[index], _literal_at(tokens, index)
    text, at = tokens[start], start + 1
    digits = tokens[index + 2].text if start > index + 1 else ""
    fields = ""
    if at < len(tokens) and is_unit(tokens[at].text):
        fields, at = _fields(tokens, at)
        given, at = _digits(tokens, at) if fields.endswith("second") else ("", at)
        digits = given or digits
    used, last = at - index, tokens[at - 1]
    out += [
        like(word, _T.VAR, INTERVAL_CALL),
        like(word, _T.L_PAREN, "("),
        text,
        like(text, _T.COMMA, ","),
        like(last, _T.STRING, fields),
        like(last, _T.COMMA, ","),
        like(last, _T.STRING, digits),
        like(last, _T.R_PAREN, ")"),
    ]
    return used


def _is_bpchar(token: Token, following: list[Token]) -> bool:
    has_length = bool(following) and following[0].token_type is _T.L_PAREN
    return token.text.lower() == "bpchar" and not has_length


def _literal_at(tokens: list[Token], index: int) -> int:
    """Where the text of ``INTERVAL '...'`` or ``INTERVAL(2) '...'`` is; 0: this is none."""
    if _is_string(tokens[index + 1 : index + 2]):
        return index + 1
    digits, at = _digits(tokens, index + 1)
    return at if digits and _is_string(tokens[at : at + 1]) else 0


def _fields(tokens: list[Token], at: int) -> tuple[str, int]:
    """``DAY TO HOUR``, in lower case, and what follows it."""
    fields = tokens[at].text.lower()
    range_ = tokens[at + 1 : at + 3]
    if len(range_) == 2 and range_[0].text.lower() == "to" and range_[1].text.lower() in FIELDS:
        return f"{fields} to {range_[1].text.lower()}", at + 3
    return fields, at + 1


def _digits(tokens: list[Token], at: int) -> tuple[str, int]:
    """The number of ``(2)``, "" without one, and what follows it."""
    kinds = [token.token_type for token in tokens[at : at + 3]]
    if kinds == [_T.L_PAREN, _T.NUMBER, _T.R_PAREN] and tokens[at + 1].text.isdecimal():
        return tokens[at + 1].text, at + 3
    return "", at


def _is_type(before: list[Token]) -> bool:
    return bool(before) and before[-1].token_type in (_T.DCOLON, _T.ALIAS)


def _names_field(following: list[Token]) -> bool:
    return bool(following) and following[0].text.lower() in FIELDS


def _interval_type(tokens: list[Token], index: int, out: list[Token]) -> int:
    """Writes ``INTERVAL(number)`` for ``INTERVAL DAY TO SECOND(2)``; returns how many tokens it
    read."""
    fields, at = _fields(tokens, index + 1)
    digits, at = _digits(tokens, at) if fields.endswith("second") else ("", at)
    first, _, last = fields.partition(" to ")
    places = FIELDS.index(first), FIELDS.index(last or first)
    number = (
        _RESTRICTED
        + 100 * places[0]
        + 10 * places[1]
        + (_NO_DIGITS if not digits else min(int(digits), FRACTION_MAX))
    )
    end = tokens[at - 1]
    out += [
        tokens[index],
        like(end, _T.L_PAREN, "("),
        like(end, _T.NUMBER, str(number)),
        like(end, _T.R_PAREN, ")"),
    ]
    return at - index


def fields_of(arguments: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """The fields, and the digits of the seconds, that the number of an INTERVAL stands for; None
    for a plain number of digits."""
    if len(arguments) != 1 or not 0 <= arguments[0] - _RESTRICTED < _RESTRICTED:
        return None
    places, digits = divmod(arguments[0] - _RESTRICTED, 10)
    first, last = divmod(places, 10)
    if max(first, last) >= len(FIELDS):
        return None
    names = (FIELDS[first],) if first == last else (FIELDS[first], FIELDS[last])
    return names, (digits,) if digits < _NO_DIGITS else ()


def is_operator(previous: Token | None, following: Token | None) -> bool:
    """Whether ``?`` between these is JSON's operator and not a parameter."""
    if previous is None or following is None:
        return False
    if previous.token_type not in _OPERAND_ENDS or following.token_type not in _OPERAND_STARTS:
        return False
    return following.text.upper() not in _AFTER_COUNT
