"""Calls whose last arguments are the elements of an array: ``concat(VARIADIC items)``.

Each becomes a call of the function that takes the array itself.
"""

from __future__ import annotations

from remuda.datatypes.sql import VARCHAR
from remuda.errors import TypeMismatch
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.trees import ast

_PATHS = {
    "json_extract_path": "#>",
    "json_extract_path_text": "#>>",
    "jsonb_extract_path": "#>",
    "jsonb_extract_path_text": "#>>",
}


def variadic_call(binder: ExpressionBinder, name: str, node: ast.Call) -> Expression:
    """Raises TypeMismatch for an argument that is no array, NotSupported for functions that have
    no form for an array."""
    *before, last = node.expressions
    items = binder.bind(last.this)
    if name in _PATHS and len(before) == 1:
        places = [before[0], last.this]
        return binder.convert.call(_PATHS[name], [binder.bind(before[0]), items], places, node)
    if is_untyped(items) or items.type.element is None:
        raise binder.context.error(TypeMismatch, "VARIADIC argument must be an array", last.this)
    if name == "concat" and not before:
        joined = [items, Literal(VARCHAR, "")]
        return binder.convert.call("array_to_string", joined, [last.this] * 2, node)
    if name == "concat_ws" and len(before) == 1:
        joined = [items, binder.bind(before[0])]
        return binder.convert.call("array_to_string", joined, [last.this, before[0]], node)
    raise binder.context.unsupported(
        f"VARIADIC in a call of {name}", last, hint="Write the arguments one by one."
    )
