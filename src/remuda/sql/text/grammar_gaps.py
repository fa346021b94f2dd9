"""What sqlglot's grammar does not read, in tokens that it does read.

- ``(VALUES ... UNION ...)`` and ``(VALUES ... ORDER BY ...)`` in FROM: parentheses around the rows;
- ``TABLESAMPLE m (expression)``: parentheses around the expression;
- ``REPEATABLE (-1)``: the sign becomes part of the number;
- ``ORDER BY a USING <``: ASC, and ``USING >`` DESC;
- ``INSERT INTO t (VALUES ...)``: no parentheses around the rows;
- ``WITH ... VALUES ...``: a SELECT from the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_OPENING: Final = frozenset({_T.L_PAREN, _T.L_BRACKET, _T.L_BRACE})
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.R_BRACE})
_DIRECTIONS: Final = {_T.LT: (_T.ASC, "ASC"), _T.GT: (_T.DESC, "DESC")}
_AFTER_VALUES: Final = frozenset(
    {_T.UNION, _T.INTERSECT, _T.EXCEPT, _T.ORDER_BY, _T.LIMIT, _T.OFFSET, _T.FETCH}
)
_AFTER_QUERY: Final = frozenset({_T.SEMICOLON, _T.ON, _T.RETURNING})
_SELECT_FROM: Final = (
    (_T.SELECT, "SELECT"), (_T.STAR, "*"), (_T.FROM, "FROM"), (_T.L_PAREN, "("),
)  # fmt: skip


def close_gaps(tokens: list[Token]) -> list[Token]:
    """``tokens`` with those parentheses; the same list when there is nothing to do."""
    tokens = _with_selected_rows(_with_bare_rows(tokens))
    before: dict[int, int] = {}
    """Place -> how many parentheses to open there."""
    after: dict[int, int] = {}
    """Place -> how many to close behind it."""
    joined: dict[int, Token] = {}
    """Place of a token -> what stands for it and the one behind it."""
    for index, token in enumerate(tokens):
        enclosed: tuple[int, int] | None = None
        if token.token_type is _T.VALUES and _type_at(tokens, index - 1) is _T.L_PAREN:
            enclosed = _rows(tokens, index)
        elif token.token_type is _T.TABLE_SAMPLE:
            enclosed = _share(tokens, index)
        elif token.text.upper() == "REPEATABLE" and _is_negative_number(tokens, index + 2):
            joined[index + 2] = _negative(tokens[index + 2], tokens[index + 3])
        elif token.token_type is _T.USING and _type_at(tokens, index + 1) in _DIRECTIONS:
            joined[index] = _direction(token, tokens[index + 1])
        if enclosed is not None:
            before[enclosed[0]] = before.get(enclosed[0], 0) + 1
            after[enclosed[1]] = after.get(enclosed[1], 0) + 1
    if not (before or joined):
        return tokens
    closed: list[Token] = []
    for index, token in enumerate(tokens):
        closed += [_parenthesis(token, _T.L_PAREN, "(")] * before.get(index, 0)
        if index - 1 not in joined:
            closed.append(joined.get(index, token))
        closed += [_parenthesis(token, _T.R_PAREN, ")")] * after.get(index, 0)
    return closed


def _with_bare_rows(tokens: list[Token]) -> list[Token]:
    """Without the parentheses around the VALUES of an INSERT, which sqlglot takes for a list of
    columns."""
    dropped: set[int] = set()
    for index, token in enumerate(tokens):
        if (
            token.token_type is _T.VALUES
            and _type_at(tokens, index - 1) is _T.L_PAREN
            and _type_at(tokens, index + 1) is _T.L_PAREN
            and _type_at(tokens, _target_start(tokens, index - 2) - 1) is _T.INTO
        ):
            end = _end_of_level(tokens, index, frozenset())
            if not any(t.token_type in _AFTER_VALUES for t in tokens[index:end]):
                dropped |= {index - 1, end}
    return [t for place, t in enumerate(tokens) if place not in dropped] if dropped else tokens


def _with_selected_rows(tokens: list[Token]) -> list[Token]:
    """With a SELECT for the VALUES behind a WITH clause: sqlglot expects one there."""
    ends: dict[int, Token] = {}
    """Place -> the VALUES that ends before it."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        if index in ends:
            result += _unnamed_end(ends[index])
        if token.token_type is _T.VALUES and _ends_common_table(tokens, index - 1):
            ends[_end_of_level(tokens, index, _AFTER_VALUES | _AFTER_QUERY)] = token
            result += [_parenthesis(token, kind, text) for kind, text in _SELECT_FROM]
        result.append(token)
    if len(tokens) in ends:
        result += _unnamed_end(ends[len(tokens)])
    return result if ends else tokens


def _unnamed_end(values: Token) -> list[Token]:
    return [
        _parenthesis(values, _T.R_PAREN, ")"),
        _parenthesis(values, _T.ALIAS, "AS"),
        _parenthesis(values, _T.IDENTIFIER, "*VALUES*"),
    ]


def _ends_common_table(tokens: Sequence[Token], last: int) -> bool:
    """Whether the parenthesis at ``last`` closes one that stands behind AS (or MATERIALIZED)."""
    if _type_at(tokens, last) is not _T.R_PAREN:
        return False
    depth = 0
    for index in range(last, 0, -1):
        kind = tokens[index].token_type
        depth += (kind in _CLOSING) - (kind in _OPENING)
        if depth == 0:
            word = tokens[index - 1]
            return word.token_type is _T.ALIAS or word.text.upper() == "MATERIALIZED"
    return False


def _target_start(tokens: Sequence[Token], last: int) -> int:
    """Where the name begins that ends at ``last``: ``t``, or ``public.t``."""
    return last - 2 if _type_at(tokens, last - 1) is _T.DOT else last


def _rows(tokens: Sequence[Token], start: int) -> tuple[int, int] | None:
    """First and last token of ``VALUES (...), (...)`` if more of a query follows."""
    end = _end_of_level(tokens, start, _AFTER_VALUES)
    return (start, end - 1) if _type_at(tokens, end) in _AFTER_VALUES else None


def _share(tokens: Sequence[Token], start: int) -> tuple[int, int] | None:
    """First and last token of the argument in ``TABLESAMPLE method (argument)``."""
    if _type_at(tokens, start + 2) is not _T.L_PAREN:
        return None
    end = _end_of_level(tokens, start + 3, frozenset({_T.COMMA}))
    if end == start + 3 or _type_at(tokens, end) is not _T.R_PAREN:
        return None
    return start + 3, end - 1


def _end_of_level(tokens: Sequence[Token], start: int, stops: frozenset[TokenType]) -> int:
    """The place of the first of ``stops`` or of the closing parenthesis around ``start``."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        if depth < 0 or (depth == 0 and kind in stops):
            return index
    return len(tokens)


def _is_negative_number(tokens: Sequence[Token], index: int) -> bool:
    return (
        _type_at(tokens, index - 1) is _T.L_PAREN
        and _type_at(tokens, index) is _T.DASH
        and _type_at(tokens, index + 1) is _T.NUMBER
    )


def _type_at(tokens: Sequence[Token], index: int) -> TokenType | None:
    return tokens[index].token_type if 0 <= index < len(tokens) else None


def _parenthesis(near: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, near.line, near.col, near.start, near.end)


def _direction(using: Token, operator: Token) -> Token:
    kind, text = _DIRECTIONS[operator.token_type]
    return Token(kind, text, using.line, using.col, using.start, operator.end)


def _negative(sign: Token, number: Token) -> Token:
    text = f"-{number.text}"
    return Token(_T.NUMBER, text, number.line, number.col, sign.start, number.end)
