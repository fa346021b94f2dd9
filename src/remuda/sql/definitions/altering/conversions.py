"""ALTER TABLE ... ALTER COLUMN ... TYPE: ``USING column::type``, and types that keep values of
unique indexes apart."""

from __future__ import annotations

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import NotSupported
from remuda.sql.parsing.grammar.types import declared_type
from remuda.sql.parsing.snippets import expression_of
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context, identifier
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import ChangeType, Name


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


def keep_distinct(context: Context, column: Column, new: SqlType, place: Name) -> None:
    """Different values of the old type are different ones of the new one. Raises NotSupported."""
    old = column.type
    text = old.is_text and new.is_text and (old.kind is Kind.CHAR or new.kind is not Kind.CHAR)
    if not (text or (old.is_integer and new.is_integer)):
        error = NotSupported(
            f'the type of column "{column.name}", which is in a UNIQUE constraint, cannot become '
            f"{new}",
            hint="Drop the constraint, change the type, and add the constraint again.",
        )
        raise placed(context, error, place)
