"""The calls of sequences that are made at one place of a plan, as rows that the initiator supplies
(``sql.queries.numbers``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.errors import NotSupported
from remuda.plan.expression import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    children,
    columns_of,
    transform,
    with_children,
)
from remuda.plan.logical import Logical, OutputColumn, Recursion, Supplied
from remuda.plan.sequence_calls import LASTVAL, SequenceCall, has_calls, is_call
from remuda.sql.expressions.functions.sequences import sequence_named
from remuda.sql.scope.context import Context
from remuda.sql.scope.output import free_columns, project
from remuda.sql.scope.resolution import KEPT_PATH

RESULT: Final = "number"


def over(expression: Expression, values: Mapping[ColumnId, Expression]) -> Expression:
    """``expression`` with ``values`` in place of columns."""

    def rewrite(part: Expression) -> Expression:
        return values.get(part.column, part) if isinstance(part, ColumnRef) else part

    return transform(expression, rewrite)


class Stage:
    """The innermost calls of expressions over the rows of ``below``."""

    def __init__(self, context: Context, below: Logical) -> None:
        self._context = context
        self._input = below
        self._arguments: list[Expression] = []
        self._calls: list[SequenceCall] = []
        self._results: list[OutputColumn] = []

    def lifted(self, expression: Expression, guard: Expression | None) -> Expression:
        """``expression`` with columns in place of its innermost calls, which are made where
        ``guard`` is true (None: always)."""
        if isinstance(expression, Case):
            return self._case(expression, guard)
        if isinstance(expression, Call) and expression.function == "coalesce":
            return self._coalesce(expression, guard)
        if isinstance(expression, Call) and expression.function in ("and", "or"):
            return self._logic(expression, guard)
        parts = children(expression)
        if any(map(has_calls, parts)):
            return with_children(expression, tuple(self.lifted(part, guard) for part in parts))
        if isinstance(expression, Call) and is_call(expression):
            return self._result(expression, guard)
        return expression

    def _case(self, case: Case, guard: Expression | None) -> Expression:
        found: list[tuple[Expression, Expression]] = []
        for place, (condition, value) in enumerate(case.branches):
            if has_calls(condition):  # the values follow when the condition is known
                found.append((self.lifted(condition, guard), value))
                found += case.branches[place + 1 :]
                return dataclasses.replace(case, branches=tuple(found))
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

    def _logic(self, call: Call, guard: Expression | None) -> Expression:
        """AND ends at an operand that is false, OR at one that is true."""
        found: list[Expression] = []
        for place, argument in enumerate(call.arguments):
            found.append(self.lifted(argument, guard))
            if has_calls(argument):
                found += call.arguments[place + 1 :]  # they follow when this one is known
                break
            on = _not_true(argument if call.function == "or" else _is_false(argument))
            guard = _both(guard, on)
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
        column = OutputColumn(self._context.new_id(), RESULT, BIGINT, nullable=True)
        self._results.append(column)
        return ColumnRef(BIGINT, column.id, RESULT)

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


def _is_false(condition: Expression) -> Expression:
    return Call(BOOLEAN, "not", (condition,))
