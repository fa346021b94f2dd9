"""The type that a cast names."""

from __future__ import annotations

from typing import Final

from remuda.catalog.pg_types import CATALOG_TYPES, OBJECTS, VECTORS
from remuda.datatypes.sql import SqlType
from remuda.errors import Position
from remuda.sql.parsing.grammar.types import declared_type
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import resolved
from remuda.sql.text.types import DECIMAL_NAMES, array_of
from remuda.sql.trees import ast

_QUOTED_CHAR: Final = '"char"'
"""A type of one byte, in contrast to CHAR."""
CATALOG_NAMES: Final = frozenset(OBJECTS | VECTORS | {"oid", "xid", "cid", "name", _QUOTED_CHAR})
"""Types of PostgreSQL's catalog, which CAST takes."""


def is_bare_decimal(node: ast.TypeName) -> bool:
    """DECIMAL without precision: CAST keeps the digits of its operand then."""
    return node.this in DECIMAL_NAMES and not (node.expressions or node.args.get("array"))


def type_from_tree(context: Context, node: ast.TypeName, position: Position | None) -> SqlType:
    """The type in a CAST. Raises UndefinedType, InvalidDefinition, NotSupported."""
    name = str(node.this)
    schema = node.args.get("schema") or "pg_catalog"
    if name not in CATALOG_NAMES or node.expressions or schema != "pg_catalog":
        found = declared_type(node, position)
        return resolved(context, found, position, node.args.get("name_place"))
    found = CATALOG_TYPES["char" if name == _QUOTED_CHAR else name]
    for _ in range(node.args.get("array") or 0):
        found = array_of(found, position)
    return found
