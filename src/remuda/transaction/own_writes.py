"""The write set of a transaction, as it is before the transaction commits. Pure.

By map and key: the row that was written last, or None for a key that was removed. Savepoints are
positions in a log of what every write replaced, so that going back costs as much as what is undone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.errors import LimitExceeded, UndefinedSavepoint

Key: TypeAlias = tuple[PhysicalValue, ...]
Row: TypeAlias = tuple[PhysicalValue, ...]

_NAN: Final = math.nan
_ENTRY_SIZE: Final = 240
"""Bytes of an entry besides its values: the tuples, their places in dictionary and log."""
_VALUE_SIZE: Final = 32
SAVEPOINTS_MAX: Final = 10_000


def canonical_key(key: Key) -> Key:
    """``key`` with one object for all NaN, so that it equals itself."""
    for value in key:
        if value != value:  # noqa: PLR0124 (NaN)
            return tuple([_NAN if part != part else part for part in key])  # noqa: PLR0124
    return key


def empty_size(values: int) -> int:
    """The bytes that an entry takes, roughly, without the texts and bytes among its values."""
    return _ENTRY_SIZE + _VALUE_SIZE * values


def size_of(key: Key, row: Row | None) -> int:
    """The memory of an entry in bytes, roughly."""
    size = _ENTRY_SIZE
    for value in key if row is None else (*key, *row):
        size += _VALUE_SIZE
        if isinstance(value, str | bytes | tuple):
            size += len(value)
    return size


@dataclass(frozen=True, slots=True)
class Written:
    """``row`` None: removed. ``since``: the timestamp at which the writer had read; another commit
    to the key after it is a conflict. ``size``: bytes. ``keeps``: the row was there at ``since``,
    with the same values in the columns of all unique indexes; or an UPDATE has removed it, which
    has given the row another key."""

    row: Row | None
    since: int
    size: int
    keeps: bool = False


@dataclass
class MapOfWrites:
    """The writes to one map; all were made for this version of its schema."""

    schema_version: int
    written: dict[Key, Written] = field(default_factory=dict)


class OwnWrites:
    def __init__(self, size_max: int) -> None:
        """``size_max``: bytes that all entries may take together."""
        self.maps: dict[int, MapOfWrites] = {}
        self.bytes = 0
        self._size_max = size_max
        self._log: list[tuple[int, Key, Written | None]] = []
        """The entry before each write: None if there was none."""
        self._savepoints: list[tuple[str, int]] = []

    @property
    def count(self) -> int:
        return sum(len(writes.written) for writes in self.maps.values())

    @property
    def savepoints(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._savepoints)

    def of(self, map_id: int) -> dict[Key, Written]:
        """By key; {} for a map that was not written."""
        found = self.maps.get(map_id)
        return {} if found is None else found.written

    def entries(self) -> Iterator[tuple[int, int, Key, Written]]:
        """(map id, version of its schema, key, what was written)."""
        for map_id, writes in self.maps.items():
            for key, written in writes.written.items():
                yield map_id, writes.schema_version, key, written

    def write(  # noqa: PLR0917 (an entry, and what its writer knows of it)
        self,
        map_id: int,
        schema_version: int,
        key: Key,
        row: Row | None,
        since: int,
        keeps: bool = False,
    ) -> None:
        """Raises LimitExceeded; nothing has changed then. ``key`` is canonical."""
        size = size_of(key, row)
        writes = self.maps.get(map_id)
        before = None if writes is None else writes.written.get(key)
        if before is not None:
            # Of two reads the first one counts: what came after it was not seen by it.
            since = min(since, before.since)
            keeps = keeps and (row is None or before.keeps)
        freed = 0 if before is None else before.size
        if self.bytes + size - freed > self._size_max:
            raise LimitExceeded(
                f"the transaction has written more than {self._size_max} bytes",
                hint="Commit in smaller parts, or raise transaction_memory of the members.",
            )
        if writes is None:
            writes = self.maps[map_id] = MapOfWrites(schema_version)
        self.bytes += size - freed
        writes.written[key] = Written(row, since, size, keeps)
        self._log.append((map_id, key, before))

    @property
    def mark(self) -> int:
        """A place to go back to by ``undo``."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Take back every write since ``mark``."""
        while len(self._log) > mark:
            map_id, key, before = self._log.pop()
            writes = self.maps[map_id]
            self.bytes -= writes.written[key].size
            if before is None:
                del writes.written[key]
                if not writes.written:
                    del self.maps[map_id]
            else:
                writes.written[key] = before
                self.bytes += before.size

    # --- savepoints ---

    def savepoint(self, name: str) -> None:
        """A name may be used again: the newer one hides the older one. LimitExceeded."""
        if len(self._savepoints) >= SAVEPOINTS_MAX:
            raise LimitExceeded(f"a transaction has at most {SAVEPOINTS_MAX} savepoints")
        self._savepoints.append((name, self.mark))

    def rollback_to(self, name: str) -> None:
        """Undo what was written since; the savepoint stays, later ones go. UndefinedSavepoint."""
        place = self._find(name)
        self.undo(self._savepoints[place][1])
        del self._savepoints[place + 1 :]

    def release(self, name: str) -> None:
        """Forget it and later ones; the writes stay. UndefinedSavepoint."""
        del self._savepoints[self._find(name) :]

    def _find(self, name: str) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place][0] == name:
                return place
        raise UndefinedSavepoint(f'savepoint "{name}" does not exist')
