"""One SELECT: FROM, WHERE, GROUP BY, HAVING, select list, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from remuda.datatypes.coercion import is_comparable, is_implicit
from remuda.datatypes.sql import INTEGER, Kind, SqlType
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    GroupingError,
    InvalidColumnReference,
    LimitExceeded,
    NotSupported,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedMap,
    WindowingError,
    WrongObjectType,
)
from remuda.plan.expression import (
    AggregateCall,
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    columns_of,
    conjunction,
)
from remuda.plan.logical import Filter, Logical, OutputColumn
from remuda.sql.expressions import calls, operators
from remuda.sql.expressions.aggregates import bind_aggregate, first_of
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.expressions.functions import catalog
from remuda.sql.expressions.nested import field_of
from remuda.sql.expressions.subqueries import SubqueryPlans, refuse_no_columns
from remuda.sql.queries import array_queries
from remuda.sql.queries.clauses import (
    RowCounts,
    default_name,
    limited,
    matching_output,
    ordinal_of,
    refuse_constant,
)
from remuda.sql.queries.first_rows import first_of_each
from remuda.sql.queries.grouping import GROUPING, Grouping, refuse_grouping
from remuda.sql.queries.grouping_sets import grouping_sets, has_sets
from remuda.sql.queries.relations import Environment, QueryBinder, RelationBinder
from remuda.sql.queries.select_items import Item, Ordering
from remuda.sql.queries.select_rows import SelectRows
from remuda.sql.queries.windows import WindowBinder
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import distinct, one_row, project
from remuda.sql.scope.schema_names import check_qualifier
from remuda.sql.scope.scope import Scope, all_levels, columns_of_alias
from remuda.sql.text.lexemes import end_of
from remuda.sql.trees import ast

assert array_queries
assert calls
assert operators
assert catalog
"""Importing them registers their handlers."""

_CONSUMED = (
    "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order",
    "limit", "offset", "windows",
)  # fmt: skip

_SET_FUNCTION_CLAUSES: Final = ("SELECT", "GROUP BY", "ORDER BY")
"""DISTINCT ON included, which is bound with the ORDER BY."""
_COMPARE: Final = "Cast the column to a type that compares, such as TEXT."
_INTO_FROM: Final = "Move the function into a LATERAL subquery in FROM."
TARGETS_MAX: Final = 1664
"""As in PostgreSQL."""
GROUPING_ARGUMENTS_MAX: Final = 31
"""The result of GROUPING has a bit for each."""


class SelectBinder:
    """Binds one SELECT in two steps: ``analyze`` finds names and types, ``build`` makes the plan.

    Between them, untyped items (literals, parameters) can still take types from outside: from the
    other branches of a UNION or from the columns of an INSERT.
    """

    def __init__(
        self,
        context: Context,
        node: ast.Select,
        environment: Environment,
        bind_query: QueryBinder,
    ) -> None:
        self.context = context
        self.node = node
        self.environment = environment
        self.bind_query = bind_query
        self.plan: Logical = one_row()
        self.scope = Scope(parent=environment.parent)
        self.items: list[Item] = []
        self.hidden: list[Item] = []
        self.orderings: list[Ordering] = []
        self.first_of: list[int] = []
        """The items of DISTINCT ON."""
        self.having: Expression | None = None
        self.grouping = Grouping(context)
        self.subqueries = SubqueryPlans(self._subquery)
        self.windows = WindowBinder(self)
        self.rows = SelectRows()
        self.clause = ""
        self.in_aggregate = False
        self.binder = ExpressionBinder(context, self.scope, self)

    # --- what expressions ask (Surroundings) ---

    @property
    def has_grouping_sets(self) -> bool:
        group = self.node.args.get("group")
        return group is not None and has_sets(group)

    def refuse_nested(self, node: ast.Node) -> None:
        if self.in_aggregate:
            message = "aggregate function calls cannot be nested"
            raise self.context.error(GroupingError, message, node)

    def aggregate(self, name: str, node: ast.Node, filter_node: ast.Node | None) -> Expression:
        self.refuse_nested(node)
        self.in_aggregate = True
        try:
            call = self.aggregate_call(name, node, filter_node)
        finally:
            self.in_aggregate = False
        level = self._level_of(call)
        owner = self if level is self.scope else level.owner
        if not isinstance(owner, SelectBinder):
            where = owner if isinstance(owner, str) else "FROM clause of their own query level"
            message = f"aggregate functions are not allowed in {where}"
            raise self.context.error(GroupingError, message, node)
        owner.refuse_nested(node)  # a subquery in the argument of one may make another one of it
        owner.refuse_aggregate(node)
        reference = owner.grouping.reference(call, name)
        for crossed in all_levels(self.scope):
            if crossed is level:
                break
            crossed.outer |= columns_of(reference)
        return first_of(call, name, reference)

    def _level_of(self, call: AggregateCall) -> Scope:
        """The query that an aggregate belongs to: the innermost one whose columns it is over."""
        used = frozenset().union(*(columns_of(part) for part in call.expressions))
        levels = (level for level in all_levels(self.scope) if level.has_any(used))
        return next(levels, self.scope)

    def refuse_aggregate(self, node: ast.Node) -> None:
        """Raises GroupingError where this query can have no aggregates now."""
        if self.clause in ("WHERE", "GROUP BY"):
            raise self.context.error(
                GroupingError,
                f"aggregate functions are not allowed in {self.clause}",
                node,
                hint="Conditions on aggregates belong into HAVING."
                if self.clause == "WHERE"
                else "",
            )

    def aggregate_call(
        self, name: str, node: ast.Node, filter_node: ast.Node | None
    ) -> AggregateCall:
        """``name(...)`` bound, but not announced to the grouping: it may be a window call."""
        condition = None
        if filter_node is not None:
            condition = self.binder.condition(filter_node, "FILTER")
        return bind_aggregate(self.binder, name, node, condition)

    def window(self, node: ast.Window) -> Expression:
        known = self.rows.count
        bound = self.windows.bind(node)
        if self.rows.count > known:
            message = "set-returning functions are not allowed in window functions"
            raise self.context.error(NotSupported, message, node, _INTO_FROM)
        return bound

    def set_function(self, name: str, arguments: Sequence[ast.Node], node: ast.Node) -> Expression:
        if self.clause not in _SET_FUNCTION_CLAUSES or self.in_aggregate:
            where = "aggregate functions" if self.in_aggregate else self.clause or "this place"
            message = f"set-returning functions are not allowed in {where}"
            raise self.context.error(NotSupported, message, node, _INTO_FROM)
        return self.rows.bind(self.binder, name, arguments, node)

    def subquery(self, node: ast.Node) -> Logical:
        refuse_no_columns(self.context, node)
        return self.subqueries.plan(node)

    def _outer_query(self, node: ast.Node) -> Logical:
        """A subquery in LIMIT, which sees nothing of FROM."""
        return self.bind_query(node, self.environment)

    def _subquery(self, node: ast.Node) -> Logical:
        return self.bind_query(node, Environment(self.environment.tables, self.scope))

    # --- analysis ---

    def analyze(self) -> None:
        node = self.node
        self.context.only(node, *_CONSUMED)
        self.bind_from()
        self.bind_where()
        self.bind_rest()

    def bind_from(self) -> None:
        first = self.node.args.get("from_")
        if first is None:
            return
        relations = RelationBinder(self.context, self.environment, self.bind_query)
        self.plan, self.scope = relations.from_clause(first.this, self.node.args.get("joins") or [])
        self.scope.owner = self
        self.binder = ExpressionBinder(self.context, self.scope, self)

    def bind_where(self) -> None:
        where = self.node.args.get("where")
        if where is None:
            return
        self.clause = "WHERE"
        condition = self.binder.condition(where.this, "WHERE")
        self.plan = filtered(self.plan, (condition,))
        self.clause = ""

    def bind_rest(self) -> None:
        node = self.node
        self.clause = "SELECT"
        for item in node.expressions[: TARGETS_MAX + 1]:
            self.bind_item(item)
        if len(self.items) > TARGETS_MAX:
            raise self.context.error(
                LimitExceeded,
                f"target lists can have at most {TARGETS_MAX} entries",
                self.items[TARGETS_MAX].node,
            )
        if not self.items:
            error = self.context.unsupported(
                "SELECT without columns", node.args.get("from_"), hint="Select a constant."
            )
            text = self.context.text
            raise error.at(error.position or end_of(text), text)
        if (group := node.args.get("group")) is not None:
            self.clause = "GROUP BY"
            self.bind_group_by(group)
        if (having := node.args.get("having")) is not None:
            self.clause = "HAVING"
            self.grouping.forced = True
            self.having = self.binder.condition(having.this, "HAVING")
        if (order := node.args.get("order")) is not None:
            self.clause = "ORDER BY"
            self.context.only(order, "expressions")
            for key in order.expressions:
                self.bind_order_key(key)
        if (distinct_on := self.distinct_on) is not None:
            self.bind_distinct_on(distinct_on)
        self.windows.bind_named()
        self.clause = ""

    def bind_item(self, node: ast.Node) -> None:
        if isinstance(node, ast.Star):
            self.context.only(node)
            if self.node.args.get("from_") is None:
                raise self.context.error(
                    SqlSyntaxError, "SELECT * with no tables specified is not valid", node
                )
            self.items += [Item(name, e, node) for name, e in self.scope.visible]
        elif isinstance(node, ast.Column) and isinstance(node.this, ast.Star):
            self.items += [Item(name, e, node) for name, e in self.columns_of_alias(node)]
        elif isinstance(node, ast.Dot) and isinstance(node.expression, ast.Star):
            self.items += self.fields_of(node)
        elif isinstance(node, ast.Alias):
            self.context.only(node, "this", "alias")
            name = identifier(node.args["alias"])
            self.items.append(Item(name, self.binder.bind(node.this), node.this))
        else:
            self.items.append(Item(default_name(node), self.binder.bind(node), node))

    def fields_of(self, node: ast.Dot) -> list[Item]:
        """``(row).*``"""
        value = self.binder.settled(node.this)
        if value.type.kind is not Kind.ROW:
            raise self.context.error(
                WrongObjectType, f"type {type_name(value.type)} is not composite", node.this
            )
        return [
            Item(name, field_of(value, place), node)
            for place, (name, _) in enumerate(value.type.fields)
        ]

    def columns_of_alias(self, node: ast.Column) -> list[tuple[str, Expression]]:
        self.context.only(node, "this", "table", "db", "catalog")
        check_qualifier(self.context, node)
        self.context.only(node.this)
        alias = identifier(node.args["table"])
        found = columns_of_alias(self.scope, alias)
        if found is not None:
            return found
        raise self.context.error(
            UndefinedMap, f'missing FROM-clause entry for table "{alias}"', node
        )

    # --- GROUP BY ---

    def grouping_operation(self, node: ast.Node) -> Expression:
        """``GROUPING(key, ...)``, to be computed when the grouping sets are known."""
        context = self.context
        if self.clause in ("WHERE", "GROUP BY"):
            raise context.error(
                GroupingError, f"grouping operations are not allowed in {self.clause}", node
            )
        self.refuse_nested(node)
        if not 1 <= len(node.expressions) <= GROUPING_ARGUMENTS_MAX:
            raise context.error(
                SqlSyntaxError,
                f"GROUPING takes from 1 to {GROUPING_ARGUMENTS_MAX} arguments",
                node,
            )
        self.grouping.forced = True
        arguments = tuple(self.binder.settled(argument) for argument in node.expressions)
        return Call(INTEGER, GROUPING, arguments)

    def bind_group_by(self, node: ast.Node) -> None:
        self.context.only(node, "expressions", "all")
        assert isinstance(node, ast.Group)
        if not node.expressions:
            error = self.context.error(SqlSyntaxError, "syntax error at end of input", None)
            raise error.at(end_of(self.context.text), self.context.text)
        self.grouping.forced = True
        self.grouping.group_by(grouping_sets(self.context, node, self.group_key))

    def group_key(self, node: ast.Node) -> Expression:
        settled = self.binder.convert.settled(self.group_element(node), node)
        refuse_grouping(self.context, settled, node)
        if not is_comparable(settled.type):
            raise self.context.error(
                TypeMismatch, f"cannot group by type {type_name(settled.type)}", node
            )
        return settled

    def group_element(self, node: ast.Node) -> Expression:
        ordinal = ordinal_of(node)
        if ordinal is not None:
            item = self.item_at(ordinal, node, "GROUP BY")
            self.refuse_window(item)
            if self.grouping.uses_aggregate(item.expression):
                raise self.context.error(
                    GroupingError, "aggregate functions are not allowed in GROUP BY", item.node
                )
            item.expression = self.binder.convert.settled(item.expression, item.node)
            return item.expression
        refuse_constant(self.context, node, "GROUP BY")
        if isinstance(node, ast.Column) and node.args.get("table") is None:
            name = identifier(node.this) if not isinstance(node.this, ast.Star) else ""
            if not self.scope.candidates(name):
                matching_output(self.context, self.items, node, "GROUP BY")
                matches = [item for item in self.items if item.name == name]
                if matches and self.grouping.uses_aggregate(matches[0].expression):
                    raise self.context.error(
                        GroupingError, "aggregate functions are not allowed in GROUP BY", node
                    )
                if matches:
                    self.refuse_window(matches[0])
                    return matches[0].expression
        return self.binder.bind(node)

    def refuse_window(self, item: Item) -> None:
        if self.windows.uses(item.expression):
            raise self.context.error(
                WindowingError, "window functions are not allowed in GROUP BY", item.node
            )

    def item_at(self, ordinal: int, node: ast.Node, clause: str) -> Item:
        if not 1 <= ordinal <= len(self.items):
            raise self.context.error(
                InvalidColumnReference, f"{clause} position {ordinal} is not in select list", node
            )
        return self.items[ordinal - 1]

    # --- ORDER BY ---

    def bind_order_key(self, key: ast.Node) -> None:
        self.context.only(key, "this", "desc", "nulls_first")
        node = key.this
        index = self.ordered_item(node)
        item = (self.items + self.hidden)[index]
        item.expression = self.binder.convert.settled(item.expression, item.node)
        if not is_comparable(item.expression.type):
            raise self.context.error(
                TypeMismatch, f"cannot sort type {type_name(item.expression.type)}", node
            )
        self.orderings.append(
            Ordering(index, bool(key.args.get("desc")), bool(key.args.get("nulls_first")))
        )

    @property
    def distinct_on(self) -> ast.Node | None:
        found = self.node.args.get("distinct")
        return None if found is None else found.args.get("on")

    def bind_distinct_on(self, on: ast.Node) -> None:
        nodes = on.expressions if isinstance(on, ast.Tuple) else [on]
        if not nodes:
            raise self.context.error(SqlSyntaxError, 'syntax error at or near ")"', on)
        for node in nodes:
            index = self.ordered_item(node, "DISTINCT ON")
            item = (self.items + self.hidden)[index]
            item.expression = self.binder.convert.settled(item.expression, item.node)
            if not is_comparable(item.expression.type):
                what = f"DISTINCT over type {type_name(item.expression.type)}"
                raise self.context.unsupported(what, node, _COMPARE)
            self.first_of.append(index)
        ordered = [ordering.item for ordering in self.orderings]
        leading = list(takewhile(lambda index: index in self.first_of, ordered))
        missing = [nodes[i] for i, index in enumerate(self.first_of) if index not in leading]
        if missing and len(leading) < len(ordered):
            raise self.context.error(
                InvalidColumnReference,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                missing[0],
            )

    def ordered_item(self, node: ast.Node, clause: str = "ORDER BY") -> int:
        """The index of the item to sort by: an ordinal, an output name, or an expression."""
        ordinal = ordinal_of(node)
        if ordinal is not None:
            self.item_at(ordinal, node, clause)
            return ordinal - 1
        refuse_constant(self.context, node, clause)
        if isinstance(node, ast.Column) and node.args.get("table") is None:
            found = matching_output(self.context, self.items, node, clause)
            if found is not None:
                return found
        expression = self.binder.settled(node)
        index = -1
        for index, item in enumerate(self.items + self.hidden):
            if item.expression == expression:
                return index
        if self.node.args.get("distinct") is not None and self.distinct_on is None:
            raise self.context.error(
                InvalidColumnReference,
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                node,
            )
        name = expression.name if isinstance(expression, ColumnRef) else f"order{index + 1}"
        self.hidden.append(Item(name, expression, node))
        return len(self.items) + len(self.hidden) - 1

    # --- the plan ---

    @property
    def names(self) -> list[str]:
        return [item.name for item in self.items]

    @property
    def types(self) -> list[SqlType]:
        """Item types; Kind.NULL where an item is still untyped."""
        return [item.expression.type for item in self.items]

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical:
        """The plan; ``targets[i]`` types item ``i`` if it is untyped."""
        self.settle(targets)
        if self.first_of and self.unfolds_last():
            self.context.only(self.node.args["distinct"], "on")
            plan = self.plan_of_first_items()
        elif self.first_of:
            self.context.only(self.node.args["distinct"], "on")
            plan = self.plan_of_items()
            group = [plan.output[index].id for index in self.first_of]
            plan = first_of_each(self.context, plan, group, self.sort_keys(plan.output))
        elif self.node.args.get("distinct") is not None:
            self.context.only(self.node.args["distinct"])
            for item in self.items:
                if not is_comparable(item.expression.type):
                    what = f"DISTINCT over type {type_name(item.expression.type)}"
                    raise self.context.unsupported(what, item.node, _COMPARE)
            plan = distinct(self.plan_of_items())
        else:
            plan = self.plan_of_items()
        keys = self.sort_keys(plan.output)
        counts = RowCounts(self.context, self._outer_query, self.scope)
        plan = limited(counts, plan, keys, self.node)
        if self.hidden:
            visible = plan.output[: len(self.items)]
            plan = project(
                self.context,
                plan,
                [c.name for c in visible],
                [ColumnRef(c.type, c.id, c.name) for c in visible],
            )
        return plan

    def settle(self, targets: Sequence[SqlType | None] | None) -> None:
        convert = self.binder.convert
        for index, item in enumerate(self.items):
            target = None if targets is None else targets[index]
            expression = item.expression
            if target is not None and is_untyped(expression):
                item.expression = convert.typed(expression, target, item.node)
            elif (
                target is not None
                and isinstance(expression, Literal)
                and is_implicit(expression.type, target)
            ):
                item.expression = convert.cast(expression, target, item.node)
            else:
                item.expression = convert.settled(item.expression, item.node)

    def unfolds_last(self) -> bool:
        """Whether set-returning functions see only the rows that DISTINCT ON keeps, as in
        PostgreSQL: there is an ORDER BY, and neither it nor DISTINCT ON uses one."""
        sorts = {*self.first_of, *(ordering.item for ordering in self.orderings)}
        every = self.items + self.hidden
        return (
            self.rows.active
            and bool(self.orderings)
            and not any(columns_of(every[index].expression) & self.rows.ids for index in sorts)
        )

    def plan_of_items(self) -> Logical:
        plan, expressions = self.rows_of_items()
        if self.rows.active:
            plan = self.rows.attach(plan, self.above_grouping)
        names = [item.name for item in self.items + self.hidden]
        return project(self.context, plan, names, expressions)

    def plan_of_first_items(self) -> Logical:
        """The first rows of DISTINCT ON, and then what set-returning functions make of them."""
        below, expressions = self.rows_of_items()
        names = [item.name for item in self.items + self.hidden]
        early = [i for i, e in enumerate(expressions) if not columns_of(e) & self.rows.ids]
        plan = project(
            self.context,
            below,
            [*(c.name for c in below.output), *(names[i] for i in early)],
            [
                *(ColumnRef(c.type, c.id, c.name) for c in below.output),
                *(expressions[i] for i in early),
            ],
        )
        made = dict(zip(early, plan.output[len(below.output) :], strict=True))
        group = [made[index].id for index in self.first_of]
        plan = first_of_each(self.context, plan, group, self.sort_keys(made))
        plan = self.rows.attach(plan, self.above_grouping)
        for index, column in made.items():
            expressions[index] = ColumnRef(column.type, column.id, column.name)
        return project(self.context, plan, names, expressions)

    def rows_of_items(self) -> tuple[Logical, list[Expression]]:
        """The rows below set-returning functions, and the expressions that compute the items from
        them."""
        every = self.items + self.hidden
        plan = self.plan
        expressions = [item.expression for item in every]
        having = self.having
        if self.grouping.active:
            plan = self.rows.attach_grouped(plan, self.grouping.keys)
            used = [*expressions, *self.windows.expressions()]
            self.grouping.add_determined(plan, used if having is None else [*used, having])
            plan = self.grouping.aggregate(plan)
            extra = self.windows.ids | self.rows.ids | self.scope.outer
            expressions = [self.grouping.above(item.expression, item.node, extra) for item in every]
            if having is not None:
                place = self.node.args["having"].this
                having = self.grouping.above(having, place, self.scope.outer)
        plan = filtered(plan, () if having is None else (having,))
        if self.windows.active:
            plan = self.windows.attach(plan, self.above_grouping)
        return plan, expressions

    def above_grouping(self, expression: Expression, node: ast.Node | None) -> Expression:
        if not self.grouping.active:
            return expression
        return self.grouping.above(expression, node, self.scope.outer)

    def sort_keys(
        self, columns: Sequence[OutputColumn] | Mapping[int, OutputColumn]
    ) -> tuple[SortKey, ...]:
        """The ORDER BY; ``columns`` has the column of each item by its index."""
        keys: list[SortKey] = []
        seen: set[ColumnId] = set()
        for ordering in self.orderings:
            column = columns[ordering.item].id
            if column not in seen:
                keys.append(SortKey(column, ordering.descending, ordering.nulls_first))
                seen.add(column)
        return tuple(keys)


def filtered(plan: Logical, conditions: Sequence[Expression]) -> Logical:
    condition = conjunction(tuple(conditions))
    return plan if condition is None else Filter(plan.output, plan, condition)
