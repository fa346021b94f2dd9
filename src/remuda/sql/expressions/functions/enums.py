"""``enum_first``, ``enum_last`` and ``enum_range``: about the type of their argument, so each
becomes a constant while its statement is bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.datatypes.sql import EnumType, Kind, array, enum_of
from remuda.errors import UndefinedFunction
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.trees import ast

_Function = Callable[[ExpressionBinder, list[ast.Node], ast.Node], Expression]


def _enum_argument(
    binder: ExpressionBinder, nodes: list[ast.Node], node: ast.Node
) -> tuple[list[Expression], EnumType]:
    bound = [binder.bind(each) for each in nodes]
    types = {each.type for each in bound if each.type.kind is not Kind.NULL}
    enum = types.pop().enum if len(types) == 1 else None
    if enum is None:
        raise binder.context.error(
            UndefinedFunction,
            "could not determine actual enum type",
            node,
            hint="Write the argument with its type: NULL::name_of_the_type.",
        )
    return [binder.convert.implicit(each, enum_of(enum), node) for each in bound], enum


def _enum_end(place: int) -> _Function:
    """``enum_first(x)``, ``enum_last(x)``: of the type of ``x``, whatever its value is."""

    def bind(binder: ExpressionBinder, nodes: list[ast.Node], node: ast.Node) -> Expression:
        _, enum = _enum_argument(binder, nodes, node)
        return Literal(enum_of(enum), enum.labels[place] if enum.labels else None)

    return bind


def _enum_range(binder: ExpressionBinder, nodes: list[ast.Node], node: ast.Node) -> Expression:
    """``enum_range(x)``: all values of the type of ``x``; ``enum_range(low, high)``: those between,
    where NULL is no bound."""
    bounds, enum = _enum_argument(binder, nodes, node)
    labels = enum.labels
    if len(bounds) == 1:
        return Literal(array(enum_of(enum)), labels)
    ends: list[str | None] = []
    for bound in bounds:
        if not isinstance(bound, Literal):
            raise binder.context.unsupported(
                "enum_range of two values that are no constants",
                node,
                hint="Compare with the values of enum_range(NULL::name_of_the_type) instead.",
            )
        ends.append(None if bound.value is None else str(bound.value))
    low, high = ends
    first = 0 if low is None else labels.index(low)
    last = len(labels) if high is None else labels.index(high) + 1
    return Literal(array(enum_of(enum)), labels[first:last])


ENUM_FUNCTIONS: Final[dict[str, tuple[tuple[int, ...], _Function]]] = {
    "enum_first": ((1,), _enum_end(0)),
    "enum_last": ((1,), _enum_end(-1)),
    "enum_range": ((1, 2), _enum_range),
}
"""By name: the numbers of arguments, and the maker of the expression."""
