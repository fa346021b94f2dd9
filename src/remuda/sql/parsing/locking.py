"""FOR UPDATE and FOR SHARE behind a query: what it reads is checked when its transaction commits.

There are no locks to wait for, so NOWAIT changes nothing, and all strengths are one.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from remuda.errors import NotSupported, UndefinedMap
from remuda.sql.text.places import position_of

_NOT_WITH: Final = {
    "group": "GROUP BY clause",
    "having": "HAVING clause",
    "distinct": "DISTINCT clause",
}


def take_locking(text: str, root: exp.Expr) -> bool:
    """Whether the query has such a clause, which is taken off the tree. Raises NotSupported and
    UndefinedMap. Those of subqueries stay, and are refused by who binds them."""
    locks = root.args.get("locks") if isinstance(root, exp.Select) else None
    if not locks:
        return False
    for clause, name in _NOT_WITH.items():
        if root.args.get(clause):
            raise NotSupported(
                f"FOR UPDATE is not allowed with {name}", position=position_of(text, root)
            )
    root.set("locks", None)
    names = {source.alias_or_name.lower() for source in root.find_all(exp.Table, exp.Subquery)}
    for lock in locks:
        if lock.args.get("wait") is False:
            raise NotSupported(
                "SKIP LOCKED is not supported",
                position=position_of(text, root),
                hint="Rows are not locked: conflicts are found when a transaction commits.",
            )
        for table in lock.expressions:
            if table.alias_or_name.lower() not in names:
                raise UndefinedMap(
                    f'map "{table.alias_or_name}" in FOR UPDATE clause not found in FROM clause',
                    position=position_of(text, table),
                )
    return True
