"""FOR UPDATE and FOR SHARE behind a query: the rows that it reads are checked when its transaction
commits.

There are no locks to wait for, so NOWAIT changes nothing, and all strengths are one.
"""

from __future__ import annotations

from typing import Final

from remuda.errors import NotSupported, UndefinedMap
from remuda.sql.trees import ast
from remuda.sql.trees.places import position_of

_NOT_WITH: Final = {
    "group": "GROUP BY clause",
    "having": "HAVING clause",
    "distinct": "DISTINCT clause",
}


_SOURCES: Final = (ast.Table, ast.Subquery)


def _name(source: ast.Node) -> str:
    alias = source.args.get("alias")
    if alias is not None:
        return str(alias.name)
    return source.name if isinstance(source, ast.Table) else ""


def take_locking(text: str, root: ast.Node) -> bool:
    """Whether the query has such a clause. Raises NotSupported and
    UndefinedMap. Those of subqueries stay, and are refused by who binds them."""
    locks = root.args.get("locks") if isinstance(root, ast.Select) else None
    if not locks:
        return False
    for clause, name in _NOT_WITH.items():
        if root.args.get(clause):
            raise NotSupported(
                f"FOR UPDATE is not allowed with {name}",
                position=position_of(text, root),
                hint="Lock the rows of the tables in a query of their own.",
            )
    bare = root.with_args(locks=None)
    names = {_name(part).lower() for part in bare.walk() if isinstance(part, _SOURCES)}
    for lock in locks:
        if lock.args.get("skip_locked"):
            raise NotSupported(
                "SKIP LOCKED is not supported",
                position=position_of(text, root),
                hint="Rows are not locked: conflicts are found when a transaction commits.",
            )
        for table in lock.expressions:
            if table.name.lower() not in names:
                raise UndefinedMap(
                    f'map "{table.name}" in FOR UPDATE clause not found in FROM clause',
                    position=position_of(text, table),
                )
    return True
