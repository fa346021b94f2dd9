"""Rules that leave only aggregates which can be computed in two phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from remuda.datatypes.sql import BIGINT, DOUBLE, INTERVAL, Kind, SqlType, decimal
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
)
from remuda.plan.functions.aggregates import aggregate_function, never_null
from remuda.plan.logical import Aggregate, Logical, OutputColumn, Project
from remuda.planner.algebra import reference
from remuda.planner.rules.rule import Rewriting, Rule

_COUNT_AS_DECIMAL = decimal(19, 0)

_ColumnOf: TypeAlias = Callable[[AggregateCall, str], ColumnRef]


def _rewrite_avg(node: Logical, rewriting: Rewriting) -> Logical | None:
    """``avg(x)`` is ``sum(x) / count(x)``, NULL over no rows; sums and counts are shared."""
    if not isinstance(node, Aggregate) or all(call.function != "avg" for call in node.calls):
        return None
    calls: list[AggregateCall] = []
    columns: list[OutputColumn] = []
    group = node.output[: len(node.group)]

    def column_of(call: AggregateCall, name: str) -> ColumnRef:
        if call in calls:
            return reference(columns[calls.index(call)])
        calls.append(call)
        columns.append(rewriting.fresh(name, call.type, nullable=not never_null(call.function)))
        return reference(columns[-1])

    expressions: list[Expression] = [reference(column) for column in group]
    for column, call in zip(node.output[len(group) :], node.calls, strict=True):
        if call.function == "avg":
            expressions.append(quotient(call, column_of))
        else:
            expressions.append(column_of(call, column.name))
    output = (*group, *columns)
    aggregate = replace(node, output=output, calls=tuple(calls))
    return Project(node.output, aggregate, tuple(expressions))


def quotient(call: AggregateCall, column_of: _ColumnOf) -> Expression:
    assert call.argument is not None
    argument = call.argument
    if argument.type.kind is Kind.REAL:
        argument = Cast(DOUBLE, argument)
    sum_call = replace(call, function="sum", argument=argument, type=_sum_type(argument))
    total = column_of(sum_call, "sum")
    count = column_of(replace(call, function="count", argument=argument, type=BIGINT), "count")
    divisor = Call(BIGINT, "nullif", (count, Literal(BIGINT, 0)))
    if call.type.is_float:
        return Call(call.type, "/", (_cast(total, DOUBLE), Cast(DOUBLE, divisor)))
    if call.type == INTERVAL:
        return Call(call.type, "/", (total, Cast(DOUBLE, divisor)))
    exact = total if total.type.kind is Kind.DECIMAL else _cast(total, _COUNT_AS_DECIMAL)
    return Call(call.type, "/", (exact, Cast(_COUNT_AS_DECIMAL, divisor)))


def _cast(expression: Expression, type_: SqlType) -> Expression:
    return expression if expression.type == type_ else Cast(type_, expression)


def _sum_type(argument: Expression) -> SqlType:
    signature = aggregate_function("sum").resolve((argument.type,))
    assert signature is not None, f"sum of {argument.type}"
    return signature.result


REWRITE_AVG = Rule("rewrite avg", (Aggregate,), _rewrite_avg)


def _drop_useless_distinct(node: Logical, _: Rewriting) -> Logical | None:
    """The smallest of distinct values, say, is the smallest of all."""
    if not isinstance(node, Aggregate):
        return None
    calls = tuple(
        replace(call, distinct=False) if aggregate_function(call.function).idempotent else call
        for call in node.calls
    )
    return None if calls == node.calls else replace(node, calls=calls)


DROP_USELESS_DISTINCT = Rule("drop useless distinct", (Aggregate,), _drop_useless_distinct)


def _split_distinct(node: Logical, rewriting: Rewriting) -> Logical | None:
    """``count(DISTINCT x) GROUP BY g`` is ``count(x) GROUP BY g`` over ``GROUP BY g, x``: both
    levels run in two phases. Other calls are carried along when they can be combined from parts.

    Several different DISTINCT arguments, FILTER, and counts beside DISTINCT stay as they are: one
    phase over raw rows computes them.
    """
    if not isinstance(node, Aggregate):
        return None
    distinct = [call for call in node.calls if call.distinct]
    if any(call.more or call.order for call in distinct):
        return None
    arguments = {call.argument for call in distinct}
    if len(arguments) != 1 or any(call.filter is not None for call in node.calls):
        return None
    others = [call for call in node.calls if not call.distinct]
    if not all(aggregate_function(call.function).idempotent for call in others):
        return None
    (argument,) = arguments
    assert argument is not None
    return _two_levels(node, argument, rewriting)


def _two_levels(node: Aggregate, argument: Expression, rewriting: Rewriting) -> Logical:
    group = node.output[: len(node.group)]
    below: Logical = node.input
    if isinstance(argument, ColumnRef):
        column = next(c for c in below.output if c.id == argument.column)
    else:
        column = rewriting.fresh("distinct", argument.type)
        own = tuple(reference(c) for c in below.output)
        below = Project((*below.output, column), below, (*own, argument))
    keys = node.group if column.id in node.group else (*node.group, column.id)
    inner_calls: list[AggregateCall] = []
    inner_columns: list[OutputColumn] = []
    outer_calls: list[AggregateCall] = []
    for call in node.calls:
        if call.distinct:
            outer_calls.append(replace(call, argument=reference(column), distinct=False))
            continue
        partial = rewriting.fresh(call.function, call.type)
        inner_calls.append(call)
        inner_columns.append(partial)
        outer_calls.append(replace(call, argument=reference(partial)))
    key_columns = group if column.id in node.group else (*group, column)
    inner = Aggregate((*key_columns, *inner_columns), below, keys, tuple(inner_calls))
    return replace(node, input=inner, calls=tuple(outer_calls))


SPLIT_DISTINCT = Rule("split distinct", (Aggregate,), _split_distinct)
