"""The columns of a join in memory: which of the right side it keeps, and which it puts out."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import BOOLEAN
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operator_builders import BuildContext
from remuda.execution.operators.hash_join import LEFT_ONLY
from remuda.execution.operators.ordering import places_of
from remuda.plan.expression import Call, Expression, columns_of
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import HashJoin, NestedLoopJoin


def join_columns(
    node: HashJoin | NestedLoopJoin, condition: Expression | None
) -> tuple[list[int], list[OutputColumn], list[int]]:
    """(right positions to keep, those columns, output positions in left + kept)."""
    left, right = node.left.output, node.right.output
    used = columns_of(condition) if condition is not None else frozenset()
    if node.kind not in LEFT_ONLY:
        used |= {column.id for column in node.output}
    kept = [place for place, column in enumerate(right) if column.id in used]
    columns = [right[place] for place in kept]
    places = places_of([*left, *columns])
    output = node.output[:-1] if node.kind is JoinKind.MARK else node.output
    return kept, columns, [places[column.id] for column in output]


def unknown_matches(
    node: HashJoin | NestedLoopJoin,
    condition: Expression | None,
    columns: Sequence[OutputColumn],
    build: BuildContext,
) -> Predicate | None:
    """For MARK joins: where ``condition`` is NULL. ``columns`` are those of the right side."""
    if node.kind is not JoinKind.MARK or condition is None:
        return None
    test = Call(BOOLEAN, "is_null", (condition,))
    return Predicate(test, build.compiler(node.left.output, columns))
