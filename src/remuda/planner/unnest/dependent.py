"""A plan that depends on the row of another one, made independent of it.

After Neumann and Kemper, "Unnesting Arbitrary Queries" (BTW 2015). A *parameter* is a column of the
outer query that the plan uses. The plan is computed for all values of its parameters at once: it
gets columns that say for which values a row is meant, its *bindings*. Where the plan compares a
parameter with a column of its own, that column is the binding. Otherwise the *domain*, the distinct
values that the parameters have in the outer query, is joined to the lowest operator that needs it.
Operators above keep the rows of different bindings apart: they group by them, partition by them,
carry them along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import NotSupported
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    Subquery,
    columns_of,
    conjunction,
    conjuncts,
    walk,
)
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Recursion,
    SetOperation,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.nullability import is_nullable, nullability
from remuda.plan.uses import expressions_of
from remuda.planner.algebra import (
    filtered,
    make_join,
    make_unfold,
    make_window,
    reference,
    substitute,
    window_results,
    with_inputs,
)
from remuda.planner.rules.expressions import map_expressions
from remuda.planner.rules.rule import Rewriting
from remuda.planner.unnest.bindings import Binding, Bound, carry, listed, value_without_rows
from remuda.planner.unnest.copies import fresh_copy, rewritten_plan
from remuda.planner.unnest.domain import is_settled
from remuda.planner.unnest.limits import limited_per_binding
from remuda.planner.unnest.recursion import WorkingTable, bind_recursion
from remuda.planner.unnest.risk import is_risky

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


class Dependent:
    """One plan that depends on ``base``: ``parameters`` says what they are in rows of ``base``,
    which has the same rows each time it is computed (see ``domain.settled``).

    ``lazy``: expressions that can raise an error are computed for values in the domain only, never
    for more.
    """

    def __init__(
        self,
        rewriting: Rewriting,
        base: Logical,
        parameters: Mapping[ColumnId, Expression],
        lazy: bool = False,
        working: WorkingTable | None = None,
    ) -> None:
        """``working``: the plan is the step of a recursive CTE whose working table has the values
        of the parameters."""
        self.rewriting = rewriting
        self.base = base
        self.parameters = dict(parameters)
        self.lazy = lazy
        self.working = working
        self._free: dict[int, tuple[Logical, frozenset[ColumnId]]] = {}

    def over(
        self,
        base: Logical,
        parameters: Mapping[ColumnId, Expression],
        working: WorkingTable | None = None,
    ) -> Dependent:
        """For a plan inside of this one, computed for values in ``base`` only."""
        return Dependent(self.rewriting, base, parameters, lazy=True, working=working)

    # --- what depends ---

    def used_by(self, expressions: Iterable[Expression]) -> frozenset[ColumnId]:
        """The parameters that must be bound before ``expressions`` can be computed."""
        used: frozenset[ColumnId] = frozenset()
        for expression in expressions:
            if self.lazy and is_risky(expression):
                return frozenset(self.parameters)
            used |= columns_of(expression)
        return used & self.parameters.keys()

    def free(self, node: Logical) -> frozenset[ColumnId]:
        """The parameters that ``node`` or anything below it needs."""
        known = self._free.get(id(node))
        if known is None:
            found = self.used_by(expressions_of(node)).union(
                *(self.free(child) for child in inputs_of(node))
            )
            if self.working is not None and self.working.is_read_by(node):
                found = frozenset(self.parameters)
            known = self._free[id(node)] = (node, found)
        return known[1]

    # --- bindings ---

    def domain(self, parameters: Collection[ColumnId]) -> tuple[Logical, Binding]:
        """The distinct values of ``parameters`` in the outer query."""
        used = frozenset().union(*(columns_of(self.parameters[p]) for p in parameters))
        if not is_settled(self.base, used):
            raise NotSupported(
                "a subquery of this form, correlated with values of random(), is not supported",
                hint="Compute the random values in a WITH query before.",
            )
        self.rewriting.count("subquery over domain")
        copy, names = fresh_copy(self.base, self.rewriting)
        known = nullability(self.base)
        output: list[OutputColumn] = []
        expressions: list[Expression] = []
        binding: Binding = {}
        renamed = {old: reference(new) for old, new in names.items()}
        for parameter in sorted(parameters):
            argument = self.parameters[parameter]
            name = argument.name if isinstance(argument, ColumnRef) else "outer"
            nullable = is_nullable(argument, known)
            column = self.rewriting.fresh(name, argument.type, nullable)
            output.append(column)
            expressions.append(substitute(argument, renamed))
            binding[parameter] = Bound(reference(column), strict=not nullable)
        project = Project(tuple(output), copy, tuple(expressions))
        keys = tuple(column.id for column in output)
        return Aggregate(tuple(output), project, keys, ()), binding

    def with_domain(
        self, node: Logical, bound: Binding, missing: Iterable[ColumnId]
    ) -> tuple[Logical, Binding]:
        """``node`` once for each value of ``missing`` that occurs together with its bindings."""
        wanted = set(missing) | bound.keys()
        if self.lazy:
            wanted |= self.parameters.keys()
        domain, binding = self.domain(wanted)
        condition = conjunction(tuple(self.same(bound[p], binding[p]) for p in sorted(bound)))
        joined = make_join(JoinKind.INNER, domain, node, condition)
        return joined, {**binding, **bound}

    @staticmethod
    def same(left: Bound, right: Bound) -> Expression:
        """The condition that two bindings of a parameter are the same value."""
        strict = left.strict or right.strict
        name = "=" if strict else "is_not_distinct_from"
        return Call(BOOLEAN, name, (left.column, right.column))

    def condition(self, bound: Binding) -> Expression | None:
        """That a row with these bindings is meant for a row of the outer query."""
        parts = []
        for parameter, found in sorted(bound.items()):
            argument = self.parameters[parameter]
            if isinstance(argument, Literal):
                continue
            name = "=" if found.strict else "is_not_distinct_from"
            parts.append(Call(BOOLEAN, name, (argument, found.column)))
        return conjunction(tuple(parts))

    @staticmethod
    def values(expression: Expression, bound: Binding) -> Expression:
        return substitute(expression, {p: b.column for p, b in bound.items()})

    def outer_values(self, expression: Expression) -> Expression:
        """``expression`` over the outer query's columns."""
        return substitute(expression, self.parameters)

    # --- operators ---

    def bind(self, node: Logical) -> tuple[Logical, Binding]:
        """``node`` for all values of its parameters, and the columns that tell them."""
        match node:
            case Filter(input=child, condition=condition):
                below, bound = self.below(child)
                return self._filter(below, bound, conjuncts(condition))
            case Project():
                return self._project(node)
            case Aggregate():
                return self._aggregate(node)
            case Window():
                return self._window(node)
            case Sort():
                return self._sort(node)
            case Join():
                return self._join(node)
            case DependentJoin():
                return self._dependent_join(node)
            case Union() | SetOperation():
                return self._union(node)
            case Expand():
                return self._expand(node)
            case Unfold():
                return self._unfold(node)
            case _:
                return self._leaf(node)

    def _leaf(self, node: Logical) -> tuple[Logical, Binding]:
        match node:
            case Supplied() if self.working is not None and self.working.is_read_by(node):
                return self.working.read(node, self.rewriting)
            case Supplied(definition=Recursion() as definition) if node.parameters:
                return bind_recursion(node, definition, self)
        if self.lazy:
            return self.with_domain(node, {}, self.parameters)
        raise NotSupported(
            f"a correlated subquery over {type(node).__name__} is not supported",
            hint="Join the tables, or use LATERAL.",
        )

    def below(self, node: Logical) -> tuple[Logical, Binding]:
        return self.bind(node) if self.free(node) else (node, {})

    def ready(
        self, node: Logical, bound: Binding, expressions: Iterable[Expression]
    ) -> tuple[Logical, Binding]:
        """``node`` with bindings for all parameters in ``expressions``."""
        missing = self.used_by(expressions) - bound.keys()
        return self.with_domain(node, bound, missing) if missing else (node, bound)

    def _filter(
        self, node: Logical, bound: Binding, parts: Sequence[Expression]
    ) -> tuple[Logical, Binding]:
        missing = self.used_by(parts) - bound.keys()
        if missing and not self.lazy:
            found = self._compared(node, parts, missing)
            if found.keys() == missing:
                node, bound, parts = self._bound_by_comparison(node, bound, parts, found)
                missing = frozenset()
        if missing:
            node, bound = self.with_domain(node, bound, missing)
        known = frozenset(c for part in parts for c in rejecting_null(part)) & bound.keys()
        bound = {p: replace(b, strict=b.strict or p in known) for p, b in bound.items()}
        return filtered(node, [self.values(part, bound) for part in parts]), bound

    def _compared(
        self, node: Logical, parts: Sequence[Expression], missing: frozenset[ColumnId]
    ) -> dict[ColumnId, tuple[Expression, Expression]]:
        """parameter -> (the part ``parameter = value``, the value in terms of ``node``)."""
        found: dict[ColumnId, tuple[Expression, Expression]] = {}
        for part in parts:
            if not isinstance(part, Call) or part.function != "=":
                continue
            for this, other in (part.arguments, part.arguments[::-1]):
                used = columns_of(other)
                if (
                    isinstance(this, ColumnRef)
                    and this.column in missing
                    and this.column not in found
                    and used
                    and used <= node.column_ids
                    and this.type == other.type
                    and not any(isinstance(e, Subquery) for e in walk(other))
                ):
                    found[this.column] = part, other
                    break
        return found

    def _bound_by_comparison(
        self,
        node: Logical,
        bound: Binding,
        parts: Sequence[Expression],
        found: Mapping[ColumnId, tuple[Expression, Expression]],
    ) -> tuple[Logical, Binding, list[Expression]]:
        self.rewriting.count("subquery bound by equality")
        known = nullability(node)
        bound = dict(bound)
        output, expressions = list(node.output), [reference(column) for column in node.output]
        rest = [part for part in parts if all(part is not taken for taken, _ in found.values())]
        values: list[Expression] = list(expressions)
        for parameter, (_, value) in found.items():
            if isinstance(value, ColumnRef):
                column = value
            else:
                new = self.rewriting.fresh("key", value.type, is_nullable(value, known))
                output.append(new)
                values.append(value)
                column = reference(new)
            if is_nullable(value, known):
                rest.append(Call(BOOLEAN, "is_not_null", (column,)))
            bound[parameter] = Bound(column, strict=True)
        if len(output) > len(node.output):
            node = Project(tuple(output), node, tuple(values))
        return node, bound, rest

    def _project(self, node: Project) -> tuple[Logical, Binding]:
        below, bound = self.below(node.input)
        below, bound = self.ready(below, bound, node.expressions)
        expressions = [self.values(e, bound) for e in node.expressions]
        output = list(node.output)
        carry(below, bound, output, expressions)
        return Project(tuple(output), below, tuple(expressions)), bound

    def _aggregate(self, node: Aggregate) -> tuple[Logical, Binding]:
        if node.group and not node.always:
            return self.grouped(node)
        grouped, bound = self.grouped(replace(node, always=()))
        return self._with_empty_groups(node, grouped, bound)

    def _with_empty_groups(
        self, node: Aggregate, grouped: Logical, bound: Binding
    ) -> tuple[Logical, Binding]:
        """A group for each value of the domain also where there are no rows: one, or one for each
        empty grouping set (``always``)."""
        fresh = {c.id: self.rewriting.fresh(c.name, c.type, c.nullable) for c in grouped.output}
        grouped = Project(
            tuple(fresh.values()), grouped, tuple(reference(c) for c in grouped.output)
        )
        bound = {p: replace(b, column=reference(fresh[b.column.column])) for p, b in bound.items()}
        domain, binding = self.domain(bound)
        parts = [self.same(binding[p], bound[p]) for p in sorted(bound)]
        kind, source = JoinKind.LEFT, domain
        expected: dict[ColumnId, OutputColumn] = {}
        if node.always:
            kind = JoinKind.FULL
            keys = node.output[: len(node.group)]
            expected = {c.id: self.rewriting.fresh(c.name, c.type, c.nullable) for c in keys}
            rows = Values(tuple(expected.values()), node.always)
            source = make_join(JoinKind.INNER, domain, rows, None)
            for column in keys:
                pair = (reference(expected[column.id]), reference(fresh[column.id]))
                parts.append(Call(BOOLEAN, "is_not_distinct_from", pair))
        joined = make_join(kind, source, grouped, conjunction(tuple(parts)))
        values = _values_with_empty_groups(node, fresh, expected)
        output = list(node.output)
        result: Binding = {}
        for parameter, own in binding.items():
            column = self.rewriting.fresh(own.column.name, own.column.type)
            output.append(column)
            both = (own.column, bound[parameter].column)
            values.append(Call(column.type, "coalesce", both) if node.always else own.column)
            result[parameter] = Bound(reference(column), own.strict)
        return Project(tuple(output), joined, tuple(values)), result

    def grouped(self, node: Aggregate) -> tuple[Logical, Binding]:
        """The groups of each binding that have rows."""
        below, bound = self.below(node.input)
        parts = [e for call in node.calls for e in call.expressions]
        below, bound = self.ready(below, bound, parts)
        if not bound:  # lazy, and nothing in it is risky
            below, bound = self.with_domain(below, bound, self.parameters)
        calls = tuple(call.rewritten(lambda e: self.values(e, bound)) for call in node.calls)
        own = node.output[: len(node.group)]
        by_id = {column.id: column for column in below.output}
        more = [
            by_id[column]
            for column in dict.fromkeys(b.column.column for b in bound.values())
            if column not in node.group
        ]
        output = (*own, *more, *node.output[len(node.group) :])
        keys = (*node.group, *(column.id for column in more))
        return Aggregate(output, below, keys, calls), bound

    def _window(self, node: Window) -> tuple[Logical, Binding]:
        below, bound = self.below(node.input)
        below, bound = self.ready(below, bound, expressions_of(node))
        renamed = map_expressions(node, lambda e: self.values(e, bound)) or node
        assert isinstance(renamed, Window)
        keys = dict.fromkeys((*node.partition, *(b.column.column for b in bound.values())))
        window = make_window(below, tuple(keys), node.order, renamed.calls, window_results(node))
        return window, bound

    def _sort(self, node: Sort) -> tuple[Logical, Binding]:
        below, bound = self.below(node.input)
        parts = [e for e in (node.limit, node.offset) if e is not None]
        if not parts:
            return with_inputs(node, (below,)), bound
        below, bound = self.ready(below, bound, parts)
        return limited_per_binding(node, below, bound, self.rewriting), bound

    def _union(self, node: Union | SetOperation) -> tuple[Logical, Binding]:
        wanted = sorted(self.free(node))
        inputs: list[Logical] = []
        strict = dict.fromkeys(wanted, True)
        columns: dict[ColumnId, OutputColumn] = {}
        for child in node.inputs:
            below, bound = self.below(child)
            missing = [p for p in wanted if p not in bound]
            if missing:
                below, bound = self.with_domain(below, bound, missing)
            by_id = {column.id: column for column in below.output}
            keys = [by_id[bound[p].column.column] for p in wanted]
            for parameter, key in zip(wanted, keys, strict=True):
                strict[parameter] &= bound[parameter].strict
                columns.setdefault(parameter, key)
            inputs.append(listed(below, (*child.output, *keys), self.rewriting))
        fresh = {
            p: self.rewriting.fresh(columns[p].name, columns[p].type, not strict[p]) for p in wanted
        }
        output = (*node.output, *(fresh[p] for p in wanted))
        binding = {p: Bound(reference(fresh[p]), strict[p]) for p in wanted}
        return replace(node, output=output, inputs=tuple(inputs)), binding

    def _expand(self, node: Expand) -> tuple[Logical, Binding]:
        below, bound = self.below(node.input)
        made = node.output[len(node.input.output) :]
        return replace(node, output=(*below.output, *made), input=below), bound

    def _unfold(self, node: Unfold) -> tuple[Logical, Binding]:
        below, bound = self.below(node.input)
        arguments = [part for call in node.calls for part in call.arguments]
        below, bound = self.ready(below, bound, arguments)
        calls = tuple(call.rewritten(lambda e: self.values(e, bound)) for call in node.calls)
        return make_unfold(replace(node, calls=calls), below), bound

    # --- joins ---

    def _join(self, node: Join) -> tuple[Logical, Binding]:
        match node.kind:
            case JoinKind.INNER:
                return self._inner_join(node)
            case JoinKind.FULL:
                return self._full_join(node)
            case JoinKind.RIGHT:
                flipped = make_join(JoinKind.LEFT, node.right, node.left, node.condition)
                return self._left_join(flipped)
            case _:
                return self._left_join(node)

    def _inner_join(self, node: Join) -> tuple[Logical, Binding]:
        left, left_bound = self.below(node.left)
        right, right_bound = self.below(node.right)
        both = [p for p in left_bound if p in right_bound]
        condition = conjunction(tuple(self.same(left_bound[p], right_bound[p]) for p in both))
        joined = make_join(JoinKind.INNER, left, right, condition)
        bound = {**right_bound, **left_bound}
        return self._filter(joined, bound, conjuncts(node.condition))

    def _left_join(self, node: Join) -> tuple[Logical, Binding]:
        """LEFT, SEMI, ANTI: the left side decides which rows there are, so it is bound first."""
        left, bound = self.below(node.left)
        own = conjuncts(node.condition)
        missing = (self.free(node.right) | self.used_by(own)) - bound.keys()
        if missing:
            left, bound = self.with_domain(left, bound, missing)
        right, right_bound = self.below(node.right)
        parts = [self.values(part, bound) for part in own]
        parts += [self.same(bound[p], found) for p, found in sorted(right_bound.items())]
        joined = make_join(node.kind, left, right, conjunction(tuple(parts)))
        return joined, bound

    def _full_join(self, node: Join) -> tuple[Logical, Binding]:
        wanted = sorted(self.free(node))
        sides: list[tuple[Logical, Binding]] = []
        for side in (node.left, node.right):
            below, bound = self.below(side)
            missing = [p for p in wanted if p not in bound]
            sides.append(self.with_domain(below, bound, missing) if missing else (below, bound))
        (left, left_bound), (right, right_bound) = sides
        parts = [self.values(part, left_bound) for part in conjuncts(node.condition)]
        parts += [self.same(left_bound[p], right_bound[p]) for p in wanted]
        joined = make_join(JoinKind.FULL, left, right, conjunction(tuple(parts)))
        output, expressions = list(joined.output), [reference(c) for c in joined.output]
        values: list[Expression] = list(expressions)
        binding: Binding = {}
        for parameter in wanted:
            a, b = left_bound[parameter], right_bound[parameter]
            column = self.rewriting.fresh(a.column.name, a.column.type)
            output.append(column)
            values.append(Call(a.column.type, "coalesce", (a.column, b.column)))
            binding[parameter] = Bound(reference(column), a.strict and b.strict)
        return Project(tuple(output), joined, tuple(values)), binding

    def _dependent_join(self, node: DependentJoin) -> tuple[Logical, Binding]:
        """LATERAL inside: its right side takes the parameters from the left, like other columns."""
        left, bound = self.below(node.left)
        own = conjuncts(node.condition)
        missing = (self.free(node.right) | self.used_by(own)) - bound.keys()
        if missing:
            left, bound = self.with_domain(left, bound, missing)
        right = rewritten_plan(node.right, lambda e: self.values(e, bound))
        condition = conjunction(tuple(self.values(part, bound) for part in own))
        output = (*left.output, *node.output[len(node.left.output) :])
        return DependentJoin(output, node.kind, left, right, condition), bound

    # --- conditions pulled up ---

    def pull(self, node: Logical) -> tuple[Logical, list[Expression]]:
        """``node`` without its dependent conditions, and these: over its output and parameters.

        The cheap way for joins that keep outer rows by the existence of inner ones.
        """
        if not self.free(node):
            return node, []
        match node:
            case Filter(input=child, condition=condition) if not self._has_nested(condition):
                below, conditions = self.pull(child)
                parts = conjuncts(condition)
                stay = [part for part in parts if not self.used_by((part,))]
                go = [part for part in parts if self.used_by((part,))]
                return filtered(below, stay), [*conditions, *go]
            case Project(input=child, expressions=expressions) if not self.used_by(expressions):
                below, conditions = self.pull(child)
                return self._pulled_project(node, below, conditions), conditions
            case Join(kind=JoinKind.INNER, condition=on) if not self._has_nested(on):
                left, conditions = self.pull(node.left)
                right, more = self.pull(node.right)
                parts = conjuncts(on)
                stay = [part for part in parts if not self.used_by((part,))]
                go = [part for part in parts if self.used_by((part,))]
                joined = make_join(JoinKind.INNER, left, right, conjunction(tuple(stay)))
                return joined, [*conditions, *more, *go]
            case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI) if not (
                self.free(node.right) | self.used_by(expressions_of(node))
            ):
                left, conditions = self.pull(node.left)
                return make_join(node.kind, left, node.right, node.condition), conditions
            case Sort(input=child, limit=None, offset=None):
                return self.pull(child)
        bound_node, bound = self.bind(node)
        conditions = []
        for parameter, found in sorted(bound.items()):
            column = found.column
            outer = ColumnRef(column.type, parameter, column.name)
            name = "=" if found.strict else "is_not_distinct_from"
            conditions.append(Call(BOOLEAN, name, (outer, column)))
        return bound_node, conditions

    def _has_nested(self, condition: Expression | None) -> bool:
        """Whether a subquery that uses columns stands in a dependent part of ``condition``: it is
        computed where these columns are, and so are the parameters of the part."""
        return any(
            isinstance(expression, Subquery) and columns_of(expression)
            for part in conjuncts(condition)
            if self.used_by((part,))
            for expression in walk(part)
        )

    @staticmethod
    def _pulled_project(node: Project, below: Logical, conditions: list[Expression]) -> Logical:
        output, expressions = list(node.output), list(node.expressions)
        ids = {column.id for column in output}
        needed = {c for part in conditions for c in columns_of(part)} - ids
        for column in below.output:
            if column.id in needed:
                output.append(column)
                expressions.append(reference(column))
        return Project(tuple(output), below, tuple(expressions))


def rejecting_null(condition: Expression) -> frozenset[ColumnId]:
    """Columns that are compared in ``condition``, so that it is not true where they are NULL."""
    if isinstance(condition, Call) and condition.function in _COMPARISONS:
        return frozenset(a.column for a in condition.arguments if isinstance(a, ColumnRef))
    return frozenset()


def _values_with_empty_groups(
    node: Aggregate,
    found: Mapping[ColumnId, OutputColumn],
    expected: Mapping[ColumnId, OutputColumn],
) -> list[Expression]:
    """The columns of ``node`` from the groups that were found or, else, the expected ones."""
    values: list[Expression] = []
    for column in node.output[: len(node.group)]:
        pair = (reference(found[column.id]), reference(expected[column.id]))
        values.append(Call(column.type, "coalesce", pair))
    for column, call in zip(node.output[len(node.group) :], node.calls, strict=True):
        values.append(value_without_rows(reference(found[column.id]), call.function))
    return values
