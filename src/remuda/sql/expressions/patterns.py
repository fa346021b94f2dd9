"""Handlers of regular expressions, SIMILAR TO, and of text functions with words inside."""

from __future__ import annotations

from typing import Final

from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, Handler, register
from remuda.sql.expressions.negation import negation
from remuda.sql.trees import ast


def _matching(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        pattern = node.args["expression"]
        if isinstance(pattern, ast.AnyOf | ast.AllOf):
            raise binder.context.unsupported(
                f"{name} ANY",
                pattern,
                hint="Combine the patterns by OR, or use ~ with alternatives.",
            )
        result = binder.call(name, node.args["this"], pattern, node=node)
        return negation(result) if node.args.get("negate") else result

    return bind


def similar(
    binder: ExpressionBinder, node: ast.SimilarTo, more: tuple[ast.Node, ...]
) -> Expression:
    """``x SIMILAR TO pattern [ESCAPE more]``"""
    parts = (node.args["this"], node.args["expression"], *more)
    result = binder.call("similar_to", *parts, node=node, shown="SIMILAR TO")
    return negation(result) if node.args.get("negate") else result


def _similar(binder: ExpressionBinder, node: ast.SimilarTo) -> Expression:
    return similar(binder, node, ())


def _substring(binder: ExpressionBinder, node: ast.Substring) -> Expression:
    """``substring(x FROM n FOR n)``; with text behind FROM a regular expression."""
    start, length = node.first, node.length
    if start is None:
        start = ast.Literal.number(1)
    text, first = binder.bind(node.text), binder.bind(start)
    by_pattern = first.type.is_text or (
        is_untyped(first) and isinstance(first, Literal) and isinstance(first.value, str)
    )
    nodes = [node.text, start] + ([] if length is None else [length])
    bound = [text, first] + ([] if length is None else [binder.bind(length)])
    # FROM NULL FOR 'x' has an escape character, so it is a pattern.
    by_pattern = by_pattern or (is_untyped(first) and len(bound) > 2 and _names_an_escape(bound[2]))
    if is_untyped(first) and len(bound) > 2 and bound[2].type.is_numeric:
        by_pattern = False  # FROM '1' FOR 2: a length, so a number before it
    name = "substring"
    if by_pattern:
        name = "substring_regex" if length is None else "substring_similar"
    return binder.convert.call(name, bound, nodes, node, "substring")


def _names_an_escape(last: Expression) -> bool:
    if isinstance(last, Literal) and isinstance(last.value, str):
        return not last.value.strip().lstrip("+-").isdecimal()
    return last.type.is_text and not is_untyped(last)


def _overlay(binder: ExpressionBinder, node: ast.Overlay) -> Expression:
    start, length = node.first, node.length
    if node.replacement is None or start is None:
        raise binder.context.error(SqlSyntaxError, "OVERLAY needs PLACING and FROM", node)
    parts = [node.text, node.replacement, start] + ([] if length is None else [length])
    return binder.call("overlay", *parts, node=node)


def _starts_with(binder: ExpressionBinder, node: ast.StartsWith) -> Expression:
    """``x ^@ prefix``"""
    return binder.call("starts_with", node.this, node.args["expression"], node=node)


_BINARY: Final = ("this", "expression", "negate")

register(ast.RegexpLike, _matching("~"), *_BINARY)
register(ast.RegexpILike, _matching("~*"), *_BINARY)
register(ast.SimilarTo, _similar, *_BINARY)
register(ast.Substring, _substring)
register(ast.Overlay, _overlay)
register(ast.StartsWith, _starts_with, "this", "expression")
