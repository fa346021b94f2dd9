"""INTERVAL literals, casts, and their sums with dates and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from remuda.datatypes.sql import BIGINT, DATE, INTEGER, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.intervals import unpack
from remuda.datatypes.times.intervaltext import FIELDS
from remuda.errors import DataError, UndefinedFunction
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.constants import add_interval
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.text.places import position_of
from remuda.sql.text.tokens import CALL_MARK
from remuda.sql.text.typed_tokens import INTERVAL_CALL
from remuda.sql.text.types import type_from_name

_MAKE_NAMES: Final = ("years", "months", "weeks", "days", "hours", "mins", "secs")
_POINTS: Final = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class IntervalValue:
    months: int
    days: int
    micros: int

    def __neg__(self) -> IntervalValue:
        return IntervalValue(-self.months, -self.days, -self.micros)


def interval_literal(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """``INTERVAL '...' [unit [TO unit]]``, which the tokens have made a call of three strings."""
    text, units, digits = (str(part.this) for part in node.expressions)
    span = tuple(units.split(" to ")) if units else ()
    if len(span) == 1 and span[0] not in FIELDS:
        text, span = f"{text} {span[0]}", ()
    place = node.expressions[0]
    given = (int(digits),) if digits else ()
    target = type_from_name("interval", given, position_of(binder.context.text, place), span)
    try:
        return Literal(INTERVAL, parse_text(text, target))
    except DataError as error:
        raise binder.context.located(error, place) from None


def make_interval(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """``make_interval(days => 10)``: arguments by place or by name, 0 where there is none."""
    given: dict[str, exp.Expr] = {}
    for place, argument in enumerate(node.expressions):
        name = _MAKE_NAMES[place] if place < len(_MAKE_NAMES) else ""
        value = argument
        if isinstance(argument, exp.Kwarg):
            name, value = str(argument.this.name).lower(), argument.expression
        if name not in _MAKE_NAMES or name in given:
            raise binder.context.error(
                UndefinedFunction,
                f"function make_interval does not take this argument: {name or place + 1}",
                value,
                hint=f"Its arguments: {', '.join(_MAKE_NAMES)}.",
            )
        given[name] = value
    arguments = [
        binder.bind(given[name]) if name in given else Literal(INTEGER, 0) for name in _MAKE_NAMES
    ]
    places = [given.get(name, node) for name in _MAKE_NAMES]
    return binder.convert.call("make_interval", arguments, places, node, "make_interval")


def is_interval(node: exp.Expr) -> bool:
    """Whether ``node`` is an interval literal (under parentheses, minus, or as a cast of text)."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        return inner.args["to"].this is exp.DataType.Type.INTERVAL
    if isinstance(inner, exp.Anonymous):
        return str(inner.this) == CALL_MARK + INTERVAL_CALL
    return isinstance(inner, exp.Neg) and is_interval(inner.this)


def is_text(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and bool(inner.is_string)


def interval_value(binder: ExpressionBinder, node: exp.Expr) -> IntervalValue:
    """The value of an interval literal, or of text where an interval belongs."""
    bound = binder.convert.implicit(binder.bind(node), INTERVAL, node)
    if not isinstance(bound, Literal) or not isinstance(bound.value, bytes):
        raise binder.context.unsupported(
            "an interval that is not a literal here", node, hint="Write INTERVAL '3' MONTH."
        )
    return IntervalValue(*unpack(bound.value))


def interval_sum(
    binder: ExpressionBinder,
    name: str,
    operands: tuple[Expression, Expression],
    places: tuple[exp.Expr, exp.Expr],
) -> Expression:
    """``+`` and ``-`` with an interval on one side; a literal one is taken apart, and added to a
    constant at once."""
    if name == "+" and operands[0].type == INTERVAL:
        operands, places = operands[::-1], places[::-1]
    point, interval = operands
    constant = isinstance(interval, Literal) and isinstance(interval.value, bytes)
    if interval.type != INTERVAL or point.type not in _POINTS or not constant:
        return binder.convert.call(name, operands, places, None)
    assert isinstance(interval, Literal)
    assert isinstance(interval.value, bytes)
    amounts = unpack(interval.value)
    if name == "-":
        amounts = (-amounts[0], -amounts[1], -amounts[2])
    by_clock = point.type == TIMESTAMPTZ and binder.context.zone is not None
    if isinstance(point, Literal) and point.type != TIME and not by_clock:
        return _moved_constant(binder, point, amounts, places[0])
    parts = [point, *(Literal(BIGINT, amount) for amount in amounts)]
    return binder.convert.call("add_interval", parts, [places[0], *[places[1]] * 3], None)


def _moved_constant(
    binder: ExpressionBinder, point: Literal, amounts: tuple[int, int, int], node: exp.Expr
) -> Expression:
    result = TIMESTAMPTZ if point.type == TIMESTAMPTZ else TIMESTAMP
    if point.value is None:
        return Literal(result, None)
    try:
        return Literal(result, add_interval(point.value, point.type, *amounts))
    except DataError as error:
        raise binder.context.located(error, node) from None


def _bare(binder: ExpressionBinder, node: exp.Interval) -> Expression:
    raise binder.context.unsupported(
        "INTERVAL of an expression",
        node,
        hint="Write a literal, INTERVAL '3' MONTH, or multiply one: x * INTERVAL '1' MONTH.",
    )


register(exp.Interval, _bare, "this", "unit")
