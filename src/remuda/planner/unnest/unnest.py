"""Every subquery of a statement becomes a join, before any other rule looks at it.

- ``[NOT] EXISTS``, ``[NOT] IN`` and quantified comparisons that are a whole condition: SEMI, ANTI;
- the same inside of expressions: a mark join, whose column stands for the subquery;
- scalar subqueries: a join with their only row; where several rows are possible, they are counted,
  and ``single_row`` refuses the value when it is asked for;
- LATERAL: a join whose right side has been made independent of the left.

Correlated ones are made independent by ``dependent``. The outermost subquery comes first, so that
a nested one, which may be correlated over several levels, finds all it needs one level up.
"""

from __future__ import annotations

from dataclasses import replace

from remuda.plan.expression import (
    Call,
    Expression,
    Subquery,
    SubqueryKind,
    columns_of,
    conjunction,
    conjuncts,
)
from remuda.plan.logical import (
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Logical,
    Project,
    Sort,
    Supplied,
    Unfold,
    Values,
    inputs_of,
)
from remuda.plan.uses import subqueries_of
from remuda.planner.algebra import (
    filtered,
    in_order,
    is_true,
    make_join,
    make_unfold,
    nodes_of,
    reference,
    substitute,
    with_inputs,
)
from remuda.planner.rules.expressions import (
    FACTOR_OR,
    FOLD_CONSTANTS,
    SIMPLIFY_BOOLEANS,
    map_expressions,
)
from remuda.planner.rules.rule import Rewriting, Rule
from remuda.planner.unnest.attach import Attaching, RightSide, has_subquery, used_columns
from remuda.planner.unnest.copies import fresh_copy
from remuda.planner.unnest.dependent import Dependent
from remuda.planner.unnest.domain import settled
from remuda.planner.unnest.limits import limited_per_binding
from remuda.planner.unnest.risk import has_risk
from remuda.planner.unnest.single import SingleRow, single_row

_PREPARE: tuple[Rule, ...] = (FOLD_CONSTANTS, SIMPLIFY_BOOLEANS, FACTOR_OR)
"""They bring conditions into a form that shows equalities of parameters."""


def unnest(root: Logical, rewriting: Rewriting) -> Logical:
    """``root`` without Subquery and DependentJoin. Raises NotSupported for the few forms that are
    correlated in a way that no join can express."""
    if not any(
        isinstance(node, DependentJoin) or any(subqueries_of(node)) for node in nodes_of(root)
    ):
        return root
    return _Unnester(rewriting).closed(root)


class _Unnester:
    def __init__(self, rewriting: Rewriting) -> None:
        self.rewriting = rewriting
        self.used: dict[int, Logical] = {}
        """The plans of subqueries that are in the tree already: the next use needs a copy."""

    def closed(self, node: Logical) -> Logical:
        """``node``, which uses no columns from outside, without subqueries."""
        if isinstance(node, DependentJoin):
            return self._lateral(node)
        if isinstance(node, Supplied) and node.parameters:
            only = Values((), ((),))
            return in_order(Dependent(self.rewriting, only, {}).bind(node)[0], node.output)
        inputs = inputs_of(node)
        done = tuple(self.closed(child) for child in inputs)
        if any(new is not old for new, old in zip(done, inputs, strict=True)):
            node = with_inputs(node, done)
        if not any(subqueries_of(node)):
            return node
        node = self._prepared(node)
        if not any(subqueries_of(node)):
            return node  # they stood in an arm that is never taken
        match node:
            case Filter():
                return self._filter(node)
            case Join():
                return self._join(node)
            case Sort():
                return self._limit(node)
            case _:
                (child,) = inputs_of(node)
                attaching = Attaching(self, child)
                new = map_expressions(node, attaching.lowered)
                assert new is not None
                return with_inputs(new, (attaching.plan,))

    def _prepared(self, node: Logical) -> Logical:
        for rule in _PREPARE:
            if isinstance(node, rule.nodes):
                node = rule.apply(node, self.rewriting) or node
        return node

    def plan_of(self, subquery: Subquery) -> tuple[Logical, Expression | None]:
        """The plan and the condition of ``subquery``, ready to be put into the tree once."""
        plan, condition = subquery.plan, subquery.condition
        if id(plan) in self.used:
            plan, names = fresh_copy(plan, self.rewriting)
            if condition is not None:
                renamed = {old: reference(new) for old, new in names.items()}
                condition = substitute(condition, renamed)
        self.used[id(plan)] = plan
        return self._all_prepared(plan), condition

    def _all_prepared(self, node: Logical) -> Logical:
        inputs = inputs_of(node)
        done = tuple(self._all_prepared(child) for child in inputs)
        if any(new is not old for new, old in zip(done, inputs, strict=True)):
            node = with_inputs(node, done)
        return self._prepared(node)

    # --- WHERE ---

    def _filter(self, node: Filter) -> Logical:
        parts = conjuncts(node.condition)
        plan = filtered(node.input, [p for p in parts if not has_subquery(p)])
        whole: list[tuple[Subquery, bool]] = []
        inside: list[Expression] = []
        for part in parts:
            if not has_subquery(part):
                continue
            found = _whole(part)
            if found is not None:
                whole.append(found)
            else:
                inside.append(part)
        attaching = Attaching(self, plan)
        conditions = [attaching.lowered(part) for part in inside]
        plan = filtered(attaching.plan, conditions)
        for subquery, negated in whole:
            plan = Attaching(self, plan).semi_join(subquery, negated)
        return plan

    # --- ON ---

    def _join(self, node: Join) -> Logical:
        parts = conjuncts(node.condition)
        plain = tuple(part for part in parts if not has_subquery(part))
        nested = [part for part in parts if has_subquery(part)]
        if node.kind is JoinKind.INNER:
            joined = make_join(node.kind, node.left, node.right, conjunction(plain))
            condition = conjunction(tuple(nested))
            assert condition is not None
            return self._filter(Filter(joined.output, joined, condition))
        if node.kind is JoinKind.RIGHT:
            return self._join(make_join(JoinKind.LEFT, node.right, node.left, node.condition))
        node = make_join(node.kind, settled(node.left), node.right, node.condition)
        left, right = Attaching(self, node.left), RightSide(self, node)
        of_left = [p for p in nested if columns_of(p) and columns_of(p) <= node.left.column_ids]
        rest = [part for part in nested if part not in of_left]
        right.bring(rest)
        conditions = [left.lowered(part) for part in of_left]
        conditions += [right.lowered(part) for part in rest]
        condition = conjunction((*plain, *conditions, *right.conditions))
        return make_join(node.kind, left.plan, right.plan, condition)

    # --- LIMIT ---

    def _limit(self, node: Sort) -> Logical:
        """LIMIT (SELECT ...): rows are numbered, and the number is compared."""
        attaching = Attaching(self, node.input)
        new = map_expressions(node, attaching.lowered)
        assert isinstance(new, Sort)
        return limited_per_binding(new, attaching.plan, {}, self.rewriting)

    # --- LATERAL ---

    def _lateral(self, node: DependentJoin) -> Logical:
        left = self.closed(node.left)
        right = self._all_prepared(node.right)
        used = used_columns(right)
        parameters = {c.id: reference(c) for c in left.output if c.id in used}
        if parameters:
            left = settled(left)
        dependent = Dependent(self.rewriting, left, parameters, has_risk(right))
        if not parameters:
            joined: Logical = make_join(node.kind, left, right, node.condition)
            return self.closed_above(joined, left)
        if node.condition is None and (unfolded := _unfolded(node, left, right)) is not None:
            self.rewriting.count("lateral function over input")
            return self.closed(unfolded)
        row = single_row(right)
        if row is not None and (node.kind is JoinKind.INNER or _always(node.condition, row)):
            return self._lateral_row(node, left, right, row, dependent)
        self.rewriting.count("lateral to join")
        if dependent.lazy:
            bound_right, bound = dependent.bind(right)
            conditions = [*conjuncts(dependent.condition(bound))]
        else:
            bound_right, pulled = dependent.pull(right)
            conditions = [dependent.outer_values(part) for part in pulled]
        parts = (*conjuncts(node.condition), *conditions)
        joined = make_join(node.kind, left, bound_right, conjunction(parts))
        return self.closed_above(joined, left)

    def closed_above(self, node: Logical, done: Logical) -> Logical:
        """``closed`` for a join whose left side ``done`` is closed already."""
        left, right = inputs_of(node)
        assert left is done
        right = self.closed(right)
        node = with_inputs(node, (left, right))
        if any(subqueries_of(node)):
            assert isinstance(node, Join)
            return self._join(node)
        return node

    def _lateral_row(
        self,
        node: DependentJoin,
        left: Logical,
        right: Logical,
        row: SingleRow,
        dependent: Dependent,
    ) -> Logical:
        """One row on the right for every row on the left, computed above the join with its core."""
        attaching = Attaching(self, left)
        values = attaching.row_values(row, dependent.parameters)
        conditions = [attaching.lowered(values(part)) for part in row.conditions]
        plan = filtered(attaching.plan, conditions)
        above = Attaching(self, plan)
        computed = [above.lowered(values(row.values[column.id])) for column in right.output]
        output = (*left.output, *node.output[len(node.left.output) :])
        own = tuple(reference(column) for column in left.output)
        plan = Project(output, above.plan, (*own, *computed))
        condition = conjunction(conjuncts(node.condition))
        if condition is None:
            return plan
        result = Filter(plan.output, plan, condition)
        return self._filter(result) if has_subquery(condition) else result


def _whole(part: Expression) -> tuple[Subquery, bool] | None:
    """The subquery that ``part`` is, or (True) is the negation of."""
    negated = isinstance(part, Call) and part.function == "not"
    inner = part.arguments[0] if isinstance(part, Call) and negated else part
    if isinstance(inner, Subquery) and inner.kind is not SubqueryKind.SCALAR:
        return inner, negated
    return None


def _always(condition: Expression | None, row: SingleRow) -> bool:
    """Whether LEFT JOIN LATERAL with a single row on the right keeps every left row as it is."""
    return not row.conditions and (condition is None or is_true(condition))


def _unfolded(node: DependentJoin, left: Logical, right: Logical) -> Logical | None:
    """A table function over columns of the left side unfolds the left rows themselves."""
    if not isinstance(right, Unfold) or not isinstance(right.input, Values):
        return None
    if right.input.rows != ((),):
        return None
    return make_unfold(replace(right, outer=node.kind is JoinKind.LEFT), left)
