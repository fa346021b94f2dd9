"""GROUP BY: the keys, the aggregate calls, and what expressions look like above the Aggregate."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from remuda.errors import GroupingError
from remuda.plan.expression import (
    AggregateCall,
    ColumnId,
    ColumnRef,
    Expression,
    children,
    columns_of,
    with_children,
)
from remuda.plan.logical import Aggregate, Logical, OutputColumn, Project
from remuda.sql.context import Context, identifier
from remuda.sql.output import is_nullable, nullability


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
        if expression not in self.keys:
            column = expression.column if isinstance(expression, ColumnRef) else None
            self.keys[expression] = self.context.new_id() if column is None else column

    def uses_aggregate(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & {ref.column for ref in self.calls.values()})

    def aggregate(self, plan: Logical) -> Logical:
        """``plan`` grouped; computed keys are projected first."""
        if any(not isinstance(key, ColumnRef) for key in self.keys):
            plan = self._with_computed_keys(plan)
        by_id = {column.id: column for column in plan.output}
        output = [by_id[column] for column in self.keys.values()]
        output += [
            OutputColumn(ref.column, ref.name, call.type, call.function != "count")
            for call, ref in self.calls.items()
        ]
        return Aggregate(tuple(output), plan, tuple(self.keys.values()), tuple(self.calls))

    def _with_computed_keys(self, plan: Logical) -> Logical:
        needed: set[ColumnId] = set()
        for call in self.calls:
            for part in (call.argument, call.filter):
                if part is not None:
                    needed |= columns_of(part)
        needed |= {key.column for key in self.keys if isinstance(key, ColumnRef)}
        nullable = nullability(plan)
        output = [column for column in plan.output if column.id in needed]
        expressions: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in output]
        for key, column in self.keys.items():
            if not isinstance(key, ColumnRef):
                name = f"key{column}"
                output.append(OutputColumn(column, name, key.type, is_nullable(key, nullable)))
                expressions.append(key)
        return Project(tuple(output), plan, tuple(expressions))

    def above(
        self, expression: Expression, node: exp.Expr | None, extra: Collection[ColumnId]
    ) -> Expression:
        """``expression`` over the output of the Aggregate: keys become references.

        Raises GroupingError for columns that are neither keys nor inside an aggregate. ``extra``
        are columns of subqueries that are joined above.
        """
        allowed = {ref.column for ref in self.calls.values()} | set(self.keys.values()) | set(extra)
        return self._rewrite(expression, node, allowed)

    def _rewrite(
        self, expression: Expression, node: exp.Expr | None, allowed: set[ColumnId]
    ) -> Expression:
        column = self.keys.get(expression)
        if column is not None:
            if isinstance(expression, ColumnRef):
                return expression
            return ColumnRef(expression.type, column, f"key{column}")
        if isinstance(expression, ColumnRef):
            if expression.column not in allowed:
                raise self._ungrouped(expression, node)
            return expression
        parts = children(expression)
        if not parts:
            return expression
        return with_children(
            expression, tuple(self._rewrite(part, node, allowed) for part in parts)
        )

    def _ungrouped(self, column: ColumnRef, node: exp.Expr | None) -> GroupingError:
        place = node
        if node is not None:
            for candidate in node.find_all(exp.Column):
                if isinstance(candidate.this, exp.Identifier) and (
                    identifier(candidate.this) == column.name
                ):
                    place = candidate
                    break
        return self.context.error(
            GroupingError,
            f'column "{column.name}" must appear in the GROUP BY clause or be used in an '
            "aggregate function",
            place,
        )
