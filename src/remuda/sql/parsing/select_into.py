"""``SELECT ... INTO [TEMPORARY | TEMP] [TABLE] name ...``: CREATE TABLE AS in other words."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.catalog.temporary import PRESERVE
from remuda.sql.text.lexemes import Token, position_of_token
from remuda.sql.text.places import position_at
from remuda.sql.trees import ast
from remuda.sql.trees.names import Name
from remuda.sql.trees.syntax import CreateTree, Snippet, TableElements


def read_into(text: str, tokens: Sequence[Token], root: ast.Node) -> CreateTree | None:
    """The statement that a query with INTO is; None for one without. ``tokens`` are those of the
    whole query. The clause stands in the first SELECT of a set operation; elsewhere the binder
    refuses it."""
    node = root
    while isinstance(node, ast.SetOperation):
        node = node.this
    into = node.args.get("into") if isinstance(node, ast.Select) else None
    if into is None:
        return None
    rest = tuple(token for token in tokens if not into.start <= token.start <= into.end)
    query = Snippet(text[rest[0].start : rest[-1].end + 1], rest, position_of_token(text, rest[0]))
    return CreateTree(
        _name(text, into.this),
        if_not_exists=False,
        elements=TableElements(),
        replicated=False,
        partition_by=None,
        query=query,
        temporary=bool(into.args.get("temporary")),
        on_commit=PRESERVE,
    )


def _name(text: str, node: ast.Table) -> Name:
    local, schema = node.this, node.args.get("db")
    length = local.end - local.start + 1
    position = position_at(text, local.start, length)
    return Name(_folded(local), position, "" if schema is None else _folded(schema))


def _folded(node: ast.Node) -> str:
    name = str(node.this)
    return name if node.args.get("quoted") else name.lower()
