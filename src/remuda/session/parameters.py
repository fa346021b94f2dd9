"""The values of parameters: from the types that a client gave to the types that a plan wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from remuda.datatypes.sql import Kind, SqlType, has_moments
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.datatypes.timestamp import from_micros
from remuda.datatypes.values import PhysicalValue, from_physical, to_physical
from remuda.errors import InputError, UndefinedSetting, WrongParameters
from remuda.plan.expression import Call, Expression, Literal, Parameter, Subquery
from remuda.plan.logical import Logical
from remuda.plan.rewriting import rewritten
from remuda.session.client_session import NO_SESSION, ClientSession
from remuda.session.settings import setting_of

Plan = TypeVar("Plan", Logical, tuple[Expression, ...])
CLOCK_FUNCTIONS = (
    "backend_pid", "current_database", "current_date", "current_timestamp", "current_user",
    "statement_timestamp", "transaction_number",
)  # fmt: skip
_MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When a statement runs: microseconds of UTC at which its transaction and it itself began, and
    the number of the transaction."""

    transaction: int
    statement: int
    number: int

    @classmethod
    def of_one(cls, micros: int) -> Moment:
        """That of a statement which is its own transaction."""
        return cls(micros, micros, from_micros(micros))


_SETTING: Final = "setting "
_SETTING_OR_NULL: Final = "setting or null "


def check_count(wanted: int, given: int) -> None:
    """Raises WrongParameters."""
    if wanted != given:
        raise WrongParameters(f"the statement has {wanted} parameters, {given} were given")


_WITH_PARTS: Final = (Kind.DECIMAL, Kind.ARRAY, Kind.ROW)
"""Kinds of which two types may have different values."""


def fitted(
    values: Sequence[PhysicalValue],
    given: Sequence[SqlType],
    wanted: Sequence[SqlType],
    zone: str = UTC,
) -> tuple[PhysicalValue, ...] | None:
    """The same values in the wanted types; None when one of them has no exact counterpart. Times
    without a zone are those of ``zone``, the session's, where a moment is wanted."""
    here = session_zone(zone)
    result: list[PhysicalValue] = []
    for value, have, want in zip(values, given, wanted, strict=True):
        same = have.kind is want.kind and have.kind not in _WITH_PARTS and want.length is None
        if value is None or have == want or same:
            result.append(value)
            continue
        try:
            if have.is_text and not want.is_text:  # as a literal is read: date = '2024-01-31'
                result.append(parse_text(str(value), want, here))
            elif here is not None and has_moments(have) != has_moments(want):
                return None  # the plan converts it
            else:
                result.append(to_physical(from_physical(value, have), want))
        except InputError:
            return None
    return tuple(result)


def with_clock_parameters(plan: Plan, first: int) -> tuple[Plan, tuple[str, ...]]:
    """Replace ``current_date``, ``current_timestamp`` and settings of the session by parameters
    counted from ``first``, so that the plan may be cached while each execution has its own moment
    and session. Returns the functions and settings that they stand for (see ``clock_values``), in
    order."""
    names: list[str] = []

    def rewrite(expression: Expression) -> Expression:
        name = _of_the_moment(expression)
        if name is not None:
            if name not in names:
                names.append(name)
            return Parameter(expression.type, first + names.index(name))
        if isinstance(expression, Subquery):
            inner = rewritten((expression.plan, expression.condition), rewrite)
            return replace(expression, plan=inner[0], condition=inner[1])
        return expression

    return rewritten(plan, rewrite), tuple(names)


def with_values(plan: Plan, values: Sequence[PhysicalValue]) -> Plan:
    """``plan`` with constants in place of its parameters: for one execution."""

    def rewrite(expression: Expression) -> Expression:
        if isinstance(expression, Parameter):
            return Literal(expression.type, values[expression.index])
        if isinstance(expression, Subquery):
            inner = rewritten((expression.plan, expression.condition), rewrite)
            return replace(expression, plan=inner[0], condition=inner[1])
        return expression

    result: Plan = rewritten(plan, rewrite)
    return result


def _of_the_moment(expression: Expression) -> str | None:
    """The name under which ``clock_values`` knows the value of ``expression``."""
    if not isinstance(expression, Call):
        return None
    if expression.function in CLOCK_FUNCTIONS:
        return expression.function
    if expression.function == "session_setting":
        name, lenient = expression.arguments
        assert isinstance(name, Literal)
        assert isinstance(lenient, Literal)
        return (_SETTING_OR_NULL if lenient.value else _SETTING) + str(name.value)
    return None


def clock_values(
    names: Sequence[str], moment: Moment, session: ClientSession = NO_SESSION
) -> tuple[PhysicalValue, ...]:
    """Raises UndefinedSetting."""
    values: dict[str, PhysicalValue] = {
        "current_date": moment.transaction // _MICROS_PER_DAY,
        "current_timestamp": moment.transaction,
        "statement_timestamp": moment.statement,
        "transaction_number": moment.number,
        "current_user": session.user,
        "backend_pid": session.pid,
        "current_database": session.database,
    }
    return tuple(
        values[name] if name in values else _setting_value(name, session) for name in names
    )


def _setting_value(name: str, session: ClientSession) -> str | None:
    """The value of a setting, as SHOW tells it."""
    lenient = name.startswith(_SETTING_OR_NULL)
    wanted = name.removeprefix(_SETTING_OR_NULL if lenient else _SETTING)
    try:
        setting = setting_of(wanted)
        if "." in setting.name and setting.name not in session.values:
            raise UndefinedSetting(f'unrecognized configuration parameter "{setting.name}"')
    except UndefinedSetting:
        if lenient:
            return None
        raise
    return session.value(setting)
