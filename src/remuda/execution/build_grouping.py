"""From the nodes around grouping to their operators: copies per grouping set, first rows."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.values import PhysicalValue
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.execution.memory import Reservation
from remuda.execution.operators.expand import ExpandOperator
from remuda.execution.operators.group_limit import GroupLimitOperator
from remuda.execution.operators.ordering import BoundKey
from remuda.plan.expression import SortKey
from remuda.plan.physical import ExpandRows, GroupLimitRows


def expand_operator(node: ExpandRows, source: Operator) -> Operator:
    columns = node.input.output
    places = {column.id: place for place, column in enumerate(columns)}
    sources = [places[column] for column in node.sources]
    return ExpandOperator(
        source,
        kept=[places[column.id] for column in node.output if column.id in places],
        sources=sources,
        types=[columns[place].type for place in sources],
        sets=node.sets,
    )


def group_limit_operator(
    node: GroupLimitRows,
    source: Operator,
    parameters: Sequence[PhysicalValue],
    memory: Reservation,
) -> Operator:
    columns = node.input.output
    places = {column.id: place for place, column in enumerate(columns)}

    def bound(keys: Sequence[SortKey]) -> list[BoundKey]:
        return [
            BoundKey(places[k.column], columns[places[k.column]].type, k.descending, k.nulls_first)
            for k in keys
        ]

    limit = evaluate_constant(node.limit, parameters)
    assert limit is None or isinstance(limit, int)
    return GroupLimitOperator(
        source,
        types=[column.type for column in columns],
        partition=bound([SortKey(column) for column in node.partition]),
        order=bound(node.order),
        limit=max(limit or 0, 0),
        memory=memory,
    )
