"""Window functions: OVER, named windows, frames, and the Window operators of one SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from remuda.datatypes.coercion import is_comparable
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    GroupingError,
    TypeMismatch,
    UndefinedFunction,
    UndefinedType,
    WindowingError,
    WrongObjectType,
)
from remuda.plan.expression import (
    AggregateCall,
    ColumnId,
    ColumnRef,
    Expression,
    SortKey,
    columns_of,
)
from remuda.plan.functions.catalog import AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS
from remuda.plan.logical import Logical, OutputColumn, Window
from remuda.plan.windows import DEFAULT_FRAME, WindowCall, expressions_of, rewritten
from remuda.sql.expressions.calls import function_name
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.queries.frames import FrameBinder
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import project
from remuda.sql.trees import ast

_FORBIDDEN: Final = ("WHERE", "GROUP BY", "HAVING")
_NEVER_NULL: Final = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist"}
    | {name for name, function in AGGREGATE_FUNCTIONS.items() if function.counts}
)
Rewrite: TypeAlias = Callable[[Expression, ast.Node | None], Expression]


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Definition:
    """The words of a window; ``spec`` is its frame clause, not bound yet: it may depend on the
    call's place no more than the rest, but its errors do."""

    partition: tuple[Expression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    spec: ast.WindowSpec | None = None


@dataclass(frozen=True, slots=True)
class _Bound:
    definition: Definition
    call: WindowCall


class WindowedSelect(Protocol):
    """The SELECT in which window calls stand: the clause that is being bound, and its binder."""

    clause: str
    in_aggregate: bool
    binder: ExpressionBinder

    @property
    def context(self) -> Context: ...

    @property
    def node(self) -> ast.Select: ...

    def aggregate_call(
        self, name: str, node: ast.Call, condition: ast.Node | None
    ) -> AggregateCall: ...


class WindowBinder:
    """The window calls of one SELECT. In expressions a call stands as a reference to its column;
    equal calls share one."""

    def __init__(self, owner: WindowedSelect) -> None:
        self.owner = owner
        self.context = owner.context
        self.inside = False
        self._calls: dict[_Bound, ColumnRef] = {}
        self._places: dict[ColumnId, ast.Node] = {}
        self._named: dict[str, Definition] = {}
        self._named_ready = False

    @property
    def active(self) -> bool:
        return bool(self._calls)

    @property
    def ids(self) -> frozenset[ColumnId]:
        return frozenset(self._places)

    def uses(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.ids)

    def expressions(self) -> Iterator[Expression]:
        """Everything that the calls and their windows compute."""
        for bound in self._calls:
            yield from expressions_of(bound.call)
            yield from bound.definition.partition
            yield from (key.expression for key in bound.definition.order)

    # --- one call ---

    def bind(self, node: ast.Window) -> Expression:
        inner = node.this
        if isinstance(inner, ast.IgnoreNulls):
            raise self.context.unsupported(
                "IGNORE NULLS", inner.this, hint="Filter the NULLs in a subquery."
            )
        if isinstance(inner, ast.RespectNulls):
            inner = inner.this
        condition = None
        if isinstance(inner, ast.Filter):
            condition = inner.args["expression"].this
            inner = inner.this
        self._refuse_place(inner)
        if isinstance(inner, ast.WithinGroup):
            raise self.context.unsupported(
                "OVER behind WITHIN GROUP",
                inner.this,
                hint="Aggregate in a subquery with GROUP BY, and join it.",
            )
        name = function_name(inner) if isinstance(inner, ast.Call) else ""
        if name not in WINDOW_FUNCTIONS and name not in AGGREGATE_FUNCTIONS:
            raise self.context.error(
                WrongObjectType,
                f"OVER specified, but {name or 'this'} is not a window function nor an aggregate "
                "function",
                inner,
            )
        self.bind_named()
        self.inside = True
        try:
            if name in AGGREGATE_FUNCTIONS:
                call = self._aggregate(name, inner, condition)
            elif condition is not None:
                raise self.context.unsupported(
                    "FILTER of a window function that is not an aggregate",
                    inner,
                    hint="Use CASE in the argument.",
                )
            else:
                call = self._function(name, inner)
            definition = self._definition(node, self._named)
            frame = DEFAULT_FRAME
            if definition.spec is not None:
                frame = FrameBinder(self.context, definition.spec, inner).bind(
                    [(key.expression, key.descending) for key in definition.order]
                )
        finally:
            self.inside = False
        if name in WINDOW_FUNCTIONS and not WINDOW_FUNCTIONS[name].framed:
            frame = DEFAULT_FRAME
        return self._reference(
            _Bound(replace(definition, spec=None), replace(call, frame=frame)), name, inner
        )

    def _refuse_place(self, node: ast.Node) -> None:
        if self.owner.in_aggregate:
            raise self.context.error(
                GroupingError, "aggregate function calls cannot contain window function calls", node
            )
        if self.inside:
            raise self.context.error(WindowingError, "window function calls cannot be nested", node)
        if self.owner.clause in _FORBIDDEN:
            raise self.context.error(
                WindowingError,
                f"window functions are not allowed in {self.owner.clause}",
                node,
                hint=f"Compute it in a derived table, and use {self.owner.clause} outside of it.",
            )

    def _reference(self, bound: _Bound, name: str, place: ast.Node) -> ColumnRef:
        found = self._calls.get(bound)
        if found is None:
            found = ColumnRef(bound.call.type, self.context.new_id(), name)
            self._calls[bound] = found
            self._places[found.column] = place
        return found

    def _aggregate(self, name: str, node: ast.Call, condition: ast.Node | None) -> WindowCall:
        call = self.owner.aggregate_call(name, node, condition)
        if call.distinct:
            raise self.context.unsupported(
                "DISTINCT in a window function",
                node,
                hint="Remove the duplicates in a subquery before.",
            )
        if call.order:
            raise self.context.unsupported(
                "ORDER BY inside a window function's arguments",
                node,
                hint="Give the order in OVER (ORDER BY ...).",
            )
        return WindowCall(call.function, call.arguments, call.type, filter=call.filter)

    def _function(self, name: str, node: ast.Call) -> WindowCall:
        nodes = list(node.expressions)
        for argument in nodes:
            if isinstance(argument, ast.IgnoreNulls | ast.RespectNulls):
                raise self.context.unsupported(
                    "IGNORE NULLS", argument.this, hint="Filter the NULLs in a subquery."
                )
        binder = self.owner.binder
        starred = any(isinstance(argument, ast.Star) for argument in nodes)
        arguments = [] if starred else [binder.bind(argument) for argument in nodes]
        if len(arguments) == 3:
            arguments[0], arguments[2] = binder.convert.adapt([arguments[0], arguments[2]])
        types = tuple(argument.type for argument in arguments)
        signature = None if starred else WINDOW_FUNCTIONS[name].resolve(types)
        if signature is None:
            shown = "*" if starred else ", ".join(_shown(a) for a in arguments)
            raise self.context.error(
                UndefinedFunction, f"function {name}({shown}) does not exist", node
            )
        converted = tuple(
            binder.convert.implicit(a, t, n)
            for a, t, n in zip(arguments, signature.arguments, nodes, strict=True)
        )
        return WindowCall(name, converted, signature.result)

    # --- definitions ---

    def bind_named(self) -> None:
        """The WINDOW clause: a window may build on those before it."""
        if self._named_ready:
            return
        self._named_ready = True
        known: dict[str, Definition] = {}
        for node in self.owner.node.args.get("windows") or []:
            name = identifier(node.this)
            if name in known:
                raise self.context.error(
                    WindowingError, f'window "{name}" is already defined', node.this
                )
            self.inside = True
            try:
                definition = self._definition(node, known)
                if definition.spec is not None:
                    FrameBinder(self.context, definition.spec, node.this).bind(
                        [(key.expression, key.descending) for key in definition.order]
                    )
            finally:
                self.inside = False
            known[name] = definition
        self._named = known

    def _definition(self, node: ast.Window, known: dict[str, Definition]) -> Definition:
        context = self.context
        context.only(node, "this", "partition_by", "order", "spec", "alias", "over")
        partition = tuple(
            dict.fromkeys(self._key(part) for part in node.args.get("partition_by") or [])
        )
        order: list[OrderKey] = []
        if (clause := node.args.get("order")) is not None:
            context.only(clause, "expressions")
            for key in clause.expressions:
                context.only(key, "this", "desc", "nulls_first")
                order.append(
                    OrderKey(
                        self._key(key.this),
                        bool(key.args.get("desc")),
                        bool(key.args.get("nulls_first")),
                    )
                )
        own = Definition(partition, tuple(order), node.args.get("spec"))
        alias = node.args.get("alias")
        return own if alias is None else self._inherited(own, alias, known)

    def _inherited(
        self, own: Definition, alias: ast.Node, known: dict[str, Definition]
    ) -> Definition:
        name = identifier(alias)
        base = known.get(name)
        if base is None:
            raise self.context.error(UndefinedType, f'window "{name}" does not exist', alias)
        if own == Definition():
            return base
        if own.partition:
            raise self.context.error(
                WindowingError, f'cannot override PARTITION BY clause of window "{name}"', alias
            )
        if own.order and base.order:
            raise self.context.error(
                WindowingError, f'cannot override ORDER BY clause of window "{name}"', alias
            )
        if base.spec is not None:
            raise self.context.error(
                WindowingError,
                f'cannot copy window "{name}" because it has a frame clause',
                alias,
            )
        return Definition(base.partition, own.order or base.order, own.spec)

    def _key(self, node: ast.Node) -> Expression:
        expression = self.owner.binder.settled(node)
        if not is_comparable(expression.type):
            raise self.context.error(
                TypeMismatch, f"cannot sort type {type_name(expression.type)}", node
            )
        return expression

    # --- the plan ---

    def attach(self, plan: Logical, rewrite: Rewrite) -> Logical:
        """``plan`` with a column for every call; one operator for each partitioning and order.

        ``rewrite`` turns expressions of the SELECT into expressions over ``plan``.
        """
        found: list[tuple[_Bound, ColumnRef]] = []
        for bound, ref in self._calls.items():
            place = self._places[ref.column]
            found.append((_rewritten(bound, place, rewrite), ref))
        plan, columns = self._with_computed_keys(plan, [bound.definition for bound, _ in found])
        windows: dict[
            tuple[tuple[ColumnId, ...], tuple[SortKey, ...]], list[tuple[WindowCall, ColumnRef]]
        ] = {}
        for bound, ref in found:
            partition = tuple(dict.fromkeys(columns[e] for e in bound.definition.partition))
            order: dict[ColumnId, SortKey] = {}
            for key in bound.definition.order:
                column = columns[key.expression]
                order.setdefault(column, SortKey(column, key.descending, key.nulls_first))
            windows.setdefault((partition, tuple(order.values())), []).append((bound.call, ref))
        for (partition, keys), calls in windows.items():
            results = tuple(
                OutputColumn(ref.column, ref.name, ref.type, call.function not in _NEVER_NULL)
                for call, ref in calls
            )
            plan = Window(
                (*plan.output, *results), plan, partition, keys, tuple(call for call, _ in calls)
            )
        return plan

    def _with_computed_keys(
        self, plan: Logical, definitions: list[Definition]
    ) -> tuple[Logical, dict[Expression, ColumnId]]:
        """``plan`` with a column for every key, and those columns."""
        keys = dict.fromkeys(
            expression
            for definition in definitions
            for expression in (
                *definition.partition,
                *(key.expression for key in definition.order),
            )
        )
        columns: dict[Expression, ColumnId] = {
            key: key.column
            for key in keys
            if isinstance(key, ColumnRef) and key.column in plan.column_ids
        }
        computed = [key for key in keys if key not in columns]
        if not computed:
            return plan, columns
        old = plan.output
        names = [*(c.name for c in old), *(f"key{i}" for i in range(1, len(computed) + 1))]
        kept = [ColumnRef(c.type, c.id, c.name) for c in old]
        plan = project(self.context, plan, names, [*kept, *computed])
        added = {e: c.id for e, c in zip(computed, plan.output[len(old) :], strict=True)}
        return plan, {**columns, **added}


def _rewritten(bound: _Bound, place: ast.Node, rewrite: Rewrite) -> _Bound:
    definition = Definition(
        tuple(rewrite(e, place) for e in bound.definition.partition),
        tuple(
            replace(key, expression=rewrite(key.expression, place))
            for key in bound.definition.order
        ),
    )
    return _Bound(definition, rewritten(bound.call, lambda e: rewrite(e, place)))


def _shown(argument: Expression) -> str:
    type_: SqlType = argument.type
    return "unknown" if is_untyped(argument) else type_name(type_)


def _window(binder: ExpressionBinder, node: ast.Window) -> Expression:
    return binder.surroundings.window(node)


register(ast.Window, _window, "this", "partition_by", "order", "spec", "alias", "over")
