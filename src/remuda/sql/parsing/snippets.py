"""Expressions and queries inside of definitions: read when they are written, and again from the
text that the catalog keeps."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.errors import UndefinedParameter
from remuda.sql.parsing.grammar.changes import Grammar
from remuda.sql.parsing.parser import parse_query_tokens
from remuda.sql.scope.context import Context
from remuda.sql.text.lexemes import Token, check_text
from remuda.sql.text.lexer import tokenize
from remuda.sql.text.places import position_at
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import Snippet


def expression_of(context: Context, snippet: Snippet) -> ast.Node:
    """The expression that a snippet of the statement holds."""
    return _expression(context.text, snippet.tokens)


def parse_expression(text: str) -> ast.Node:
    """The expression that ``text`` is as a whole."""
    check_text(text)
    return _expression(text, tokenize(text))


def _expression(text: str, tokens: Sequence[Token]) -> ast.Node:
    grammar = Grammar(text, tokens)
    found = grammar.whole_expression()
    _refuse_parameters(text, grammar.parameters, "an expression of a definition")
    return found


def query_of(context: Context, snippet: Snippet) -> ast.Node:
    """The query that a snippet of the statement holds."""
    root, parameters = parse_query_tokens(context.text, snippet.tokens)
    _refuse_parameters(context.text, parameters, "the query of a definition")
    return root


def parse_query(text: str) -> ast.Node:
    """The query that ``text`` is as a whole."""
    root, parameters = parse_query_tokens(text, tokenize(text))
    _refuse_parameters(text, parameters, "the query of a definition")
    return root


def _refuse_parameters(text: str, parameters: int, where: str) -> None:
    if parameters:
        at = max(text.find("$"), text.find("?"), 0)
        raise UndefinedParameter(
            f"there is no parameter $1 in {where}",
            position=position_at(text, at),
            hint="Write the value itself.",
        )
