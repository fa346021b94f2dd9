"""The function behind ``has_table_privilege`` and its kind. ``sql.expressions`` writes calls."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN, VARCHAR
from remuda.plan.functions.signatures import ScalarFunction, Signature, Types

_COUNTS: Final = (4, 5)


def _held(types: Types) -> Signature | None:
    """(facts, role, object [, column], privileges): roles, objects and columns are names or
    numbers."""
    if len(types) not in _COUNTS:
        return None
    if not all(each.is_text or each.is_integer for each in types[1:-1]):
        return None
    return Signature((VARCHAR, *types[1:-1], VARCHAR), BOOLEAN)


FUNCTIONS: Final = (
    ScalarFunction(
        "has_privilege", _held, summary="facts, role, object, column, privileges", raises=True
    ),
)
INTERNAL: Final = frozenset({"has_privilege"})
ALIASES: Final[dict[str, str]] = {}
