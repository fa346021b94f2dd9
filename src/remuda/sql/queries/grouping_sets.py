"""ROLLUP, CUBE, GROUPING SETS: from the elements of GROUP BY to a list of grouping sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import prod
from typing import Final, TypeAlias

from sqlglot import exp

from remuda.errors import LimitExceeded, SqlSyntaxError
from remuda.plan.expression import Expression
from remuda.sql.scope.context import Context

GroupingSet: TypeAlias = tuple[Expression, ...]
BindKey: TypeAlias = Callable[[exp.Expr], Expression]

SETS_MAX: Final = 4_096
"""Grouping sets of one query, as in PostgreSQL."""
CUBE_MAX: Final = 12
"""Elements of one CUBE: each more doubles the number of sets."""


def grouping_sets(context: Context, node: exp.Group, bind_key: BindKey) -> list[GroupingSet]:
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


def _sets_of(context: Context, node: exp.Expr, bind_key: BindKey) -> list[GroupingSet]:
    match node:
        case exp.Rollup():
            parts = _composites(context, node, bind_key)
            return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = _composites(context, node, bind_key)
            if len(parts) > CUBE_MAX:
                raise context.error(
                    LimitExceeded, f"CUBE is limited to {CUBE_MAX} elements", node.expressions[0]
                )
            sizes = range(len(parts), -1, -1)
            return [_joined(chosen) for size in sizes for chosen in combinations(parts, size)]
        case exp.GroupingSets():
            context.only(node, "expressions")
            _require_elements(context, node)
            nested = [_sets_of(context, element, bind_key) for element in node.expressions]
            if sum(len(sets) for sets in nested) > SETS_MAX:
                raise _too_many(context, node.expressions[-1])
            return [one for sets in nested for one in sets]
        case _:
            return [_composite(node, bind_key)]


def _composites(
    context: Context, node: exp.Rollup | exp.Cube, bind_key: BindKey
) -> list[GroupingSet]:
    """The elements of ROLLUP or CUBE; ``(a, b)`` counts as one."""
    context.only(node, "expressions")
    _require_elements(context, node)
    return [_composite(element, bind_key) for element in node.expressions]


def _composite(node: exp.Expr, bind_key: BindKey) -> GroupingSet:
    inner = node.unnest()
    if isinstance(inner, exp.Tuple):
        return _joined([_composite(part, bind_key) for part in inner.expressions])
    return (bind_key(inner),)


def _require_elements(context: Context, node: exp.Expr) -> None:
    if not node.expressions:
        raise context.error(SqlSyntaxError, 'syntax error at or near ")"', node)


def _joined(parts: Sequence[GroupingSet]) -> GroupingSet:
    return tuple(dict.fromkeys(key for part in parts for key in part))


def _too_many(context: Context, node: exp.Expr) -> LimitExceeded:
    return context.error(
        LimitExceeded, f"too many grouping sets present (maximum {SETS_MAX})", node
    )
