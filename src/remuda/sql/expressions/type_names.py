"""The type that a cast names."""

from __future__ import annotations

from typing import Final

from remuda.catalog.pg_types import CATALOG_TYPES, OBJECTS, VECTORS
from remuda.datatypes.sql import SqlType
from remuda.errors import InvalidDefinition, Position
from remuda.sql.text.types import DECIMAL_NAMES, LENGTH_MAX, array_of, type_from_name
from remuda.sql.trees import ast

_QUOTED_CHAR: Final = '"char"'
"""A type of one byte, in contrast to CHAR."""
CATALOG_NAMES: Final = frozenset(OBJECTS | VECTORS | {"oid", "xid", "cid", "name", _QUOTED_CHAR})
"""Types of PostgreSQL's catalog, which CAST takes."""


def is_bare_decimal(node: ast.TypeName) -> bool:
    """DECIMAL without precision: CAST keeps the digits of its operand then."""
    return node.this in DECIMAL_NAMES and not (node.expressions or node.args.get("array"))


def type_from_tree(node: ast.TypeName, position: Position | None) -> SqlType:
    """The type in a CAST."""
    name = str(node.this)
    if name in CATALOG_NAMES and not node.expressions:
        found = CATALOG_TYPES["char" if name == _QUOTED_CHAR else name]
    else:
        arguments = tuple(_argument(part, position) for part in node.expressions)
        fields = str(node.args.get("fields") or "")
        span = tuple(fields.split(" to ")) if fields else ()
        if name == "bpchar" and not arguments:
            arguments = (LENGTH_MAX,)
        found = type_from_name(name, arguments, position, span)
    for _ in range(node.args.get("array") or 0):
        found = array_of(found, position)
    return found


def _argument(node: ast.Literal, position: Position | None) -> int:
    if node.this.isdecimal():
        return int(node.this)
    raise InvalidDefinition("type arguments must be whole numbers", position=position)
