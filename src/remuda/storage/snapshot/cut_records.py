"""The memory of a snapshot of its cuts besides their manifests, in objects of their own.

A *record* says that a cut was finished, and which manifest it has. It is put before the manifest
and goes before it, so a record without a manifest says that the manifest was lost, unless the
cut's note says that somebody is still at it. Nothing else would name the manifest of the last cut.

A *mark* says that numbers up to its own were given out. It is left when the highest one is given
up: the member that began that cut may still put objects of it, and must not meet another cut of its
number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from remuda.errors import DataCorrupted, DuplicateObject
from remuda.formats import CUT_RECORD
from remuda.storage.format.headline import below_headline, with_headline
from remuda.storage.snapshot.object_store import ObjectStore

_NAME: Final = "remuda-cut"
_RECORD: Final = re.compile(r"[^/]*/cut-(\d+)\.record")
_MARK: Final = re.compile(r"[^/]*/tried-(\d+)\.mark")
_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class CutRecord:
    """``manifest``: its SHA-256. ``created``: microseconds since 1970."""

    version: int
    manifest: str
    created: int


def record_key(name: str, version: int) -> str:
    return f"{name}/cut-{version:0{_DIGITS}}.record"


def mark_key(name: str, version: int) -> str:
    return f"{name}/tried-{version:0{_DIGITS}}.mark"


def record_version(key: str) -> int:
    """The cut that the key of a record stands for; 0 for one that is none's."""
    found = _RECORD.fullmatch(key)
    return 0 if found is None else int(found[1])


def mark_version(key: str) -> int:
    """The number that the key of a mark stands for; 0 for one that is no mark."""
    found = _MARK.fullmatch(key)
    return 0 if found is None else int(found[1])


def encode_record(record: CutRecord) -> bytes:
    body = f"cut {record.version}\nmanifest {record.manifest}\ncreated {record.created}\n".encode()
    return with_headline(_NAME, CUT_RECORD, body)


def decode_record(data: bytes) -> CutRecord:
    """Raises ``UnknownFormat``, and ``DataCorrupted`` unless every byte is as it was written."""
    _, body = below_headline(data, _NAME, CUT_RECORD)
    try:
        fields = dict(line.split(" ", 1) for line in body.decode().splitlines())
        return CutRecord(int(fields["cut"]), fields["manifest"], int(fields["created"]))
    except (ValueError, KeyError) as problem:
        raise DataCorrupted(f"the record of a cut cannot be read: {problem}") from problem


def put_record(store: ObjectStore, name: str, record: CutRecord) -> None:
    """Say again what the record of a cut has said. One that is there stays as it is."""
    key = record_key(name, record.version)
    if key not in store.keys(key):
        store.put(key, encode_record(record))


def put_mark(store: ObjectStore, name: str, version: int) -> None:
    """Number ``version`` is not given out again; lower marks say nothing more and go."""
    marks = [key for key in store.keys(f"{name}/tried-") if mark_version(key)]
    if not any(mark_version(key) >= version for key in marks):
        try:
            store.put(mark_key(name, version), f"up to {version} was tried\n".encode())
        except DuplicateObject:
            return  # by somebody else, just now, with all that follows
    highest = max([version, *map(mark_version, marks)])
    for key in marks:
        if mark_version(key) < highest:
            store.delete(key)
