"""Handlers of the operators on bits."""

from __future__ import annotations

from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder, Handler, register
from remuda.sql.trees import ast


def _binary(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        return binder.call(name, node.args["this"], node.args["expression"], node=node)

    return bind


def _unary(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        return binder.call(name, node.args["this"], node=node)

    return bind


def register_operators() -> None:
    register(ast.BitwiseAnd, _binary("&"), "this", "expression")
    register(ast.BitwiseOr, _binary("|"), "this", "expression")
    register(ast.BitwiseXor, _binary("#"), "this", "expression")
    register(ast.BitwiseLeftShift, _binary("<<"), "this", "expression")
    register(ast.BitwiseRightShift, _binary(">>"), "this", "expression")
    register(ast.BitwiseNot, _unary("bit_not"), "this")
