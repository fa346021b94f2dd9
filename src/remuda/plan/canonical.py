"""Expressions with subqueries in a form in which equal ones are equal.

Each bound subquery has column ids of its own, so the same text bound twice gives two values that
differ. ``canonical`` numbers them anew, in the order in which they occur.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from remuda.plan.expression import ColumnId, Expression, Subquery, walk
from remuda.plan.logical import OutputColumn, Recursion, Scan, Supplied

_PARTS: Final[dict[type, tuple[tuple[str, bool], ...]]] = {}


def has_subquery(expression: Expression) -> bool:
    return any(isinstance(part, Subquery) for part in walk(expression))


def canonical(expression: Expression) -> Expression:
    """``expression`` with the columns that its subqueries produce numbered -1, -2, ..., and without
    the names of columns and the aliases of maps. Not to be planned: for comparisons only."""
    numbers: dict[ColumnId, ColumnId] = {}
    for part in walk(expression):
        if isinstance(part, Subquery):
            _collect(part, numbers)
    renamed = _renamed(expression, numbers)
    assert isinstance(renamed, Expression)
    return renamed


def _collect(value: object, numbers: dict[ColumnId, ColumnId]) -> None:
    """Number what ``value`` and everything in it produces; columns from outside keep their ids."""
    if isinstance(value, tuple):
        for item in value:
            _collect(item, numbers)
    elif isinstance(value, OutputColumn):
        numbers.setdefault(value.id, -1 - len(numbers))
    elif _is_tree(value):
        if isinstance(value, Subquery):
            for parameter in value.parameters:
                numbers.setdefault(parameter, -1 - len(numbers))
        for name, _ in _parts(value):
            _collect(getattr(value, name), numbers)


def _renamed(value: Any, numbers: dict[ColumnId, ColumnId], are_ids: bool = False) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(item, numbers, are_ids) for item in value)
    if are_ids and isinstance(value, int):
        return numbers.get(value, value)
    if not _is_tree(value):
        return value
    changed = {
        name: _renamed(getattr(value, name), numbers, holds_ids)
        for name, holds_ids in _parts(value)
    }
    if isinstance(value, OutputColumn):
        changed["name"] = ""
    elif isinstance(value, Scan | Supplied):
        changed["alias"] = ""
    return replace(value, **changed)


def _is_tree(value: object) -> bool:
    """Whether there may be column ids below ``value``: in plans, expressions, and their parts."""
    return (
        is_dataclass(value)
        and not isinstance(value, Recursion)
        and type(value).__module__.startswith("remuda.plan.")
    )


def _parts(value: Any) -> tuple[tuple[str, bool], ...]:
    """(name, whether it holds column ids) of what is to be looked into."""
    kind = type(value)
    found = _PARTS.get(kind)
    if found is None:
        known = [part for part in fields(value) if part.init]
        found = tuple((part.name, "ColumnId" in str(part.type)) for part in known)
        _PARTS[kind] = found
    return found
