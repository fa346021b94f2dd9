"""``USING column::type`` of ALTER TABLE ... ALTER COLUMN ... TYPE."""

from __future__ import annotations

from remuda.sql.parsing.grammar.types import declared_type
from remuda.sql.parsing.snippets import expression_of
from remuda.sql.scope.context import Context, identifier
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import ChangeType


def converts_itself(context: Context, action: ChangeType) -> bool:
    """Whether USING says no more than that the column is cast to its new type, as Django and other
    programs write it at each change: the change does that without USING."""
    if action.using is None:
        return True
    node = _inside(expression_of(context, action.using))
    if isinstance(node, ast.Cast):
        to = declared_type(node.to, action.using.position)
        if to != action.type or str(to) != str(action.type):
            return False
        node = _inside(node.operand)
    return (
        isinstance(node, ast.Column)
        and node.args.get("table") is None
        and isinstance(node.this, ast.Identifier)
        and identifier(node.this) == action.name.text
    )


def _inside(node: ast.Node) -> ast.Node:
    while isinstance(node, ast.Paren):
        node = node.this
    return node
