"""Rules on window functions."""

from __future__ import annotations

from dataclasses import replace

from remuda.plan.expression import AggregateCall, ColumnRef, Expression, columns_of, conjuncts
from remuda.plan.logical import Filter, Logical, OutputColumn, Project, Window
from remuda.plan.windows import WindowCall
from remuda.planner.algebra import filtered, make_window, reference, window_results, with_inputs
from remuda.planner.rules.aggregates import quotient
from remuda.planner.rules.rule import Rewriting, Rule


def _push_filter_through_window(node: Logical, _: Rewriting) -> Logical | None:
    """A condition on PARTITION BY columns keeps or drops whole partitions, so the functions over
    the rest are the same. Any other condition would take rows out of partitions."""
    match node:
        case Filter(input=Window(partition=partition) as window, condition=condition):
            keys = set(partition)
            parts = conjuncts(condition)
            down = [part for part in parts if columns_of(part) and columns_of(part) <= keys]
            if not down:
                return None
            stay = [part for part in parts if part not in down]
            return filtered(with_inputs(window, (filtered(window.input, down),)), stay)
        case _:
            return None


PUSH_FILTER_THROUGH_WINDOW = Rule(
    "push filter through window", (Filter,), _push_filter_through_window
)


def _rewrite_window_avg(node: Logical, rewriting: Rewriting) -> Logical | None:
    """``avg(x) OVER w`` is ``sum(x) OVER w / count(x) OVER w``, as for aggregates."""
    if not isinstance(node, Window) or all(call.function != "avg" for call in node.calls):
        return None
    calls: list[WindowCall] = []
    results: list[OutputColumn] = []

    def column_of(call: WindowCall, name: str) -> ColumnRef:
        if call in calls:
            return reference(results[calls.index(call)])
        calls.append(call)
        results.append(rewriting.fresh(name, call.type, nullable=call.function != "count"))
        return reference(results[-1])

    expressions: list[Expression] = [reference(column) for column in node.input.output]
    for column, call in zip(window_results(node), node.calls, strict=True):
        if call.function == "avg":
            (argument,) = call.arguments
            aggregate = AggregateCall(call.function, argument, call.type)

            def part(found: AggregateCall, name: str, old: WindowCall = call) -> ColumnRef:
                assert found.argument is not None
                new = replace(
                    old, function=found.function, arguments=(found.argument,), type=found.type
                )
                return column_of(new, name)

            expressions.append(quotient(aggregate, part))
        else:
            expressions.append(column_of(call, column.name))
    window = make_window(node.input, node.partition, node.order, tuple(calls), tuple(results))
    return Project(node.output, window, tuple(expressions))


REWRITE_WINDOW_AVG = Rule("rewrite window avg", (Window,), _rewrite_window_avg)
