"""The knowledge of a store of snapshots, or of an archive of logs, about a member's log: the last
record that it names. A log that ends before that record is an older copy, although it looks whole
and the logs of all other members may be as old.

A cut names the record at which each log has finished it, and the archive the last record of each
segment; both were on the member's disk before they were told (with ``log_sync = fsync``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from remuda.errors import DataCorrupted, UndefinedObject, UnknownFormat
from remuda.storage.format.manifest import decode_manifest
from remuda.storage.snapshot.archive import ARCHIVE, decode_segment
from remuda.storage.snapshot.object_store import ObjectStore

_MANIFEST: Final = re.compile(r"([^@/][^/]*)/cut-(\d+)\.manifest")
_NOTE: Final = re.compile(r".*/(\d+)\.note")


@dataclass(frozen=True, slots=True)
class Witness:
    """Record ``sequence`` of a log was on its disk, says ``where``."""

    sequence: int
    where: str


def of_cuts(store: ObjectStore, identity: str) -> Witness | None:
    """The word of the last cut of each snapshot about the log ``identity`` (hexadecimal)."""
    last: dict[str, int] = {}
    keys: dict[tuple[str, int], str] = {}
    for key in store.keys(""):
        if (found := _MANIFEST.fullmatch(key)) is not None:
            name, version = found[1], int(found[2])
            last[name] = max(last.get(name, 0), version)
            keys[name, version] = key
    return latest(_cut(store, keys[each], identity, *each) for each in last.items())


def _cut(store: ObjectStore, key: str, identity: str, name: str, version: int) -> Witness | None:
    try:
        found = decode_manifest(store.get(key)).log_of(identity)
    except (
        DataCorrupted,
        UnknownFormat,
        UndefinedObject,
    ):  # damaged, or given up just now: VERIFY tells
        return None
    return None if found is None else Witness(found.finish, f"cut {version} of snapshot {name}")


def of_archive(place: ObjectStore, cluster: str, identity: str) -> Witness | None:
    """The word of the archive at ``place`` about it."""
    numbered = {
        int(found[1]): key
        for key in place.keys(f"{ARCHIVE}{cluster}/{identity}")
        if (found := _NOTE.fullmatch(key)) is not None
    }
    if not numbered:
        return None
    try:
        last = decode_segment(place.get(numbered[max(numbered)])).last
    except (DataCorrupted, UnknownFormat, UndefinedObject):
        return None
    return Witness(last, "the archive of logs")


def latest(found: Iterable[Witness | None]) -> Witness | None:
    """The one that knows most; None: nobody knows anything."""
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: each.sequence, default=None)
