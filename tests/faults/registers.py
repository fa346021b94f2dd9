"""Whether the reads and writes of single keys could have happened one after the other.

Every value is written once at most, so the decision is exact and quick: the writes and reads of a
value form a zone in time, and a history of one key is linearizable exactly when no zones are in
each other's way (P. B. Gibbons, E. Korach, Testing Shared Memories, 1997).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

Key = Hashable


class Outcome(Enum):
    DONE = "done"
    FAILED = "failed"
    """For certain: nothing was done."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Operation:
    """``value``: what was written, or what was read (None: no entry). Times in seconds."""

    key: Key
    writes: bool
    value: Hashable
    began: float
    ended: float
    outcome: Outcome = Outcome.DONE
    note: str = ""

    def __str__(self) -> str:
        what = "write" if self.writes else "read"
        end = f"{self.ended:.3f}" if self.ended < math.inf else "..."
        text = f"{self.began:.3f}-{end} {what} {self.key!r} {self.value!r} {self.outcome.value}"
        return f"{text} ({self.note})" if self.note else text


@dataclass
class _Zone:
    """Everything that deals with one value. A forward zone: some read or write ended before another
    one began, so the key had this value all the time between ``low`` and ``high``. A backward one:
    all overlap, and it had it at some moment between."""

    value: Hashable
    operations: list[Operation] = field(default_factory=list)
    low: float = 0.0
    high: float = 0.0
    forward: bool = False

    def close(self) -> None:
        first_end = min(operation.ended for operation in self.operations)
        last_begin = max(operation.began for operation in self.operations)
        self.forward = first_end < last_begin
        self.low, self.high = sorted((first_end, last_begin))


def violations(operations: Iterable[Operation]) -> list[str]:
    """What cannot be, one text per key at most, with the operations that show it."""
    by_key: dict[Key, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_key[operation.key].append(operation)
    return [text for found in by_key.values() if (text := violation(found))]


def violation(operations: Sequence[Operation]) -> str:
    """The first thing that cannot be in the history of one key; "" if there is none."""
    writes = {operation.value: operation for operation in operations if operation.writes}
    reads = [
        operation
        for operation in operations
        if not operation.writes and operation.outcome is Outcome.DONE
    ]
    absent = Operation(operations[0].key, True, None, -math.inf, -math.inf)
    for read in reads:
        write = writes.get(read.value, absent if read.value is None else None)
        if write is None:
            return _told("a value that nobody wrote", [read])
        if write.outcome is Outcome.FAILED:
            return _told("a value whose write had failed", [write, read])
        if read.ended < write.began:
            return _told("a value before it was written", [write, read])
    return _crossing(_zones([absent, *writes.values()], reads))


def _zones(writes: Sequence[Operation], reads: Sequence[Operation]) -> list[_Zone]:
    zones = {write.value: _Zone(write.value) for write in writes}
    for read in reads:
        zones[read.value].operations.append(read)
    for write in writes:
        zone = zones[write.value]
        if write.outcome is Outcome.DONE:
            zone.operations.append(write)
        elif write.outcome is Outcome.UNKNOWN and zone.operations:
            # It was seen, so it happened: at any time since it began.
            began, key = write.began, write.key
            zone.operations.append(Operation(key, True, write.value, began, math.inf))
    found = [zone for zone in zones.values() if zone.operations]
    for zone in found:
        zone.close()
    return found


def _crossing(zones: Sequence[_Zone]) -> str:
    forward = sorted((z for z in zones if z.forward), key=lambda zone: zone.low)
    reach: _Zone | None = None
    for zone in forward:
        if reach is not None and zone.low < reach.high:
            return _told("two values at the same time", _ends(reach) + _ends(zone))
        reach = zone if reach is None or zone.high > reach.high else reach
    lows = [zone.low for zone in forward]  # they do not overlap: one at most can hold another zone
    for zone in zones:
        place = bisect_left(lows, zone.low) - 1
        if not zone.forward and place >= 0 and zone.high < forward[place].high:
            return _told("a value amid another one", _ends(forward[place]) + zone.operations[:3])
    return ""


def _ends(zone: _Zone) -> list[Operation]:
    """The shortest proof of a forward zone: who ended first, and who began last."""
    write = [operation for operation in zone.operations if operation.writes]
    first = min(zone.operations, key=lambda operation: operation.ended)
    last = max(zone.operations, key=lambda operation: operation.began)
    return list(dict.fromkeys([*write, first, last]))


def _told(what: str, operations: Sequence[Operation]) -> str:
    shown = sorted(operations, key=lambda operation: operation.began)
    return "\n".join([f"key {operations[-1].key!r}: {what}", *(f"  {item}" for item in shown)])
