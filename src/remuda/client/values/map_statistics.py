"""Counts of a map, over all members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

COLUMNS: Final = (
    "rows", "bytes", "backup_rows", "backup_bytes", "gets", "hits", "misses", "puts", "removes",
    "evictions", "idle_removals", "expirations", "last_access", "last_update",
)  # fmt: skip
"""Of sys.maps and sys.map_parts, in the order of the fields."""


@dataclass(frozen=True)
class MapStatistics:
    """The entries of a map, and the requests by key since each member began (``get_all`` of ten
    keys counts ten). Statements are not counted. ``members`` has the same for each member.
    """

    entries: int
    bytes: int
    backup_entries: int
    backup_bytes: int
    gets: int
    hits: int
    misses: int
    puts: int
    removes: int
    evictions: int
    """Entries that had no room in a map with a limit."""
    idle_removals: int
    """Entries that nobody had used for ``max_idle``."""
    expirations: int
    """Entries whose time to live was over."""
    last_access: datetime | None
    last_update: datetime | None
    members: Mapping[int, MapStatistics] = field(default_factory=dict)
    no_answer: tuple[int, ...] = ()
    """Members that did not answer within two seconds: the sums lack what they have counted."""


def statistics_of(
    whole: Sequence[Any], parts: Mapping[int, Sequence[Any]], no_answer: str | None
) -> MapStatistics:
    """From the values of ``COLUMNS``, and from ``no_answer`` of sys.maps."""
    members = {number: MapStatistics(*values) for number, values in parts.items()}
    silent = tuple(int(number) for number in (no_answer or "").split(",") if number)
    return replace(MapStatistics(*whole), members=members, no_answer=silent)
