"""``JOIN ... USING (a, b) AS x``: the alias goes into the list, where the parser reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

ALIAS_MARK: Final = "\x01as "
"""No name of a text can begin so: ``tokenize`` refuses the first character."""
_T = TokenType


def with_listed_aliases(tokens: list[Token]) -> list[Token]:
    """``tokens`` with ``USING (a) AS x`` written as ``USING (a, x)``, x marked."""
    if not any(token.token_type is _T.USING for token in tokens):
        return tokens
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        end = _end_of_list(tokens, index)
        if end is None:
            made.append(tokens[index])
            index += 1
            continue
        close, alias = tokens[end], tokens[end + 2]
        made += tokens[index:end]
        text = alias.text if alias.token_type is _T.IDENTIFIER else alias.text.lower()
        made.append(Token(_T.COMMA, ",", close.line, close.col, close.start, close.end))
        made.append(
            Token(_T.IDENTIFIER, ALIAS_MARK + text, alias.line, alias.col, alias.start, alias.end)
        )
        made.append(close)
        index = end + 3
    return made


def _end_of_list(tokens: Sequence[Token], start: int) -> int | None:
    """The closing parenthesis of ``USING (a, b) AS x``, None if this is nothing of the kind."""
    if tokens[start].token_type is not _T.USING or _kind(tokens, start + 1) is not _T.L_PAREN:
        return None
    at = start + 2
    while _kind(tokens, at + 1) is _T.COMMA:
        at += 2
    if _kind(tokens, at) in (_T.SELECT, _T.VALUES) or _kind(tokens, at + 1) is not _T.R_PAREN:
        return None
    named = _kind(tokens, at + 2) is _T.ALIAS and _kind(tokens, at + 3) is not None
    return at + 1 if named else None


def _kind(tokens: Sequence[Token], index: int) -> TokenType | None:
    return tokens[index].token_type if index < len(tokens) else None


def listed_alias(names: Sequence[exp.Expr]) -> tuple[list[exp.Expr], str]:
    """The columns of USING, and its alias, "" without one."""
    if names and str(names[-1].this).startswith(ALIAS_MARK):
        return list(names[:-1]), str(names[-1].this).removeprefix(ALIAS_MARK)
    return list(names), ""
