"""Reads the log of a member at its start: the image of the last checkpoint, then every record
behind it (``snapshot.log_replay``)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from remuda.errors import DataCorrupted
from remuda.member.journal.image import numbers, read_head, read_rows
from remuda.member.state.log import fields
from remuda.snapshot.log_replay import Restored, replay, take_catalog
from remuda.storage.format import records as log
from remuda.storage.log.reader import FIRST_RECORD, Entry
from remuda.storage.log.void_copies import VOIDING, VoidCopies
from remuda.storage.maps import transfer
from remuda.world import Disk

logger = logging.getLogger(__name__)


def image_of(disk: Disk, root: Path) -> tuple[Restored, int]:
    """The last checkpoint, and the sequence from which the log is to be read. Raises
    DataCorrupted: an image that is damaged has no second one behind it."""
    for number in reversed(numbers(disk, root)):
        head, entries = read_head(disk, root, number)
        made = Restored(
            ends=dict(head.ends),
            job_ends=dict(head.jobs),
            clock=head.clock,
            replicated=head.replicated,
            checkpoint=head.number,
            sequence=head.sequence,
        )
        take_catalog(made, head.catalog)
        for entry in entries:
            store = made.stores.get(entry.map_id)
            if store is None or store.schema.version != entry.schema_version:
                raise DataCorrupted(f"the image has rows of map {entry.map_id}, which is not there")
            versions = read_rows(disk, root, entry, store.schema)
            if entry.floor is not None:
                made.floors[entry.map_id] = max(made.floors.get(entry.map_id, 0), entry.floor)
            if versions.rows:
                store.install(store.arrival([versions]))
                made.rows += versions.rows
        return made, head.replay_from
    return Restored(), 0


def _discard_void(made: Restored) -> None:
    """Of the image: once for all records that void copies behind it."""
    before = made.sequence - 1
    partitions = made.void.partitions(before)
    for store in made.stores.values():
        if made.void.map_is_void(store.schema, before):
            store.discard_partitions(transfer.EVERY_PARTITION)
        elif partitions and not store.schema.replicated:
            store.discard_partitions(partitions)


class Log(Protocol):
    """The files that a replay reads, from record ``start`` on."""

    def entries(self, start: int) -> Iterable[Entry]:
        """All records. Raises DataCorrupted."""

    def entries_of(self, start: int, kinds: tuple[type[log.Record], ...]) -> Iterable[Entry]:
        """The records of some kinds, cheaply. Damage is left to ``entries``."""


def restored(disk: Disk, root: Path, source: Log) -> Restored:
    """The state that image and log tell. Raises DataCorrupted, also when the log begins later and
    no image has what was before. Any thread."""
    made, start = image_of(disk, root)
    start = max(start, FIRST_RECORD)
    made.void = VoidCopies(source.entries_of(start, VOIDING))
    _discard_void(made)
    replay(made, source.entries(start))
    logger.info(
        "log replayed",
        extra=fields(rows=made.rows, maps=len(made.stores), checkpoint=made.checkpoint),
    )
    return made
