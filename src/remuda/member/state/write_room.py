"""Whether a write may begin on this member: is there room for it on the disk of the log, in the
member's memory, and in its map.

Every copy is asked before anything of a write is prepared: the primary of a part before it takes a
prepare timestamp (``member.transactions.shell``), its backups before they keep it
(``Parts.refuse_to_keep``), and every copy before rows of a job are staged on it. Rows that a copy
has taken are never refused any more: commits, the replay of a log, promotions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from remuda.config import MemberConfig
from remuda.datatypes.map_options import Eviction
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import StorageFull
from remuda.execution.memory import MemberMemory
from remuda.limits import PARTITIONS
from remuda.member.state.log import fields
from remuda.member.state.transaction_sets import PartWork, Row, Write
from remuda.plan.explain.explain import size_text
from remuda.storage.chunks.row_sizes import INDEX_ENTRY_SIZE, TUPLE_SIZE, value_size
from remuda.storage.indexes.sizes import WriteSizes, entries_size
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.stored_memory import (
    StoredMemory,
    Use,
    statement_memory_of,
    stored_memory_of,
)
from remuda.world import Clock

log = logging.getLogger(__name__)

MEASURE_EVERY: Final = 0.25
"""Seconds between two measurements."""
MEASURE_AGAIN: Final = 0.02
"""Seconds after which a write that does not fit has everything measured once more."""
REST: Final = 50
"""Measuring takes at most one part of so many of the loop's time."""
ROOM_AGAIN: Final = 0.05
"""Of the limit: so much must be free until the log says that there is room again."""
STAGED_ROW_SIZE: Final = 40
"""Bytes that a staged row takes besides its columns: hash, slot, order, partition."""
INTERNAL_MARK: Final = "\x01"
"""The first character of names of maps that members need themselves."""


@dataclass(slots=True)
class _MapRoom:
    """A map with ``max_bytes`` from which nothing is evicted: bytes here, and how many may be."""

    limit: int
    held: int

    def hold(self, size: int) -> None:
        self.held += size


class WriteRoom:
    """The room for writes of one member; everything on the loop's thread."""

    def __init__(
        self,
        config: MemberConfig,
        clock: Clock,
        machine: int,
        *,
        stores: Mapping[int, MapStore],
        backups: Mapping[int, MapStore],
    ) -> None:
        """``machine``: bytes that this machine or control group has."""
        self._config = config
        self._clock = clock
        self._machine = machine
        self._stores = stores
        self._backups = backups
        self._require_disk: Callable[[], None] | None = None
        self._besides: list[Callable[[], int]] = []
        self._me = 0
        self._partitions = PARTITIONS
        self._maps: dict[int, _MapRoom] = {}
        self._sizes: dict[int, tuple[MapSchema, WriteSizes]] = {}
        self._measured_at = -MEASURE_EVERY
        self._measured_maps: frozenset[int] = frozenset()
        self._took = 0.0
        self._full = False
        statements, stored = self._limits(max(1, config.memory_sharers))
        self.statements = MemberMemory(statements)
        """The memory that all statements hold."""
        self.stored = StoredMemory(stored)
        """The memory of stored rows."""

    # --- limits -------------------------------------------------------------------------------

    def _limits(self, sharers: int) -> tuple[int, int]:
        config, share = self._config, self._machine // sharers
        statements = statement_memory_of(share, config.member_memory)
        return statements, stored_memory_of(share, statements, config.storage_memory)

    def on_view(self, view: View, me: int) -> None:
        """Members may share the memory of this machine now, or have left it. ``me``: this member's
        number."""
        self._me = me
        self._partitions = view.owners.count(me)
        host = view.by_number[me].host if me in view.by_number else self._config.host
        here = sum(member.host == host for member in view.members)
        statements, stored = self._limits(self._config.memory_sharers or max(1, here))
        if stored != self.stored.limit or statements != self.statements.limit:
            self.statements.resize(statements)
            self.stored.resize(stored)
            log.info(
                "memory",
                extra=fields(
                    available=self._machine, sharers=here, statements=statements, stored=stored
                ),
            )
        self.measure()

    def watch_disk(self, require: Callable[[], None]) -> None:
        """There is a log: ``require()`` raises DiskFull while its disk has no room."""
        self._require_disk = require

    # --- measuring ----------------------------------------------------------------------------

    def counts(self, size: Callable[[], int]) -> None:
        """``size()`` bytes are stored outside of the stores."""
        self._besides.append(size)

    def look(self) -> None:
        """Called now and then: measure, unless that would take too much of the time."""
        if self._due(MEASURE_EVERY):
            self.measure()

    def _due(self, after: float) -> bool:
        """Whether to measure, no sooner than this many seconds after the last time. A map that was
        dropped makes room at once, however long it took to measure it."""
        return (
            not self._measured_maps <= self._stores.keys()
            or self._clock.monotonic() - self._measured_at >= max(after, self._took * REST)
        )

    def measure(self) -> None:
        began = self._clock.monotonic()
        total = removals = 0
        maps: dict[int, _MapRoom] = {}
        for map_id, store in self._stores.items():
            size = store.bytes + store.indexes.unbuilt
            total += size + store.frames.unarranged_bytes
            removals += store.frames.removal_bytes
            limit = self._map_limit(store.schema)
            if limit is not None:
                maps[map_id] = _MapRoom(limit, size)
        for store in self._backups.values():
            total += store.bytes + store.indexes.unbuilt + store.frames.unarranged_bytes
            removals += store.frames.removal_bytes
        self._maps = maps
        self._sizes = {m: known for m, known in self._sizes.items() if m in self._stores}
        self.stored.measured(total + sum(size() for size in self._besides), removals)
        self._measured_maps = frozenset(self._stores)
        self._measured_at = self._clock.monotonic()
        self._took = self._measured_at - began
        if self._full and self.stored.fits(int(ROOM_AGAIN * self.stored.limit)):
            self._full = False
            log.warning("there is room for rows again", extra=fields(held=self.stored.held))

    def _measure_again(self) -> None:
        """Before a write is refused: rows that were there a moment ago may have gone."""
        if self._due(MEASURE_AGAIN):
            self.measure()

    def _map_limit(self, schema: MapSchema) -> int | None:
        """Bytes that this member may have of a map as a primary; None: any number."""
        limit = schema.options.max_bytes
        if not limit or schema.options.eviction is not Eviction.NONE:
            return None
        return limit if schema.replicated else limit * self._partitions // PARTITIONS

    # --- parts of transactions ----------------------------------------------------------------

    def admit_part(self, work: PartWork, *, primary: bool) -> None:
        """Before a part is prepared or kept. Raises DiskFull, StorageFull. Removals are never
        refused for their memory: they take next to none, and make room."""
        if not work.writes:
            return
        if self._require_disk is not None:
            self._require_disk()
        stores, size = self._stores, 0
        for write in work.writes:
            if write.row is not None and (store := stores.get(write.map_id)) is not None:
                schema, known = store.schema, self._sizes.get(write.map_id)
                if (
                    known is None
                    or known[0] is not schema
                    or schema.version != write.schema_version
                ):
                    size += self._size_of(store, write, write.row)
                else:
                    size += known[1].of(write.row)
        if not size:
            return
        if primary and self._maps:
            self._admit_in_maps(work.writes)
        if not self.stored.take(size):
            self._admit_with_reserve(work.writes, size)
            self.stored.admit(size)

    def _size_of(self, store: MapStore, write: Write, row: Row) -> int:
        """Bytes of the row and of its index entries."""
        schema = store.schema
        if schema.version == write.schema_version:
            return self._sizes_of(store).of(row)
        return (1 + len(schema.indexes)) * (_any_row_size(write) + INDEX_ENTRY_SIZE)

    def _sizes_of(self, store: MapStore) -> WriteSizes:
        """Of the rows of its newest schema."""
        schema = store.schema
        known = self._sizes.get(schema.map_id)
        if known is None or known[0] is not schema:
            known = self._sizes[schema.map_id] = schema, WriteSizes(schema)
        return known[1]

    def _admit_with_reserve(self, writes: Iterable[Write], size: int) -> None:
        names = {
            self._stores[write.map_id].schema.name
            for write in writes
            if write.row is not None and write.map_id in self._stores
        }
        internal = all(name.startswith(INTERNAL_MARK) for name in names)
        self._require_memory(size, Use.INTERNAL if internal else Use.ROWS)

    def _admit_in_maps(self, writes: Iterable[Write]) -> None:
        wanted: dict[int, int] = {}
        for write in writes:
            if write.row is not None and write.map_id in self._maps:
                size = self._size_of(self._stores[write.map_id], write, write.row)
                wanted[write.map_id] = wanted.get(write.map_id, 0) + size
        for map_id, size in wanted.items():
            self._require_map(self._stores[map_id].schema, size)
        for map_id, size in wanted.items():
            self._maps[map_id].hold(size)

    # --- many rows ----------------------------------------------------------------------------

    def admit_rows(
        self, schema: MapSchema, batch: pa.RecordBatch, *, primary: bool, removal: bool = False
    ) -> None:
        """Before rows of a job, or keys that it removes, are staged. Raises DiskFull and
        StorageFull."""
        size = self.require_rows(schema, batch, primary=primary, removal=removal)
        self.admit(size, removal=removal)

    def require_rows(
        self, schema: MapSchema, batch: pa.RecordBatch, *, primary: bool, removal: bool = False
    ) -> int:
        """The same for rows that are staged later: ``under_way`` and ``admit`` follow. Returns
        their bytes."""
        if self._require_disk is not None:
            self._require_disk()
        size = staged_size(batch, None if removal else schema)
        internal = schema.name.startswith(INTERNAL_MARK)
        use = Use.REMOVAL if removal else Use.INTERNAL if internal else Use.ROWS
        self._require_memory(size, use)
        if primary and not removal and schema.map_id in self._maps:
            self._require_map(schema, size)
            self._maps[schema.map_id].hold(size)
        return size

    def admit(self, size: int, *, removal: bool = False) -> None:
        """Rows that fit are staged."""
        self.stored.admit(size, Use.REMOVAL if removal else Use.ROWS)

    @contextmanager
    def under_way(self, size: int) -> Iterator[None]:
        """Around the staging of rows on other copies, before they are staged here."""
        self.stored.depart(size)
        try:
            yield
        finally:
            self.stored.arrive(size)

    def require_copy(self, size: int) -> None:
        """Before a copy begins that this member is to be given. Raises StorageFull."""
        if not self._fits(size, Use.ROWS):
            raise self._no_memory(size, Use.ROWS)

    def admit_copy(self, schema: MapSchema, batch: pa.RecordBatch) -> None:
        """Before rows of a copy are stored. Raises StorageFull."""
        size = staged_size(batch, schema)
        self.require_copy(size)
        self.stored.admit(size)

    def admit_direct(self, store: MapStore, rows: Sequence[Row]) -> None:
        """Before rows go straight into a store that has no backups. Raises StorageFull."""
        sizes = self._sizes_of(store)
        size = sum([sizes.of(row) for row in rows])
        if not self.stored.fits(size):
            self._require_memory(size, Use.ROWS)
        room = self._maps.get(store.schema.map_id) if self._maps else None
        if room is not None:
            self._require_map(store.schema, size)
            room.hold(size)
        self.stored.admit(size)

    # --- indexes ------------------------------------------------------------------------------

    def admit_indexes(self, schema: MapSchema) -> None:
        """Before indexes are made that ``schema`` has and the map has not. Raises StorageFull.
        From then on ``measure`` counts what they lack until they are built."""
        store, backup = self._stores.get(schema.map_id), self._backups.get(schema.map_id)
        size = 0 if store is None else store.indexes.expected(schema)
        all_copies = size + (0 if backup is None else backup.indexes.expected(schema))
        if not all_copies:
            return
        # Runs are merged into larger ones, and both are there for a moment.
        self._require_memory(2 * all_copies, Use.ROWS, "an index")
        if schema.map_id in self._maps:
            self._require_map(schema, size, "index")
            self._maps[schema.map_id].hold(size)
        self.stored.admit(all_copies)

    # --- refusals -----------------------------------------------------------------------------

    def _fits(self, size: int, use: Use) -> bool:
        if self.stored.fits(size, use):
            return True
        self._measure_again()
        return self.stored.fits(size, use)

    def _require_memory(self, size: int, use: Use, what: str = "a write") -> None:
        if self._fits(size, use):
            return
        stored = self.stored
        stored.refuse()
        if not self._full:
            self._full = True
            log.error(
                "no room for rows: writes are refused",
                extra=fields(held=stored.held, limit=stored.limit),
            )
        raise self._no_memory(size, use, what)

    def _no_memory(self, size: int, use: Use, what: str = "a write") -> StorageFull:
        stored = self.stored
        kept = stored.reserve if use is Use.ROWS else 0
        return StorageFull(
            f"member {self._me} has no room for {what}: it holds {size_text(stored.held)} of the "
            f"{size_text(stored.limit)} that it may store",
            detail=f"The {what.rsplit(maxsplit=1)[-1]} needs {size} bytes; "
            f"{stored.held} of {stored.limit} are held"
            + (f", and {kept} are kept for removals." if kept else "."),
            hint="Remove entries, drop maps or indexes, add members, or raise storage_memory. "
            "Nothing was changed; the same succeeds when there is room. "
            "Removed rows are freed after about ten seconds.",
            member=str(self._me),
        )

    def _require_map(self, schema: MapSchema, size: int, what: str = "write") -> None:
        room = self._maps[schema.map_id]
        if room.held + size <= room.limit:
            return
        self._measure_again()
        found = self._maps.get(schema.map_id)
        if found is None or found.held + size <= found.limit:
            return
        self.stored.refuse()
        raise StorageFull(
            f'map "{schema.name}" is full: member {self._me} holds {size_text(found.held)} of it, '
            f"and its share of max_bytes is {size_text(found.limit)}",
            detail=f"The {what} needs {size} bytes; {found.held} of {found.limit} are held.",
            hint="Remove entries, raise max_bytes, or let entries go by themselves (eviction = "
            "'LRU'). Nothing was changed. Removed rows are freed after about ten seconds.",
            member=str(self._me),
        )

    # --- state --------------------------------------------------------------------------------

    def map_limit(self, map_id: int) -> int | None:
        """Bytes that this member may have of a map as a primary; None: any number."""
        room = self._maps.get(map_id)
        return None if room is None else room.limit

    def gauges(self) -> dict[str, int]:
        return {
            "storage_held": self.stored.held,
            "storage_limit": self.stored.limit,
            "writes_refused": self.stored.refusals,
        }


def staged_size(batch: pa.RecordBatch, schema: MapSchema | None) -> int:
    """Bytes that rows take while they are staged, and while the commit puts them in order: it
    copies them before it drops what was staged. Then come the entries of the indexes of
    ``schema``; None: there will be none."""
    size: int = batch.nbytes
    rows: int = batch.num_rows
    entries = entries_size(schema, batch) if schema is not None and schema.indexes else 0
    return 2 * size + STAGED_ROW_SIZE * rows + entries


def work_size(work: PartWork) -> int:
    """Bytes that the writes of a part take, estimated."""
    total = 0
    for write in work.writes:
        total += _any_row_size(write)
    return total


def _any_row_size(write: Write) -> int:
    return TUPLE_SIZE if write.row is None else TUPLE_SIZE + value_size(write.row)
