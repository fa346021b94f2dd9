"""The conflicts of a part when it prepares (design rule 18): commits since its snapshot, and the
locks of others. Scans are checked against the images before and after every change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.catalog.unique_guards import KEY_GUARDS_NAME, is_guards
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER, from_micros
from remuda.datatypes.values import values_to_array
from remuda.datatypes.view import View
from remuda.datatypes.violations import key_text
from remuda.errors import RemudaError, SerializationFailure, SnapshotTooOld
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.predicate import Predicate
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Key, PartWork, Row, Scan, Write
from remuda.member.transactions.pending import Held, PendingParts
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.parts import Address
from remuda.transaction.states import TransactionId

AGAIN = "Run the transaction again."
EXPIRY_GUARD: Final = from_micros(2_000)
"""An entry that ends by itself so soon counts as gone: the commit timestamp is taken later than
now."""


def _same_values(guards: MapSchema, when: str) -> SerializationFailure:
    """A conflict of guards, which users know nothing of."""
    if guards.name == KEY_GUARDS_NAME:
        return SerializationFailure(
            f"another transaction that uses the same key of a referenced table {when}",
            hint=AGAIN,
        )
    return SerializationFailure(
        f"another transaction that writes the same values of a unique constraint {when}",
        hint=AGAIN,
    )


def _search_outdated(schema: MapSchema, *, in_bulk: bool) -> SerializationFailure:
    """The search for values of unique constraints may have missed some: ``in_bulk``, those of a
    bulk write; else those that the former primary of a partition knows of."""
    if in_bulk:
        happened = f'rows were written in bulk to map "{schema.name}"'
    else:
        happened = f'a member took over partitions of map "{schema.name}"'
    return SerializationFailure(
        f"{happened} since the values of its unique constraints were looked for", hint=AGAIN
    )


class KeyHolders(Protocol):
    """``member.transactions.key_locks``."""

    held: Mapping[Held, object]
    """The keys that somebody has locked, or waits for."""

    def holder(
        self, held: Held, owner: TransactionId | None, *, write: bool
    ) -> TransactionId | None:
        """The transaction whose lock on a key stands in the way of somebody else."""

    def described(self, owner: TransactionId) -> str:
        """For people."""


def matches(scan: Scan, schema: MapSchema, rows: Sequence[Row]) -> bool:
    """Whether the predicate of a scan may hold for one of the rows, which have this schema.

    A predicate that fails on them, or was made for another schema, counts as matching: that may
    abort a transaction without need, and never commits one wrongly.
    """
    if scan.predicate is None or not rows:
        return bool(rows)
    if scan.schema_version != schema.version:
        return True
    columns = schema.columns
    arrays = [
        values_to_array([row[position] for row in rows], columns[position].type)
        for _, position in scan.columns
    ]
    return matches_batch(scan, Batch(arrays, len(rows)))


def matches_batch(scan: Scan, batch: Batch) -> bool:
    """The same for a batch of the scan's columns, in their order."""
    if scan.predicate is None:
        return batch.rows > 0
    places = {identity: place for place, (identity, _) in enumerate(scan.columns)}
    try:
        found = Predicate(scan.predicate, Compiler(places, scan.parameters)).select(batch)
    except RemudaError:
        return True
    return batch.rows > 0 if found is None else len(found) > 0


class Validation:
    """Asks the stores and the pending parts; changes nothing."""

    def __init__(self, core: Core, pending: PendingParts) -> None:
        self._core = core
        self._pending = pending
        self._locks: KeyHolders | None = None
        """None: nobody locks keys."""
        self._changed: dict[tuple[Scan, int], frozenset[int]] = {}
        """Within one step of the loop: the partitions in which a scan has found changes."""

    def heed(self, locks: KeyHolders) -> None:
        """Keys that others have locked stand in the way of whoever writes them."""
        self._locks = locks

    def begin_step(self) -> None:
        """Something may have changed since the last call of ``conflict``."""
        self._changed.clear()

    def conflict(self, address: Address, work: PartWork) -> RemudaError | None:
        """Why the part cannot prepare now, if it cannot."""
        try:
            for write in work.writes:
                self._check_write(address, work, write)
            if work.reads:
                self._check_reads(address, work)
            for scan in work.scans:
                self._check_scan(address, work, scan)
            self._core.room.admit_part(work, primary=True)
        except RemudaError as error:
            return error
        return None

    def must_look(self, partition: int, work: PartWork) -> bool:
        """Whether ``conflict`` may find more than who holds the keys of a part whose snapshot was
        taken in this very step: scans of others, and rows that end by themselves."""
        scans = self._pending.scans
        for write in work.writes:
            store = self._core.copy_of(write.map_id, partition)
            if store.expiring or (write.map_id, partition) in scans:
                return True
        return False

    def must_wait(self, address: Address, work: PartWork) -> bool:
        """Whether a transaction that goes first has read by a condition what the part writes, or
        writes what the part has read so."""
        if not work.scans and not self._pending.scans:
            return False
        partition, first = address[1], self._pending.goes_first
        try:
            return any(
                first(holder, address)
                for holders in (
                    *(self._writing(partition, scan) for scan in work.scans),
                    *(self._scanning(partition, write) for write in work.writes),
                )
                for holder in holders
            )
        except RemudaError:  # ``conflict`` will find the same
            return False

    def _scanning(self, partition: int, write: Write) -> Iterator[Address]:
        """The parts that have read by a condition what a write changes."""
        for holder, scans in self._pending.scans_of(write.map_id, partition):
            schema = self._core.store(write.map_id, write.schema_version).schema
            images = self._images(partition, write)
            if any(matches(scan, schema, images) for scan in scans):
                yield holder

    def _writing(self, partition: int, scan: Scan) -> Iterator[Address]:
        """The parts that change what a scan has read."""
        for holder, writes in self._pending.writes_of(scan.map_id, partition):
            schema = self._core.store(scan.map_id, scan.schema_version).schema
            images = [row for write in writes for row in self._images(partition, write)]
            if matches(scan, schema, images):
                yield holder

    def _copy(self, map_id: int, partition: int) -> MapStore:
        if partition >= PARTITIONS:
            return self._core.store(map_id, 0)
        return self._core.copy_of(map_id, partition)

    def _check_write(self, address: Address, work: PartWork, write: Write) -> None:
        store = self._core.store(write.map_id, write.schema_version)
        held = write.map_id, write.key
        if held in self._pending.keys:
            other = self._pending.holder(held, write=True, me=address)
            if other is not None:
                raise self._held(store, write.key, "reads or writes", other)
        if self._locks is not None and self._locks.held:
            self._check_unlocked(self._locks, store, held, work.owner, write=True)
        if work.snapshot:
            self._check_unchanged(
                store, address[1], write.map_id, write.key, work.snapshot, write.row is not None
            )
        scanned = self._pending.scans and self._scanning(address[1], write)
        if scanned and any(holder[0] != address[0] for holder in scanned):
            raise SerializationFailure(
                f'another transaction reads rows of map "{store.schema.name}" that this one is '
                "about to change",
                detail=key_text(store.schema, write.key),
                hint=AGAIN,
            )

    def _check_reads(self, address: Address, work: PartWork) -> None:
        """But those that ``_check_write`` has checked more strictly."""
        snapshot = work.snapshot
        checked = {(write.map_id, write.key) for write in work.writes} if snapshot else ()
        for place, held in enumerate(work.reads):
            since = work.since[place] if work.since else snapshot
            if since < snapshot or held not in checked:
                self._check_read(address, work, *held, since)

    def _check_read(
        self, address: Address, work: PartWork, map_id: int, key: Key, since: int
    ) -> None:
        store = self._core.store(map_id, 0)
        held = map_id, key
        if held in self._pending.keys:
            other = self._pending.holder(held, write=False, me=address)
            if other is not None:
                raise self._held(store, key, "writes", other)
        if self._locks is not None and self._locks.held:
            self._check_unlocked(self._locks, store, held, work.owner, write=False)
        self._check_unchanged(store, address[1], map_id, key, since)

    def _check_unchanged(  # noqa: PLR0917 (an entry, and what is done to it)
        self,
        store: MapStore,
        partition: int,
        map_id: int,
        key: Key,
        since: int,
        written: bool = False,
    ) -> None:
        core, copy = self._core, self._copy(map_id, partition)
        if since < copy.floor:
            raise self._too_old(store, since)
        if written and since < max(copy.bulk_at, copy.taken_over_at) and store.schema.uniques:
            raise _search_outdated(store.schema, in_bulk=since < copy.bulk_at)
        # A guard that runs out tells nothing: its writer committed when it began, and the search at
        # this snapshot has seen the row.
        ends = copy.expiring and not is_guards(store.schema)
        now = core.timestamp() + EXPIRY_GUARD if ends else 0
        if copy.changed_after(key, since, now):
            if is_guards(store.schema):
                raise _same_values(store.schema, "was committed since this one began")
            raise SerializationFailure(
                f'a row of map "{store.schema.name}" was changed by others since it was read',
                detail=key_text(store.schema, key),
                hint=AGAIN,
            )

    def _held(self, store: MapStore, key: Key, does: str, holder: Address) -> SerializationFailure:
        if is_guards(store.schema):
            return _same_values(store.schema, "is about to commit")
        return SerializationFailure(
            f'another transaction {does} a row of map "{store.schema.name}" and is about to commit',
            detail=f"{key_text(store.schema, key)} is held by transaction {holder[0]} of member "
            f"{holder[0].near}.",
            hint=AGAIN,
        )

    def _check_unlocked(
        self,
        locks: KeyHolders,
        store: MapStore,
        held: Held,
        owner: TransactionId | None,
        *,
        write: bool,
    ) -> None:
        holder = locks.holder(held, owner, write=write)
        if holder is not None:
            raise SerializationFailure(
                f'another transaction has locked a row of map "{store.schema.name}"',
                detail=f"{key_text(store.schema, held[1])} is locked by {locks.described(holder)}.",
                hint=f"{AGAIN} sys.locks shows who holds what.",
            )

    def _too_old(self, store: MapStore, since: int) -> SnapshotTooOld:
        what = (
            "which values of unique constraints, or referenced keys, were written"
            if is_guards(store.schema)
            else f'what has changed in map "{store.schema.name}"'
        )
        return SnapshotTooOld(
            f"{what} since timestamp {since} is not known any more",
            hint="Keep transactions shorter, and run this one again.",
        )

    # --- scans --------------------------------------------------------------------------------

    def _check_scan(self, address: Address, work: PartWork, scan: Scan) -> None:
        store = self._core.store(scan.map_id, scan.schema_version)
        partition = address[1]
        if any(holder[0] != address[0] for holder in self._writing(partition, scan)):
            raise SerializationFailure(
                f'another transaction is about to change rows of map "{store.schema.name}" that '
                "this one has read by a condition",
                hint=AGAIN,
            )
        if partition in self._changed_partitions(scan, work.snapshot, partition):
            raise SerializationFailure(
                f'rows of map "{store.schema.name}" that were read by a condition were changed by '
                "others since",
                hint=AGAIN,
            )

    def _changed_partitions(self, scan: Scan, since: int, partition: int) -> frozenset[int]:
        """In which partitions a version that the scan would have seen has begun or ended."""
        found = self._changed.get((scan, since))
        copy = self._copy(scan.map_id, partition)
        if since < copy.floor:
            raise self._too_old(copy, since)
        if copy is not self._core.stores.get(scan.map_id):  # its rows are just being moved here
            return self._changes_in(copy, scan, since, frozenset({partition}))
        if found is None:
            found = self._changes_in(copy, scan, since, None)
            self._changed[scan, since] = found
        return found

    def _changes_in(
        self, store: MapStore, scan: Scan, since: int, partitions: frozenset[int] | None
    ) -> frozenset[int]:
        wanted = frozenset(range(PARTITIONS)) if partitions is None else partitions
        changed: set[int] = set()
        high = self._core.timestamp() + EXPIRY_GUARD if store.expiring else FOREVER - 1
        for versions in store.extraction(wanted, since, high).versions():
            arrays = [versions.batch.column(position) for _, position in scan.columns]
            batch = Batch(arrays, versions.rows)
            hits = self._hits(scan, batch)
            if hits is not None and not len(hits):
                continue
            chosen = versions.batch if hits is None else versions.batch.take(pa.array(hits))
            changed.update(Router(store.schema).partitions(chosen).tolist())
        if store.schema.replicated and changed:
            return frozenset(range(PARTITIONS, PARTITIONS + 1 + max(self._core.view.by_number)))
        return frozenset(changed)

    def _hits(self, scan: Scan, batch: Batch) -> npt.NDArray[np.int64] | None:
        """The rows that match; None: all of them."""
        if scan.predicate is None:
            return None
        places = {identity: place for place, (identity, _) in enumerate(scan.columns)}
        try:
            return Predicate(scan.predicate, Compiler(places, scan.parameters)).select(batch)
        except RemudaError:
            return None

    def _images(self, partition: int, write: Write) -> list[Row]:
        """The row before and the row after a write that is not visible yet."""
        before = self._copy(write.map_id, partition).get(write.key, self._core.clock.last)
        return [row for row in (before, write.row) if row is not None]


def misses_a_copy(
    view: View, partitions: Collection[int], work: PartWork
) -> SerializationFailure | None:
    """A member that has joined has copies of REPLICATED maps that a transaction of the view before
    knows nothing of. ``partitions``: those of the transaction."""
    copies = {PARTITIONS + number for number in view.by_number}
    if not work.writes or copies <= set(partitions):
        return None
    return SerializationFailure(
        "a member joined while the transaction was about to commit",
        hint="Run the transaction again.",
    )
