"""The judge of storms over a map with one unique index: it compares the writes with the rows that
readers have seen, and with the values for which writers were refused.

Each write has a number, which its rows bear. It took effect at one moment between its begin and its
end, or, if nobody knows, at any moment after its begin, or never. So a version of a row certainly
lived no longer when a write of the same key has ended that began after the version was there, or
when a reader that began after it did not see the row any more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Write:
    """``rows``: the value by key (None: the key is removed). ``everything``: no other row is left.
    ``beside``: values of rows whose keys only the answer tells."""

    number: int
    what: str
    began: float
    rows: dict[int, int | None] = field(default_factory=dict)
    everything: bool = False
    beside: frozenset[int] = frozenset()
    ttl: float = math.inf
    ended: float = math.inf
    failed: bool = False
    partial: bool = False
    """It changes those rows that are there."""

    @property
    def done(self) -> bool:
        return not self.failed and self.ended < math.inf

    def touches(self, key: int) -> bool:
        return self.everything or key in self.rows or bool(self.beside)

    def may_write(self, key: int, value: int) -> bool:
        return self.rows.get(key) == value or value in self.beside

    def may_remove(self, key: int) -> bool:
        gone = self.rows.get(key, 0) is None or (self.everything and key not in self.rows)
        return gone or self.ttl < math.inf


@dataclass(frozen=True)
class Look:
    """``rows``: value and number of the write, by key."""

    began: float
    ended: float
    rows: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Refusal:
    """Somebody was told that ``value`` is there, in a row with none of ``keys``."""

    what: str
    began: float
    ended: float
    value: int
    keys: frozenset[int]


class Judge:
    """``slack``: entries with a time to live may be there by so many seconds longer, as clocks of
    members differ."""

    slack = 0.5

    def __init__(self) -> None:
        self.writes: dict[int, Write] = {}
        self.looks: list[Look] = []
        self.refusals: list[Refusal] = []

    def violations(self) -> list[str]:
        found = [text for look in self.looks for text in self._look(look)]
        found += [text for refusal in self.refusals for text in self._refusal(refusal)]
        return found

    # ---- what readers have seen ----

    def _look(self, look: Look) -> Iterable[str]:
        values = Counter(value for value, _ in look.rows.values())
        if twice := [value for value, count in values.items() if count > 1]:
            rows = {k: row for k, row in look.rows.items() if row[0] in twice}
            yield f"two rows with one value at {look.began:.3f}: {rows}"
        for key, (value, number) in look.rows.items():
            yield from self._row(look, key, value, number)
        for write in self.writes.values():
            if write.done and write.ended < look.began and write.ttl == math.inf:
                lost = [key for key, value in write.rows.items()
                        if value is not None and key not in look.rows
                        and not self._may_be_gone(write, key, look)]  # fmt: skip
                if lost:
                    yield f"acknowledged rows {lost} of {write} are lost at {look.began:.3f}"

    def _row(self, look: Look, key: int, value: int, number: int) -> Iterable[str]:
        write = self.writes.get(number)
        shown = f"key {key} with {value} of write {number} ({write}) at {look.began:.3f}"
        if write is None or not write.may_write(key, value) or write.began > look.ended:
            yield f"a row that nobody has written: {shown}"
            return
        if write.failed:
            yield f"a row of a write that has failed: {shown}"
        if look.began > write.ended + write.ttl + self.slack:
            yield f"a row that is over: {shown}"
        for other in self._writes_of(key):
            if other.done and write.ended < other.began and other.ended < look.began:
                yield f"an older row than that of {other}: {shown}"
                break
        if write.partial and not write.done:
            return
        for other_key, wanted in write.rows.items():
            there = look.rows.get(other_key)
            if there is not None and there[1] == number:
                continue
            if wanted is None and there is None:
                continue
            if there is None and write.ttl < math.inf:
                continue
            if not any(
                other is not write and other.began <= look.ended and other.ended >= write.began
                for other in self._writes_of(other_key)
            ):
                yield f"only a part of a write, without key {other_key}: {shown}"

    def _may_be_gone(self, write: Write, key: int, look: Look) -> bool:
        return any(
            other is not write
            and other.may_remove(key)
            and other.began <= look.ended
            and other.ended >= write.began
            for other in self._writes_of(key)
        )

    def _writes_of(self, key: int) -> list[Write]:
        """All that may have been done to it."""
        return [w for w in self.writes.values() if not w.failed and w.touches(key)]

    # ---- what writers were told ----

    def _refusal(self, refusal: Refusal) -> Iterable[str]:
        for write in self.writes.values():
            if write.failed or write.began > refusal.ended:
                continue
            if refusal.value in write.beside:
                return
            for key, value in write.rows.items():
                if value != refusal.value or key in refusal.keys:
                    continue
                if self._lived_until(write, key) > refusal.began:
                    return
        yield f"refused although nobody had the value: {refusal}"

    def _lived_until(self, write: Write, key: int) -> float:
        """When the row that it has written has certainly ended."""
        end = write.ended + write.ttl + self.slack
        for other in self._writes_of(key):
            if other.done and other.began > write.ended:
                end = min(end, other.ended)
        for look in self.looks:
            if look.began > write.ended and look.rows.get(key, (0, -1))[1] != write.number:
                end = min(end, look.ended)
        return end
