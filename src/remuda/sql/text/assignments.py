"""``SET column = value, ...``: each value gets parentheses, because sqlglot reads ``a = b OR c``
there as one comparison."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_OPENING: Final = frozenset({_T.L_PAREN, _T.L_BRACKET, _T.CASE})
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.END})
_CHANGES: Final = frozenset({_T.INSERT, _T.UPDATE, _T.MERGE})
_ENDS: Final = frozenset({_T.FROM, _T.WHERE, _T.WHEN, _T.RETURNING})


def enclose_all_assignments(tokens: list[Token]) -> list[Token]:
    """The tokens of a statement; also of those in parentheses, in its WITH."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        result.append(tokens[index])
        index += 1
        if result[-1].token_type is not _T.L_PAREN or index == len(tokens):
            continue
        if tokens[index].token_type in _CHANGES:
            end = _closing(tokens, index)
            result += enclose_assignments(tokens[index:end])
            index = end
    return enclose_assignments(result)


def _closing(tokens: list[Token], start: int) -> int:
    """The place of the parenthesis that closes the one before ``start``."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is _T.L_PAREN) - (kind is _T.R_PAREN)
        if depth < 0:
            return index
    return len(tokens)


def enclose_assignments(tokens: list[Token]) -> list[Token]:
    """The tokens of an UPDATE, an INSERT ... ON CONFLICT DO UPDATE, or a MERGE, which may have
    several SET clauses."""
    start = _after_set(tokens)
    if start is None:
        return tokens
    result = tokens[:start]
    depth, inside = 0, False
    previous = tokens[start - 1]
    for index in range(start, len(tokens)):
        token = tokens[index]
        kind = token.token_type
        if depth == 0 and inside and (kind is _T.COMMA or _ends(token, previous)):
            result.append(_parenthesis(_T.R_PAREN, ")", previous))
            inside = False
        if depth == 0 and not inside and _ends(token, previous):
            return result + enclose_assignments(tokens[index:])
        depth += (kind in _OPENING) - (kind in _CLOSING)
        result.append(token)
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        value = following is not None and following.token_type not in (*_ENDS, _T.COMMA)
        if depth == 0 and not inside and kind is _T.EQ and value and following is not None:
            result.append(_parenthesis(_T.L_PAREN, "(", following))
            inside = True
        previous = token
    if inside:
        result.append(_parenthesis(_T.R_PAREN, ")", previous))
    return result


def _after_set(tokens: list[Token]) -> int | None:
    """Where the assignments begin: behind the first SET outside parentheses."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and token.token_type is _T.SET:
            return index + 1
    return None


def _ends(token: Token, previous: Token) -> bool:
    """Whether the assignments end here; ``IS DISTINCT FROM`` does not end them."""
    if token.token_type is _T.FROM and previous.token_type is _T.DISTINCT:
        return False
    return token.token_type in _ENDS


def _parenthesis(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)
