"""INTERVAL literals, casts, and their sums with dates and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import BIGINT, DATE, INTEGER, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ
from remuda.datatypes.times.intervals import unpack
from remuda.datatypes.times.intervaltext import FIELDS
from remuda.errors import DataError, UndefinedFunction
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.constants import add_interval
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.text.types import type_from_name
from remuda.sql.trees import ast
from remuda.sql.trees.places import position_of

_MAKE_NAMES: Final = ("years", "months", "weeks", "days", "hours", "mins", "secs")
_POINTS: Final = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class IntervalValue:
    months: int
    days: int
    micros: int

    def __neg__(self) -> IntervalValue:
        return IntervalValue(-self.months, -self.days, -self.micros)


def _literal(binder: ExpressionBinder, node: ast.IntervalLiteral) -> Expression:
    """``INTERVAL '...' [unit [TO unit]]``"""
    place, units, digits = node.text, node.fields, node.digits
    text = str(place.this)
    span = tuple(units.split(" to ")) if units else ()
    if len(span) == 1 and span[0] not in FIELDS:
        text, span = f"{text} {span[0]}", ()
    given = (int(digits),) if digits else ()
    target = type_from_name("interval", given, position_of(binder.context.text, place), span)
    try:
        return Literal(INTERVAL, binder.convert.read(text, target, place))
    except DataError as error:
        raise binder.context.located(error, place) from None


def make_interval(binder: ExpressionBinder, node: ast.Call) -> Expression:
    """``make_interval(days => 10)``: arguments by place or by name, 0 where there is none."""
    given: dict[str, ast.Node] = {}
    for place, argument in enumerate(node.expressions):
        name = _MAKE_NAMES[place] if place < len(_MAKE_NAMES) else ""
        value = argument
        if isinstance(argument, ast.Kwarg):
            name, value = argument.keyword.name.lower(), argument.value
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


def is_interval(node: ast.Node) -> bool:
    """Whether ``node`` is an interval literal (under parentheses, minus, or as a cast of text)."""
    inner = node.unnest()
    if isinstance(inner, ast.Cast):
        return bool(inner.to.this == "interval")
    if isinstance(inner, ast.IntervalLiteral):
        return True
    return isinstance(inner, ast.Neg) and is_interval(inner.this)


def is_text(node: ast.Node) -> bool:
    inner = node.unnest()
    return isinstance(inner, ast.Literal) and bool(inner.is_string)


def interval_value(binder: ExpressionBinder, node: ast.Node) -> IntervalValue:
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
    places: tuple[ast.Node, ast.Node],
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
    binder: ExpressionBinder, point: Literal, amounts: tuple[int, int, int], node: ast.Node
) -> Expression:
    result = TIMESTAMPTZ if point.type == TIMESTAMPTZ else TIMESTAMP
    if point.value is None:
        return Literal(result, None)
    try:
        return Literal(result, add_interval(point.value, point.type, *amounts))
    except DataError as error:
        raise binder.context.located(error, node) from None


def _bare(binder: ExpressionBinder, node: ast.Interval) -> Expression:
    raise binder.context.unsupported(
        "INTERVAL of an expression",
        node,
        hint="Write a literal, INTERVAL '3' MONTH, or multiply one: x * INTERVAL '1' MONTH.",
    )


register(ast.IntervalLiteral, _literal)
register(ast.Interval, _bare)
