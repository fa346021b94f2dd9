"""Handlers of function calls, of the calls with a grammar of their own, and of intervals."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from remuda.datatypes.sql import BIGINT, DATE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind
from remuda.datatypes.text import type_name
from remuda.errors import DataError, GroupingError, UndefinedFunction, WrongObjectType
from remuda.plan.datetime_fields import EXTRACT_FIELDS, TRUNC_FIELDS
from remuda.plan.expression import Call, Expression, Literal
from remuda.plan.functions import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    INTERNAL,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
    callable_names,
    extract_signature,
)
from remuda.sql.constants import add_interval
from remuda.sql.conversion import is_untyped
from remuda.sql.expressions import ExpressionBinder, Handler, register
from remuda.sql.intervals import IntervalValue, parse_interval
from remuda.sql.suggest import did_you_mean
from remuda.sql.tokens import CALL_MARK

_NOT_CALLABLE: Final = OPERATORS | INTERNAL


def function_name(node: exp.Expr) -> str:
    """The name in ``name(...)``, in lower case."""
    return str(node.this).removeprefix(CALL_MARK).lower()


# --- plain calls -------------------------------------------------------------------------------


def _call(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    name = function_name(node)
    if name in AGGREGATE_FUNCTIONS:
        return binder.surroundings.aggregate(name, node, None)
    if name in WINDOW_FUNCTIONS:
        raise binder.context.error(
            WrongObjectType, f"window function {name} requires an OVER clause", node
        )
    catalog_name = ALIASES.get(name, name)
    if name == "strpos":
        catalog_name = "position"
    if catalog_name not in SCALAR_FUNCTIONS or name in _NOT_CALLABLE:
        raise _undefined(binder, node, name)
    if catalog_name == "extract":
        return _date_part(binder, node)
    if catalog_name == "date_trunc":
        return _date_trunc(binder, node)
    if name == "strpos":
        return binder.call("position", *reversed(node.expressions), node=node, shown=name)
    return binder.call(catalog_name, *node.expressions, node=node, shown=name)


def _undefined(binder: ExpressionBinder, node: exp.Expr, name: str) -> UndefinedFunction:
    arguments = node.expressions
    types = []
    for argument in arguments:
        if isinstance(argument, exp.Star):
            types.append("*")
            continue
        bound = binder.bind(argument)
        types.append("unknown" if is_untyped(bound) else type_name(bound.type))
    return binder.context.error(
        UndefinedFunction,
        f"function {name}({', '.join(types)}) does not exist",
        node,
        hint=did_you_mean(name, callable_names(), "the function"),
    )


def _filtered(binder: ExpressionBinder, node: exp.Filter) -> Expression:
    """``aggregate(...) FILTER (WHERE condition)``"""
    inner = node.this
    if isinstance(inner, exp.Anonymous) and function_name(inner) in AGGREGATE_FUNCTIONS:
        condition = node.args["expression"].this
        return binder.surroundings.aggregate(function_name(inner), inner, condition)
    raise binder.context.error(
        GroupingError, "FILTER is specified, but the function is not an aggregate", inner
    )


def _constant_call(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        return binder.call(name, node=node)

    return bind


def _local_timestamp(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    now = binder.call("current_timestamp", node=node)
    return binder.convert.explicit(now, TIMESTAMP, node)


# --- calls with words inside -------------------------------------------------------------------


def _extract(binder: ExpressionBinder, node: exp.Extract) -> Expression:
    return _extract_call(binder, str(node.this.this), node.args["expression"])


def _date_part(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """``date_part('field', x)``"""
    arguments = node.expressions
    field = _field_literal(binder, node, "date_part")
    return _extract_call(binder, field, arguments[1])


def _field_literal(binder: ExpressionBinder, node: exp.Anonymous, name: str) -> str:
    arguments = node.expressions
    if len(arguments) != 2:
        raise binder.context.error(
            UndefinedFunction, f"{name} takes a field and a value: {name}('month', x)", node
        )
    field = arguments[0]
    if not isinstance(field, exp.Literal) or not field.args["is_string"]:
        raise binder.context.unsupported(f"{name} with a field that is not a literal", field)
    return str(field.this).lower()


_FIELD_ALIASES: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour",
    "minutes": "minute", "seconds": "second", "weeks": "week", "quarters": "quarter",
    "millisecond": "milliseconds", "microsecond": "microseconds", "dayofweek": "dow",
    "dayofyear": "doy"}  # fmt: skip


def _extract_call(binder: ExpressionBinder, field: str, source: exp.Expr) -> Expression:
    name = field.lower()
    name = _FIELD_ALIASES.get(name, name)
    operand = binder.bind(source)
    if is_untyped(operand):
        operand = binder.convert.typed(operand, TIMESTAMP, source)
    signature = extract_signature(name, operand.type)
    if signature is None:
        if name not in EXTRACT_FIELDS:
            message = f'unit "{name}" is not recognized'
            hint = did_you_mean(name, EXTRACT_FIELDS) or "Units: " + ", ".join(EXTRACT_FIELDS) + "."
        else:
            message = f"type {type_name(operand.type)} has no {name} to extract"
            hint = ""
        raise binder.context.error(UndefinedFunction, message, source, hint)
    return Call(signature.result, "extract", (Literal(VARCHAR, name), operand))


def _date_trunc(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    field = _field_literal(binder, node, "date_trunc")
    field = _FIELD_ALIASES.get(field, field)
    unit, source = node.expressions
    if field not in TRUNC_FIELDS:
        raise binder.context.error(
            UndefinedFunction,
            f'unit "{field}" is not recognized',
            unit,
            hint=did_you_mean(field, TRUNC_FIELDS) or "Units: " + ", ".join(TRUNC_FIELDS) + ".",
        )
    arguments = [Literal(VARCHAR, field), binder.bind(source)]
    return binder.convert.call("date_trunc", arguments, [unit, source], node)


def _substring(binder: ExpressionBinder, node: exp.Substring) -> Expression:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        start = exp.Literal.number(1)
    parts = [node.this, start] + ([] if length is None else [length])
    return binder.call("substring", *parts, node=node)


def _position(binder: ExpressionBinder, node: exp.StrPosition) -> Expression:
    return binder.call("position", node.args["substr"], node.this, node=node)


_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _trim(binder: ExpressionBinder, node: exp.Trim) -> Expression:
    name = _TRIMS[str(node.args.get("position") or "").upper()]
    characters = node.args.get("expression")
    parts = [node.this] + ([] if characters is None else [characters])
    return binder.call(name, *parts, node=node)


# --- intervals ---------------------------------------------------------------------------------


def is_interval(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        return inner.args["to"].this is exp.DataType.Type.INTERVAL
    return isinstance(inner, exp.Interval) or (
        isinstance(inner, exp.Neg) and is_interval(inner.this)
    )


def interval_value(binder: ExpressionBinder, node: exp.Expr) -> IntervalValue:
    """The value of an interval literal (under parentheses, minus, or as a cast of text)."""
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        return -interval_value(binder, inner.this)
    unit = inner.args.get("unit") if isinstance(inner, exp.Interval) else None
    text = inner.this.unnest() if isinstance(inner.this, exp.Expr) else None
    if unit is not None and not isinstance(unit, exp.Var):
        raise binder.context.unsupported("INTERVAL with a range of units", text)
    if not isinstance(text, exp.Literal):
        raise binder.context.unsupported(
            "INTERVAL of an expression", node, hint="Write a literal: INTERVAL '3' MONTH."
        )
    try:
        return parse_interval(str(text.this), "" if unit is None else str(unit.this))
    except DataError as error:
        raise binder.context.located(error, text) from None


def interval_arithmetic(
    binder: ExpressionBinder,
    name: str,
    left: exp.Expr,
    right: exp.Expr,
    node: exp.Expr,
) -> Expression:
    """``date + interval``, ``interval + date``, ``date - interval``: the call ``add_interval``."""
    if is_interval(left) and is_interval(right):
        raise binder.context.unsupported("INTERVAL outside date arithmetic", node)
    if name == "+" and is_interval(left):
        left, right = right, left
    if name not in ("+", "-") or not is_interval(right):
        raise binder.context.unsupported(
            f"INTERVAL with the operator {name}",
            node,
            hint="Supported: a date or timestamp plus or minus an interval literal.",
        )
    value = interval_value(binder, right)
    if name == "-":
        value = -value
    operand = binder.bind(left)
    amounts = (value.months, value.days, value.micros)
    if isinstance(operand, Literal) and operand.type in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return _moved_constant(binder, operand, amounts, left)
    parts = [operand, *(Literal(BIGINT, amount) for amount in amounts)]
    if not is_untyped(operand) and operand.type.kind not in (
        Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
    ):  # fmt: skip
        raise binder.context.error(
            UndefinedFunction,
            f"operator does not exist: {type_name(operand.type)} {name} interval",
            node,
        )
    return binder.convert.call("add_interval", parts, [left, right, right, right], node)


def _moved_constant(
    binder: ExpressionBinder, operand: Literal, amounts: tuple[int, int, int], node: exp.Expr
) -> Expression:
    result = TIMESTAMPTZ if operand.type == TIMESTAMPTZ else TIMESTAMP
    if operand.value is None:
        return Literal(result, None)
    try:
        return Literal(result, add_interval(operand.value, operand.type, *amounts))
    except DataError as error:
        raise binder.context.located(error, node) from None


register(exp.Anonymous, _call, "this", "expressions")
register(exp.Filter, _filtered, "this", "expression")
register(exp.CurrentDate, _constant_call("current_date"))
register(exp.CurrentTimestamp, _constant_call("current_timestamp"))
register(exp.Localtimestamp, _local_timestamp)
register(exp.Extract, _extract, "this", "expression")
register(exp.Substring, _substring, "this", "start", "length")
register(exp.StrPosition, _position, "this", "substr")
register(exp.Trim, _trim, "this", "position", "expression")
