"""Building blocks of rewriting: relational nodes rebuilt around new inputs, conditions, columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import (
    AggregateCall,
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    conjunction,
    transform,
    walk,
)
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    SetOperation,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.uses import operators_of, subqueries_of
from remuda.plan.windows import WindowCall, rewritten

TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)

LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


def columns(node: Logical) -> frozenset[ColumnId]:
    return node.column_ids


def nodes_of(node: Logical) -> Iterator[Logical]:
    yield node
    for child in inputs_of(node):
        yield from nodes_of(child)


def highest_column(node: Logical) -> ColumnId:
    """The highest id in use, those in subqueries and correlated recursive CTEs included."""
    operators = list(operators_of(node))
    highest = max((c.id for n in operators for c in n.output), default=0)
    inside = [
        max(highest_column(term), *leaf.parameters)
        for leaf in operators
        if isinstance(leaf, Supplied) and leaf.parameters and leaf.definition is not None
        for term in (leaf.definition.base, leaf.definition.step)
        if term is not None
    ]
    of_subqueries = (p for n in operators for s in subqueries_of(n) for p in s.parameters)
    return max([highest, *inside, *of_subqueries])


def with_inputs(node: Logical, inputs: tuple[Logical, ...]) -> Logical:
    """``node`` over other inputs; output columns that are the inputs' own follow them."""
    match node:
        case Filter(condition=condition):
            return make_filter(inputs[0], condition)
        case Sort(keys=keys, limit=limit, offset=offset):
            return Sort(inputs[0].output, inputs[0], keys, limit, offset)
        case Join(kind=kind, condition=condition):
            return make_join(kind, inputs[0], inputs[1], condition)
        case MarkJoin(guard=guard, condition=condition):
            return make_mark_join(inputs[0], inputs[1], guard, condition, node.mark)
        case DependentJoin():
            return replace(node, left=inputs[0], right=inputs[1])
        case Project() | Aggregate():
            return replace(node, input=inputs[0])
        case Expand():
            return make_expand(node, inputs[0])
        case Unfold():
            return make_unfold(node, inputs[0])
        case Window(partition=partition, order=order, calls=calls):
            return make_window(inputs[0], partition, order, calls, window_results(node))
        case Union(inputs=old) | SetOperation(inputs=old):
            pairs = zip(inputs, old, strict=True)
            return replace(node, inputs=tuple(in_order(new, was.output) for new, was in pairs))
        case _:
            return node


def make_filter(node: Logical, condition: Expression) -> Filter:
    return Filter(node.output, node, condition)


def filtered(node: Logical, parts: Iterable[Expression]) -> Logical:
    """``node`` below a Filter of ``parts``, or itself when there are none."""
    condition = conjunction(tuple(parts))
    return node if condition is None else make_filter(node, condition)


def make_join(kind: JoinKind, left: Logical, right: Logical, condition: Expression | None) -> Join:
    output = left.output
    if kind not in LEFT_ONLY:
        left_columns, right_columns = left.output, right.output
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            left_columns = tuple(replace(c, nullable=True) for c in left_columns)
        if kind in (JoinKind.LEFT, JoinKind.FULL):
            right_columns = tuple(replace(c, nullable=True) for c in right_columns)
        output = left_columns + right_columns
    return Join(output, kind, left, right, condition)


def make_mark_join(
    left: Logical,
    right: Logical,
    guard: Expression | None,
    condition: Expression | None,
    mark: OutputColumn,
) -> MarkJoin:
    return MarkJoin((*left.output, mark), left, right, guard, condition)


def make_project(node: Logical, output: tuple[OutputColumn, ...]) -> Project:
    """``node`` reduced to, or reordered as, ``output`` (columns of ``node``)."""
    return Project(output, node, tuple(reference(column) for column in output))


def make_window(
    node: Logical,
    partition: tuple[ColumnId, ...],
    order: tuple[SortKey, ...],
    calls: tuple[WindowCall, ...],
    results: tuple[OutputColumn, ...],
) -> Window:
    return Window((*node.output, *results), node, partition, order, calls)


def make_expand(expand: Expand, node: Logical) -> Expand:
    """``expand`` over another input that has its sources."""
    return replace(expand, input=node, output=(*node.output, *expand_results(expand)))


def expand_results(expand: Expand) -> tuple[OutputColumn, ...]:
    """The copies, then the number of the set."""
    return expand.output[len(expand.output) - len(expand.sources) - 1 :]


def make_unfold(unfold: Unfold, node: Logical) -> Unfold:
    """``unfold`` over another input that has the columns of its calls."""
    return replace(unfold, input=node, output=(*node.output, *unfold_results(unfold)))


def unfold_results(unfold: Unfold) -> tuple[OutputColumn, ...]:
    """The columns of the calls, and the ordinality."""
    results = sum(len(call.types) for call in unfold.calls) + unfold.ordinality
    return unfold.output[len(unfold.output) - results :]


def window_results(window: Window) -> tuple[OutputColumn, ...]:
    """The columns of the calls."""
    return window.output[len(window.output) - len(window.calls) :]


def in_order(node: Logical, output: tuple[OutputColumn, ...]) -> Logical:
    """``node`` putting out exactly the columns ``output``, by a Project if need be."""
    same = tuple(c.id for c in node.output) == tuple(c.id for c in output)
    return node if same else make_project(node, output)


def reference(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)


def empty(output: tuple[OutputColumn, ...]) -> Values:
    return Values(output, ())


def is_empty(node: Logical) -> bool:
    return isinstance(node, Values) and not node.rows


def is_limited(node: Logical) -> bool:
    return isinstance(node, Sort) and (node.limit is not None or node.offset is not None)


def is_rename(project: Project) -> bool:
    return all(isinstance(expression, ColumnRef) for expression in project.expressions)


def is_true(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is True


def is_never_true(expression: Expression) -> bool:
    """FALSE or NULL: as a filter, it lets nothing pass."""
    return isinstance(expression, Literal) and (
        expression.value is False or expression.value is None
    )


def may_raise(expression: Expression) -> bool:
    """Whether evaluating it over more rows than the query names could fail."""
    for part in walk(expression):
        if isinstance(part, Call):
            function = SCALAR_FUNCTIONS.get(part.function)
            if function is None or function.raises:
                return True
    return False


def substitute(expression: Expression, expressions: Mapping[ColumnId, Expression]) -> Expression:
    """``expression`` with columns replaced by what computes them."""

    def rewrite(part: Expression) -> Expression:
        if isinstance(part, ColumnRef):
            return expressions.get(part.column, part)
        return part

    return transform(expression, rewrite)


def rename(expression: Expression, names: Mapping[ColumnId, OutputColumn]) -> Expression:
    """``expression`` with columns replaced by other columns."""
    return substitute(expression, {old: reference(new) for old, new in names.items()})


def rename_call(call: AggregateCall, names: Mapping[ColumnId, OutputColumn]) -> AggregateCall:
    return call.rewritten(lambda expression: rename(expression, names))


def rename_window_call(call: WindowCall, names: Mapping[ColumnId, OutputColumn]) -> WindowCall:
    return rewritten(call, lambda expression: rename(expression, names))


def rename_keys(
    keys: tuple[SortKey, ...], names: Mapping[ColumnId, OutputColumn]
) -> tuple[SortKey, ...]:
    return tuple(
        replace(key, column=names[key.column].id) if key.column in names else key for key in keys
    )


def project_map(project: Project) -> dict[ColumnId, Expression]:
    return {
        column.id: expression
        for column, expression in zip(project.output, project.expressions, strict=True)
    }


def column_equality(expression: Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns of ``a = b``."""
    if isinstance(expression, Call) and expression.function == "=":
        left, right = expression.arguments
        if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
            return (left, right) if left.column != right.column else None
    return None


def disjuncts(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Call) and expression.function == "or":
        return tuple(d for part in expression.arguments for d in disjuncts(part))
    return (expression,)


def disjunction(parts: tuple[Expression, ...]) -> Expression:
    return parts[0] if len(parts) == 1 else Call(BOOLEAN, "or", parts)
