"""``SET a[1] = x``: an assignment to a part of a column becomes one to the column, whose new value
is the old one with that part replaced. Several may change the same column, one after the other."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.coercion import is_assignable
from remuda.datatypes.sql import BOOLEAN, INTEGER, JSON, VARCHAR, array
from remuda.datatypes.texts.text import type_name
from remuda.errors import TypeMismatch
from remuda.plan.expression import Call, Expression, Literal
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, register_call
from remuda.sql.expressions.nested import json_subscript
from remuda.sql.trees import ast

SET_ELEMENT: Final = " set element"
"""A name that no text can call."""


def element_path(node: ast.Node) -> tuple[ast.Node, list[ast.Node]]:
    """(column, subscripts) of ``a[1]`` or ``a['x']['y']``; no subscripts for a bare column."""
    path: list[ast.Node] = []
    while isinstance(node, ast.Bracket):
        path.insert(0, node.subscript)
        node = node.operand
    return node, path


def with_element(old: ast.Node, path: list[ast.Node], value: ast.Node) -> ast.Node:
    """The tree of ``old`` with the part at ``path`` replaced by ``value``."""
    return ast.Call(this=SET_ELEMENT, expressions=[old, value, *path])


def _bind(binder: ExpressionBinder, node: ast.Call) -> Expression:
    place, value_node, *path = node.expressions
    context, convert = binder.context, binder.convert
    old = binder.bind(place)
    sliced = next((part for part in path if isinstance(part, ast.Slice)), None)
    if sliced is not None:
        raise context.unsupported(
            "an assignment to a slice", value_node, hint="Assign the whole array."
        )
    if old.type == JSON:
        places = [json_subscript(binder, part) for part in path]
        steps = [
            convert.explicit(place, VARCHAR, part) for place, part in zip(places, path, strict=True)
        ]
        value = convert.implicit(binder.bind(value_node), JSON, value_node, "the assigned value")
        counted = not is_untyped(places[0]) and places[0].type.is_integer
        subscripts = Call(array(VARCHAR), "array", tuple(steps))
        return Call(JSON, "json_assigned", (old, subscripts, value, Literal(BOOLEAN, counted)))
    element = old.type.element
    if element is None:
        raise context.error(
            TypeMismatch,
            f"cannot subscript type {type_name(old.type)} because it does not support subscripting",
            place,
        )
    if len(path) > 1:
        raise context.unsupported(
            "an array of more than one dimension",
            path[1],
            hint="Store JSON, or arrays of one dimension.",
        )
    index = convert.implicit(binder.bind(path[0]), INTEGER, path[0], "array subscript")
    value = binder.bind(value_node)
    if not is_assignable(value.type, element):
        raise context.error(
            TypeMismatch,
            f"subscripted assignment requires type {type_name(element)} but expression is of type "
            f"{type_name(value.type)}",
            value_node,
            hint="You will need to rewrite or cast the expression.",
        )
    stored = convert.assigned(value, element, value_node, "the element")
    return Call(array(element), "set_element", (old, index, stored))


register_call(SET_ELEMENT, _bind)
