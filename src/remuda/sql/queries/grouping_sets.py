"""ROLLUP, CUBE, GROUPING SETS: from the elements of GROUP BY to a list of grouping sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import prod
from typing import Final, TypeAlias

from remuda.errors import LimitExceeded, SqlSyntaxError
from remuda.plan.expression import Expression
from remuda.sql.scope.context import Context
from remuda.sql.trees import ast

GroupingSet: TypeAlias = tuple[Expression, ...]
BindKey: TypeAlias = Callable[[ast.Node], Expression]

SETS_MAX: Final = 4_096
"""Grouping sets of one query, as in PostgreSQL."""
CUBE_MAX: Final = 12
"""Elements of one CUBE: each more doubles the number of sets."""


def has_sets(node: ast.Group) -> bool:
    """Whether the clause names more than plain keys."""
    return node.find(ast.Rollup, ast.Cube, ast.GroupingSets) is not None


def grouping_sets(context: Context, node: ast.Group, bind_key: BindKey) -> list[GroupingSet]:
    """The sets of a GROUP BY clause: every combination of one set of each of its elements.

    Raises LimitExceeded for too many of them.
    """
    found = [_sets_of(context, element, bind_key) for element in node.expressions]
    if prod(len(sets) for sets in found) > SETS_MAX:
        raise _too_many(context, node.expressions[-1])
    combined = [_joined(parts) for parts in product(*found)]
    if node.args.get("all") is False:
        # GROUP BY DISTINCT: sets of the same columns count once, in whatever order.
        return list({frozenset(one): one for one in reversed(combined)}.values())[::-1]
    return combined


def _sets_of(context: Context, node: ast.Node, bind_key: BindKey) -> list[GroupingSet]:
    match node:
        case ast.Rollup():
            parts = _composites(context, node, bind_key)
            return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
        case ast.Cube():
            parts = _composites(context, node, bind_key)
            if len(parts) > CUBE_MAX:
                raise context.error(
                    LimitExceeded, f"CUBE is limited to {CUBE_MAX} elements", node.expressions[0]
                )
            sizes = range(len(parts), -1, -1)
            return [_joined(chosen) for size in sizes for chosen in combinations(parts, size)]
        case ast.GroupingSets():
            context.only(node, "expressions")
            _require_elements(context, node)
            nested = [_sets_of(context, element, bind_key) for element in node.expressions]
            if sum(len(sets) for sets in nested) > SETS_MAX:
                raise _too_many(context, node.expressions[-1])
            return [one for sets in nested for one in sets]
        case _:
            return [_composite(node, bind_key)]


def _composites(
    context: Context, node: ast.Rollup | ast.Cube, bind_key: BindKey
) -> list[GroupingSet]:
    """The elements of ROLLUP or CUBE; ``(a, b)`` counts as one."""
    context.only(node, "expressions")
    _require_elements(context, node)
    return [_composite(element, bind_key) for element in node.expressions]


def _composite(node: ast.Node, bind_key: BindKey) -> GroupingSet:
    inner = node.unnest()
    if isinstance(inner, ast.Tuple):
        return _joined([_composite(part, bind_key) for part in inner.expressions])
    return (bind_key(inner),)


def _require_elements(context: Context, node: ast.Node) -> None:
    if not node.expressions:
        raise context.error(SqlSyntaxError, 'syntax error at or near ")"', node)


def _joined(parts: Sequence[GroupingSet]) -> GroupingSet:
    return tuple(dict.fromkeys(key for part in parts for key in part))


def _too_many(context: Context, node: ast.Node) -> LimitExceeded:
    return context.error(
        LimitExceeded, f"too many grouping sets present (maximum {SETS_MAX})", node
    )
