"""The engine's form of a value."""

from __future__ import annotations

from typing import TypeAlias

PhysicalValue: TypeAlias = "bool | int | float | str | bytes | tuple[PhysicalValue, ...] | None"
"""A value in the engine's form: DECIMAL as its unscaled integer (any size), DATE as days since
1970-01-01, TIME as microseconds since midnight, TIMESTAMP and TIMESTAMPTZ as microseconds since
1970-01-01 (UTC), UUID and INTERVAL as 16 bytes, JSON as its normalized text, ARRAY and ROW as
tuples of physical values, everything else as itself."""
