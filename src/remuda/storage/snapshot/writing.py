"""Making snapshots: objects first, the manifest last, so that what was interrupted is not there.

``begin`` leaves a note that objects without a manifest belong to somebody; ``finish`` puts the
manifest and takes the note away. Between the two, members put the rows of their partitions and the
segments of their logs, and the coordinator of the cut gathers what they return.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from remuda.errors import DuplicateObject, InputError, ResourceError, UndefinedObject
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import (
    DataObject,
    Manifest,
    SegmentObject,
    encode_manifest,
)
from remuda.storage.format.rows_object import encode_rows
from remuda.storage.format.sealing import ObjectKey, seal, unseal
from remuda.storage.log.reader import SegmentSource
from remuda.storage.log.spans import Span, spans_back_to
from remuda.storage.snapshot.chain import load_if_there
from remuda.storage.snapshot.cut_records import CutRecord, encode_record, put_mark, record_key
from remuda.storage.snapshot.object_store import ObjectStore, check_name, remove_unfinished

VERSION_DIGITS = 10
_BEGUN: Final = re.compile(rb"^begun (\d+)$", re.MULTILINE)
_SEGMENT_DIGITS = 10


def manifest_key(name: str, version: int) -> str:
    return f"{name}/cut-{version:0{VERSION_DIGITS}}.manifest"


def pending_key(name: str, version: int) -> str:
    return f"{name}/pending-{version:0{VERSION_DIGITS}}.note"


def data_folder(name: str, version: int) -> str:
    return f"{name}/data-{version:0{VERSION_DIGITS}}/"


def data_key(name: str, version: int, map_id: int, group: int) -> str:
    return f"{data_folder(name, version)}{map_id}-{group:04}.arrow"


def segment_key(name: str, identity: str, number: int) -> str:
    return f"{name}/log/{identity}/{number:0{_SEGMENT_DIGITS}}.segment"


def begin(store: ObjectStore, name: str, version: int, now: int = 0) -> None:
    """``now``: microseconds since 1970; 0: nobody shall take the note for an old one. Raises
    ``DuplicateObject`` when the cut is there, or somebody is at it, and ``InputError`` for a name
    that none can have."""
    check_name(name)
    if manifest_key(name, version) in store.keys(manifest_key(name, version)):
        raise DuplicateObject(f"snapshot {name} has cut {version} already")
    text = f"objects of this cut may have no manifest yet\nbegun {now}\n"
    store.put(pending_key(name, version), text.encode())


def begun(store: ObjectStore, name: str, version: int) -> int:
    """When the cut was begun that somebody is making; 0: nobody knows."""
    try:
        found = _BEGUN.search(store.get(pending_key(name, version)))
    except UndefinedObject:
        return 0
    return 0 if found is None else int(found[1])


def put_rows(
    store: ObjectStore,
    name: str,
    version: int,
    *,
    map_id: int,
    schema_version: int,
    group: int,
    partitions: Sequence[int],
    batches: Sequence[pa.RecordBatch],
    schema: pa.Schema,
    key: ObjectKey | None = None,
) -> DataObject:
    """The rows of a map in some partitions, visible at the cut's timestamp, in batches as
    ``rows_object.with_times`` makes them. Raises ``ResourceError`` when the cut was given up
    meanwhile; the object is taken away then, as ``abandon`` may not have seen it."""
    path = data_key(name, version, map_id, group)
    stored = seal(key, path, encode_rows(batches, schema))
    store.put(path, stored)
    try:
        _require_begun(store, name, version)
    except ResourceError:
        store.delete(path)
        raise
    rows = sum(batch.num_rows for batch in batches)
    return DataObject(
        path, sha256(stored), len(stored), rows, map_id, schema_version, tuple(partitions)
    )


def put_segment(
    store: ObjectStore,
    name: str,
    identity: str,
    span: Span,
    data: bytes,
    *,
    key: ObjectKey | None = None,
) -> SegmentObject:
    """A complete segment; one that is there already, from the increment before, is taken as it is.
    Raises ``DuplicateObject`` when it has other bytes."""
    path = segment_key(name, identity, span.number)
    if path in store.keys(path):
        stored = store.get(path)
        if unseal(key, path, stored) != data:
            raise DuplicateObject(
                f"object {path} holds another segment of that number",
                hint="Two logs have one identity; make a snapshot under another name.",
            )
    else:
        stored = seal(key, path, data)
        store.put(path, stored)
    return SegmentObject(path, sha256(stored), len(stored), span.number, span.first, span.last)


def spans_of_increment(
    source: SegmentSource, needs: int, finish: int, *, member: int
) -> list[Span]:
    """The segments that an increment takes from a member's log: from ``needs`` of the cut before to
    the Finish of this one; all must be complete. Raises ``InputError`` when the increment would not
    be restorable: make a base instead."""
    found = [span for span in spans_back_to(source, needs) if span.first <= finish]
    if not found or found[0].first > needs or found[-1].last < finish:
        raise InputError(
            f"the log of member {member} does not reach back to the cut before",
            detail=f"record {needs} is needed",
            hint="Make a new base: an increment would not be restorable.",
        )
    return found


def finish(store: ObjectStore, manifest: Manifest) -> str:
    """Makes the snapshot visible; the SHA-256 of its manifest. Raises ``ResourceError`` when it was
    given up meanwhile, and its objects perhaps with it."""
    data = encode_manifest(manifest)
    record = CutRecord(manifest.version, sha256(data), manifest.created)
    _require_begun(store, manifest.name, manifest.version)
    store.put(record_key(manifest.name, manifest.version), encode_record(record))
    store.put(manifest_key(manifest.name, manifest.version), data)
    store.delete(pending_key(manifest.name, manifest.version))
    return sha256(data)


def _require_begun(store: ObjectStore, name: str, version: int) -> None:
    note = pending_key(name, version)
    if note not in store.keys(note):
        raise ResourceError(
            f"cut {version} of snapshot {name} was given up while it was made",
            hint="Somebody dropped it, or its maker has failed. Make the snapshot again.",
        )


def abandon(store: ObjectStore, name: str, version: int) -> int:
    """Take away what an interrupted snapshot has left; the number of objects. Its number is not
    given out again: some member may still be putting an object of it. Such a member finds that the
    note has gone, and takes its object away itself; so the note goes before the objects are listed.
    Nothing happens to a snapshot that has its manifest."""
    if store.keys(manifest_key(name, version)):
        store.delete(pending_key(name, version))
        return 0
    put_mark(store, name, version)
    store.delete(record_key(name, version))
    segments = remove_spare_segments(store, name, version)
    store.delete(pending_key(name, version))
    left = store.keys(data_folder(name, version))
    for path in left:
        store.delete(path)
    remove_unfinished(store, data_folder(name, version))
    return len(left) + segments


def remove_spare_segments(store: ObjectStore, name: str, version: int) -> int:
    """Take away the segments that were put for cut ``version``, which is none or becomes a base;
    how many. They stay, until ``expire``, where another cut may rest on them."""
    known, _ = load_if_there(store, name)
    if known is None or known.damaged or known.lost() or known.pending() != [version]:
        return 0
    spare = [key for key in known.spare() if key.startswith(f"{name}/log/")]
    for key in spare:
        store.delete(key)
    return len(spare)
