"""Near caches: rows of a map in the memory of the client, as long as nobody changes them.

Time alone decides which values may be served from here. The member of each partition tells which
keys have changed, and up to which moment that is everything. So a row that is here was the newest
one at the last moment at which its member has confirmed; if that is too long ago, the cache is
passed over. A read that is under way while its key is changed stores nothing: it may have read what
was before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from remuda.datatypes.values import PhysicalValue
from remuda.errors import InputError

PhysicalRow = tuple[PhysicalValue, ...]
EVICTIONS = ("LRU", "NONE")


@dataclass(frozen=True, slots=True)
class NearCache:
    """How a near cache works, for ``client.map(name, near_cache=NearCache(...))``.

    ``max_entries``: so many entries at most. ``ttl``: seconds after which an entry is read from its
    member again, whether it has changed or not (None: never). ``eviction``: "LRU", the entry that
    was read longest ago makes room for a new one; "NONE", the first ones stay. ``max_staleness``:
    the value of a get was the newest one at most so many seconds ago (usually some milliseconds);
    when the members cannot be heard for longer, gets go to them.
    """

    max_entries: int = 10_000
    ttl: float | None = None
    eviction: str = "LRU"
    max_staleness: float = 2.0

    def __post_init__(self) -> None:
        entries = self.max_entries
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 1:
            raise InputError(f"max_entries is 1 or more, found {entries!r}")
        for name in ("ttl", "max_staleness"):
            value = getattr(self, name)
            if value is None and name == "ttl":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InputError(f"{name} is a number of seconds above 0, found {value!r}")
        if self.eviction not in EVICTIONS:
            raise InputError(f"eviction is one of {', '.join(EVICTIONS)}, found {self.eviction!r}")


@dataclass(frozen=True, slots=True)
class NearCacheStatistics:
    """``invalidations``: entries that were dropped because they have changed; ``evictions``: to
    make room; ``expirations``: by their ``ttl``; ``resets``: how often everything was dropped."""

    hits: int
    misses: int
    entries: int
    invalidations: int
    evictions: int
    expirations: int
    resets: int


@dataclass(eq=False, slots=True)
class Read:
    """A read that is under way; ``stale`` when its key has changed meanwhile."""

    hash: int
    stale: bool = False


@dataclass(slots=True)
class _Counts:
    hits: int = 0
    misses: int = 0
    invalidations: int = 0
    evictions: int = 0
    expirations: int = 0
    resets: int = 0


@dataclass(slots=True)
class _Entry:
    key: PhysicalRow
    row: PhysicalRow
    version: int
    """Of the schema."""
    until: float


@dataclass(slots=True)
class NearEntries:
    """The entries, by the hash of their keys. Thread-safe. ``now`` is monotonic seconds."""

    options: NearCache
    _entries: OrderedDict[int, _Entry] = field(default_factory=OrderedDict)
    _reads: dict[int, set[Read]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)
    _valid_until: float = 0.0
    _position: int = 0
    _counts: _Counts = field(default_factory=_Counts)

    # --- reads --------------------------------------------------------------------------------

    def find(
        self, hash_: int, key: PhysicalRow, version: int, now: float, written: int
    ) -> PhysicalRow | None:
        """The row of a key, if it may be served: ``written`` is the timestamp of what the client
        itself has written last."""
        with self._lock:
            entry = self._entries.get(hash_)
            if entry is None or now >= self._valid_until or self._position < written:
                self._counts.misses += 1
                return None
            if entry.key != key or entry.version != version:
                self._counts.misses += 1
                return None
            if now >= entry.until:
                del self._entries[hash_]
                self._counts.expirations += 1
                self._counts.misses += 1
                return None
            self._entries.move_to_end(hash_)
            self._counts.hits += 1
            return entry.row

    def begin(self, hash_: int) -> Read:
        """Before a member is asked."""
        read = Read(hash_)
        with self._lock:
            self._reads.setdefault(hash_, set()).add(read)
        return read

    def end(
        self, read: Read, key: PhysicalRow, row: PhysicalRow | None, version: int, now: float
    ) -> None:
        """The member has answered (``row`` is None: there is no entry, or it did not)."""
        with self._lock:
            others = self._reads.get(read.hash)
            if others is not None:
                others.discard(read)
                if not others:
                    del self._reads[read.hash]
            if row is None or read.stale or now >= self._valid_until:
                return
            full = len(self._entries) >= self.options.max_entries
            if full and read.hash not in self._entries:
                if self.options.eviction == "NONE":
                    return
                self._entries.popitem(last=False)
                self._counts.evictions += 1
            ttl = self.options.ttl
            until = float("inf") if ttl is None else now + ttl
            self._entries[read.hash] = _Entry(key, row, version, until)
            self._entries.move_to_end(read.hash)

    # --- what members tell --------------------------------------------------------------------

    def changed(self, hashes: Iterable[int]) -> None:
        """Entries with these hashes are not what they were."""
        with self._lock:
            for hash_ in hashes:
                if self._entries.pop(hash_, None) is not None:
                    self._counts.invalidations += 1
                for read in self._reads.get(hash_, ()):
                    read.stale = True

    def confirmed(self, position: int, since: float) -> None:
        """All changes at or below the timestamp ``position`` have been told, and all that were made
        before the moment ``since``."""
        with self._lock:
            self._position = max(self._position, position)
            self._valid_until = max(self._valid_until, since + self.options.max_staleness)

    def reset(self) -> None:
        """Members may have changes that nobody has told: forget everything."""
        with self._lock:
            self._entries.clear()
            for reads in self._reads.values():
                for read in reads:
                    read.stale = True
            self._valid_until = 0.0
            self._counts.resets += 1

    @property
    def statistics(self) -> NearCacheStatistics:
        with self._lock:
            counts = self._counts
            return NearCacheStatistics(
                hits=counts.hits,
                misses=counts.misses,
                entries=len(self._entries),
                invalidations=counts.invalidations,
                evictions=counts.evictions,
                expirations=counts.expirations,
                resets=counts.resets,
            )


def near_cache_of(wanted: NearCache | bool | None) -> NearCache | None:
    """The near cache that ``near_cache=`` of a map asks for: True is the usual one. InputError."""
    if wanted is True:
        return NearCache()
    if wanted is None or wanted is False:
        return None
    if not isinstance(wanted, NearCache):
        raise InputError(
            f"near_cache is True or a NearCache, found {type(wanted).__name__}",
            hint="Like near_cache=remuda.NearCache(max_entries=1000).",
        )
    return wanted
