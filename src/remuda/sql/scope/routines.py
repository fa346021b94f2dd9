"""Functions and their OIDs, as ``pg_proc`` lists them and ``regproc`` names them."""

from __future__ import annotations

from functools import cache
from typing import Final

from remuda.catalog.pg_functions import OTHER_NUMBERS
from remuda.catalog.pg_objects import HANDLERS
from remuda.catalog.pg_routines import Routine, pg_routines, type_routines
from remuda.catalog.pg_types import ARRAY_FUNCTIONS
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)

_OWN: Final = 10_000
"""From here on are those that PostgreSQL does not have."""
_NO_NAMES: Final = frozenset(
    {
        "add_interval", "all_of", "any_of", "array", "array_slice", "backend_pid", "cast_in_zone",
        "check_length", "coalesce", "current_date", "current_timestamp", "field", "greatest",
        "has_privilege", "interval_fields", "iso_in_zone", "json_assigned", "jsonpath", "least",
        "lookup",
        "lookup_each", "move_in_zone", "named_object", "nullif", "round_fraction", "row",
        "row_count", "sampled", "session_setting", "set_element", "single_row", "subscript",
        "substring_regex", "substring_similar", "to_char_in_zone", "to_timestamp_in_zone", "trim",
        "transaction_number", "trunc_in_zone",
        "zone_offset",
    }
)  # fmt: skip
"""The binder makes these of syntax: PostgreSQL lists no function of these names, and nobody can
call most of them."""


@cache
def routines() -> tuple[Routine, ...]:
    """Each overload of those that PostgreSQL has as well, one for each name of the others, whose
    types the binder resolves. Then those that other relations of the catalog name: functions of
    types and of access methods."""
    known = {each.name for each in pg_routines()}
    kinds = [(name, "f") for name in SCALAR_FUNCTIONS if name not in OPERATORS]
    kinds += [(name, "a") for name in AGGREGATE_FUNCTIONS]
    kinds += [(name, "w") for name in WINDOW_FUNCTIONS]
    aggregates = {each.name: each.oid for each in AGGREGATE_FUNCTIONS.values() if each.oid}
    oids = OTHER_NUMBERS | aggregates
    own = [
        Routine(oids.get(name, _OWN + place), name, kind, source=name)
        for place, (name, kind) in enumerate(sorted(kinds))
        if name not in known and name not in _NO_NAMES
    ]
    others = {**ARRAY_FUNCTIONS, **HANDLERS}
    named = (Routine(oid, name, "f", source=name) for oid, name in others.items())
    return (*pg_routines(), *own, *type_routines(), *named)
