"""Estimated memory of rows that are tuples of Python values: tails of maps, and writes that are
about to be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any, Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind

TUPLE_SIZE: Final = 120
"""Bytes of a tuple with its places in the tail, its begin, end and partition."""
VALUE_SIZE: Final = 40
"""Bytes of a value of fixed size."""
INDEX_ENTRY_SIZE: Final = 200
"""Bytes of an entry of the key index that is not in a sorted run yet."""
_FIXED: Final = frozenset(
    (
        Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL,
        Kind.DOUBLE, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID,
        Kind.INTERVAL,
    )
)  # fmt: skip


class RowSizes:
    """Sizes in bytes of the rows of one schema."""

    __slots__ = ("fixed", "positions")

    def __init__(self, schema: MapSchema) -> None:
        columns = schema.columns
        self.fixed = TUPLE_SIZE + VALUE_SIZE * len(columns)
        self.positions = [p for p, c in enumerate(columns) if c.type.kind not in _FIXED]
        """Columns whose values are measured one by one."""

    def variable(self, rows: Iterable[Sequence[Any]]) -> int:
        """The memory of the rows besides ``fixed``: text, bytes, arrays."""
        positions = self.positions
        if not positions:
            return 0
        values = [row[position] for row in rows for position in positions]
        return sum([getsizeof(v) if type(v) is str else value_size(v) for v in values])

    def of(self, row: Sequence[Any]) -> int:
        """Bytes of one row."""
        size = self.fixed
        for position in self.positions:
            value = row[position]
            size += getsizeof(value) if type(value) is str else value_size(value)
        return size


def value_size(value: Any) -> int:
    """Bytes of a value with what it contains."""
    if isinstance(value, list | tuple):
        return getsizeof(value) + sum([value_size(each) for each in value])
    if isinstance(value, dict):
        parts = [value_size(part) for item in value.items() for part in item]
        return getsizeof(value) + sum(parts)
    return getsizeof(value)
