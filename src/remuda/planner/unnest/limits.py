"""LIMIT in a subquery: so many rows for each row of the outer query."""

from __future__ import annotations

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.plan.expression import Call, Cast, Expression, Literal, SortKey
from remuda.plan.logical import Logical, Sort
from remuda.plan.windows import WindowCall
from remuda.planner.algebra import filtered, make_window, reference, substitute
from remuda.planner.rules.rule import Rewriting
from remuda.planner.unnest.bindings import Binding

NO_LIMIT = Literal(BIGINT, 2**63 - 1)


def limited_per_binding(
    node: Sort, below: Logical, bound: Binding, rewriting: Rewriting
) -> Logical:
    """LIMIT and OFFSET for each binding by itself: by numbers of rows."""
    partition = tuple(dict.fromkeys(b.column.column for b in bound.values()))
    number = rewriting.fresh("row_number", BIGINT, nullable=False)
    call = WindowCall("row_number", (), BIGINT)
    window = make_window(below, partition, node.keys, (call,), (number,))
    values = {p: b.column for p, b in bound.items()}

    def count(expression: Expression) -> Expression:
        bare = substitute(expression, values)
        return bare if bare.type == BIGINT else Cast(BIGINT, bare)

    parts: list[Expression] = []
    last: Expression | None = None if node.limit is None else count(node.limit)
    if node.offset is not None:
        offset = Call(BIGINT, "coalesce", (count(node.offset), Literal(BIGINT, 0)))
        parts.append(Call(BOOLEAN, ">", (reference(number), offset)))
        if last is not None:
            rank: Expression = Call(BIGINT, "-", (reference(number), offset))
            parts.append(_within(rank, last))
    elif last is not None:
        parts.append(_within(reference(number), last))
    sort_keys: tuple[SortKey, ...] = node.keys
    chosen = filtered(window, parts)
    return Sort(chosen.output, chosen, sort_keys) if sort_keys else chosen


def _within(rank: Expression, last: Expression) -> Expression:
    """LIMIT NULL is no limit."""
    if not isinstance(last, Literal):
        last = Call(BIGINT, "coalesce", (last, NO_LIMIT))
    elif last.value is None:
        last = NO_LIMIT
    return Call(BOOLEAN, "<=", (rank, last))
