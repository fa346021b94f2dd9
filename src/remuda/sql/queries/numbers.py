"""Calls of sequences taken out of a plan (``plan.sequence_calls``).

A projection with such calls becomes a projection over supplied rows: the initiator computes the
rows below it and the arguments of the calls, makes the calls, and supplies rows and results. So
each call is made once for each row, however the plan is divided and repeated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from remuda.datatypes.sql import BIGINT, BOOLEAN, SqlType
from remuda.errors import NotSupported
from remuda.plan.expression import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    Subquery,
    children,
    columns_of,
    transform,
    walk,
    with_children,
)
from remuda.plan.logical import (
    Logical,
    OutputColumn,
    Project,
    Recursion,
    Sort,
    Supplied,
)
from remuda.plan.rewriting import rewritten
from remuda.plan.sequence_calls import LASTVAL, SEQUENCE_FUNCTIONS, SequenceCall
from remuda.plan.uses import expressions_of, operators_of
from remuda.sql.expressions.sequence_functions import sequence_named
from remuda.sql.queries.queries import rows_plan
from remuda.sql.scope.context import Context
from remuda.sql.scope.output import free_columns, project
from remuda.sql.scope.resolution import KEPT_PATH

_RESULT = "number"


def numbered(context: Context, plan: Logical) -> Logical:
    """``plan`` without calls of sequences. Raises NotSupported for those that stand elsewhere than
    in a list of results, and what ``sequence_named`` raises."""
    return _Lifting(context).plan(plan)


def numbered_rows(
    context: Context,
    names: Sequence[str],
    types: Sequence[SqlType],
    rows: Sequence[Sequence[Expression]],
) -> Logical:
    """VALUES in which some cells call sequences: one projection over all rows, if the calls of a
    column are the same in all of its cells that have any."""
    shared: dict[int, Expression] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if has_calls(cell) and shared.setdefault(place, cell) != cell:
                return rows_plan(context, names, types, [tuple(each) for each in rows])
    if not shared:
        return rows_plan(context, names, types, [tuple(row) for row in rows])
    plain: list[tuple[Expression, ...]] = []
    for row in rows:
        cells = [
            Literal(types[place], None) if has_calls(cell) else cell
            for place, cell in enumerate(row)
        ]
        marks = [Literal(BOOLEAN, has_calls(row[place])) for place in shared]
        plain.append((*cells, *marks))
    all_names = [*names, *(names[place] for place in shared)]
    below = rows_plan(context, all_names, [*types, *(BOOLEAN for _ in shared)], plain)
    found: list[Expression] = []
    marked = dict(zip(shared, below.output[len(names) :], strict=True))
    for place, column in enumerate(below.output[: len(names)]):
        value: Expression = ColumnRef(column.type, column.id, column.name)
        if place in shared:
            mark = ColumnRef(BOOLEAN, marked[place].id, marked[place].name)
            everywhere = all(has_calls(row[place]) for row in rows)
            given = shared[place]
            value = given if everywhere else Case(types[place], ((mark, given),), value)
        found.append(value)
    return project(context, below, names, found)


def has_calls(expression: Expression) -> bool:
    return any(_is_call(part) for part in walk(expression))


def _is_call(part: Expression) -> bool:
    return isinstance(part, Call) and part.function in SEQUENCE_FUNCTIONS


class _Lifting:
    def __init__(self, context: Context) -> None:
        self._context = context

    def plan(self, plan: Logical) -> Logical:
        found: Logical = rewritten(plan, self._expression, self._part)
        return found

    def _expression(self, part: Expression) -> Expression:
        if not isinstance(part, Subquery):
            return part
        if part.condition is not None and has_calls(part.condition):
            raise NotSupported(
                "calls of sequences cannot be compared with the rows of a subquery",
                hint="Take the number in a statement of its own.",
            )
        inner = self.plan(part.plan)
        return part if inner is part.plan else dataclasses.replace(part, plan=inner)

    def _part(self, node: Any) -> Any:
        """A part of a plan, whose own parts have no calls any more."""
        if isinstance(node, Recursion) and node.step is not None and _takes_numbers(node.step):
            raise NotSupported(
                "the recursive term of WITH RECURSIVE cannot take numbers",
                hint="Take the numbers in the query that reads the recursive one.",
            )
        if not isinstance(node, Logical):
            return node
        if isinstance(node, Sort) and isinstance(node.input, Project):
            node = _cut_before(node, node.input)
        if isinstance(node, Project):
            return self._project(node)
        if not isinstance(node, Sort):
            self._refuse(node)
        return node

    def _refuse(self, node: Logical) -> None:
        calls = (part for each in expressions_of(node) for part in walk(each) if _is_call(part))
        for part in calls:
            assert isinstance(part, Call)
            raise NotSupported(
                f"{part.function} cannot stand here",
                hint="Calls of sequences stand in lists of results: of SELECT, VALUES, SET and "
                "RETURNING.",
            )

    def _project(self, node: Project) -> Logical:
        while any(map(has_calls, node.expressions)):
            stage = _Stage(self._context, node.input)
            lifted = [stage.lifted(each, None) for each in node.expressions]
            below, renamed = stage.supplied(lifted)
            expressions = tuple(_renamed(each, renamed) for each in lifted)
            node = Project(node.output, below, expressions)
        return node


def _takes_numbers(plan: Logical) -> bool:
    return any(
        isinstance(node, Supplied) and node.definition is not None and bool(node.definition.calls)
        for node in operators_of(plan)
    )


class _Stage:
    """The innermost calls of one projection over ``input``."""

    def __init__(self, context: Context, below: Logical) -> None:
        self._context = context
        self._input = below
        self._arguments: list[Expression] = []
        self._calls: list[SequenceCall] = []
        self._results: list[OutputColumn] = []
        self._first = 0

    def lifted(self, expression: Expression, guard: Expression | None) -> Expression:
        """``expression`` with columns in place of its innermost calls, which are made where
        ``guard`` is true (None: always)."""
        if isinstance(expression, Case):
            return self._case(expression, guard)
        if isinstance(expression, Call) and expression.function == "coalesce":
            return self._coalesce(expression, guard)
        parts = children(expression)
        if any(map(has_calls, parts)):
            return with_children(expression, tuple(self.lifted(part, guard) for part in parts))
        if isinstance(expression, Call) and expression.function in SEQUENCE_FUNCTIONS:
            return self._result(expression, guard)
        return expression

    def _case(self, case: Case, guard: Expression | None) -> Expression:
        conditions = [condition for condition, _ in case.branches]
        if any(map(has_calls, conditions)):  # the values follow when the conditions are known
            branches = tuple((self.lifted(c, guard), value) for c, value in case.branches)
            return dataclasses.replace(case, branches=branches)
        found: list[tuple[Expression, Expression]] = []
        for condition, value in case.branches:
            chosen = _both(guard, condition)
            found.append((condition, self.lifted(value, chosen)))
            guard = _both(guard, _not_true(condition))
        return dataclasses.replace(
            case, branches=tuple(found), otherwise=self.lifted(case.otherwise, guard)
        )

    def _coalesce(self, call: Call, guard: Expression | None) -> Expression:
        found: list[Expression] = []
        for place, argument in enumerate(call.arguments):
            found.append(self.lifted(argument, guard))
            if has_calls(argument):
                found += call.arguments[place + 1 :]  # they follow when this one is known
                break
            guard = _both(guard, Call(BOOLEAN, "is_null", (argument,)))
        return dataclasses.replace(call, arguments=tuple(found))

    def _result(self, call: Call, guard: Expression | None) -> Expression:
        map_id, name = 0, None
        if call.function != LASTVAL:
            first = call.arguments[0]
            if isinstance(first, Literal) and isinstance(first.value, str):
                map_id = self._sequence(first.value)
            else:
                name = self._place(first)
        value, called = call.arguments[1:] or (None, None)
        self._calls.append(
            SequenceCall(
                call.function,
                map_id,
                name,
                None if value is None else self._place(value),
                None if called is None else self._place(called),
                None if guard is None else self._place(guard),
            )
        )
        column = OutputColumn(self._context.new_id(), _RESULT, BIGINT, nullable=True)
        self._results.append(column)
        return ColumnRef(BIGINT, column.id, _RESULT)

    def _sequence(self, name: str) -> int:
        """Names in bound calls are read along ``KEPT_PATH``, wherever they come from."""
        context, path = self._context, self._context.path
        context.path = KEPT_PATH
        try:
            return sequence_named(context, name, None).map_id
        finally:
            context.path = path

    def _place(self, expression: Expression) -> int:
        self._arguments.append(expression)
        return len(self._arguments) - 1

    def supplied(self, expressions: Sequence[Expression]) -> tuple[Supplied, dict[int, ColumnRef]]:
        """The rows with the results, and the columns that stand for those of the input."""
        context = self._context
        used = frozenset[ColumnId]().union(*map(columns_of, expressions))
        kept = [column for column in self._input.output if column.id in used]
        names = [column.name for column in kept] + [""] * len(self._arguments)
        references: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in kept]
        base = project(context, self._input, names, [*references, *self._arguments])
        if free_columns(base):
            raise NotSupported(
                "numbers of sequences in a subquery that refers to columns of the query around it "
                "are not supported",
                hint="Write the call into the list of results of the outer query.",
            )
        calls = tuple(_moved(call, len(kept)) for call in self._calls)
        definition = Recursion("numbers of sequences", "", base, None, distinct=False, calls=calls)
        new = [dataclasses.replace(column, id=context.new_id()) for column in kept]
        ends = len(base.output)
        node = Supplied(
            (*new, *self._results),
            context.unique("numbers of sequences"),
            (*range(len(kept)), *range(ends, ends + len(calls))),
            definition=definition,
        )
        return node, {
            old.id: ColumnRef(column.type, column.id, column.name)
            for old, column in zip(kept, new, strict=True)
        }


def _moved(call: SequenceCall, by: int) -> SequenceCall:
    def place(of: int | None) -> int | None:
        return None if of is None else of + by

    return dataclasses.replace(
        call,
        name=place(call.name),
        value=place(call.value),
        is_called=place(call.is_called),
        guard=place(call.guard),
    )


def _both(guard: Expression | None, condition: Expression) -> Expression:
    return condition if guard is None else Call(BOOLEAN, "and", (guard, condition))


def _not_true(condition: Expression) -> Expression:
    no, yes = Literal(BOOLEAN, False), Literal(BOOLEAN, True)
    return Case(BOOLEAN, ((condition, no),), yes)


def _renamed(expression: Expression, renamed: dict[int, ColumnRef]) -> Expression:
    def rewrite(part: Expression) -> Expression:
        return renamed.get(part.column, part) if isinstance(part, ColumnRef) else part

    return transform(expression, rewrite)


def _cut_before(node: Sort, below: Project) -> Logical:
    """Rows that LIMIT cuts off take no numbers: the projection comes after it, if the order does
    not need the numbers."""
    if (node.limit is None and node.offset is None) or node.output != below.output:
        return node
    passed = {
        column.id
        for column, expression in zip(below.output, below.expressions, strict=True)
        if isinstance(expression, ColumnRef) and expression.column == column.id
    }
    if not any(map(has_calls, below.expressions)) or any(
        key.column not in passed for key in node.keys
    ):
        return node
    rows = dataclasses.replace(node, output=below.input.output, input=below.input)
    return dataclasses.replace(below, input=rows)
