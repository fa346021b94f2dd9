"""Subqueries in expressions, joined to the plan over whose rows the expressions are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.errors import NotSupported
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Case,
    ColumnId,
    Expression,
    Literal,
    Subquery,
    SubqueryKind,
    children,
    columns_of,
    conjunction,
    conjuncts,
    walk,
    with_children,
)
from remuda.plan.logical import Aggregate, Join, JoinKind, Logical, Project, Sort, inputs_of
from remuda.plan.nullability import is_nullable, nullability
from remuda.plan.uses import expressions_of
from remuda.planner.algebra import (
    FALSE,
    TRUE,
    filtered,
    make_join,
    make_mark_join,
    nodes_of,
    reference,
    substitute,
    with_inputs,
)
from remuda.planner.rules.rule import Rewriting
from remuda.planner.unnest.bindings import Binding
from remuda.planner.unnest.dependent import Dependent
from remuda.planner.unnest.domain import settled
from remuda.planner.unnest.risk import has_risk
from remuda.planner.unnest.single import SingleRow, single_row
from remuda.planner.unnest.uniqueness import at_most_one_row, exactly_one_row, finds_one_row


class Unnesting(Protocol):
    """The part of the rewriting of the whole statement that attaching one subquery needs."""

    rewriting: Rewriting

    def closed(self, node: Logical) -> Logical:
        """``node``, which uses no columns from outside, without subqueries."""
        ...

    def plan_of(self, subquery: Subquery) -> tuple[Logical, Expression | None]:
        """The plan and the condition of ``subquery``, ready to be put into the tree once."""
        ...


class Attaching:
    """Subqueries in the expressions over one plan, joined to it one after the other."""

    def __init__(self, unnester: Unnesting, base: Logical) -> None:
        self.unnester = unnester
        self.rewriting = unnester.rewriting
        self.base = base
        self.plan = base
        self._known: dict[tuple[Expression, Expression | None], Expression] = {}
        self._rows: dict[tuple[int, tuple[Expression, ...]], Callable[[int], Expression]] = {}

    def lowered(self, expression: Expression) -> Expression:
        """``expression`` with subqueries replaced by what is computed from ``plan``."""
        return self._lowered(expression, None)

    def _lowered(self, expression: Expression, guard: Expression | None) -> Expression:
        match expression:
            case Subquery(arguments=arguments):
                new = tuple(self._lowered(argument, guard) for argument in arguments)
                return self._replaced(replace(expression, arguments=new), guard)
            case Case(branches=branches, otherwise=otherwise) if has_subquery(expression):
                return self._case(expression, branches, otherwise, guard)
            case _ if has_subquery(expression):
                parts = tuple(self._lowered(part, guard) for part in children(expression))
                return with_children(expression, parts)
            case _:
                return expression

    def _case(
        self,
        expression: Case,
        branches: tuple[tuple[Expression, Expression], ...],
        otherwise: Expression,
        guard: Expression | None,
    ) -> Expression:
        """An arm's subqueries are computed for the rows that take the arm, if that matters."""
        before = guard
        made: list[tuple[Expression, Expression]] = []
        for condition, value in branches:
            test = self._lowered(condition, before)
            taken = _both(before, Call(BOOLEAN, "is_true", (test,)))
            made.append((test, self._lowered(value, taken)))
            before = _both(before, Call(BOOLEAN, "is_not_true", (test,)))
        return Case(expression.type, tuple(made), self._lowered(otherwise, before))

    def _replaced(self, subquery: Subquery, guard: Expression | None) -> Expression:
        if guard is not None and not has_risk(subquery.plan):
            guard = None
        key = (subquery, guard)
        known = self._known.get(key)
        if known is None:
            if subquery.kind is SubqueryKind.SCALAR:
                known = self._scalar(subquery, guard)
            else:
                known = self._mark(subquery, guard)
            self._known[key] = known
        return known

    # --- dependence ---

    def _dependent(
        self, plan: Logical, arguments: dict[ColumnId, Expression], guard: Expression | None
    ) -> Dependent:
        used = used_columns(plan)
        parameters = {p: argument for p, argument in arguments.items() if p in used}
        lazy = (bool(parameters) or guard is not None) and has_risk(plan)
        if lazy and not parameters:
            parameters = {self.rewriting.fresh("guard", BOOLEAN).id: TRUE}
        if parameters:
            self._settle()
        base = self._base([*parameters.values(), *(() if guard is None else (guard,))])
        if guard is not None and lazy:
            base = filtered(base, (guard,))
        return Dependent(self.rewriting, base, parameters, lazy)

    def _settle(self) -> None:
        """Rows that a domain is computed from are the same as those of the plan."""
        fixed = settled(self.base)
        if fixed is not self.base:
            self.plan = _exchanged(self.plan, self.base, fixed)
            self.base = fixed

    def _base(self, expressions: Sequence[Expression]) -> Logical:
        """The plan without what was attached, if ``expressions`` need nothing of that."""
        used = frozenset().union(*(columns_of(e) for e in expressions))
        return self.base if used <= self.base.column_ids else self.plan

    def _pulled(
        self, dependent: Dependent, plan: Logical
    ) -> tuple[Logical, tuple[Expression, ...]]:
        """``plan`` without parameters, and the conditions on its rows over ``self.plan``."""
        if dependent.lazy:
            node, bound = dependent.bind(plan)
            return node, conjuncts(dependent.condition(bound))
        node, conditions = dependent.pull(plan)
        return node, self._over_plan(dependent, conditions)

    def _over_plan(
        self, dependent: Dependent, conditions: Sequence[Expression]
    ) -> tuple[Expression, ...]:
        """Conditions that were pulled up; subqueries in them are uncorrelated."""
        return tuple(self.lowered(dependent.outer_values(part)) for part in conditions)

    # --- EXISTS, IN, ANY ---

    def semi_join(self, subquery: Subquery, negated: bool) -> Logical:
        """``plan`` with the rows for which ``subquery`` is true, or if ``negated``, false."""
        arguments = tuple(self.lowered(argument) for argument in subquery.arguments)
        subquery = replace(subquery, arguments=arguments)
        if single_row(subquery.plan) is not None:
            value = self._mark(subquery, None)
            return filtered(self.plan, (negation(value) if negated else value,))
        plan, condition = self.unnester.plan_of(subquery)
        given = dict(zip(subquery.parameters, subquery.arguments, strict=True))
        dependent = self._dependent(plan, given, None)
        source, conditions = self._pulled(dependent, _without_order(plan, subquery.kind))
        if not conditions and condition is None:
            source = _first_row(source)
        parts = list(conditions)
        if condition is not None:
            own = conjuncts(substitute(condition, given))
            nullable = {**nullability(self.plan), **nullability(source)}
            if negated and any(is_nullable(part, nullable) for part in own):
                if not conditions and len(own) == 1 and _is_equality(own[0]):
                    mark = self._joined_mark(source, (), own)
                    return filtered(self.plan, (negation(mark),))
                # The row goes if no part of the comparison is false, or could be.
                own = tuple(
                    Call(BOOLEAN, "is_not_false", (part,)) if is_nullable(part, nullable) else part
                    for part in own
                )
            parts = [*own, *parts]
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        self.rewriting.count(f"subquery to {kind.value} join")
        source = self.unnester.closed(source)
        return make_join(kind, self.plan, source, conjunction(tuple(parts)))

    def _mark(self, subquery: Subquery, guard: Expression | None) -> Expression:
        given = dict(zip(subquery.parameters, subquery.arguments, strict=True))
        plan, condition = self.unnester.plan_of(subquery)
        row = single_row(plan)
        if row is not None and not _must_guard(row, guard):
            values = self.row_values(row, given)
            result = TRUE if condition is None else values(substitute(condition, row.values))
            if row.conditions:
                there = conjunction(tuple(values(part) for part in row.conditions))
                assert there is not None
                result = Case(BOOLEAN, ((there, result),), FALSE)
            return self._lowered(result, guard)
        dependent = self._dependent(plan, given, guard)
        source, conditions = self._pulled(dependent, _without_order(plan, subquery.kind))
        if condition is None and not conditions:
            source = _first_row(source)
        own = () if condition is None else conjuncts(substitute(condition, given))
        return self._joined_mark(source, conditions, own)

    def _joined_mark(
        self, source: Logical, guards: tuple[Expression, ...], own: tuple[Expression, ...]
    ) -> Expression:
        self.rewriting.count("subquery to mark join")
        nullable = {**nullability(self.plan), **nullability(source)}
        certain = tuple(part for part in own if not is_nullable(part, nullable))
        rest = tuple(part for part in own if is_nullable(part, nullable))
        mark = self.rewriting.fresh("mark", BOOLEAN, bool(rest))
        self.plan = make_mark_join(
            self.plan,
            self.unnester.closed(source),
            conjunction((*guards, *certain)),
            conjunction(rest),
            mark,
        )
        return reference(mark)

    # --- scalar ---

    def _scalar(self, subquery: Subquery, guard: Expression | None) -> Expression:
        given = dict(zip(subquery.parameters, subquery.arguments, strict=True))
        key = (id(subquery.plan), (*subquery.arguments, *(() if guard is None else (guard,))))
        found = self._rows.get(key)
        if found is None:
            plan, _ = self.unnester.plan_of(subquery)
            row = single_row(plan)
            if row is not None and not _must_guard(row, guard):
                found = self._row_columns(plan, row, given, guard)
            else:
                found = self._any_columns(plan, given, guard)
            self._rows[key] = found
        return found(subquery.column)

    def _row_columns(
        self,
        plan: Logical,
        row: SingleRow,
        given: dict[ColumnId, Expression],
        guard: Expression | None,
    ) -> Callable[[int], Expression]:
        values = self.row_values(row, given)
        there = conjunction(tuple(values(part) for part in row.conditions))

        def column(place: int) -> Expression:
            value = values(row.values[plan.output[place].id])
            if there is not None:
                value = Case(value.type, ((there, value),), Literal(value.type, None))
            return self._lowered(value, guard)

        return column

    def row_values(
        self, row: SingleRow, given: dict[ColumnId, Expression]
    ) -> Callable[[Expression], Expression]:
        """Joins the core of ``row`` to the plan; gives what turns its values into expressions over
        the plan."""
        if row.core is not None:
            dependent = self._dependent(row.core, given, None)
            if not dependent.parameters:
                self.rewriting.count("scalar subquery to join")
                core = self.unnester.closed(row.core)
                self.plan = make_join(JoinKind.INNER, self.plan, core, None)
            else:
                self.rewriting.count("correlated aggregate to left join")
                grouped, bound = dependent.grouped(row.core)
                grouped = self.unnester.closed(grouped)
                condition = dependent.condition(bound)
                self.plan = make_join(JoinKind.LEFT, self.plan, grouped, condition)
        return lambda expression: substitute(expression, given)

    def _any_columns(
        self, plan: Logical, given: dict[ColumnId, Expression], guard: Expression | None
    ) -> Callable[[int], Expression]:
        dependent = self._dependent(plan, given, guard)
        if not dependent.parameters:
            return self._uncorrelated(plan)
        if not dependent.lazy:
            source, conditions = dependent.pull(plan)
            if finds_one_row(source, conditions):
                self.rewriting.count("scalar subquery by key to left join")
                on = self._over_plan(dependent, conditions)
                return self._left_joined(source, plan, conjunction(on))
        self.rewriting.count("scalar subquery to left join")
        source, bound = dependent.bind(plan)
        on_bindings = dependent.condition(bound)
        if isinstance(plan, Sort) and at_most_one_row(plan):
            return self._left_joined(source, plan, on_bindings)
        return self._counted(source, bound, plan, on_bindings)

    def _uncorrelated(self, plan: Logical) -> Callable[[int], Expression]:
        self.rewriting.count("scalar subquery to join")
        if at_most_one_row(plan):
            kind = JoinKind.INNER if exactly_one_row(plan) else JoinKind.LEFT
            plan = self.unnester.closed(plan)
            self.plan = make_join(kind, self.plan, plan, None)
            output = plan.output
            return lambda place: reference(output[place])
        if not isinstance(plan, Sort) or plan.limit is None:
            plan = Sort(plan.output, plan, (), Literal(BIGINT, 2))
        return self._counted(plan, {}, plan, None)

    def _left_joined(
        self, source: Logical, plan: Logical, condition: Expression | None
    ) -> Callable[[int], Expression]:
        self.plan = make_join(JoinKind.LEFT, self.plan, self.unnester.closed(source), condition)
        output = plan.output
        return lambda place: reference(output[place])

    def _counted(
        self, source: Logical, bound: Binding, plan: Logical, condition: Expression | None
    ) -> Callable[[int], Expression]:
        """Some value of each binding, and how many there are: more than one is an error, but only
        where the value is used."""
        keys = dict.fromkeys(b.column.column for b in bound.values())
        by_id = {column.id: column for column in source.output}
        values = [self.rewriting.fresh(c.name, c.type) for c in plan.output]
        count = self.rewriting.fresh("rows", BIGINT, nullable=False)
        calls = tuple(
            AggregateCall("any_value", reference(column), column.type) for column in plan.output
        )
        aggregate: Logical = Aggregate(
            (*(by_id[key] for key in keys), *values, count),
            source,
            tuple(keys),
            (*calls, AggregateCall("count", None, BIGINT)),
        )
        kind = JoinKind.LEFT if keys else JoinKind.INNER
        self.plan = make_join(kind, self.plan, self.unnester.closed(aggregate), condition)

        def column(place: int) -> Expression:
            value = reference(values[place])
            return Call(value.type, "single_row", (value, reference(count)))

        return column


class RightSide(Attaching):
    """Subqueries in the ON condition of an outer, semi or anti join that use columns of its right
    side, or of both. They are attached to the right side; for columns of the left side, that has
    each right row once for all values that these have, and the join chooses among them."""

    def __init__(self, unnester: Unnesting, node: Join) -> None:
        super().__init__(unnester, node.right)
        self.join = node
        self.conditions: list[Expression] = []
        self._left: dict[ColumnId, Expression] = {}

    def bring(self, expressions: Sequence[Expression]) -> None:
        """Make the columns of the left side that subqueries of ``expressions`` use available."""
        used = frozenset(
            column
            for expression in expressions
            for part in walk(expression)
            if isinstance(part, Subquery)
            for argument in part.arguments
            for column in columns_of(argument)
        )
        wanted = used & self.join.left.column_ids
        if not wanted:
            return
        if self.join.kind is JoinKind.FULL:
            raise NotSupported(
                "a subquery in the condition of a FULL JOIN that uses both sides is not supported",
                hint="Compute the subquery in a WITH query, and join that.",
            )
        columns: dict[ColumnId, Expression] = {
            c.id: reference(c) for c in self.join.left.output if c.id in wanted
        }
        domain, bound = Dependent(self.rewriting, self.join.left, columns).domain(wanted)
        self.base = self.plan = make_join(JoinKind.INNER, domain, self.plan, None)
        for column, found in bound.items():
            name = "=" if found.strict else "is_not_distinct_from"
            self.conditions.append(Call(BOOLEAN, name, (columns[column], found.column)))
            self._left[column] = found.column

    def lowered(self, expression: Expression) -> Expression:
        return super().lowered(_in_subqueries(expression, self._left))


def _in_subqueries(expression: Expression, names: dict[ColumnId, Expression]) -> Expression:
    """``names`` put in for columns in the arguments of subqueries, and nowhere else."""
    if isinstance(expression, Subquery):
        return replace(
            expression, arguments=tuple(substitute(a, names) for a in expression.arguments)
        )
    parts = children(expression)
    return with_children(expression, tuple(_in_subqueries(part, names) for part in parts))


def _must_guard(row: SingleRow, guard: Expression | None) -> bool:
    """Whether what is aggregated may fail for rows that do not take the arm of CASE."""
    return guard is not None and row.core is not None and has_risk(row.core)


def _exchanged(node: Logical, old: Logical, new: Logical) -> Logical:
    if node is old:
        return new
    inputs = inputs_of(node)
    done = tuple(_exchanged(child, old, new) for child in inputs)
    if all(after is before for after, before in zip(done, inputs, strict=True)):
        return node
    return with_inputs(node, done)


def has_subquery(expression: Expression) -> bool:
    return any(isinstance(part, Subquery) for part in walk(expression))


def negation(condition: Expression) -> Expression:
    return Call(BOOLEAN, "not", (condition,))


def _both(first: Expression | None, second: Expression) -> Expression:
    return second if first is None else Call(BOOLEAN, "and", (first, second))


def _is_equality(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "="


def used_columns(plan: Logical) -> frozenset[ColumnId]:
    """Columns in the expressions of ``plan`` and below it."""
    return frozenset().union(
        *(columns_of(e) for node in nodes_of(plan) for e in expressions_of(node))
    )


def _first_row(plan: Logical) -> Logical:
    """Existence needs one row."""
    return plan if at_most_one_row(plan) else Sort(plan.output, plan, (), Literal(BIGINT, 1))


def _without_order(plan: Logical, kind: SubqueryKind) -> Logical:
    """Without what does not decide whether there are rows, or which."""
    match plan:
        case Sort(input=child, limit=None, offset=None):
            return _without_order(child, kind)
        case Sort(input=child, limit=Literal(value=int(limit)), offset=None) if (
            kind is SubqueryKind.EXISTS and limit > 0
        ):
            return _without_order(child, kind)
        case Project(input=child) if kind is SubqueryKind.EXISTS:
            return _without_order(child, kind)
        case Aggregate(input=child, group=group, always=()) if (
            kind is SubqueryKind.EXISTS and group
        ):
            return _without_order(child, kind)
        case _:
            return plan
