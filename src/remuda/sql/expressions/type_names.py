"""The type that a cast names."""

from __future__ import annotations

from remuda.datatypes.sql import SqlType
from remuda.errors import Position
from remuda.sql.parsing.grammar.types import catalog_type, declared_type
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import resolved
from remuda.sql.text.types import DECIMAL_NAMES
from remuda.sql.trees import ast


def is_bare_decimal(node: ast.TypeName) -> bool:
    """DECIMAL without precision: CAST keeps the digits of its operand then."""
    return node.this in DECIMAL_NAMES and not (node.expressions or node.args.get("array"))


def type_from_tree(context: Context, node: ast.TypeName, position: Position | None) -> SqlType:
    """The type in a CAST. Raises UndefinedType, InvalidDefinition, NotSupported."""
    found = catalog_type(node, position)
    if found is not None:
        return found
    found = declared_type(node, position)
    return resolved(context, found, position, node.args.get("name_place"))
