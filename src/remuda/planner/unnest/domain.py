"""Plans that are computed twice in a statement: for the domain of a subquery, and for themselves.

Both must have the same rows. LIMIT may choose among rows that are equal in its order, and so may
ROW_NUMBER, so the order gets more columns until only equal rows are left to choose from.
"""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.coercion import is_comparable
from remuda.plan.expression import ColumnId, SortKey, columns_of
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import (
    Join,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    Sort,
    Window,
    inputs_of,
)
from remuda.plan.uses import expressions_of
from remuda.planner.algebra import LEFT_ONLY, is_limited, nodes_of, with_inputs


def is_settled(node: Logical, columns: frozenset[ColumnId]) -> bool:
    """Whether ``columns`` of ``node`` have the same values each time: random() has others."""
    return not any(_by_chance(below) for below in nodes_of(node)) or not (
        columns & _chance_columns(node) or _chooses_by_chance(node)
    )


def _by_chance(node: Logical) -> bool:
    return any(is_volatile(e) for e in expressions_of(node))


def _chance_columns(node: Logical) -> frozenset[ColumnId]:
    """Columns that are computed by chance, or from such."""
    found = frozenset().union(*(_chance_columns(child) for child in inputs_of(node)))
    if not isinstance(node, Project):
        return found if not _by_chance(node) else found | node.column_ids
    made = zip(node.output, node.expressions, strict=True)
    more = (column.id for column, e in made if columns_of(e) & found or is_volatile(e))
    return found | frozenset(more)


def _chooses_by_chance(node: Logical) -> bool:
    """Whether a condition somewhere depends on chance."""
    for below in nodes_of(node):
        if isinstance(below, Project):
            continue
        found = frozenset().union(*(_chance_columns(child) for child in inputs_of(below)))
        if _by_chance(below) or any(columns_of(e) & found for e in expressions_of(below)):
            return True
    return False


def settled(node: Logical) -> Logical:
    """``node`` with all rows that it may have chosen by chance, chosen by their values."""
    if isinstance(node, Join | MarkJoin) and _asks_existence(node):
        left = settled(node.left)
        return node if left is node.left else with_inputs(node, (left, node.right))
    inputs = inputs_of(node)
    done = tuple(settled(child) for child in inputs)
    if any(new is not old for new, old in zip(done, inputs, strict=True)):
        node = with_inputs(node, done)
    if isinstance(node, Sort) and is_limited(node):
        return replace(node, keys=_total(node.keys, (), node.input.output))
    if isinstance(node, Window) and all(call.function == "row_number" for call in node.calls):
        return replace(node, order=_total(node.order, node.partition, node.input.output))
    return node


def _total(
    keys: tuple[SortKey, ...], equal: tuple[ColumnId, ...], output: tuple[OutputColumn, ...]
) -> tuple[SortKey, ...]:
    """``keys``, then every other column; ``equal`` are the same in all rows that are compared."""
    known = {key.column for key in keys} | set(equal)
    more = (c for c in output if c.id not in known and is_comparable(c.type))
    return (*keys, *(SortKey(column.id) for column in more))


def _asks_existence(node: Join | MarkJoin) -> bool:
    """Whether any row of the right side is as good as any other."""
    if isinstance(node, MarkJoin):
        return node.guard is None and node.condition is None
    return node.kind in LEFT_ONLY and node.condition is None
