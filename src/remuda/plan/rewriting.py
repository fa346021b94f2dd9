"""Plans with other expressions and other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from operator import is_not
from typing import Any

from remuda.plan.expression import Expression, transform
from remuda.plan.logical import OutputColumn, Values

_FIELDS: dict[type, tuple[str, ...] | None] = {}
"""Of the types that were met."""


def rewritten(
    value: Any,
    rewrite: Callable[[Expression], Expression],
    finish: Callable[[Any], Any] = lambda part: part,
) -> Any:
    """``value`` (a plan, an expression, a tuple of such) with its expressions rewritten.
    ``finish`` gets each part of a plan after that."""
    if isinstance(value, Values | OutputColumn):
        return value  # there are no expressions in it, and it may be long, or one of many
    if isinstance(value, Expression):
        return transform(value, rewrite)
    if isinstance(value, tuple):
        parts = tuple([rewritten(part, rewrite, finish) for part in value])
        changed = any(map(is_not, parts, value))
        return parts if changed else value
    names = _fields_of_plan(type(value))
    if names is None:
        return value
    changes = {}
    for name in names:
        old = getattr(value, name)
        new = rewritten(old, rewrite, finish)
        if new is not old:
            changes[name] = new
    return finish(replace(value, **changes) if changes else value)


def _fields_of_plan(kind: type) -> tuple[str, ...] | None:
    """The fields of a part of a plan; None for a type of values that are none."""
    if kind not in _FIELDS:
        part = is_dataclass(kind) and kind.__module__.startswith("remuda.plan.")
        _FIELDS[kind] = tuple(field.name for field in fields(kind)) if part else None
    return _FIELDS[kind]
