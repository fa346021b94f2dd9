"""A plan a second time in the same statement: the same rows under columns of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from remuda.plan.expression import ColumnId, Expression, Subquery, SubqueryKind, transform
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Expand,
    Join,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    SetOperation,
    Sort,
    Unfold,
    Union,
    Window,
    inputs_of,
)
from remuda.planner.algebra import LEFT_ONLY, make_join, rename, rename_keys, with_inputs
from remuda.planner.rules.expressions import map_expressions
from remuda.planner.rules.rule import Rewriting

Names = dict[ColumnId, OutputColumn]


def fresh_copy(node: Logical, rewriting: Rewriting) -> tuple[Logical, Names]:
    """The copy, and the new columns of the old ids (those that are still visible on top)."""
    return _Copier(rewriting).copy(node, {})


def rewritten_plan(node: Logical, rewrite: Callable[[Expression], Expression]) -> Logical:
    """``node`` with ``rewrite`` applied to every expression of it and below it."""
    inputs = inputs_of(node)
    new = tuple(rewritten_plan(child, rewrite) for child in inputs)
    if any(n is not o for n, o in zip(new, inputs, strict=True)):
        node = with_inputs(node, new)
    return map_expressions(node, rewrite) or node


class _Copier:
    def __init__(self, rewriting: Rewriting) -> None:
        self.rewriting = rewriting

    def copy(self, node: Logical, outer: Names) -> tuple[Logical, Names]:
        """``outer``: new columns of ids that come from around ``node`` (LATERAL)."""
        if isinstance(node, DependentJoin):
            left, left_names = self.copy(node.left, outer)
            right, right_names = self.copy(node.right, {**outer, **left_names})
            inputs: tuple[Logical, ...] = (left, right)
            names = {**left_names, **right_names}
        else:
            copies = [self.copy(child, outer) for child in inputs_of(node)]
            inputs = tuple(child for child, _ in copies)
            names = {old: new for _, below in copies for old, new in below.items()}
        visible = {**outer, **names}
        renamed = map_expressions(node, lambda e: self._renamed(e, visible)) or node
        return self._rebuilt(renamed, inputs, names)

    def _rebuilt(
        self, node: Logical, inputs: tuple[Logical, ...], names: Names
    ) -> tuple[Logical, Names]:
        def ids(old: tuple[ColumnId, ...]) -> tuple[ColumnId, ...]:
            return tuple(names[column].id for column in old)

        match node:
            case Join(kind=kind, condition=condition):
                made: Logical = make_join(kind, inputs[0], inputs[1], condition)
                if kind in LEFT_ONLY:
                    names = {old: new for old, new in names.items() if new.id in made.column_ids}
                return made, _current(names, made)
            case Sort(keys=keys):
                made = replace(
                    node, output=inputs[0].output, input=inputs[0], keys=rename_keys(keys, names)
                )
                return made, names
            case Project() | Union() | SetOperation():
                names = {}
        output = tuple(self._column(column, names) for column in node.output)
        names = {**names, **{o.id: n for o, n in zip(node.output, output, strict=True)}}
        match node:
            case Aggregate(group=group):
                made = replace(node, output=output, input=inputs[0], group=ids(group))
            case Window(partition=partition, order=order):
                made = replace(
                    node,
                    output=output,
                    input=inputs[0],
                    partition=ids(partition),
                    order=rename_keys(order, names),
                )
            case Expand(sources=sources):
                made = replace(node, output=output, input=inputs[0], sources=ids(sources))
            case Project() | Unfold():
                made = replace(node, output=output, input=inputs[0])
            case MarkJoin() | DependentJoin():
                made = replace(node, output=output, left=inputs[0], right=inputs[1])
            case Union() | SetOperation():
                made = replace(node, output=output, inputs=inputs)
            case _ if inputs:
                made = with_inputs(node, inputs)
                return made, _current(names, made)
            case _:
                made = replace(node, output=output)
        return made, _current(names, made)

    def _column(self, column: OutputColumn, names: Names) -> OutputColumn:
        """A column that comes from below, or a new one."""
        known = names.get(column.id)
        if known is not None:
            return replace(known, nullable=column.nullable)
        return self.rewriting.fresh(column.name, column.type, column.nullable)

    def _renamed(self, expression: Expression, names: Names) -> Expression:
        def rewrite(part: Expression) -> Expression:
            if not isinstance(part, Subquery):
                return part
            plan, inner = self.copy(part.plan, {})
            condition = part.condition
            if condition is not None:
                condition = self._renamed(condition, inner)
            assert part.kind is not SubqueryKind.ANY or condition is not None
            return replace(part, plan=plan, condition=condition)

        return transform(rename(expression, names), rewrite)


def _current(names: Names, node: Logical) -> Names:
    """``names`` as ``node`` puts the columns out (an outer join makes them nullable)."""
    output = {column.id: column for column in node.output}
    return {old: output.get(new.id, new) for old, new in names.items()}
