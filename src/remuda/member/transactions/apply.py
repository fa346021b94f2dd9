"""The writes of a part that has committed, put into the stores."""

from __future__ import annotations

from remuda.datatypes.timestamp import FOREVER, expiry
from remuda.errors import InternalError, SchemaChanged
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core, bug
from remuda.member.state.transaction_sets import PartWork, Row, Write
from remuda.storage.chunks.layout import Layout
from remuda.storage.maps.map_store import MapStore


class Applying:
    def __init__(self, core: Core) -> None:
        self._core = core

    def knows(self, work: PartWork) -> bool:
        """Whether the writes can be applied here, now or when the part commits. A backup may hear
        of a write before it hears of the definition that the rows were made for."""
        stores = self._core.stores
        for write in work.writes:
            store = stores.get(write.map_id)
            if store is None:
                if write.map_id not in self._core.dropped:
                    return False
            elif store.schema.version < write.schema_version:
                return False
        return True

    def apply(self, partition: int, work: PartWork, timestamp: int) -> None:
        """Make the writes visible from ``timestamp`` on. A map that was dropped meanwhile has
        nothing to write to."""
        for write in work.writes:
            try:
                self._apply(partition, write, timestamp)
            except SchemaChanged:
                continue
            except Exception as error:  # noqa: BLE001 (the others are committed, too: see bug)
                bug(error, "a committed write")

    def _apply(self, partition: int, write: Write, timestamp: int) -> None:
        if partition < PARTITIONS:
            store = self._core.copy_of(write.map_id, partition)
        else:
            store = self._core.store(write.map_id, 0)
        # A part that was pending while its partition was handed over may commit at a timestamp
        # below the one from which on this member serves it. The rows that came begin there, and
        # would cover the write; nobody reads below the floor.
        at = max(timestamp, store.floors.reads)
        row = write.row
        if row is None:
            store.discard(write.key, at)
            return
        if write.schema_version != store.schema.version:
            row = self._row(store, write, row)
        if write.ttl:
            self._set(store, write, row, at, timestamp)
        else:
            store.write(write.key, row, at, FOREVER, partition if partition < PARTITIONS else None)

    def _set(self, store: MapStore, write: Write, row: Row, at: int, timestamp: int) -> None:
        """A row with an end of its own, whose time counts from the commit, on every copy."""
        until = expiry(timestamp, write.ttl or 0)
        if until > at:
            store.set(row, at, until)
        else:
            store.discard(write.key, at)

    def copy(self, map_id: int, partition: int) -> MapStore:
        """The store that holds the rows of a partition. Raises SchemaChanged."""
        if partition >= PARTITIONS:
            return self._core.store(map_id, 0)
        return self._core.copy_of(map_id, partition)

    def _row(self, store: MapStore, write: Write, row: Row) -> Row:
        """A row that was made for an earlier schema, as one of the map as it is now."""
        written = self._core.former_schemas.of(write.map_id, write.schema_version)
        if written is None:  # its columns cannot be told apart
            raise InternalError(
                f'a row of map "{store.schema.name}" was written for version '
                f"{write.schema_version} of it, which is not known any more"
            )
        return Layout(written, store.schema).row(row)
