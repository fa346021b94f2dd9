"""A bound statement as a session in another time zone than UTC, or with other forms of texts than
the usual ones, means it.

Where PostgreSQL's functions and casts look at the session's zone or at DateStyle and its kind, the
plan gets calls that have them as an argument (``plan.functions.session_zone``). So plans say all
that they depend on: they are cached by zone, and members that run them know nothing of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from remuda.datatypes.sql import (
    BIGINT,
    DATE,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array,
    has_moments,
)
from remuda.datatypes.times.intervals import pack
from remuda.datatypes.times.session_zones import session_zone
from remuda.plan.expression import AggregateCall, Call, Cast, Expression, Literal, Subquery
from remuda.plan.functions.datetime_fields import ZONE_FIELDS
from remuda.plan.functions.session_zone import with_texts
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.rewriting import rewritten
from remuda.plan.windows import WindowCall
from remuda.sql.scope.statements import (
    BoundQuery,
    BoundStatement,
    ChangeStatement,
    CopyStatement,
    CreateAsStatement,
    ExplainStatement,
    InsertStatement,
)

Value = TypeVar("Value")


def in_zone(statement: BoundStatement, zone: str) -> BoundStatement:
    """``zone``: as ``session_zone`` knows it."""
    if session_zone(zone) is None:
        return statement
    found: BoundStatement = _statement(statement, Zoned(zone))
    return found


def parts_in_zone(parts: Value, zone: str) -> Value:
    """The same for expressions."""
    return parts if session_zone(zone) is None else Zoned(zone).of(parts)


def _statement(statement: Any, zoned: Zoned) -> Any:
    match statement:
        case BoundQuery(plan=plan):
            return replace(statement, plan=zoned.of(plan))
        case InsertStatement(source=source):
            return replace(statement, source=zoned.of(source))
        case CreateAsStatement(source=source) if source is not None:
            return replace(statement, source=zoned.of(source))
        case ChangeStatement(source=source, query=query):
            answer = None if query is None else _statement(query, zoned)
            return replace(statement, source=zoned.of(source), query=answer)
        case CopyStatement(source=source):
            return replace(statement, source=_statement(source, zoned))
        case ExplainStatement(statement=inner):
            return replace(statement, statement=_statement(inner, zoned))
        case _:
            return statement


class Zoned:
    """Expressions and plans by the clocks of one zone."""

    def __init__(self, zone: str) -> None:
        found = session_zone(zone)
        assert found is not None
        self.clocks = found
        self._zone = Literal(VARCHAR, zone)

    def of(self, value: Value) -> Value:
        """A plan, or a part of one, with its expressions rewritten."""
        found: Value = rewritten(value, self._expression, self._part)
        return found

    def _expression(self, expression: Expression) -> Expression:
        match expression:
            case Cast(type=target, operand=operand):
                return self._cast(expression, operand, target)
            case Call(function=name):
                rule = _RULES.get(name)
                found = expression if rule is None else rule(self, expression)
                return self._json(found) if isinstance(found, Call) else found
            case Subquery(plan=plan, condition=condition):
                return replace(expression, plan=self.of(plan), condition=self.of(condition))
            case _:
                return expression

    def _part(self, part: Any) -> Any:
        """Calls that are no expressions."""
        match part:
            case AggregateCall() | WindowCall() if part.type.kind is Kind.JSON:
                return self._json_aggregate(part)
            case SetCall(function="generate_series", types=(SqlType(kind=Kind.TIMESTAMPTZ),)):
                return replace(part, arguments=(*part.arguments, self._zone))
            case _:
                return part

    # --- conversions --------------------------------------------------------------------------

    def _cast(self, cast: Cast, operand: Expression, target: SqlType) -> Expression:
        source = operand.type
        own = self.clocks.converts(source, target)
        same = not own and has_moments(source) == has_moments(target)
        if source.kind is Kind.NULL or same:
            return cast
        if target.is_text:
            text = self.call(VARCHAR, "cast_in_zone", operand)
            return text if target == VARCHAR else Cast(target, text)
        return self.call(target, "cast_in_zone", operand)

    def call(self, result: SqlType, name: str, *arguments: Expression) -> Call:
        return Call(result, name, (self._zone, *arguments))

    def clock(self, moment: Expression) -> Expression:
        """The time that a clock of the zone shows."""
        return self.call(TIMESTAMP, "cast_in_zone", moment)

    def moved(self, moment: Expression, interval: Expression) -> Expression:
        return self.call(TIMESTAMPTZ, "move_in_zone", moment, interval)

    def iso(self, value: Expression) -> Expression:
        if not has_moments(value.type):
            return value
        return self.call(with_texts(value.type), "iso_in_zone", value)

    # --- JSON ---------------------------------------------------------------------------------

    def _json(self, call: Call) -> Call:
        if call.type.kind is not Kind.JSON or not any(has_moments(a.type) for a in call.arguments):
            return call
        return replace(call, arguments=tuple(self.iso(each) for each in call.arguments))

    def _json_aggregate(self, call: Any) -> Any:
        arguments = call.arguments
        if not any(has_moments(argument.type) for argument in arguments):
            return call
        found = tuple(self.iso(each) for each in arguments)
        if isinstance(call, WindowCall):
            return replace(call, arguments=found)
        return replace(call, argument=found[0], more=found[1:])


def _moment(value: Expression) -> bool:
    return value.type.kind is Kind.TIMESTAMPTZ


# --- functions -----------------------------------------------------------------------------------


def _extract(zoned: Zoned, call: Call) -> Expression:
    field, value = call.arguments
    assert isinstance(field, Literal)
    name = str(field.value).lower()
    if not _moment(value) or name == "epoch":
        return call
    if name in ZONE_FIELDS:
        return Cast(call.type, zoned.call(BIGINT, "zone_offset", value, Literal(VARCHAR, name)))
    return replace(call, arguments=(field, zoned.clock(value)))


def _date_trunc(zoned: Zoned, call: Call) -> Expression:
    field, value = call.arguments
    return zoned.call(TIMESTAMPTZ, "trunc_in_zone", value, field) if _moment(value) else call


def _plus(zoned: Zoned, call: Call) -> Expression:
    left, right = call.arguments
    if _moment(left) and right.type == INTERVAL:
        return zoned.moved(left, right)
    if _moment(right) and left.type == INTERVAL:
        return zoned.moved(right, left)
    return call


def _minus(zoned: Zoned, call: Call) -> Expression:
    left, right = call.arguments
    if not _moment(left) or right.type != INTERVAL:
        return call
    return zoned.moved(left, Call(INTERVAL, "neg", (right,)))


def _add_interval(zoned: Zoned, call: Call) -> Expression:
    point, *amounts = call.arguments
    known = [int(a.value) for a in amounts if isinstance(a, Literal) and isinstance(a.value, int)]
    if not _moment(point) or not any(known[:2]):
        return call
    return zoned.moved(point, Literal(INTERVAL, pack(*known)))


def _age(zoned: Zoned, call: Call) -> Expression:
    if not _moment(call.arguments[0]):
        return call
    return replace(call, arguments=tuple(zoned.clock(each) for each in call.arguments))


def _to_char(zoned: Zoned, call: Call) -> Expression:
    moment, template = call.arguments
    return zoned.call(VARCHAR, "to_char_in_zone", moment, template) if _moment(moment) else call


def _to_timestamp(zoned: Zoned, call: Call) -> Expression:
    if len(call.arguments) < 2:
        return call
    return zoned.call(TIMESTAMPTZ, "to_timestamp_in_zone", *call.arguments)


def _make_timestamptz(zoned: Zoned, call: Call) -> Expression:
    clock = Call(TIMESTAMP, "make_timestamp", call.arguments)
    return zoned.call(TIMESTAMPTZ, "cast_in_zone", clock)


def _array_to_string(zoned: Zoned, call: Call) -> Expression:
    first, *more = call.arguments
    if not zoned.clocks.writes(first.type):
        return call
    return replace(call, arguments=(zoned.call(array(VARCHAR), "cast_in_zone", first), *more))


def _current_date(zoned: Zoned, _: Call) -> Expression:
    """Each execution has its own, by the clocks of the zone."""
    return zoned.call(DATE, "cast_in_zone", Call(TIMESTAMPTZ, "current_timestamp", ()))


_RULES: Final[dict[str, Callable[[Zoned, Call], Expression]]] = {
    "extract": _extract,
    "date_trunc": _date_trunc,
    "+": _plus,
    "-": _minus,
    "add_interval": _add_interval,
    "age": _age,
    "to_char": _to_char,
    "to_timestamp": _to_timestamp,
    "make_timestamptz": _make_timestamptz,
    "array_to_string": _array_to_string,
    "current_date": _current_date,
}
