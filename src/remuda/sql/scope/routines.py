"""Functions and their OIDs, as ``pg_proc`` lists them and ``regproc`` names them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from remuda.catalog.pg_functions import FUNCTION_OIDS
from remuda.catalog.pg_objects import HANDLERS
from remuda.catalog.pg_types import ARRAY_FUNCTIONS, PG_TYPES
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)

_OWN: Final = 10_000
"""From here on are those that PostgreSQL does not have."""


@dataclass(frozen=True, slots=True)
class Routine:
    """``kind``: f, a or w: function, aggregate, window function."""

    oid: int
    name: str
    kind: str


@cache
def routines() -> tuple[Routine, ...]:
    """One for each name: types are resolved by the binder, and not listed. Then those that other
    relations of the catalog name: functions of types and of access methods."""
    kinds = [(name, "f") for name in SCALAR_FUNCTIONS if name not in OPERATORS]
    kinds += [(name, "a") for name in AGGREGATE_FUNCTIONS]
    kinds += [(name, "w") for name in WINDOW_FUNCTIONS]
    aggregates = {each.name: each.oid for each in AGGREGATE_FUNCTIONS.values() if each.oid}
    oids = FUNCTION_OIDS | aggregates
    found = [
        Routine(oids.get(name, _OWN + place), name, kind)
        for place, (name, kind) in enumerate(sorted(kinds))
    ]
    of_types = {oid: name for t in PG_TYPES for oid, name in t.functions}
    others = {**of_types, **ARRAY_FUNCTIONS, **HANDLERS}
    return (*found, *(Routine(oid, name, "f") for oid, name in others.items()))
