"""The items that a SELECT puts out and sorts by, while it is bound."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.plan.expression import Expression
from remuda.sql.trees import ast


@dataclass(slots=True)
class Item:
    """One expression of the select list (or one that only ORDER BY needs)."""

    name: str
    expression: Expression
    node: ast.Node | None


@dataclass(slots=True)
class Ordering:
    """One ORDER BY key: the item that it sorts by."""

    item: int
    descending: bool
    nulls_first: bool
