"""Subqueries in expressions become joins.

- ``[NOT] EXISTS (q)`` and ``x [NOT] IN (q)`` as conditions of WHERE: SEMI and ANTI joins;
- scalar subqueries that give one row at most: a join with that row, or, when they are correlated
  by equalities in their WHERE clause, a LEFT join with the aggregate grouped by those columns.

NOT IN keeps a row only if no value of ``q`` equals ``x`` *or could* (NULL on either side), so the
ANTI join's condition is ``(x = y) IS NOT FALSE``, or plain ``x = y`` when neither side can be NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from remuda.datatypes.sql import BIGINT, BOOLEAN
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
    conjunction,
    transform,
)
from remuda.plan.logical import JoinKind, Logical
from remuda.sql.output import (
    at_most_one_row,
    exactly_one_row,
    is_nullable,
    joined,
    nullability,
    project,
)
from remuda.sql.relations import Environment

if TYPE_CHECKING:
    from remuda.sql.select import SelectBinder

_PLAIN = ("expressions", "from_", "joins", "where", "distinct")


@dataclass(slots=True)
class _Attachment:
    kind: JoinKind
    plan: Logical
    condition: Expression | None


class SubqueryBinder:
    """The subqueries of one SELECT."""

    def __init__(self, owner: SelectBinder) -> None:
        self.owner = owner
        self.context = owner.context
        self.deferred = False
        """Subqueries wait to be joined above the filters of WHERE, or above the Aggregate."""
        self._attachments: list[_Attachment] = []
        self.attached_ids: set[ColumnId] = set()

    # --- placing ---

    @property
    def waiting(self) -> int:
        return len(self._attachments)

    def add(self, attachment: _Attachment) -> None:
        if self.deferred and not self.owner.in_aggregate:
            self._attachments.append(attachment)
            self.attached_ids |= {column.id for column in attachment.plan.output}
        else:
            owner = self.owner
            owner.plan = joined(attachment.kind, owner.plan, attachment.plan, attachment.condition)

    def attach(self, plan: Logical) -> Logical:
        """``plan`` joined with the subqueries that wait for it (and no longer do then)."""
        attachments, self._attachments = self._attachments, []
        for attachment in attachments:
            if attachment.condition is not None:
                available = {c.id for c in (*plan.output, *attachment.plan.output)}
                if not columns_of(attachment.condition) <= available:
                    raise self.context.unsupported(
                        "a subquery correlated with columns that are not grouped", self.owner.node
                    )
            plan = joined(attachment.kind, plan, attachment.plan, attachment.condition)
        return plan

    # --- EXISTS and IN ---

    def is_semi_join(self, node: exp.Expr) -> bool:
        inner = _unwrapped(node)
        if isinstance(inner, exp.Not):
            inner = _unwrapped(inner.this)
        return isinstance(inner, exp.Exists) or (
            isinstance(inner, exp.In) and inner.args.get("query") is not None
        )

    def semi_join(self, node: exp.Expr) -> None:
        inner = _unwrapped(node)
        negated = isinstance(inner, exp.Not)
        if isinstance(inner, exp.Not):
            inner = _unwrapped(inner.this)
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        owner = self.owner
        if isinstance(inner, exp.Exists):
            self.context.only(inner, "this")
            plan, conditions, _ = self._source(inner.this, values=False)
        else:
            self.context.only(inner, "this", "query")
            plan, conditions, value = self._source(inner.args["query"], values=True)
            assert value is not None
            operand = owner.binder.bind(inner.this)
            equality = owner.binder.convert.call(
                "=", [operand, value], [inner.this, inner.args["query"]], inner
            )
            if negated and self._may_be_null(equality, plan):
                equality = Call(BOOLEAN, "is_not_false", (equality,))
            conditions = [equality, *conditions]
        outer = owner.scope.outer & {c for e in conditions for c in columns_of(e)}
        if outer:
            raise self.context.unsupported("a subquery correlated over more than one level", inner)
        owner.plan = joined(kind, owner.plan, plan, conjunction(tuple(conditions)))

    def _may_be_null(self, equality: Expression, plan: Logical) -> bool:
        nullable = nullability(self.owner.plan) | nullability(plan)
        return is_nullable(equality, nullable)

    def _source(
        self, node: exp.Expr, values: bool
    ) -> tuple[Logical, list[Expression], Expression | None]:
        """The plan of a subquery, its correlated conditions, and its only column (for IN)."""
        select = _plain_select(node)
        if select is None:
            return self._as_source(self._general(node), node, values)
        binder = self._inner(select)
        self.context.only(select, *_PLAIN)
        binder.bind_from()
        binder.bind_where()
        binder.bind_rest()
        if binder.grouping.active or binder.hidden or binder.windows.active:
            if binder.correlated:
                raise self.context.unsupported(
                    "a correlated subquery with aggregates in IN or EXISTS", node
                )
            binder.pull_up = False
            return self._as_source(binder.build(), node, values)
        binder.settle(None)
        needed = {c for e in binder.correlated for c in columns_of(e)} - binder.scope.outer
        plan = binder.subqueries.attach(binder.plan)
        names, expressions = [], []
        value: Expression | None = None
        if values:
            self._require_one_column(len(binder.items), node)
            names.append(binder.items[0].name)
            expressions.append(binder.items[0].expression)
            needed -= columns_of(expressions[0]) if isinstance(expressions[0], ColumnRef) else set()
        for column in plan.output:
            if column.id in needed:
                names.append(column.name)
                expressions.append(ColumnRef(column.type, column.id, column.name))
        if not names:
            names.append("?column?")
            expressions.append(Literal(BIGINT, 1))
        plan = project(self.context, plan, names, expressions)
        if values:
            first = plan.output[0]
            value = ColumnRef(first.type, first.id, first.name)
        binder.pull_up = False
        binder.refuse_free_columns(plan)
        return plan, binder.correlated, value

    def _as_source(
        self, plan: Logical, node: exp.Expr, values: bool
    ) -> tuple[Logical, list[Expression], Expression | None]:
        """A subquery without correlation, as it is."""
        if not values:
            return plan, [], None
        self._require_one_column(len(plan.output), node)
        first = plan.output[0]
        return plan, [], ColumnRef(first.type, first.id, first.name)

    def _general(self, node: exp.Expr) -> Logical:
        environment = Environment(self.owner.environment.tables, self.owner.scope)
        return self.owner.bind_query(node, environment)

    def _inner(self, select: exp.Select) -> SelectBinder:
        environment = Environment(self.owner.environment.tables, self.owner.scope)
        binder = type(self.owner)(self.context, select, environment, self.owner.bind_query)
        binder.pull_up = True
        return binder

    def _require_one_column(self, count: int, node: exp.Expr) -> None:
        if count != 1:
            raise self.context.error(
                SqlSyntaxError, f"subquery has {count} columns where 1 is needed", node
            )

    # --- scalar subqueries ---

    def scalar(self, node: exp.Expr) -> Expression:
        select = _plain_select(node)
        if select is None:
            return self._single_row(self._general(node), node)
        binder = self._inner(select)
        self.context.only(select, *_PLAIN)
        binder.bind_from()
        binder.bind_where()
        binder.bind_rest()
        if binder.correlated:
            return self._correlated_aggregate(binder, select)
        binder.pull_up = False
        return self._single_row(binder.build(), node)

    def _single_row(self, plan: Logical, node: exp.Expr) -> Expression:
        self._require_one_column(len(plan.output), node)
        if not at_most_one_row(plan):
            raise self.context.unsupported(
                "a scalar subquery that may return more than one row",
                node,
                hint="Use an aggregate such as max(...), or LIMIT 1.",
            )
        kind = JoinKind.INNER if exactly_one_row(plan) else JoinKind.LEFT
        self.add(_Attachment(kind, plan, None))
        first = plan.output[0]
        return ColumnRef(first.type, first.id, first.name)

    def _correlated_aggregate(self, binder: SelectBinder, select: exp.Select) -> Expression:
        """``(SELECT agg(...) FROM ... WHERE inner = outer ...)``"""
        if not binder.grouping.calls:
            raise self.context.unsupported(
                "a correlated scalar subquery without an aggregate",
                select,
                hint="Use an aggregate such as max(...), or write a join.",
            )
        if binder.windows.active:
            raise self.context.unsupported(
                "a correlated scalar subquery with window functions", select
            )
        self._require_one_column(len(binder.items), select)
        binder.settle(None)
        outer = binder.scope.outer
        conditions: list[Expression] = []
        for condition in binder.correlated:
            inside, outside = self._sides(condition, outer, select)
            binder.grouping.add_key(inside)
            name = inside.name if isinstance(inside, ColumnRef) else "key"
            key = ColumnRef(inside.type, binder.grouping.keys[inside], name)
            conditions.append(Call(BOOLEAN, "=", (key, outside)))
        item = binder.items[0]
        value = binder.grouping.above(item.expression, item.node, binder.subqueries.attached_ids)
        plan = binder.subqueries.attach(binder.grouping.aggregate(binder.plan))
        binder.pull_up = False
        binder.refuse_free_columns(plan)
        self.add(_Attachment(JoinKind.LEFT, plan, conjunction(tuple(conditions))))
        counts = {
            ref.column for call, ref in binder.grouping.calls.items() if call.function == "count"
        }
        return transform(value, lambda e: _zero_if_missing(e, counts))

    def _sides(
        self, condition: Expression, outer: set[ColumnId], node: exp.Expr
    ) -> tuple[Expression, Expression]:
        """(inner side, outer side) of a correlated equality."""
        if isinstance(condition, Call) and condition.function == "=":
            left, right = condition.arguments
            left_ids, right_ids = columns_of(left), columns_of(right)
            if left_ids and not left_ids & outer and right_ids <= outer:
                return left, right
            if right_ids and not right_ids & outer and left_ids <= outer:
                return right, left
        raise self.context.unsupported(
            "a scalar subquery correlated by anything but equalities", node
        )


def _zero_if_missing(expression: Expression, counts: set[ColumnId]) -> Expression:
    """Over no rows a count is 0, which the LEFT join pads with NULL."""
    if isinstance(expression, ColumnRef) and expression.column in counts:
        return Call(expression.type, "coalesce", (expression, Literal(BIGINT, 0)))
    return expression


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _plain_select(node: exp.Expr) -> exp.Select | None:
    """The SELECT inside parentheses, if it has only the clauses that can be pulled up."""
    while isinstance(node, exp.Subquery) and not _has_clauses(node, ("this",)):
        node = node.this
    if isinstance(node, exp.Select) and not _has_clauses(node, _PLAIN):
        return node
    return None


def _has_clauses(node: exp.Expr, allowed: tuple[str, ...]) -> bool:
    return any(value and name not in allowed for name, value in node.args.items())
