"""Expressions and queries inside of definitions: read when they are written, and again from the
text that the catalog keeps."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from remuda.errors import SqlSyntaxError, UndefinedParameter
from remuda.sql.parsing.parser import parse_query_tokens
from remuda.sql.scope.context import Context
from remuda.sql.text.places import position_at
from remuda.sql.text.tokens import check_text, tokenize
from remuda.sql.trees.syntax import Snippet


def expression_of(context: Context, snippet: Snippet) -> exp.Expr:
    """The expression that a snippet of the statement holds."""
    return _expression(context.text, list(snippet.tokens))


def parse_expression(text: str) -> exp.Expr:
    """The expression that ``text`` is as a whole."""
    check_text(text)
    return _expression(text, tokenize(text))


def _expression(text: str, tokens: list[Token]) -> exp.Expr:
    first = tokens[0]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.start)
    root, parameters = parse_query_tokens(text, [select, *tokens])
    _refuse_parameters(text, parameters, "an expression of a definition")
    assert isinstance(root, exp.Select)
    items = root.expressions
    extra = any(value for name, value in root.args.items() if name not in ("expressions", "kind"))
    if len(items) != 1 or extra or isinstance(items[0], exp.Alias):
        raise SqlSyntaxError(
            "one expression is expected here", position=position_at(text, first.start)
        )
    node: exp.Expr = items[0]
    node.parent = None
    return node


def query_of(context: Context, snippet: Snippet) -> exp.Expr:
    """The query that a snippet of the statement holds."""
    root, parameters = parse_query_tokens(context.text, list(snippet.tokens))
    _refuse_parameters(context.text, parameters, "the query of a definition")
    return root


def parse_query(text: str) -> exp.Expr:
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
