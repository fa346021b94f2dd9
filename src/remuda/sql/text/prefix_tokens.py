"""The operators ``@ x``, ``|/ x`` and ``||/ x`` are written as calls for the parser.

They bind like any other operator of PostgreSQL: weaker than arithmetic, so that ``|/ 9 + 16`` is
the root of 25.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_FUNCTIONS: Final = {"@": "abs", "|/": "sqrt", "||/": "cbrt"}
_ARITHMETIC: Final = frozenset({_T.PLUS, _T.DASH, _T.STAR, _T.SLASH, _T.MOD, _T.CARET})
_SIGNS: Final = frozenset({_T.PLUS, _T.DASH, _T.TILDE})
_BRACKETS: Final = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET}


def with_prefix_calls(tokens: list[Token]) -> list[Token]:
    """``tokens`` with the operand of each prefix operator in parentheses behind a function."""
    if not any(token.text in _FUNCTIONS for token in tokens):
        return tokens
    ends: dict[int, int] = {}
    result: list[Token] = []
    for index, token in enumerate(tokens):
        if token.text in _FUNCTIONS and token.token_type is not _T.STRING:
            end = _operand_end(tokens, index + 1)
            ends[end] = ends.get(end, 0) + 1
            result += [_like(token, _T.VAR, _FUNCTIONS[token.text]), _like(token, _T.L_PAREN, "(")]
        else:
            result.append(token)
        result += [_like(token, _T.R_PAREN, ")")] * ends.get(index + 1, 0)
    return result


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _operand_end(tokens: list[Token], index: int) -> int:
    index = _primary_end(tokens, index)
    while index < len(tokens) and tokens[index].token_type in _ARITHMETIC:
        index = _primary_end(tokens, index + 1)
    return min(index, len(tokens))


def _primary_end(tokens: list[Token], index: int) -> int:
    """Behind a value with its signs, subscripts, arguments and casts."""
    while index < len(tokens) and tokens[index].token_type in _SIGNS:
        index += 1
    if index < len(tokens) and tokens[index].text in _FUNCTIONS:
        return _operand_end(tokens, index + 1)
    if index < len(tokens) and tokens[index].token_type is _T.PARAMETER:
        index += 1  # the number follows
    index = _behind(tokens, index)
    while index < len(tokens):
        kind = tokens[index].token_type
        if kind in (_T.DOT, _T.DCOLON):
            index = _behind(tokens, index + 1)
        elif kind in _BRACKETS:
            index = _behind(tokens, index)
        else:
            break
    return index


def _behind(tokens: list[Token], index: int) -> int:
    """Behind one token, or a pair of brackets with all that is inside."""
    if index >= len(tokens) or tokens[index].token_type not in _BRACKETS:
        return index + 1
    depth = 0
    for place in range(index, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind in _BRACKETS) - (kind in _BRACKETS.values())
        if depth == 0:
            return place + 1
    return len(tokens)
