"""Rows of ``pg_catalog`` by the names of their columns."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from remuda.catalog.system_relations import PG_CATALOG, SYSTEM
from remuda.datatypes.schema import Column

Row = tuple[Any, ...]


def row(relation: str, **values: Any) -> Row:
    """A row of a relation of ``pg_catalog``. Columns that are not named are NULL where that is
    possible, else 0, false or empty, as PostgreSQL writes that there is nothing. KeyError for a
    name that is no column."""
    places, empty = _layout(relation)
    found = list(empty)
    for name, value in values.items():
        found[places[name]] = value
    return tuple(found)


@cache
def _layout(relation: str) -> tuple[dict[str, int], tuple[Any, ...]]:
    """The places of columns, and the row of which nothing is said."""
    columns = SYSTEM[PG_CATALOG][relation].columns
    return {c.name: place for place, c in enumerate(columns)}, tuple(map(_nothing, columns))


def _nothing(column: Column) -> Any:
    if column.nullable:
        return None
    if column.type.element is not None:
        return []
    return "" if column.type.is_text else _ZEROS.get(column.type.kind.name, 0)


_ZEROS: Final = {"BOOLEAN": False, "REAL": 0.0, "DOUBLE": 0.0}
