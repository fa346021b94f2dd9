"""Aggregation below joins: rows of one relation are grouped before they are joined.

Yan and Larson, "Eager Aggregation and Lazy Aggregation" (VLDB 1995), eager group-by. All that the
aggregates read comes from one relation, so its rows may be put together by the columns that the
joins and the groups need: rows that agree in these meet the same partners, and the joins multiply
the group as a whole. The aggregate above sums sums and counts, and takes minima and maxima of those
below. It is one more alternative of the aggregate's group in the MEMO.
"""

from __future__ import annotations

from dataclasses import dataclass

from remuda.plan.expression import ColumnId, columns_of
from remuda.plan.functions.aggregates import aggregate_function, combining
from remuda.plan.logical import Aggregate, Join, JoinKind, Logical, OutputColumn
from remuda.planner.algebra import columns, may_raise, reference, with_inputs
from remuda.planner.rules.rule import Rewriting

_THROUGH_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


ROWS_MIN = 1_000.0
GROUPS_SHARE_MAX = 0.5
"""Of the rows."""


@dataclass(frozen=True, slots=True)
class Eager:
    """``relation``, grouped by ``keys`` below the joins of ``aggregate``."""

    aggregate: Aggregate
    relation: Logical
    keys: tuple[ColumnId, ...]


def eager(node: Aggregate, rewriting: Rewriting) -> Eager | None:
    """None where it would be wrong, or cannot save anything."""
    used = frozenset().union(*(columns_of(e) for call in node.calls for e in call.expressions))
    if not node.group or node.always or not used or not _can_be_combined(node):
        return None
    path = _path_to(node.input, used)
    if len(path) < 2 or isinstance(path[-1], Aggregate | Join):
        return None
    relation = path[-1]
    conditions = [join.condition for join in path[:-1] if isinstance(join, Join)]
    wanted = frozenset(node.group).union(*(columns_of(c) for c in conditions if c is not None))
    kept = tuple(column for column in relation.output if column.id in wanted)
    if not kept:
        return None
    parts = tuple(rewriting.fresh(call.function, call.type) for call in node.calls)
    keys = tuple(column.id for column in kept)
    below: Logical = Aggregate((*kept, *parts), relation, keys, node.calls)
    for join, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        assert isinstance(join, Join)
        sides = (below, join.right) if join.left is child else (join.left, below)
        below = with_inputs(join, sides)
    return Eager(_combining(node, below, parts), relation, keys)


def _can_be_combined(node: Aggregate) -> bool:
    """No call whose value depends on more than the values of its parts, and nothing that could
    fail for rows which the joins leave out."""
    return all(
        aggregate_function(call.function).combine
        and not (call.distinct or call.order or call.more)
        and not any(may_raise(e) for e in call.expressions)
        for call in node.calls
    )


def _path_to(node: Logical, used: frozenset[ColumnId]) -> list[Logical]:
    """From ``node`` through joins that keep rows of that side as they are, to the relation that has
    all columns ``used``; empty when there is none."""
    if not isinstance(node, Join):
        return [node] if used <= columns(node) else []
    if used <= columns(node.left) and node.kind in _THROUGH_LEFT:
        return [node, *_path_to(node.left, used)]
    if used <= columns(node.right) and node.kind is JoinKind.INNER:
        return [node, *_path_to(node.right, used)]
    return [node]


def _combining(node: Aggregate, below: Logical, parts: tuple[OutputColumn, ...]) -> Aggregate:
    calls = tuple(
        combining(call, reference(part)) for call, part in zip(node.calls, parts, strict=True)
    )
    return Aggregate(node.output, below, node.group, calls)


def worth_a_look(rows: float, groups: float) -> bool:
    """Grouping must take most of the rows away: it costs more than to probe a hash table."""
    return rows >= ROWS_MIN and groups <= rows * GROUPS_SHARE_MAX
