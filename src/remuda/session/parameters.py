"""The values of parameters: from the types that a client gave to the types that a plan wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue, from_physical, to_physical
from remuda.errors import InputError, WrongParameters
from remuda.plan.expression import Call, Expression, Parameter, Subquery, transform
from remuda.plan.logical import Logical, Values

Plan = TypeVar("Plan", Logical, tuple[Expression, ...])
CLOCK_FUNCTIONS = ("current_date", "current_timestamp")
_MICROS_PER_DAY = 86_400_000_000


def check_count(wanted: int, given: int) -> None:
    """Raises WrongParameters."""
    if wanted != given:
        raise WrongParameters(f"the statement has {wanted} parameters, {given} were given")


_WITH_PARTS: Final = (Kind.DECIMAL, Kind.ARRAY, Kind.ROW)
"""Kinds of which two types may have different values."""


def fitted(
    values: Sequence[PhysicalValue], given: Sequence[SqlType], wanted: Sequence[SqlType]
) -> tuple[PhysicalValue, ...] | None:
    """The same values in the wanted types; None when one of them has no exact counterpart."""
    result: list[PhysicalValue] = []
    for value, have, want in zip(values, given, wanted, strict=True):
        same = have.kind is want.kind and have.kind not in _WITH_PARTS and want.length is None
        if value is None or have == want or same:
            result.append(value)
            continue
        try:
            result.append(to_physical(from_physical(value, have), want))
        except InputError:
            return None
    return tuple(result)


def with_clock_parameters(plan: Plan, first: int) -> tuple[Plan, tuple[str, ...]]:
    """Replace ``current_date`` and ``current_timestamp`` by parameters counted from ``first``, so
    that the plan may be cached while each execution has its own moment. The names, in order."""
    names: list[str] = []

    def rewrite(expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.function in CLOCK_FUNCTIONS:
            if expression.function not in names:
                names.append(expression.function)
            return Parameter(expression.type, first + names.index(expression.function))
        if isinstance(expression, Subquery):
            inner = _rewritten((expression.plan, expression.condition), rewrite)
            return replace(expression, plan=inner[0], condition=inner[1])
        return expression

    return _rewritten(plan, rewrite), tuple(names)


def clock_values(names: Sequence[str], now_micros: int) -> tuple[PhysicalValue, ...]:
    """``now_micros`` is the start of the statement, UTC."""
    values = {"current_date": now_micros // _MICROS_PER_DAY, "current_timestamp": now_micros}
    return tuple(values[name] for name in names)


def _rewritten(value: Any, rewrite: Callable[[Expression], Expression]) -> Any:
    """``value`` (a plan, an expression, a tuple of such) with its expressions rewritten."""
    if isinstance(value, Values):
        return value  # it may be long, and there are no expressions in it
    if isinstance(value, Expression):
        return transform(value, rewrite)
    if isinstance(value, tuple):
        parts = tuple(_rewritten(part, rewrite) for part in value)
        changed = any(new is not old for new, old in zip(parts, value, strict=True))
        return parts if changed else value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if not type(value).__module__.startswith("remuda.plan."):
        return value
    changes = {}
    for item in fields(value):
        old = getattr(value, item.name)
        new = _rewritten(old, rewrite)
        if new is not old:
            changes[item.name] = new
    return replace(value, **changes) if changes else value
