"""Output columns of logical operators: ids, names, nullability; and what plans use and produce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    columns_of,
)
from remuda.plan.functions import SCALAR_FUNCTIONS, NullRule
from remuda.plan.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Sort,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.windows import expressions_of as parts_of_call
from remuda.sql.context import Context


def is_nullable(expression: Expression, nullable: Mapping[ColumnId, bool]) -> bool:
    """Whether ``expression`` can be NULL; ``nullable`` tells it of the input columns."""
    match expression:
        case ColumnRef(column=column):
            return nullable.get(column, True)
        case Literal(value=value):
            return value is None
        case Cast(operand=operand):
            return is_nullable(operand, nullable)
        case InList(operand=operand, values=values):
            return any(is_nullable(e, nullable) for e in (operand, *values))
        case Case(branches=branches, otherwise=otherwise):
            return any(is_nullable(e, nullable) for e in (*(v for _, v in branches), otherwise))
        case Call(function=name, arguments=arguments):
            return _call_is_nullable(name, arguments, nullable)
        case _:
            return True


def _call_is_nullable(
    name: str, arguments: Sequence[Expression], nullable: Mapping[ColumnId, bool]
) -> bool:
    rule = SCALAR_FUNCTIONS[name].nulls
    if rule is NullRule.NEVER:
        return False
    if rule is NullRule.OWN and name not in ("and", "or"):
        every = name in ("coalesce", "greatest", "least")
        return all(is_nullable(e, nullable) for e in arguments) if every else True
    return any(is_nullable(e, nullable) for e in arguments)


def nullability(plan: Logical) -> dict[ColumnId, bool]:
    return {column.id: column.nullable for column in plan.output}


def project(
    context: Context, plan: Logical, names: Sequence[str], expressions: Sequence[Expression]
) -> Logical:
    """``plan`` projected; bare columns keep their ids (the first time), and a projection that
    changes nothing is left out."""
    nullable = nullability(plan)
    used: set[ColumnId] = set()
    output: list[OutputColumn] = []
    for name, expression in zip(names, expressions, strict=True):
        if isinstance(expression, ColumnRef) and expression.column not in used:
            column_id = expression.column
        else:
            column_id = context.new_id()
        used.add(column_id)
        output.append(
            OutputColumn(column_id, name, expression.type, is_nullable(expression, nullable))
        )
    if tuple(output) == plan.output:
        return plan
    return Project(tuple(output), plan, tuple(expressions))


def joined(kind: JoinKind, left: Logical, right: Logical, condition: Expression | None) -> Logical:
    """A join with its output columns; the padded side of an outer join becomes nullable."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return Join(left.output, kind, left, right, condition)
    left_output, right_output = left.output, right.output
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        left_output = _padded(left_output)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        right_output = _padded(right_output)
    return Join(left_output + right_output, kind, left, right, condition)


def _padded(output: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(c.id, c.name, c.type, nullable=True) for c in output)


def distinct(plan: Logical) -> Logical:
    return Aggregate(plan.output, plan, tuple(column.id for column in plan.output), ())


def one_row() -> Logical:
    """The input of a SELECT without FROM."""
    return Values((), ((),))


def expressions_of(plan: Logical) -> Iterator[Expression]:
    """The expressions in ``plan`` itself (not below it)."""
    match plan:
        case Project(expressions=expressions):
            yield from expressions
        case Filter(condition=condition):
            yield condition
        case Join(condition=condition):
            if condition is not None:
                yield condition
        case Aggregate(calls=calls):
            for call in calls:
                yield from (e for e in (call.argument, call.filter) if e is not None)
        case Window(calls=window_calls):
            for window_call in window_calls:
                yield from parts_of_call(window_call)
        case _:
            return


def free_columns(plan: Logical) -> set[ColumnId]:
    """Columns that ``plan`` uses and nobody in it produces: they belong to an enclosing query."""
    used: set[ColumnId] = set()
    produced: set[ColumnId] = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        for expression in expressions_of(node):
            used |= columns_of(expression)
        if isinstance(node, Aggregate):
            used |= set(node.group)
        if isinstance(node, Window):
            used |= set(node.partition) | {key.column for key in node.order}
        produced |= {column.id for column in node.output}
        pending += inputs_of(node)
    return used - produced


def at_most_one_row(plan: Logical) -> bool:
    match plan:
        case Aggregate(group=group):
            return not group
        case Values(rows=rows):
            return len(rows) <= 1
        case Sort(limit=Literal(value=limit)) if isinstance(limit, int) and limit <= 1:
            return True
        case Project(input=child) | Filter(input=child) | Sort(input=child) | Window(input=child):
            return at_most_one_row(child)
        case _:
            return False


def exactly_one_row(plan: Logical) -> bool:
    match plan:
        case Aggregate(group=group):
            return not group
        case Values(rows=rows):
            return len(rows) == 1
        case Project(input=child) | Window(input=child):
            return exactly_one_row(child)
        case _:
            return False
