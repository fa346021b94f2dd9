"""``pg_catalog.`` where it says nothing: tools of PostgreSQL write it before functions, types and
operators.

``pg_catalog.f(...)`` becomes ``f(...)``, ``x::pg_catalog.text`` becomes ``x::text``, ``a
OPERATOR(pg_catalog.~) b`` becomes ``a ~ b``, and ``COLLATE pg_catalog.default`` goes: all text is
compared by its code points, which is what the collations "C" and "default" are here. And literals
of types of the catalog: ``regclass 'name'``.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from remuda.catalog.pg_types import NUMBERED
from remuda.sql.text.typed_tokens import like

_T = TokenType
_SCHEMA: Final = "pg_catalog"
_SCHEMAS: Final = (_SCHEMA, "information_schema")
_COLLATIONS: Final = frozenset({"default", "c", "posix", "ucs_basic", "c.utf-8"})
_TYPE_WORDS: Final = frozenset({"as"})


def without_pg_catalog(tokens: list[Token]) -> list[Token]:
    words = [token.text.lower() for token in tokens]
    if "collate" not in words and not any(schema in words for schema in _SCHEMAS):
        return tokens
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        skipped = _operator(tokens, words, index, found) or _collation(words, index)
        if not skipped and _before_name(tokens, words, index):
            skipped = 2
        if not skipped:
            found.append(tokens[index])
        index += skipped or 1
    return found


def with_typed_objects(tokens: list[Token]) -> list[Token]:
    """``regclass 'name'`` as ``('name'::regclass)``: sqlglot knows no such literals."""
    if not any(_begins_literal(tokens, index) for index in range(len(tokens) - 1)):
        return tokens
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if _begins_literal(tokens, index):
            text = tokens[index + 1]
            found += [like(token, _T.L_PAREN, "("), text, like(text, _T.DCOLON, "::")]
            found += [like(text, _T.VAR, token.text), like(text, _T.R_PAREN, ")")]
            index += 2
        else:
            found.append(token)
            index += 1
    return found


def _begins_literal(tokens: list[Token], index: int) -> bool:
    token = tokens[index]
    if token.token_type is not _T.VAR or token.text.lower() not in NUMBERED:
        return False
    before = tokens[index - 1].token_type if index else None
    following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    return following is _T.STRING and before not in (_T.DCOLON, _T.ALIAS, _T.DOT)


def _operator(tokens: list[Token], words: list[str], index: int, found: list[Token]) -> int:
    """``OPERATOR(pg_catalog.~)``: the operator goes to ``found``; how many tokens that were."""
    if words[index : index + 4] != ["operator", "(", _SCHEMA, "."] or ")" not in words[index:]:
        return 0
    end = words.index(")", index)
    found += tokens[index + 4 : end]
    return end + 1 - index


def _collation(words: list[str], index: int) -> int:
    """How many tokens a COLLATE that changes nothing takes."""
    if words[index] != "collate":
        return 0
    after = words[index + 1 : index + 4]
    if len(after) == 3 and after[:2] == [_SCHEMA, "."] and after[2] in _COLLATIONS:
        return 4
    return 2 if after and after[0] in _COLLATIONS else 0


def _before_name(tokens: list[Token], words: list[str], index: int) -> bool:
    """Whether ``pg_catalog .`` stands before the name of a function or of a type, or
    ``information_schema .`` before that of a function."""
    if words[index] not in _SCHEMAS or index + 2 >= len(tokens):
        return False
    if tokens[index].token_type is _T.STRING or tokens[index + 1].token_type is not _T.DOT:
        return False
    before = tokens[index - 1] if index else None
    of_type = before is not None and (
        before.token_type is _T.DCOLON or words[index - 1] in _TYPE_WORDS
    )
    if of_type and words[index] == _SCHEMA:
        return True
    return index + 3 < len(tokens) and tokens[index + 3].token_type is _T.L_PAREN
