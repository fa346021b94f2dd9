"""From aggregate nodes to operators: over any rows, or over rows that come group by group."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import SqlType
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.aggregate import HashAggregateOperator
from remuda.execution.operators.collected import CollectedState
from remuda.execution.operators.group_states import BoundCall
from remuda.execution.operators.ordering import BoundKey, places_of
from remuda.execution.operators.partitioned_aggregate import (
    Overflow,
    PartitionedAggregateOperator,
)
from remuda.execution.operators.sorting_aggregate import SortingAggregateOperator
from remuda.execution.operators.streaming_aggregate import StreamingAggregateOperator
from remuda.plan.expression import AggregateCall, ColumnRef
from remuda.plan.functions.aggregates import state_type
from remuda.plan.physical import AggregatePhase, HashAggregate, StreamingAggregate


@builds(HashAggregate, StreamingAggregate)
def _aggregate(node: HashAggregate, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    (source,) = inputs
    compiler = build.compiler(node.input.output)
    places = places_of(node.input.output)
    group = [places[column] for column in node.group]
    types = [column.type for column in node.input.output]
    calls = _bound_calls(node, compiler)
    if isinstance(node, StreamingAggregate):
        keys = [BoundKey(place, types[place]) for place in group]
        return StreamingAggregateOperator(source, keys, calls, build.reserve(node))
    flushes = node.phase is AggregatePhase.PARTIAL

    def aggregate(
        source: Operator, overflow: Overflow | None = None, first: bool = True
    ) -> HashAggregateOperator:
        return HashAggregateOperator(
            source,
            group,
            [types[place] for place in group],
            calls,
            always_one=True,  # PARTIAL too: the sum of no counts would be NULL
            flushes=flushes,
            always=node.always if first else (),
            memory=build.reserve(node),
            overflow=overflow,
        )

    memory = build.reserve(node)
    if flushes or not group or memory.spill is None:
        return aggregate(source)
    if not node.always and any(isinstance(call.new_state(), CollectedState) for call in calls):
        keys = [BoundKey(place, types[place]) for place in group]
        return SortingAggregateOperator(
            source, aggregate, types=types, group=keys, calls=calls, memory=memory
        )
    return PartitionedAggregateOperator(source, aggregate, types=types, group=group, memory=memory)


def _bound_calls(node: HashAggregate, compiler: Compiler) -> list[BoundCall]:
    columns = {column.id: column for column in node.input.output}
    partial = node.phase is AggregatePhase.PARTIAL
    calls = []
    for place, call in enumerate(node.calls):
        if node.phase is AggregatePhase.FINAL:
            (state,) = node.states[place]
            column = columns[state]
            argument = ColumnRef(column.type, column.id, column.name)
            calls.append(_merging_call(call, argument, compiler))
        else:
            result = node.output[len(node.group) + place].type if partial else call.type
            calls.append(_bound_call(call, result, compiler, partial=partial))
    return calls


def _merging_call(call: AggregateCall, state: ColumnRef, compiler: Compiler) -> BoundCall:
    """The call that merges the states of ``call``: counts are summed, the rest merges as itself."""
    column = [compiler.column(state)]
    if state_type(call) == call.type:
        function = "sum" if call.function in ("count", "sum") else call.function
        return BoundCall(function, column, [state.type], call.type)
    types = [argument.type for argument in call.arguments]
    return BoundCall(call.function, column, types, call.type, merges=True)


def _bound_call(
    call: AggregateCall, result: SqlType, compiler: Compiler, *, partial: bool
) -> BoundCall:
    """``result`` is the type of the output column: that of a state in the PARTIAL phase."""
    arguments = list(call.arguments)
    keys = []
    for key in call.order:
        if key.expression in arguments:
            position = arguments.index(key.expression)
        else:
            position = len(arguments)
            arguments.append(key.expression)
        keys.append(BoundKey(position, key.expression.type, key.descending, key.nulls_first))
    packs = partial and state_type(call) != call.type
    return BoundCall(
        function=call.function,
        columns=[compiler.column(argument) for argument in arguments],
        types=[argument.type for argument in arguments],
        result=call.type if packs else result,
        distinct=call.distinct,
        condition=None if call.filter is None else compiler.column(call.filter),
        keys=keys,
        packs=packs,
    )
