"""The events of listeners and continuous queries: one for each change that was committed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remuda.client.values.row import Row


class EventKind(StrEnum):
    """The kind of a change; compares equal to its text."""

    INSERTED = "inserted"
    """There was no such entry, or it did not meet the condition."""
    UPDATED = "updated"
    REMOVED = "removed"
    """The entry is gone, or does not meet the condition any more."""
    EXPIRED = "expired"
    """Its time to live was over. (An entry that was idle or had to make room is told as
    removed.)"""
    INITIAL = "initial"
    """It was there when the listener began."""
    GAP = "gap"
    """Changes before this event were lost: the listener was too slow, or could not reach the
    cluster, for longer than members keep changes. Read again what you need; the next events are
    those after this one."""


@dataclass(frozen=True, slots=True)
class EntryEvent:
    """A change of an entry of a map. ``timestamp`` is the hybrid timestamp at which it was
    committed. ``value`` and ``old_value`` are None where there is no such entry, and where values
    were not asked for; of a GAP so is ``key``."""

    kind: EventKind
    key: Any
    value: Any
    old_value: Any
    timestamp: int


@dataclass(frozen=True, slots=True)
class RowEvent:
    """A change of a row of a query's result; ``new`` and ``old`` are None where there is none.
    ``key`` is that of the entry behind the row (a Row of the key columns); initial rows come
    without it."""

    kind: EventKind
    key: Row | None
    new: Row | None
    old: Row | None
    timestamp: int


KINDS = (EventKind.INSERTED, EventKind.UPDATED, EventKind.REMOVED, EventKind.EXPIRED)
"""By their numbers in messages."""
