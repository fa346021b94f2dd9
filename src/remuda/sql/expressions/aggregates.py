"""Aggregate calls: their arguments, DISTINCT, ORDER BY inside, WITHIN GROUP and FILTER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from remuda.datatypes.coercion import is_comparable
from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, array
from remuda.datatypes.texts.text import type_name
from remuda.errors import InvalidColumnReference, TypeMismatch, UndefinedFunction, WrongObjectType
from remuda.plan.expression import AggregateCall, ArgumentOrder, Call, Expression, Literal
from remuda.plan.functions.catalog import AGGREGATE_FUNCTIONS, AggregateFunction
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.scope.context import Context
from remuda.sql.trees import ast


@dataclass(slots=True)
class _Parts:
    """The text between the parentheses of a call."""

    arguments: list[ast.Node]
    distinct: bool = False
    order: list[ast.Node] = field(default_factory=list)
    within_group: bool = False


def call_inside(node: ast.Node) -> ast.Node:
    """The call that a WITHIN GROUP stands behind; any other node itself."""
    return node.this if isinstance(node, ast.WithinGroup) else node


def bind_aggregate(
    binder: ExpressionBinder, name: str, node: ast.Node, condition: Expression | None
) -> AggregateCall:
    """The call ``name(...)``, whose arguments ``binder`` understands.

    Raises UndefinedFunction when the arguments do not fit, and for what is not allowed together.
    """
    context, function = binder.context, AGGREGATE_FUNCTIONS[name]
    parts = _parts(context, node)
    if function.within_group != parts.within_group:
        raise _wrong_group(context, name, function, node)
    arguments = parts.arguments
    if len(arguments) == 1 and isinstance(arguments[0], ast.Star) and not parts.distinct:
        if name != "count" or parts.order:
            raise context.error(UndefinedFunction, f"function {name}(*) does not exist", node)
        context.only(arguments[0])
        return AggregateCall("count", None, BIGINT, filter=condition)
    order = [_order_key(binder, key) for key in parts.order]
    if parts.within_group:
        if len(order) != 1:
            raise context.error(
                UndefinedFunction,
                f"WITHIN GROUP of {name} takes one expression, not {len(order)}",
                node,
            )
        arguments = [parts.order[0].this, *arguments]
    bound = _arguments(binder, name, function, arguments, node)
    kept = tuple(order)
    if parts.within_group:
        # The order is that of the argument after its conversion.
        kept = (ArgumentOrder(bound[0], order[0].descending, order[0].nulls_first),)
    elif parts.distinct:
        _check_distinct_order(context, order, bound, parts.order)
    if function.name == "any_value" and kept:
        return _all_in_order(binder, bound[0], kept, condition, node)
    if not (function.ordered or parts.within_group):
        kept = ()
    elif parts.distinct and not kept:
        kept = (ArgumentOrder(bound[0]),)
    signature = function.resolve(tuple(e.type for e in bound))
    assert signature is not None
    return AggregateCall(
        function.name, bound[0], signature.result, parts.distinct, condition, bound[1:], kept
    )


def _all_in_order(
    binder: ExpressionBinder,
    value: Expression,
    order: tuple[ArgumentOrder, ...],
    condition: Expression | None,
    node: ast.Node,
) -> AggregateCall:
    """The values that are not NULL, in order: ``any_value(x ORDER BY y)`` is the first of them."""
    if value.type.element is not None:
        raise binder.context.unsupported(
            "any_value of arrays with ORDER BY", node, hint="Use (array_agg(x ORDER BY y))[1]."
        )
    known: Expression = Call(BOOLEAN, "is_not_null", (value,))
    if condition is not None:
        known = Call(BOOLEAN, "and", (condition, known))
    return AggregateCall("array_agg", value, array(value.type), filter=known, order=order)


def first_of(call: AggregateCall, name: str, reference: Expression) -> Expression:
    """The meaning of the call ``name``, from the aggregate that is computed for it."""
    if name == call.function or call.function != "array_agg" or name != "any_value":
        return reference
    assert call.type.element is not None
    return Call(call.type.element, "subscript", (reference, Literal(INTEGER, 1)))


def _parts(context: Context, node: ast.Node) -> _Parts:
    order: list[ast.Node] = []
    within = isinstance(node, ast.WithinGroup)
    if isinstance(node, ast.WithinGroup):
        clause = node.args["expression"]
        context.only(clause, "expressions")
        order = list(clause.expressions)
        node = node.this
    arguments = list(node.expressions)
    if arguments and isinstance(arguments[-1], ast.Order):
        clause = arguments[-1]
        if within:
            raise context.error(
                UndefinedFunction, "cannot use multiple ORDER BY clauses with WITHIN GROUP", clause
            )
        context.only(clause, "this", "expressions")
        order = list(clause.expressions)
        arguments[-1] = clause.this
    distinct = len(arguments) == 1 and isinstance(arguments[0], ast.Distinct)
    if distinct:
        if within:
            raise context.error(
                UndefinedFunction, "cannot use DISTINCT with WITHIN GROUP", arguments[0]
            )
        context.only(arguments[0], "expressions")
        arguments = list(arguments[0].expressions)
    return _Parts(arguments, distinct, order, within)


def _wrong_group(
    context: Context, name: str, function: AggregateFunction, node: ast.Node
) -> Exception:
    if function.within_group:
        return context.error(
            UndefinedFunction,
            f"WITHIN GROUP is required for ordered-set aggregate {name}",
            call_inside(node),
            hint=f"Write {name}(...) WITHIN GROUP (ORDER BY x).",
        )
    return context.error(
        WrongObjectType,
        f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
        call_inside(node),
    )


def _order_key(binder: ExpressionBinder, node: ast.Node) -> ArgumentOrder:
    binder.context.only(node, "this", "desc", "nulls_first")
    expression = binder.settled(node.this)
    if not is_comparable(expression.type):
        raise binder.context.error(
            TypeMismatch, f"cannot sort type {type_name(expression.type)}", node
        )
    return ArgumentOrder(
        expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    )


def _arguments(
    binder: ExpressionBinder,
    name: str,
    function: AggregateFunction,
    nodes: Sequence[ast.Node],
    node: ast.Node,
) -> tuple[Expression, ...]:
    context = binder.context
    if not nodes:
        if name == "count":
            raise context.error(
                WrongObjectType,
                "count(*) must be used to call a parameterless aggregate function",
                call_inside(node),
                "Write count(*) to count rows.",
            )
        hint = f"{name} takes arguments."
        raise context.error(
            UndefinedFunction, f"function {name}() does not exist", call_inside(node), hint
        )
    bound = [binder.bind(argument) for argument in nodes]
    signature = function.resolve(tuple(argument.type for argument in bound))
    if signature is None:
        written = [*bound[1:], bound[0]] if function.within_group else bound
        shown = ", ".join("unknown" if is_untyped(e) else type_name(e.type) for e in written)
        hint = ""
        if len(bound) == 1 and name in ("sum", "avg"):
            hint = f"{name} needs a number: convert the argument with CAST."
        elif function.resolve(tuple(argument.type for argument in bound[:1])) is not None:
            hint = f"{name} takes one argument."
        raise context.error(
            UndefinedFunction,
            f"function {name}({shown}) does not exist",
            call_inside(node),
            hint=hint,
        )
    return tuple(
        binder.convert.implicit(e, t, n)
        for e, t, n in zip(bound, signature.arguments, nodes, strict=True)
    )


def _check_distinct_order(
    context: Context,
    order: Sequence[ArgumentOrder],
    arguments: Sequence[Expression],
    nodes: Sequence[ast.Node],
) -> None:
    for key, node in zip(order, nodes, strict=True):
        if key.expression not in arguments:
            raise context.error(
                InvalidColumnReference,
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                node,
            )
