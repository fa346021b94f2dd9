"""One SELECT: FROM, WHERE, GROUP BY, HAVING, select list, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from remuda.datatypes.coercion import is_comparable, is_implicit
from remuda.datatypes.sql import BIGINT, SqlType
from remuda.datatypes.text import type_name
from remuda.errors import (
    GroupingError,
    InvalidDefinition,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedMap,
    WindowingError,
)
from remuda.plan.expression import (
    AggregateCall,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    columns_of,
    conjunction,
)
from remuda.plan.functions import AGGREGATE_FUNCTIONS
from remuda.plan.logical import Filter, Logical
from remuda.sql import calls, operators
from remuda.sql.clauses import (
    conjunct_nodes,
    default_name,
    first_part,
    limited,
    matching_output,
    ordinal_of,
)
from remuda.sql.context import Context, identifier
from remuda.sql.conversion import is_untyped
from remuda.sql.expressions import ExpressionBinder
from remuda.sql.grouping import Grouping
from remuda.sql.output import distinct, free_columns, one_row, project
from remuda.sql.places import end_of
from remuda.sql.relations import Environment, QueryBinder, RelationBinder
from remuda.sql.scope import Scope, all_levels
from remuda.sql.subqueries import SubqueryBinder
from remuda.sql.windows import WindowBinder

assert calls
assert operators
"""Importing them registers their handlers."""

_CONSUMED = (
    "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order",
    "limit", "offset", "windows",
)  # fmt: skip


@dataclass(slots=True)
class Item:
    """One expression of the select list (or one that only ORDER BY needs)."""

    name: str
    expression: Expression
    node: exp.Expr | None


@dataclass(slots=True)
class Ordering:
    """One ORDER BY key: the item that it sorts by."""

    item: int
    descending: bool
    nulls_first: bool


class SelectBinder:
    """Binds one SELECT in two steps: ``analyze`` finds names and types, ``build`` makes the plan.

    Between them, untyped items (literals, parameters) can still take types from outside: from the
    other branches of a UNION or from the columns of an INSERT.
    """

    def __init__(
        self,
        context: Context,
        node: exp.Select,
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
        self.having: Expression | None = None
        self.grouping = Grouping(context)
        self.correlated: list[Expression] = []
        """Conjuncts of WHERE that refer to an enclosing query, when ``pull_up`` allows them."""
        self.pull_up = False
        self.subqueries = SubqueryBinder(self)
        self.windows = WindowBinder(self)
        self.clause = ""
        self.in_aggregate = False
        self.binder = ExpressionBinder(context, self.scope, self)

    # --- what expressions ask (Surroundings) ---

    def aggregate(self, name: str, node: exp.Expr, filter_node: exp.Expr | None) -> Expression:
        context = self.context
        if self.in_aggregate:
            raise context.error(GroupingError, "aggregate function calls cannot be nested", node)
        if self.clause in ("WHERE", "GROUP BY"):
            raise context.error(
                GroupingError,
                f"aggregate functions are not allowed in {self.clause}",
                node,
                hint="Conditions on aggregates belong into HAVING."
                if self.clause == "WHERE"
                else "",
            )
        self.in_aggregate = True
        try:
            call = self.aggregate_call(name, node, filter_node)
        finally:
            self.in_aggregate = False
        return self.grouping.reference(call, name)

    def aggregate_call(
        self, name: str, node: exp.Expr, filter_node: exp.Expr | None
    ) -> AggregateCall:
        """``name(...)`` bound, but not announced to the grouping: it may be a window call."""
        context, arguments = self.context, list(node.expressions)
        unique = False
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            context.only(arguments[0], "expressions")
            arguments, unique = list(arguments[0].expressions), True
        condition = None
        if filter_node is not None:
            condition = self.binder.condition(filter_node, "FILTER")
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not unique:
            if name != "count":
                raise context.error(UndefinedFunction, f"function {name}(*) does not exist", node)
            context.only(arguments[0])
            return AggregateCall("count", None, BIGINT, filter=condition)
        if len(arguments) != 1:
            if not arguments and name == "count":
                hint = "Write count(*) to count rows."
            else:
                hint = f"{name} takes one argument."
            raise context.error(
                UndefinedFunction, f"function {name} of {len(arguments)} arguments does not exist",
                node, hint=hint,
            )  # fmt: skip
        argument = self.binder.bind(arguments[0])
        signature = AGGREGATE_FUNCTIONS[name].resolve(argument.type)
        if signature is None:
            shown = "unknown" if is_untyped(argument) else type_name(argument.type)
            raise context.error(
                UndefinedFunction,
                f"function {name}({shown}) does not exist",
                node,
                hint=f"{name} needs a number: convert the argument with CAST."
                if name in ("sum", "avg")
                else "",
            )
        converted = self.binder.convert.implicit(argument, signature.arguments[0], arguments[0])
        return AggregateCall(name, converted, signature.result, unique, condition)

    def window(self, node: exp.Window) -> Expression:
        return self.windows.bind(node)

    def scalar_subquery(self, node: exp.Expr) -> Expression:
        return self.subqueries.scalar(node)

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
        self.binder = ExpressionBinder(self.context, self.scope, self)

    def bind_where(self) -> None:
        where = self.node.args.get("where")
        if where is None:
            return
        self.clause = "WHERE"
        plain: list[Expression] = []
        after_subqueries: list[Expression] = []
        joins: list[exp.Expr] = []
        self.subqueries.deferred = True
        for part in conjunct_nodes(where.this):
            if self.subqueries.is_semi_join(part):
                joins.append(part)
                continue
            waiting = self.subqueries.waiting
            condition = self.binder.condition(part, "WHERE")
            if self.pull_up and columns_of(condition) & self.scope.outer:
                self.correlated.append(condition)
            elif self.subqueries.waiting > waiting:
                after_subqueries.append(condition)
            else:
                plain.append(condition)
        self.plan = filtered(self.plan, plain)
        self.plan = filtered(self.subqueries.attach(self.plan), after_subqueries)
        for part in joins:
            self.subqueries.semi_join(part)
        self.clause = ""

    def bind_rest(self) -> None:
        node = self.node
        self.clause = "SELECT"
        self.subqueries.deferred = True
        for item in node.expressions:
            self.bind_item(item)
        if not self.items:
            error = self.context.error(
                SqlSyntaxError, "SELECT needs at least one expression", node.args.get("from_")
            )
            error.position = error.position or end_of(self.context.text)
            raise error
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
        self.windows.bind_named()
        self.clause = ""

    def bind_item(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Star):
            self.context.only(node)
            if self.node.args.get("from_") is None:
                raise self.context.error(
                    SqlSyntaxError, "SELECT * with no tables specified is not valid", node
                )
            self.items += [Item(name, e, node) for name, e in self.scope.visible]
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self.items += [Item(name, e, node) for name, e in self.columns_of_alias(node)]
        elif isinstance(node, exp.Alias):
            self.context.only(node, "this", "alias")
            name = identifier(node.args["alias"])
            self.items.append(Item(name, self.binder.bind(node.this), node.this))
        elif isinstance(node, exp.Aliases):
            raise self.context.unsupported("an alias list", node)
        else:
            self.items.append(Item(default_name(node), self.binder.bind(node), node))

    def columns_of_alias(self, node: exp.Column) -> list[tuple[str, Expression]]:
        self.context.only(node, "this", "table")
        self.context.only(node.this)
        alias = identifier(node.args["table"])
        for level in all_levels(self.scope):
            if alias in level.relations:
                return level.relations[alias]
        raise self.context.error(
            UndefinedMap, f'missing FROM-clause entry for table "{alias}"', node
        )

    # --- GROUP BY ---

    def bind_group_by(self, node: exp.Expr) -> None:
        self.context.only(node, "expressions")
        self.grouping.forced = True
        for element in node.expressions:
            parts = element.expressions if isinstance(element, exp.Tuple) else [element]
            for part in parts:
                expression = self.group_element(part)
                settled = self.binder.convert.settled(expression, part)
                if not is_comparable(settled.type):
                    raise self.context.error(
                        TypeMismatch, f"cannot group by type {type_name(settled.type)}", part
                    )
                self.grouping.add_key(settled)

    def group_element(self, node: exp.Expr) -> Expression:
        name = {"Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS"}.get(
            type(node).__name__
        )
        if name is not None:
            raise self.context.unsupported(name, first_part(node))
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
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = identifier(node.this) if not isinstance(node.this, exp.Star) else ""
            if not self.scope.candidates(name):
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

    def item_at(self, ordinal: int, node: exp.Expr, clause: str) -> Item:
        if not 1 <= ordinal <= len(self.items):
            raise self.context.error(
                UndefinedColumn, f"{clause} position {ordinal} is not in select list", node
            )
        return self.items[ordinal - 1]

    # --- ORDER BY ---

    def bind_order_key(self, key: exp.Expr) -> None:
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

    def ordered_item(self, node: exp.Expr) -> int:
        """The index of the item to sort by: an ordinal, an output name, or an expression."""
        ordinal = ordinal_of(node)
        if ordinal is not None:
            self.item_at(ordinal, node, "ORDER BY")
            return ordinal - 1
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            found = matching_output(self.context, self.items, node)
            if found is not None:
                return found
        expression = self.binder.settled(node)
        index = -1
        for index, item in enumerate(self.items + self.hidden):
            if item.expression == expression:
                return index
        if self.node.args.get("distinct") is not None:
            raise self.context.error(
                InvalidDefinition,
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
        plan = self.plan_of_items()
        if self.node.args.get("distinct") is not None:
            self.context.only(self.node.args["distinct"])
            for item in self.items:
                if not is_comparable(item.expression.type):
                    raise self.context.unsupported(
                        f"DISTINCT over type {type_name(item.expression.type)}", item.node
                    )
            plan = distinct(plan)
        plan = self.sorted(plan)
        if self.hidden:
            visible = plan.output[: len(self.items)]
            plan = project(
                self.context,
                plan,
                [c.name for c in visible],
                [ColumnRef(c.type, c.id, c.name) for c in visible],
            )
        self.refuse_free_columns(plan)
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

    def plan_of_items(self) -> Logical:
        every = self.items + self.hidden
        plan = self.plan
        expressions = [item.expression for item in every]
        having = self.having
        if self.grouping.active:
            plan = self.grouping.aggregate(plan)
            extra = self.subqueries.attached_ids | self.windows.ids
            expressions = [self.grouping.above(item.expression, item.node, extra) for item in every]
            if having is not None:
                place = self.node.args["having"].this
                having = self.grouping.above(having, place, self.subqueries.attached_ids)
        plan = self.subqueries.attach(plan)
        plan = filtered(plan, () if having is None else (having,))
        if self.windows.active:
            plan = self.windows.attach(plan, self.above_grouping)
        return project(self.context, plan, [item.name for item in every], expressions)

    def above_grouping(self, expression: Expression, node: exp.Expr | None) -> Expression:
        if not self.grouping.active:
            return expression
        return self.grouping.above(expression, node, self.subqueries.attached_ids)

    def sorted(self, plan: Logical) -> Logical:
        keys: list[SortKey] = []
        seen: set[ColumnId] = set()
        for ordering in self.orderings:
            column = plan.output[ordering.item].id
            if column not in seen:
                keys.append(SortKey(column, ordering.descending, ordering.nulls_first))
                seen.add(column)
        return limited(self.context, plan, tuple(keys), self.node)

    def refuse_free_columns(self, plan: Logical) -> None:
        """References to an enclosing query that no rule of ours has turned into a join."""
        if not self.scope.outer or self.pull_up:
            return
        if free_columns(plan) & self.scope.outer:
            raise self.context.unsupported(
                "a correlated subquery of this form",
                self.node,
                hint="Supported: EXISTS, IN, scalar aggregates, correlated in their WHERE clause.",
            )


def filtered(plan: Logical, conditions: Sequence[Expression]) -> Logical:
    condition = conjunction(tuple(conditions))
    return plan if condition is None else Filter(plan.output, plan, condition)
