"""Plans with other expressions and other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from remuda.plan.expression import Expression, transform
from remuda.plan.logical import Values


def rewritten(
    value: Any,
    rewrite: Callable[[Expression], Expression],
    finish: Callable[[Any], Any] = lambda part: part,
) -> Any:
    """``value`` (a plan, an expression, a tuple of such) with its expressions rewritten.
    ``finish`` gets each part of a plan after that."""
    if isinstance(value, Values):
        return value  # it may be long, and there are no expressions in it
    if isinstance(value, Expression):
        return transform(value, rewrite)
    if isinstance(value, tuple):
        parts = tuple(rewritten(part, rewrite, finish) for part in value)
        changed = any(new is not old for new, old in zip(parts, value, strict=True))
        return parts if changed else value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if not type(value).__module__.startswith("remuda.plan."):
        return value
    changes = {}
    for item in fields(value):
        old = getattr(value, item.name)
        new = rewritten(old, rewrite, finish)
        if new is not old:
            changes[item.name] = new
    return finish(replace(value, **changes) if changes else value)
