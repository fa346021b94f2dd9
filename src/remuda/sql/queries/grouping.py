"""GROUP BY: the keys, the aggregate calls, and the form of expressions above the Aggregate."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from remuda.datatypes.sql import BOOLEAN, INTEGER
from remuda.datatypes.values import PhysicalValue
from remuda.errors import GroupingError
from remuda.plan.canonical import canonical, has_subquery
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Subquery,
    children,
    columns_of,
    walk,
    with_children,
)
from remuda.plan.functions.aggregates import never_null
from remuda.plan.logical import Aggregate, Expand, Logical, OutputColumn, Project
from remuda.plan.nullability import is_nullable, nullability
from remuda.sql.queries.functional_dependency import determined_columns
from remuda.sql.queries.grouping_sets import GroupingSet
from remuda.sql.queries.input_order import in_input_order
from remuda.sql.scope.context import Context, identifier
from remuda.sql.trees import ast

GROUPING = "grouping"
"""Stands in expressions for GROUPING(...) until the grouping sets are known."""


def refuse_grouping(context: Context, key: Expression, node: ast.Node) -> None:
    """Raise GroupingError for a key with GROUPING(...), which an output column may bring."""
    if any(isinstance(part, Call) and part.function == GROUPING for part in walk(key)):
        raise context.error(GroupingError, "grouping operations are not allowed in GROUP BY", node)


class Grouping:
    """Collects keys and calls while the clauses of one SELECT are bound.

    An aggregate call stands in expressions as a reference to its output column. Equal calls share
    one column.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.keys: dict[Expression, ColumnId] = {}
        self.calls: dict[AggregateCall, ColumnRef] = {}
        self.forced = False
        """GROUP BY or HAVING is there, so rows are grouped even without an aggregate call."""
        self._inside = False
        """The rewritten expression is used inside of a subquery."""
        self.sets: list[GroupingSet] = []
        """The grouping sets, if there are several."""
        self._copies: dict[Expression, ColumnId] = {}
        """Keys that are not in every set -> their columns above, which are NULL in some sets."""
        self._number = ColumnRef(INTEGER, 0, "grouping_set")
        self._with_subquery: dict[Expression, Expression] = {}
        """Keys with subqueries, by their canonical form."""

    @property
    def active(self) -> bool:
        return self.forced or bool(self.calls)

    def reference(self, call: AggregateCall, name: str) -> Expression:
        found = self.calls.get(call)
        if found is None:
            found = ColumnRef(call.type, self.context.new_id(), name)
            self.calls[call] = found
        return found

    def add_key(self, expression: Expression) -> None:
        """One more key; if there are grouping sets, then of each of them."""
        if expression not in self.keys:
            column = expression.column if isinstance(expression, ColumnRef) else None
            self.keys[expression] = self.context.new_id() if column is None else column
            if has_subquery(expression):
                self._with_subquery.setdefault(canonical(expression), expression)

    def key_like(self, expression: Expression) -> Expression:
        """The key that says the same as ``expression``, which was bound apart from it; else
        ``expression`` itself."""
        if not self._with_subquery or not has_subquery(expression):
            return expression
        return self._with_subquery.get(canonical(expression), expression)

    def group_by(self, sets: list[GroupingSet]) -> None:
        for key in (key for one in sets for key in one):
            self.add_key(key)
        if len(sets) == 1:
            return
        self.sets = sets
        self._number = ColumnRef(INTEGER, self.context.new_id(), "grouping_set")
        for key in self.keys:
            if not all(key in one for one in sets):
                self._copies[key] = self.context.new_id()

    def add_determined(self, plan: Logical, expressions: Iterable[Expression]) -> None:
        """Make keys of the columns that ``expressions`` use and the keys determine (columns of a
        map in ``plan`` that is grouped by its primary key)."""
        known = {
            key.column
            for key in self.keys
            if isinstance(key, ColumnRef) and key not in self._copies
        }
        determined = determined_columns(plan, known) - known if known else frozenset()
        for expression in expressions if determined else ():
            for part in walk(expression):
                if isinstance(part, ColumnRef) and part.column in determined:
                    self.add_key(part)

    def uses_aggregate(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & {ref.column for ref in self.calls.values()})

    def aggregate(self, plan: Logical) -> Logical:
        """``plan`` grouped; computed keys are projected first."""
        plan, calls = in_input_order(plan, self.calls)
        if any(self._is_computed(key, plan) for key in self.keys):
            plan = self._with_computed_keys(plan, calls.values())
        group = tuple(self._copies.get(key, column) for key, column in self.keys.items())
        always: tuple[tuple[PhysicalValue, ...], ...] = ()
        if self.sets:
            plan = self._expanded(plan)
            empty = [number for number, one in enumerate(self.sets) if not one]
            always = tuple((*(None for _ in group), number) for number in empty)
            group = (*group, self._number.column)
        by_id = {column.id: column for column in plan.output}
        output = [by_id[column] for column in group]
        output += [
            OutputColumn(ref.column, ref.name, call.type, not never_null(call.function))
            for call, ref in self.calls.items()
        ]
        return Aggregate(tuple(output), plan, group, tuple(calls.values()), always)

    def _expanded(self, plan: Logical) -> Logical:
        """Each row of ``plan`` once per grouping set, the keys that are not in it NULL."""
        by_id = {column.id: column for column in plan.output}
        keys = list(self._copies)
        copies = tuple(
            OutputColumn(copy, by_id[self.keys[key]].name, key.type)
            for key, copy in self._copies.items()
        )
        number = OutputColumn(self._number.column, self._number.name, INTEGER, nullable=False)
        return Expand(
            (*plan.output, *copies, number),
            plan,
            tuple(self.keys[key] for key in keys),
            tuple(
                tuple(place for place, key in enumerate(keys) if key in one) for one in self.sets
            ),
        )

    def _with_computed_keys(self, plan: Logical, calls: Iterable[AggregateCall]) -> Logical:
        needed: set[ColumnId] = set()
        for call in calls:
            for part in call.expressions:
                needed |= columns_of(part)
        needed |= {key.column for key in self.keys if isinstance(key, ColumnRef)}
        nullable = nullability(plan)
        output = [column for column in plan.output if column.id in needed]
        expressions: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in output]
        for key, column in list(self.keys.items()):
            if self._is_computed(key, plan):
                if isinstance(key, ColumnRef):
                    column = self.keys[key] = self.context.new_id()  # noqa: PLW2901
                name = f"key{column}"
                output.append(OutputColumn(column, name, key.type, is_nullable(key, nullable)))
                expressions.append(key)
        return Project(tuple(output), plan, tuple(expressions))

    @staticmethod
    def _is_computed(key: Expression, plan: Logical) -> bool:
        """Columns of an enclosing query are not in the input: they are values like others."""
        return not (isinstance(key, ColumnRef) and key.column in plan.column_ids)

    def above(
        self, expression: Expression, node: ast.Node | None, extra: Collection[ColumnId]
    ) -> Expression:
        """``expression`` over the output of the Aggregate: keys become references.

        Raises GroupingError for columns that are neither keys nor inside an aggregate. ``extra``
        are columns of subqueries that are joined above.
        """
        allowed = {ref.column for ref in self.calls.values()} | set(extra)
        if not self.sets:
            allowed |= set(self.keys.values())
        return self._rewrite(expression, node, allowed)

    def _rewrite(
        self, expression: Expression, node: ast.Node | None, allowed: set[ColumnId]
    ) -> Expression:
        if isinstance(expression, Call) and expression.function == GROUPING:
            return self._grouping_value(expression, node)
        expression = self.key_like(expression)
        column = self.keys.get(expression)
        if column is not None:
            name = expression.name if isinstance(expression, ColumnRef) else f"key{column}"
            return ColumnRef(expression.type, self._copies.get(expression, column), name)
        if isinstance(expression, ColumnRef):
            if expression.column not in allowed:
                raise self._ungrouped(expression, node)
            return expression
        parts = children(expression)
        if not parts:
            return expression
        new = []
        for place, part in enumerate(parts):
            # Other arguments are operands, which stand beside the subquery: x IN (SELECT ...).
            self._inside = (
                isinstance(expression, Subquery)
                and isinstance(part, ColumnRef)
                and part.column == expression.parameters[place]
            )
            new.append(self._rewrite(part, node, allowed))
        self._inside = False
        return with_children(expression, tuple(new))

    def _grouping_value(self, call: Call, node: ast.Node | None) -> Expression:
        """``GROUPING(a, b)``: in each set a bit per argument, the last one lowest, that is 1 where
        the argument is not in the set."""
        arguments = [self.key_like(argument) for argument in call.arguments]
        if any(argument not in self.keys for argument in arguments):
            raise self.context.error(
                GroupingError,
                "arguments to GROUPING must be grouping expressions of the associated query level",
                node,
            )
        numbers: dict[int, list[Expression]] = {}
        for number, one in enumerate(self.sets):
            bits = "".join("01"[argument not in one] for argument in arguments)
            numbers.setdefault(int(bits, 2), []).append(Literal(INTEGER, number))
        if len(numbers) <= 1:
            return Literal(INTEGER, next(iter(numbers), 0))
        *others, (last, _) = numbers.items()
        branches = tuple((self._is_one_of(sets), Literal(INTEGER, value)) for value, sets in others)
        return Case(INTEGER, branches, Literal(INTEGER, last))

    def _is_one_of(self, sets: list[Expression]) -> Expression:
        if len(sets) == 1:
            return Call(BOOLEAN, "=", (self._number, sets[0]))
        return InList(BOOLEAN, self._number, tuple(sets))

    def _ungrouped(self, column: ColumnRef, node: ast.Node | None) -> GroupingError:
        place = node
        if node is not None:
            for candidate in node.find_all(ast.Column):
                if isinstance(candidate.this, ast.Identifier) and (
                    identifier(candidate.this) == column.name
                ):
                    place = candidate
                    break
        if self._inside:
            return self.context.error(
                GroupingError,
                f'subquery uses ungrouped column "{column.name}" from outer query',
                place,
            )
        return self.context.error(
            GroupingError,
            f'column "{column.name}" must appear in the GROUP BY clause or be used in an '
            "aggregate function",
            place,
        )
