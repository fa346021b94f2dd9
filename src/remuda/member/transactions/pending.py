"""Parts that are prepared on this member and not decided: the keys and predicates that they hold,
and the waiters for these. All on the loop's thread.

A key that is written is held by one part, a key that is read by any number; a scan holds whatever
its predicate may match. Holders are told apart by their address. Parts of partitions that this
member backs up are kept here as well, so that whoever is promoted finds their locks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from remuda.datatypes.timestamp import FOREVER, to_micros
from remuda.member.base.core import Core, attempt
from remuda.member.state.lock_rows import LockRow
from remuda.member.state.transaction_sets import Key, PartWork, Scan, Write
from remuda.member.state.write_room import work_size
from remuda.transaction.locks import Mode
from remuda.transaction.parts import Address

Held = tuple[int, Key]
"""Map id and key."""
UNMEASURED: Final = -1
_NOBODY: Final[Mapping[Address, bool]] = {}


@dataclass(slots=True)
class Pending:
    work: PartWork
    timestamp: int
    """The prepare timestamp; FOREVER: decided, but not on all backups yet."""
    map_ids: frozenset[int]
    size: int = UNMEASURED
    """Bytes of what it writes, estimated."""
    written: bool = False
    """It came by ``add_writes``."""


class PendingParts:
    def __init__(self, core: Core) -> None:
        self._core = core
        self.parts: dict[Address, Pending] = {}
        self.keys: dict[Held, dict[Address, bool]] = {}
        """Holders of each key that somebody holds, and whether they write."""
        self.scans: dict[tuple[int, int], dict[Address, tuple[Scan, ...]]] = {}
        """By map id and partition."""
        self._writes: dict[tuple[int, int], dict[Address, list[Write]]] = {}
        self._by_map: dict[int, dict[Address, Pending]] = {}
        self._awaited: dict[int, dict[Address, int]] = {}
        """By map id: prepare timestamps of parts whose writes readers here may have to wait for."""
        self._waiting: dict[Held, deque[Callable[[], None]]] = {}
        self._reading: dict[Held, list[Callable[[], None]]] = {}
        self._settled: dict[int, list[Callable[[], None]]] = {}
        self._changed: list[Callable[[], None]] = []
        self.on_lower: list[tuple[Collection[object], Callable[[int], None]]] = []
        """While somebody is in the collection, called with a map id when readers of it that wait
        may go on."""
        self._on_wait: Callable[[], None] = lambda: None
        """Called when somebody waits until nobody holds a key, a map or a partition."""

    def tell_of_waits(self, hurry: Callable[[], None]) -> None:
        """``hurry`` is called when somebody waits for the end of a part."""
        self._on_wait = hurry

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, address: Address) -> bool:
        return address in self.parts

    # --- registering --------------------------------------------------------------------------

    def add(self, address: Address, work: PartWork, timestamp: int, *, readers_wait: bool) -> None:
        """From now on the part holds what it reads and writes. One that is prepared anew goes on
        holding it, with another timestamp."""
        known = self.parts.get(address)
        if known is not None:
            if known.work is work and readers_wait:
                self._stamp_anew(address, known, timestamp)
                return
            self.remove(address)
        part = self.parts[address] = Pending(work, timestamp, work.map_ids)
        partition = address[1]
        for map_id, key in work.reads:
            self.keys.setdefault((map_id, key), {})[address] = False
        for write in work.writes:
            self.keys.setdefault((write.map_id, write.key), {})[address] = True
            writes = self._writes.setdefault((write.map_id, partition), {})
            writes.setdefault(address, []).append(write)
        for map_id in part.map_ids:
            self._by_map.setdefault(map_id, {})[address] = part
        if work.scans:
            self._add_scans(address, work)
        if readers_wait:
            self.await_part(address)

    def _stamp_anew(self, address: Address, part: Pending, timestamp: int) -> None:
        part.timestamp = timestamp
        for map_id in part.map_ids:
            stamps = self._awaited.get(map_id)
            if stamps is not None:
                stamps.pop(address, None)
        self.await_part(address)

    def _add_scans(self, address: Address, work: PartWork) -> None:
        for map_id in {scan.map_id for scan in work.scans}:
            mine = tuple(scan for scan in work.scans if scan.map_id == map_id)
            self.scans.setdefault((map_id, address[1]), {})[address] = mine

    def add_now(self, address: Address, work: PartWork, timestamp: int) -> None:
        """``add`` of a part that is new, and whose writes readers here wait for: its timestamp was
        given out just now."""
        one_write = len(work.writes) == 1 and not work.reads
        if work.scans or not work.writes or not (one_write or len(work.map_ids) == 1):
            self.add(address, work, timestamp, readers_wait=True)
        else:
            self.add_writes(address, work, timestamp)

    def add_writes(self, address: Address, work: PartWork, timestamp: int) -> None:
        """``add_now`` of a part that writes, without scans and of one map only."""
        map_id = work.writes[0].map_id
        map_ids = frozenset((map_id,))
        part = self.parts[address] = Pending(work, timestamp, map_ids, written=True)
        keys = self.keys
        for held in work.reads:
            keys.setdefault(held, {})[address] = False
        for write in work.writes:
            keys.setdefault((map_id, write.key), {})[address] = True
        self._writes.setdefault((map_id, address[1]), {})[address] = list(work.writes)
        self._by_map.setdefault(map_id, {})[address] = part
        stamps = self._awaited.get(map_id)
        if not stamps:
            self._awaited[map_id] = {address: timestamp}
            store = self._core.stores.get(map_id)
            if store is not None:  # readers wait from here on; nobody goes on
                store.awaited = timestamp
        elif next(reversed(stamps.values())) < timestamp:  # the first one stays the lowest
            stamps[address] = timestamp
        else:
            self.await_part(address)

    def await_part(self, address: Address) -> None:
        """Readers here wait for its writes (this member serves its partition)."""
        part = self.parts[address]
        if part.timestamp == FOREVER:
            return
        for map_id in {write.map_id for write in part.work.writes}:
            stamps = self._awaited.setdefault(map_id, {})
            late = bool(stamps) and part.timestamp < next(reversed(stamps.values()))
            stamps[address] = part.timestamp
            if late:  # kept in order, so that the first one is the lowest
                self._awaited[map_id] = dict(sorted(stamps.items(), key=lambda item: item[1]))
            self._publish(map_id)

    def decided(self, address: Address) -> None:
        """Its writes are there (or dropped): nobody waits to read them any more."""
        part = self.parts.get(address)
        if part is None:
            return
        part.timestamp = FOREVER
        if self._reading:
            self._wake_readers(part)
        for map_id in part.map_ids:
            stamps = self._awaited.get(map_id)
            if stamps is not None and stamps.pop(address, None) is not None:
                self._publish(map_id)

    def remove(self, address: Address) -> None:
        """It holds nothing any more; those that waited for its keys go on."""
        part = self.parts.get(address)
        if part is None:
            return
        if part.timestamp != FOREVER:
            self.decided(address)
        del self.parts[address]
        freed: list[Held] = []
        work = part.work
        keys, waiting = self.keys, self._waiting
        for held in (*[(write.map_id, write.key) for write in work.writes], *work.reads):
            holders = keys.get(held)
            if holders is not None and holders.pop(address, None) is not None and not holders:
                del keys[held]
            if held in waiting:
                freed.append(held)
        for map_id in part.map_ids:
            place = (map_id, address[1])
            for table in (self.scans, self._writes):
                found = table.get(place)
                if found is not None and found.pop(address, None) is not None and not found:
                    del table[place]
            mine = self._by_map[map_id]
            del mine[address]
            if not mine:
                del self._by_map[map_id]
                for action in self._settled.pop(map_id, ()):
                    attempt("a wait for single writes", action)
        if self._changed:
            changed, self._changed = self._changed, []
            for action in changed:
                attempt("a wait for single writes", action)
        for held in freed:
            self._serve(held)

    def remove_writes(self, address: Address) -> None:
        """``decided`` and ``remove`` in one, of a part that ``add_writes`` has registered, while
        nobody waits until something is free."""
        part = self.parts.get(address)
        if part is None:
            return
        somebody_waits = self._reading or self._waiting or self._settled or self._changed
        if somebody_waits or not part.written or part.timestamp == FOREVER:
            self.remove(address)
            return
        del self.parts[address]
        (map_id,) = part.map_ids
        keys = self.keys
        for write in part.work.writes:
            held = map_id, write.key
            holders = keys[held]
            del holders[address]
            if not holders:
                del keys[held]
        for held in part.work.reads:
            known = keys.get(held)
            if known is not None and known.pop(address, None) is not None and not known:
                del keys[held]
        place = map_id, address[1]
        writes, parts = self._writes[place], self._by_map[map_id]
        del writes[address], parts[address]
        if not writes:
            del self._writes[place]
        if not parts:
            del self._by_map[map_id]
        stamps = self._awaited.get(map_id)
        if stamps is not None and stamps.pop(address, None) is not None:
            self._publish(map_id)

    def _publish(self, map_id: int) -> None:
        """Set from where on readers wait; tell them when that has risen."""
        stamps = self._awaited.get(map_id)
        lowest = next(iter(stamps.values())) if stamps else FOREVER
        if not stamps:
            self._awaited.pop(map_id, None)
        store = self._core.stores.get(map_id)
        if store is None:
            return
        before, store.awaited = store.awaited, lowest
        if lowest > before:
            self.tell_readers(map_id)

    def tell_readers(self, map_id: int) -> None:
        for readers, go_on in self.on_lower:
            if readers:
                go_on(map_id)

    def serve_partitions(self, serves: Callable[[int], bool]) -> None:
        """The partitions that this member is the primary of have changed."""
        changed = set(self._awaited)
        self._awaited = {}
        for address in list(self.parts):
            if serves(address[1]):
                self.await_part(address)
        for map_id in changed - set(self._awaited):
            self._publish(map_id)

    def drop_decided(self, serves: Callable[[int], bool]) -> None:
        """Parts that are decided, of partitions that this member does not serve any more."""
        for address, part in list(self.parts.items()):
            if part.timestamp == FOREVER and not serves(address[1]):
                self.remove(address)

    @property
    def nbytes(self) -> int:
        """Estimated memory of writes that are not in the stores yet."""
        total = 0
        for part in self.parts.values():
            if part.timestamp != FOREVER:
                if part.size == UNMEASURED:
                    part.size = work_size(part.work)
                total += part.size
        return total

    # --- asking -------------------------------------------------------------------------------

    def awaited_key(self, map_id: int, keys: Iterable[Key], at: int) -> Key | None:
        """One of the keys that an undecided part writes with a timestamp at or below ``at``."""
        for key in keys:
            for address, writes in self.keys.get((map_id, key), {}).items():
                if writes and self.parts[address].timestamp <= at:
                    return key
        return None

    def awaited_writes(self, map_id: int, at: int) -> Iterator[Write]:
        """The writes of undecided parts, of partitions that this member serves, to a map with a
        timestamp at or below ``at``."""
        for address, timestamp in self._awaited.get(map_id, {}).items():
            if timestamp <= at:
                yield from (w for w in self.parts[address].work.writes if w.map_id == map_id)

    def holder(self, held: Held, *, write: bool, me: Address | None = None) -> Address | None:
        """The part in the way of one that reads, or writes, this key."""
        for address, writes in self.keys.get(held, {}).items():
            if (write or writes) and (me is None or address[0] != me[0]):
                return address
        return None

    def holders(self, held: Held) -> list[Address]:
        """The parts that read or write the key."""
        return list(self.keys.get(held, ()))

    def settling(self, work: PartWork, me: Address) -> Held | None:
        """A key that stands in the way of a part, and is held by a transaction that is waited for
        (``goes_first``)."""
        if not self.keys:
            return None
        for held, write in _claims(work):
            for address, writes in self.keys.get(held, _NOBODY).items():
                if (write or writes) and self.goes_first(address, me):
                    return held
        return None

    def goes_first(self, other: Address, me: Address) -> bool:
        """Whether ``me`` waits for another transaction: it is decided here, or it is older. Its
        user may have been told of its commit while the decision was under way to this member, and
        begun ``me``. Only the younger one waits, so no circle of them comes about."""
        if other[0] == me[0]:
            return False
        if self.parts[other].timestamp == FOREVER:
            return True
        return other[0] < me[0]

    def scans_of(self, map_id: int, partition: int) -> Iterator[tuple[Address, tuple[Scan, ...]]]:
        """Scans that undecided parts have made of a map in a partition."""
        return iter(self.scans.get((map_id, partition), {}).items())

    def writes_of(self, map_id: int, partition: int) -> Iterator[tuple[Address, list[Write]]]:
        return iter(self._writes.get((map_id, partition), {}).items())

    def rows(self, serves: Callable[[int], bool]) -> Iterator[LockRow]:
        """The keys that parts of partitions of this member hold."""
        for (transaction, partition), part in self.parts.items():
            if not serves(partition):
                continue
            owner = str(part.work.owner or transaction)
            since = 0 if part.timestamp == FOREVER else to_micros(part.timestamp)
            for held, writes in _claims(part.work):
                mode = Mode.EXCLUSIVE if writes else Mode.SHARED
                yield LockRow(*held, "commit", mode, True, owner, since=since)

    def of_map(self, map_id: int) -> bool:
        """Whether any part is pending that concerns the map."""
        return map_id in self._by_map

    def undecided(self, map_id: int, serves: Callable[[int], bool]) -> bool:
        """Whether a part that reads or writes the map, of a partition of this member, is prepared
        and not decided."""
        parts = self._by_map.get(map_id, {}).items()
        return any(part.timestamp != FOREVER and serves(place) for (_, place), part in parts)

    def lowest_in(self, partitions: Collection[int]) -> int:
        """The lowest prepare timestamp of what is undecided in them; FOREVER: nothing is."""
        found = (part.timestamp for (_, place), part in self.parts.items() if place in partitions)
        return min(found, default=FOREVER)

    def undecided_in(self, partitions: Collection[int]) -> Iterator[tuple[int, Write]]:
        """The writes of what is undecided in them, with their partition."""
        for (_, partition), part in self.parts.items():
            if partition in partitions and part.timestamp != FOREVER:
                for write in part.work.writes:
                    yield partition, write

    def in_partitions(self, partitions: frozenset[int]) -> list[Address]:
        return [address for address in self.parts if address[1] in partitions]

    @property
    def oldest(self) -> int:
        """The lowest timestamp at which something may still commit; FOREVER if nothing may."""
        return min((part.timestamp for part in self.parts.values()), default=FOREVER)

    # --- waiting ------------------------------------------------------------------------------

    def when_free(self, map_id: int, key: Key, action: Callable[[], None]) -> None:
        """Call ``action`` when nobody holds the key any more, first come, first served. It must
        ask again, since others may have been faster."""
        self._waiting.setdefault((map_id, key), deque()).append(action)
        self._on_wait()

    def _serve(self, held: Held) -> None:
        waiting = self._waiting.get(held)
        while waiting and held not in self.keys:
            action = waiting.popleft()
            attempt("a write that waited for a key", partial(action))
        if waiting is not None and not waiting:
            self._waiting.pop(held, None)

    def wake_all(self) -> None:
        """Everyone who waits for a key asks again: keys may have moved to other members."""
        waiting, self._waiting = self._waiting, {}
        reading, self._reading = self._reading, {}
        for actions in (*waiting.values(), *reading.values()):
            for action in actions:
                attempt("a request that waited for a key", action)

    def when_readable(self, map_id: int, key: Key, action: Callable[[], None]) -> None:
        """Call ``action`` when a write of the key is decided (then ask again)."""
        self._reading.setdefault((map_id, key), []).append(action)

    def _wake_readers(self, part: Pending) -> None:
        """In another step: the decision has not been carried out everywhere in this one."""
        for write in part.work.writes:
            for action in self._reading.pop((write.map_id, write.key), ()):
                asyncio.get_running_loop().call_soon(action)

    def when_settled(self, map_id: int, action: Callable[[], None]) -> None:
        """Call ``action`` once no part that concerns the map is pending (not at once)."""
        self._settled.setdefault(map_id, []).append(action)
        self._on_wait()

    def when_changed(self, action: Callable[[], None]) -> None:
        """Call ``action`` when a part is not pending any more."""
        self._changed.append(action)
        self._on_wait()

    @property
    def awaited(self) -> bool:
        """Whether somebody waits until something is not held any more."""
        return bool(self._waiting or self._settled or self._changed)

    @property
    def waiters(self) -> int:
        return sum(len(a) for a in (*self._waiting.values(), *self._reading.values()))


def _claims(work: PartWork) -> Iterator[tuple[Held, bool]]:
    """The keys that a part holds, and whether it writes them."""
    for write in work.writes:
        yield (write.map_id, write.key), True
    for held in work.reads:
        yield held, False


def held_by(work: PartWork) -> list[Held]:
    """The keys that a part holds."""
    return [(write.map_id, write.key) for write in work.writes] + list(work.reads)
