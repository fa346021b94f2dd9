"""INTERVAL literals, casts, and their sums with dates and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from remuda.datatypes.intervals import unpack
from remuda.datatypes.intervaltext import FIELDS, parse_interval
from remuda.datatypes.sql import BIGINT, DATE, INTEGER, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ
from remuda.errors import DataError, SqlSyntaxError, UndefinedFunction
from remuda.plan.expression import Call, Expression, Literal
from remuda.sql.constants import add_interval
from remuda.sql.expressions import ExpressionBinder, register
from remuda.sql.time_precision import rounded
from remuda.sql.tokens import CALL_MARK
from remuda.sql.typed_tokens import INTERVAL_CALL, fields_of

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
    names = tuple(units.split(" to ")) if units else ()
    if len(names) == 2:
        check_fields(binder, names, node.expressions[0])
    try:
        if names and names[0] not in FIELDS:
            value = parse_interval(f"{text} {names[0]}")
        else:
            value = parse_interval(text, names)
    except DataError as error:
        raise binder.context.located(error, node.expressions[0]) from None
    found = Literal(INTERVAL, value)
    return rounded(found, int(digits)) if digits else found


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
    if isinstance(point, Literal) and point.type != TIME:
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


def restriction_of(to: exp.Expr) -> tuple[tuple[str, ...], int | None] | None:
    """The fields and digits of ``INTERVAL DAY TO SECOND(2)`` in a CAST; None without fields."""
    if to.this is not exp.DataType.Type.INTERVAL or len(to.expressions) != 1:
        return None
    number = to.expressions[0].this
    return fields_of(int(number.this)) if isinstance(number, exp.Literal) else None


def restricted(
    binder: ExpressionBinder, operand: Expression, node: exp.Expr, fields: tuple[str, ...]
) -> Expression:
    """``CAST(x AS INTERVAL DAY TO HOUR)``: without what is smaller than the last field, which also
    gives a bare number in a literal its unit."""
    check_fields(binder, fields, node)
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        try:
            return Literal(INTERVAL, parse_interval(operand.value, fields))
        except DataError as error:
            raise binder.context.located(error, node) from None
    converted = binder.convert.explicit(operand, INTERVAL, node)
    return Call(
        INTERVAL, "interval_fields", (converted, Literal(INTEGER, FIELDS.index(fields[-1])))
    )


def check_fields(binder: ExpressionBinder, fields: tuple[str, ...], node: exp.Expr) -> None:
    """Raises SqlSyntaxError for fields that no interval has."""
    if len(fields) == 2 and (
        FIELDS.index(fields[0]) >= FIELDS.index(fields[1])
        or (fields[0] == "year" and fields[1] != "month")
        or fields[0] == "month"
    ):
        shown = " TO ".join(fields).upper()
        raise binder.context.error(SqlSyntaxError, f"an interval cannot be {shown}", node)


def _bare(binder: ExpressionBinder, node: exp.Interval) -> Expression:
    raise binder.context.unsupported(
        "INTERVAL of an expression",
        node,
        hint="Write a literal, INTERVAL '3' MONTH, or multiply one: x * INTERVAL '1' MONTH.",
    )


register(exp.Interval, _bare, "this", "unit")
