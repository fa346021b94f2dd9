"""``f(j -> 'k')`` is written ``f(((j)) -> 'k')`` for the parser, which takes a name before an
arrow for the parameter of a lambda; PostgreSQL has no lambdas."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_BEFORE: Final = frozenset({_T.L_PAREN, _T.COMMA})
_NO_NAMES: Final = frozenset({_T.STRING, _T.NUMBER})


def with_plain_arrows(tokens: list[Token]) -> list[Token]:
    """``tokens``; a name that begins an argument and stands before an arrow gets parentheses."""
    if not any(token.token_type is _T.ARROW for token in tokens):
        return tokens
    result: list[Token] = []
    for index, token in enumerate(tokens):
        if _is_name(token) and _is_operand(tokens, index):
            result += [_paren(token, "(")] * 2 + [token] + [_paren(token, ")")] * 2
        else:
            result.append(token)
    return result


def _is_name(token: Token) -> bool:
    quoted = token.token_type is _T.IDENTIFIER
    return quoted or (token.token_type not in _NO_NAMES and token.text.isidentifier())


def _is_operand(tokens: list[Token], index: int) -> bool:
    """Whether the name at ``index``, maybe in parentheses, stands between ``(`` or ``,`` and an
    arrow."""
    first, last = index - 1, index + 1
    while (
        first > 0
        and last + 1 < len(tokens)
        and tokens[first].token_type is _T.L_PAREN
        and tokens[last].token_type is _T.R_PAREN
    ):
        first, last = first - 1, last + 1
    return (
        first >= 0
        and last < len(tokens)
        and tokens[last].token_type is _T.ARROW
        and tokens[first].token_type in _BEFORE
    )


def _paren(token: Token, text: str) -> Token:
    kind = _T.L_PAREN if text == "(" else _T.R_PAREN
    return Token(kind, text, token.line, token.col, token.start, token.end)
