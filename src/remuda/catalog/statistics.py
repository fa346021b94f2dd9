"""Statistics of the data of a map for the planner: plain values.

Storage keeps statistics per member; the member adds them up into these values for the planner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column. ``distinct`` counts values without NULL; ``width`` is the mean size in bytes.

    ``histogram`` are ascending bounds of buckets with equally many values (equi-depth); ``common``
    are the most common values with their shares of all rows.
    """

    null_fraction: float = 0.0
    distinct: float | None = None
    minimum: PhysicalValue = None
    maximum: PhysicalValue = None
    width: float | None = None
    histogram: tuple[PhysicalValue, ...] = ()
    common: tuple[tuple[PhysicalValue, float], ...] = ()


@dataclass(frozen=True, slots=True)
class MapStatistics:
    """One map. ``rows`` counts each entry once: over all members for a partitioned map, one copy
    for a replicated map. ``columns`` go by name; a column may be missing."""

    rows: float
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


class StatisticsReader(Protocol):
    def statistics(self, schema: MapSchema) -> MapStatistics | None:
        """None when nothing is known; the planner then assumes defaults."""


@dataclass(frozen=True, slots=True)
class FixedStatistics:
    """Statistics given by hand, by map name."""

    maps: Mapping[str, MapStatistics] = field(default_factory=dict)

    def statistics(self, schema: MapSchema) -> MapStatistics | None:
        return self.maps.get(schema.name)
