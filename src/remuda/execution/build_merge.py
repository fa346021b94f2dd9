"""From MergeJoin nodes to operators."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.values import PhysicalValue
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.memory import Reservation
from remuda.execution.operators.merge_join import MergeJoinOperator, MergeSide
from remuda.execution.operators.ordering import BoundKey, places_of
from remuda.plan.expression import ColumnId
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import MergeJoin


def merge_join(
    node: MergeJoin,
    left: Operator,
    right: Operator,
    parameters: Sequence[PhysicalValue],
    memory: Reservation,
) -> MergeJoinOperator:
    columns = (*node.left.output, *node.right.output)
    places = places_of(columns)
    residual = None
    if node.residual is not None:
        residual = Predicate(node.residual, Compiler(places, parameters))
    return MergeJoinOperator(
        kind=node.kind,
        left=_side(node, left, node.left.output, node.left_keys),
        right=_side(node, right, node.right.output, node.right_keys),
        residual=residual,
        output=[places[column.id] for column in node.output],
        memory=memory,
    )


def _side(
    node: MergeJoin,
    source: Operator,
    columns: Sequence[OutputColumn],
    keys: Sequence[ColumnId],
) -> MergeSide:
    places = places_of(columns)
    bound = [
        BoundKey(places[key], columns[places[key]].type, by.descending, by.nulls_first)
        for key, by in zip(keys, node.order, strict=True)
    ]
    return MergeSide(source, bound, [column.type for column in columns])
