"""Handlers of the operators on bits, and of roots written as operators."""

from __future__ import annotations

from sqlglot import exp

from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder, Handler, register


def _binary(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        return binder.call(name, node.args["this"], node.args["expression"], node=node)

    return bind


def _unary(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        return binder.call(name, node.args["this"], node=node)

    return bind


def register_operators() -> None:
    register(exp.BitwiseAnd, _binary("&"), "this", "expression")
    register(exp.BitwiseOr, _binary("|"), "this", "expression")
    register(exp.BitwiseXor, _binary("#"), "this", "expression")
    register(exp.BitwiseLeftShift, _binary("<<"), "this", "expression")
    register(exp.BitwiseRightShift, _binary(">>"), "this", "expression")
    register(exp.BitwiseNot, _unary("bit_not"), "this")
    register(exp.Sqrt, _unary("sqrt"), "this")
    register(exp.Cbrt, _unary("cbrt"), "this")
