"""IS NOT DISTINCT FROM in joins, where NULL is a value like others, by keys that are never NULL."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN, Kind
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import (
    Call,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from remuda.plan.logical import Join, Logical, MarkJoin
from remuda.plan.nullability import is_nullable, nullability
from remuda.planner.algebra import columns, make_join, make_mark_join
from remuda.planner.rules.rule import Rewriting, Rule

_ZEROS: Final[dict[Kind, PhysicalValue]] = {
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL), 0),
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE), 0.0),
    **dict.fromkeys((Kind.CHAR, Kind.VARCHAR), ""),
    **dict.fromkeys((Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 0),
    Kind.BOOLEAN: False,
    Kind.BYTEA: b"",
}
"""Some value of each type; it does not matter which."""


def _null_safe_keys(node: Logical, _: Rewriting) -> Logical | None:
    """``a IS NOT DISTINCT FROM b`` is ``a = b`` if one side is never NULL; else ``(a IS NULL) = (b
    IS NULL) AND coalesce(a, 0) = coalesce(b, 0)``. Hash joins find both."""
    match node:
        case Join(condition=Expression() as condition):
            pass
        case MarkJoin(guard=Expression() as condition):
            pass
        case _:
            return None
    nullable = {**nullability(node.left), **nullability(node.right)}
    parts: list[Expression] = []
    for part in conjuncts(condition):
        parts += _rewritten(part, node, nullable) or [part]
    new = conjunction(tuple(parts))
    if new == condition:
        return None
    if isinstance(node, Join):
        return make_join(node.kind, node.left, node.right, new)
    return make_mark_join(node.left, node.right, new, node.condition, node.mark)


def _rewritten(
    part: Expression, node: Join | MarkJoin, nullable: dict[int, bool]
) -> list[Expression] | None:
    if not isinstance(part, Call) or part.function != "is_not_distinct_from":
        return None
    first, second = part.arguments
    sides = [columns_of(first), columns_of(second)]
    left, right = columns(node.left), columns(node.right)
    if not all(sides) or not (
        (sides[0] <= left and sides[1] <= right) or (sides[0] <= right and sides[1] <= left)
    ):
        return None
    if not (is_nullable(first, nullable) and is_nullable(second, nullable)):
        return [Call(BOOLEAN, "=", (first, second))]
    kind = first.type.kind
    if kind not in _ZEROS or first.type != second.type:
        return None
    zero = Literal(first.type, _ZEROS[kind])
    missing = [Call(BOOLEAN, "is_null", (side,)) for side in (first, second)]
    values = [Call(side.type, "coalesce", (side, zero)) for side in (first, second)]
    return [Call(BOOLEAN, "=", tuple(values)), Call(BOOLEAN, "=", tuple(missing))]


NULL_SAFE_KEYS = Rule("null-safe keys", (Join, MarkJoin), _null_safe_keys)
