"""The conflicts of a job or a transaction with stored rows when it prepares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import EXPIRY_MARK, ended_by_write
from remuda.datatypes.violations import duplicate_key
from remuda.errors import SerializationFailure, SnapshotTooOld, UniqueViolation
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Times
from remuda.storage.chunks.handovers import goes_on
from remuda.storage.chunks.keys import Key, KeyRule
from remuda.storage.chunks.upkeep import Floors
from remuda.storage.staging.staging import Match, PreparedRows


def too_old(schema: MapSchema, at: int, floor: int) -> SnapshotTooOld:
    return SnapshotTooOld(
        f"map {schema.name} no longer has the versions of timestamp {at}",
        detail=f"the oldest that can be read is {floor}",
        hint="Read again at a newer timestamp; a transaction must be begun again.",
    )


def refuse_existing(
    found: Iterable[Match],
    keys: KeyRule,
    rows: PreparedRows,
    removed: PreparedRows | None,
    now: int,
) -> None:
    """Raise UniqueViolation when a row has a key that exists ``now`` and that the job does not
    remove."""
    for chunk, matched, offsets in found:
        ends = np.asarray(chunk.ends_of(offsets))
        open_ = (ends > now) & (ends & EXPIRY_MARK == EXPIRY_MARK)
        taken = np.broadcast_to(open_, offsets.shape)
        if not taken.any():
            continue
        chosen = matched[taken] if removed is not None else matched[taken][:1]
        held = keys.keys_of(rows.key_columns(), chosen.tolist())
        if removed is not None:
            gone = removed.keys_with(rows.hashes)
            held = [key for key in held if key not in gone]
        if held:
            raise duplicate_key(keys.schema, held[0])


def removed_once(rows: PreparedRows, removed: PreparedRows | None) -> int:
    """How many keys a job removes. Raises UniqueViolation when one is removed twice, or removed and
    written."""
    if removed is None:
        return 0
    keys = removed.keys
    if (removed.hashes[1:] == removed.hashes[:-1]).any():
        for _, key in keys.repeats(removed.key_columns(), removed.hashes, removed.order):
            raise UniqueViolation(
                f"two of the rows to be deleted from map {keys.schema.name} have the same key",
                detail=f"key ({keys.show(key)})",
            )
    common = np.intersect1d(rows.hashes, removed.hashes)
    if len(common):
        for key in rows.keys_with(common) & removed.keys_with(common):
            raise UniqueViolation(
                f"one write deletes a row of map {keys.schema.name} and writes it as well",
                detail=f"key ({keys.show(key)})",
                hint="Keep the last change of each key only.",
            )
    return removed.rows


def refuse_changed(
    found: Iterable[Match], keys: KeyRule, since: int, floors: Floors, now: int
) -> None:
    """Raise SerializationFailure when one of the versions has begun or ended after ``since`` (or
    ends by itself until ``now``), or when some may have that are gone: they were collected (below
    the floor), or stayed where the partition was before."""
    returned = floors.returned
    if since < floors.reads:
        raise SerializationFailure(
            f"what was removed from map {keys.schema.name} since a statement read it is not known "
            "any more",
            hint="Run the statement again.",
        )
    for chunk, _, offsets in found:
        begins = np.broadcast_to(np.asarray(chunk.origins_of(offsets)), offsets.shape)
        ends = np.broadcast_to(np.asarray(chunk.ends_of(offsets)), offsets.shape)
        ended = (ends > since) & ((ends <= now) | (ends & EXPIRY_MARK != EXPIRY_MARK))
        if returned is not None:
            ended &= np.logical_not(goes_on(returned, chunk.partitions[offsets], ends))
        if ((begins > since) | ended).any():
            raise SerializationFailure(
                f"rows of map {keys.schema.name} were changed by others while a statement "
                "was about to change them",
                hint="Run the statement again.",
            )


def key_changed(  # noqa: PLR0917 (where to look, and the times that decide)
    chunks: Mapping[int, Chunk],
    slots: Iterable[int],
    keys: KeyRule,
    key: Key,
    since: int,
    now: int,
    returned: Times | None = None,
) -> bool:
    """Whether one of the versions at ``slots`` (of this key's hash) has the key and began or ended
    after ``since``, or ends by itself until ``now``. ``returned``: see ``goes_on``."""
    for slot in slots:
        chunk, offset = chunks[slot >> OFFSET_BITS], slot & OFFSET_MASK
        begin = chunk.begin if chunk.begin_view is None else chunk.begin_view[offset]
        if chunk.origins is not None:
            begin = int(chunk.origins[offset])
        end = chunk.end if chunk.end_view is None else chunk.end_view[offset]
        changed = begin < end and (
            begin > since or (since < end and (end <= now or ended_by_write(end)))
        )
        if changed and begin <= since and returned is not None:
            changed = not goes_on(returned, int(chunk.partitions[offset]), end)
        if changed and (keys.exact or keys.holds(chunk, offset, key)):
            return True
    return False
