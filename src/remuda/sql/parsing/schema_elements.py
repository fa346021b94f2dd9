"""CREATE SCHEMA with elements: each one is a statement of its own that only leaves out the schema.

::

    CREATE SCHEMA [name] [AUTHORIZATION user] element ...
    element   CREATE TABLE | VIEW | [UNIQUE] INDEX | SEQUENCE ...  |  GRANT ... ON ... TO ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from remuda.errors import NotSupported, SqlSyntaxError
from remuda.sql.parsing.cluster import PrivilegeParser
from remuda.sql.parsing.schemas import read_create_schema
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import Token, near, position_of_token
from remuda.sql.trees.sequences import CreateSequenceTree
from remuda.sql.trees.syntax import (
    CreateIndexTree,
    CreateSchemaTree,
    CreateTree,
    CreateViewTree,
    SchemaElement,
    Tree,
)

_BEGINNINGS: Final = frozenset({"create", "grant"})
"""Reserved words: they are names behind a dot and AS only, and CREATE is a privilege."""
_NAMED_BEHIND: Final = frozenset({".", "as"})


def read_schema(
    reader: TokenReader, create: Callable[[str, list[Token]], Tree]
) -> CreateSchemaTree:
    """After CREATE SCHEMA. ``create`` reads the tokens of a CREATE statement."""
    head, *elements = _divided(reader.tokens[reader.index :])
    tree = read_create_schema(TokenReader(reader.text, head))
    if elements and tree.if_not_exists:
        raise NotSupported(
            "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
            position=position_of_token(reader.text, elements[0][0]),
            hint="Leave out IF NOT EXISTS, or create the elements by statements of their own.",
        )
    return replace(tree, elements=tuple(_element(reader.text, each, create) for each in elements))


def _divided(tokens: Sequence[Token]) -> list[list[Token]]:
    """The words before the first element, then the elements."""
    found: list[list[Token]] = [[]]
    depth, before = 0, ""
    granting = False
    for token in tokens:
        word = token.word
        if word in _BEGINNINGS and not (depth or granting or before in _NAMED_BEHIND):
            found.append([])
            granting = word == "grant"
        depth += (word in ("(", "[")) - (word in (")", "]"))
        granting = granting and word != "on"
        found[-1].append(token)
        before = word
    return found


def _element(
    text: str, tokens: list[Token], create: Callable[[str, list[Token]], Tree]
) -> SchemaElement:
    if tokens[0].word == "grant":
        return PrivilegeParser(text, tokens).statement()
    found = create(text, tokens)
    match found:
        case CreateTree(query=query) if query is not None:
            raise SqlSyntaxError(
                "CREATE TABLE AS cannot be an element of CREATE SCHEMA",
                position=position_of_token(text, tokens[0]),
                hint="Create the table by a statement of its own.",
            )
        case CreateTree() | CreateViewTree() | CreateIndexTree() | CreateSequenceTree():
            return found
        case _:
            raise near(text, tokens[1], "An element is a TABLE, VIEW, INDEX, SEQUENCE or a GRANT.")
