"""The functions of the grid as ``pg_proc`` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_functions import FUNCTION_OIDS
from remuda.catalog.pg_objects import OWNER_OID, SCHEMAS
from remuda.plan.functions import AGGREGATE_FUNCTIONS, OPERATORS, SCALAR_FUNCTIONS, WINDOW_FUNCTIONS

_OWN: Final = 10_000
"""From here on are those that PostgreSQL does not have."""
_LANGUAGE: Final = 12


def pg_proc(_catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    """One row for each name: types are resolved by the binder, and not listed."""
    kinds = [(name, "f") for name in SCALAR_FUNCTIONS if name not in OPERATORS]
    kinds += [(name, "a") for name in AGGREGATE_FUNCTIONS]
    kinds += [(name, "w") for name in WINDOW_FUNCTIONS]
    for place, (name, kind) in enumerate(sorted(kinds)):
        yield (
            FUNCTION_OIDS.get(name, _OWN + place), name, SCHEMAS["pg_catalog"], OWNER_OID,
            _LANGUAGE, 1.0, 0.0, 0, kind, False, False, False, False, "i", "s", 0, 0, 2276, [],
            None, None, None, name, None, None,
        )  # fmt: skip
