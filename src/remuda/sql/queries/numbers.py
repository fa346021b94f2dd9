"""Calls of sequences taken out of a plan (``plan.sequence_calls``).

An operator with such calls reads supplied rows: the initiator computes the rows below it and the
arguments of the calls, makes the calls (``sql.queries.number_stages``), and supplies rows and
results. So each call is made once for each row, however the plan is divided and repeated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from remuda.datatypes.sql import BOOLEAN, SqlType
from remuda.errors import NotSupported
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    Subquery,
    SubqueryKind,
    columns_of,
    conjunction,
    conjuncts,
    transform,
    walk,
)
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Recursion,
    Sort,
    Supplied,
    Unfold,
    Values,
    Window,
)
from remuda.plan.rewriting import rewritten
from remuda.plan.sequence_calls import has_calls, is_call
from remuda.plan.uses import expressions_of, operators_of
from remuda.plan.windows import WindowCall
from remuda.plan.windows import rewritten as parts_rewritten
from remuda.sql.queries.number_stages import RESULT, Stage, over
from remuda.sql.queries.queries import rows_plan
from remuda.sql.scope.context import Context
from remuda.sql.scope.output import project

Parts: TypeAlias = tuple[Expression, ...]


def numbered(context: Context, plan: Logical) -> Logical:
    """``plan`` without calls of sequences. Raises NotSupported for those in conditions of outer
    joins, in LIMIT, in recursive terms and in subqueries with FROM that refer to columns around
    them, and the errors of ``sequence_named``."""
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


class _Lifting:
    def __init__(self, context: Context) -> None:
        self._context = context

    def plan(self, plan: Logical) -> Logical:
        flat = rewritten(plan, lambda part: part, _opened)
        found: Logical = rewritten(flat, self._expression, self._part)
        return found

    def _expression(self, part: Expression) -> Expression:
        if not isinstance(part, Subquery):
            return part
        value = _value_of(part)
        if value is not None:
            return transform(value, self._expression)
        if part.condition is not None and has_calls(part.condition):
            part = self._with_parameters(part, part.condition)
        inner = self.plan(part.plan)
        return part if inner is part.plan else dataclasses.replace(part, plan=inner)

    def _with_parameters(self, part: Subquery, condition: Expression) -> Subquery:
        """The calls in the condition are made once for each row around the subquery."""
        parameters, arguments = list(part.parameters), list(part.arguments)
        given = dict(zip(parameters, arguments, strict=True))
        inner = part.plan.column_ids

        def rewrite(each: Expression) -> Expression:
            if not is_call(each) or columns_of(each) & inner:
                return each
            parameters.append(self._context.new_id())
            arguments.append(over(each, given))
            return ColumnRef(each.type, parameters[-1], RESULT)

        condition = transform(condition, rewrite)
        if has_calls(condition):
            raise NotSupported(
                "calls of sequences cannot be made for the rows of a subquery that are compared",
                hint="Write the call into the list of results of the subquery.",
            )
        return dataclasses.replace(
            part, parameters=tuple(parameters), arguments=tuple(arguments), condition=condition
        )

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
        if not any(map(has_calls, expressions_of(node))):
            return node
        match node:
            case Project():
                below, expressions, _ = self._made(node.input, node.expressions)
                return Project(node.output, below, expressions)
            case Filter():
                return self._filter(node)
            case Aggregate() | Window() | Unfold():
                return self._computed_before(node)
        raise _refused(node)

    def _made(
        self, below: Logical, wanted: Sequence[Expression], others: Sequence[Expression] = ()
    ) -> tuple[Logical, Parts, Parts]:
        """Rows like those of ``below`` with numbers, and the expressions over them: the ``wanted``
        ones without calls, and ``others`` as they are."""
        while any(map(has_calls, wanted)):
            stage = Stage(self._context, below)
            lifted = [stage.lifted(each, None) for each in wanted]
            below, renamed = stage.supplied([*lifted, *others])
            wanted = [over(each, renamed) for each in lifted]
            others = [over(each, renamed) for each in others]
        return below, tuple(wanted), tuple(others)

    def _filter(self, node: Filter) -> Logical:
        """Conditions without calls choose first, then those with calls in their order: each call is
        made for the rows that have passed so far."""
        parts = conjuncts(node.condition)
        plain = conjunction(tuple(part for part in parts if not has_calls(part)))
        below = node.input
        if plain is not None:
            below = Filter(below.output, below, plain)
        rest = tuple(part for part in parts if has_calls(part))
        kept: Parts = _references(below.output)
        while rest:
            later = len(rest) - 1
            below, (condition,), others = self._made(below, rest[:1], (*rest[1:], *kept))
            below = Filter(below.output, below, condition)
            rest, kept = others[:later], others[later:]
        return Project(node.output, below, kept)

    def _computed_before(self, node: Aggregate | Window | Unfold) -> Logical:
        """Operands with calls become columns of the rows below."""
        operands = _Operands(self._context)
        if isinstance(node, Aggregate):
            calls = tuple(operands.of_aggregate(call) for call in node.calls)
            return dataclasses.replace(node, input=self._with(node.input, operands), calls=calls)
        width = len(node.input.output)
        if isinstance(node, Window):
            made: Any = tuple(operands.of_window(call) for call in node.calls)
        else:
            made = tuple(operands.of_set(call) for call in node.calls)
        below = self._with(node.input, operands)
        output = (*below.output, *node.output[width:])
        above = dataclasses.replace(node, output=output, input=below, calls=made)
        kept = _references(node.output)
        return Project(node.output, above, kept)

    def _with(self, below: Logical, operands: _Operands) -> Logical:
        """Filters of calls are known before their arguments, which are made where they hold."""
        for columns in (operands.filters, operands.arguments):
            if columns:
                kept = _references(below.output)
                output = (*below.output, *(column for column, _ in columns))
                parts = (*kept, *(expression for _, expression in columns))
                found, expressions, _ = self._made(below, parts)
                below = Project(output, found, expressions)
        return below


class _Operands:
    """Columns that stand for operands with calls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.filters: list[tuple[OutputColumn, Expression]] = []
        self.arguments: list[tuple[OutputColumn, Expression]] = []

    def _column(
        self, into: list[tuple[OutputColumn, Expression]], expression: Expression
    ) -> Expression:
        if not has_calls(expression):
            return expression
        new = self._context.new_id()
        into.append((OutputColumn(new, RESULT, expression.type, nullable=True), expression))
        return ColumnRef(expression.type, new, RESULT)

    def _argument(self, expression: Expression, where: Expression | None) -> Expression:
        if where is not None and has_calls(expression):
            nothing = Literal(expression.type, None)
            expression = Case(expression.type, ((where, expression),), nothing)
        return self._column(self.arguments, expression)

    def of_aggregate(self, call: AggregateCall) -> AggregateCall:
        where = None if call.filter is None else self._column(self.filters, call.filter)
        found = dataclasses.replace(call, filter=None)
        found = found.rewritten(lambda each: self._argument(each, where))
        return dataclasses.replace(found, filter=where)

    def of_window(self, call: WindowCall) -> WindowCall:
        where = None if call.filter is None else self._column(self.filters, call.filter)
        found = dataclasses.replace(call, filter=None)
        found = parts_rewritten(found, lambda each: self._argument(each, where))
        return dataclasses.replace(found, filter=where)

    def of_set(self, call: SetCall) -> SetCall:
        arguments = tuple(self._argument(each, None) for each in call.arguments)
        return dataclasses.replace(call, arguments=arguments)


def _opened(part: Any) -> Any:
    """A part of a plan, whose own parts were opened: calls stand in projections and filters where
    they can, and conditions without calls below these, so that calls are made for fewer rows."""
    match part:
        case DependentJoin(kind=JoinKind.INNER):
            return _lateral(part)
        case Join(kind=JoinKind.INNER, condition=Expression() as condition) if has_calls(condition):
            product = dataclasses.replace(part, condition=None)
            return _sunk(Filter(part.output, product, condition))
        case Filter():
            return _sunk(part)
        case _:
            return part


def _lateral(node: DependentJoin) -> Logical:
    """The calls of the right side are made for the rows of both sides."""
    left, right = node.left, node.right
    if not isinstance(right, Project | Filter) or not _takes(right):
        return node
    inner = right.input
    above: Logical = _lateral(
        DependentJoin((*left.output, *inner.output), node.kind, left, inner, None)
    )
    if isinstance(right, Filter):
        above = _sunk(Filter(above.output, above, right.condition))
    else:
        expressions = (*_references(left.output), *right.expressions)
        above = Project((*left.output, *right.output), above, expressions)
    if node.condition is not None:
        above = _sunk(Filter(above.output, above, node.condition))
    return above


def _sunk(node: Filter) -> Logical:
    """Conditions without calls go below operators with calls."""
    below, rest = node.input, conjuncts(node.condition)
    match below:
        case Filter(output=output):
            below, rest = _moved(below, "input", rest, _by_id(output))
        case Project(output=output, expressions=expressions):
            pairs = zip(output, expressions, strict=True)
            bare = {column.id: each for column, each in pairs if isinstance(each, ColumnRef)}
            below, rest = _moved(below, "input", rest, bare)
        case Join(kind=JoinKind.INNER | JoinKind.LEFT as kind, left=left, right=right):
            if _takes(left):
                below, rest = _moved(below, "left", rest, _by_id(left.output))
            if kind is JoinKind.INNER and _takes(right):
                below, rest = _moved(below, "right", rest, _by_id(right.output))
        case _:
            return node
    condition = conjunction(rest)
    return below if condition is None else Filter(node.output, below, condition)


def _moved(
    node: Logical, side: str, parts: Parts, passed: Mapping[ColumnId, ColumnRef]
) -> tuple[Logical, Parts]:
    """``node`` with the conditions that hold for one of its inputs below it, where its columns
    are called otherwise; and the others."""
    own = node.column_ids
    moved = [p for p in parts if not has_calls(p) and columns_of(p) & own <= passed.keys()]
    condition = conjunction(tuple(over(part, passed) for part in moved))
    if condition is None:
        return node, parts
    inner: Logical = getattr(node, side)
    changes: dict[str, Any] = {side: _sunk(Filter(inner.output, inner, condition))}
    return dataclasses.replace(node, **changes), tuple(p for p in parts if p not in moved)


def _takes(plan: Logical) -> bool:
    return any(has_calls(e) for node in operators_of(plan) for e in expressions_of(node))


def _references(columns: Iterable[OutputColumn]) -> tuple[ColumnRef, ...]:
    return tuple(ColumnRef(column.type, column.id, column.name) for column in columns)


def _by_id(columns: Iterable[OutputColumn]) -> dict[ColumnId, ColumnRef]:
    return {reference.column: reference for reference in _references(columns)}


def _value_of(part: Subquery) -> Expression | None:
    """The value of a scalar subquery without FROM that refers to columns around it and calls
    sequences; None for every other one."""
    if part.kind is not SubqueryKind.SCALAR or not part.parameters:
        return None
    match part.plan:
        case Project(input=Values(rows=((),)), expressions=expressions):
            condition: Expression | None = None
        case Project(
            input=Filter(input=Values(rows=((),)), condition=condition), expressions=expressions
        ):
            pass
        case _:
            return None
    value = expressions[part.column]
    if condition is not None:
        value = Case(value.type, ((condition, value),), Literal(value.type, None))
    if not has_calls(value) or any(map(has_calls, part.arguments)):
        return None
    return over(value, dict(zip(part.parameters, part.arguments, strict=True)))


def _refused(node: Logical) -> NotSupported:
    found = (part for each in expressions_of(node) for part in walk(each) if is_call(part))
    call = next(found)
    assert isinstance(call, Call)
    return NotSupported(
        f"{call.function} cannot stand {_places(node)}",
        hint="Take the number in a statement of its own.",
    )


def _places(node: Logical) -> str:
    match node:
        case Sort():
            return "in LIMIT and OFFSET"
        case Join() | DependentJoin():
            return "in the condition of an outer join"
        case _:
            return "here"


def _takes_numbers(plan: Logical) -> bool:
    return any(
        isinstance(node, Supplied) and node.definition is not None and bool(node.definition.calls)
        for node in operators_of(plan)
    )


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
