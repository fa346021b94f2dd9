"""Manifests of snapshots: the parts of a base or an increment. JSON behind a line with its own
SHA-256, so that a changed byte is found in the manifest, too, and in every object by the manifest.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from remuda.errors import DataCorrupted
from remuda.formats import MANIFEST
from remuda.storage.format.headline import below_headline, with_headline

_NAME: Final = "remuda-snapshot"
_IDENTITY: Final = re.compile("[0-9a-f]{32}")
_WITH_CHANGES: Final = 2
"""The first format that counts the rows of an increment."""


@dataclass(frozen=True, slots=True)
class MapEntry:
    """A map of a base; ``rows`` at its timestamp, over all objects."""

    map_id: int
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class MapChanges:
    """The rows of a map in an increment: ``put`` rows that were written, and ``removed`` entries
    that were taken away, since the cut before. One that was written twice counts twice."""

    map_id: int
    name: str
    put: int
    removed: int


@dataclass(frozen=True, slots=True)
class DataObject:
    """Rows of one map and a group of partitions. ``sha256`` and ``size`` are of the bytes as they
    are stored."""

    key: str
    sha256: str
    size: int
    rows: int
    map_id: int
    schema_version: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SegmentObject:
    """A complete segment of a member's log, with its records ``first`` to ``last``."""

    key: str
    sha256: str
    size: int
    number: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemberLog:
    """A data member's part in a cut: ``identity`` is that of its log, in hex; ``partitions`` are
    those whose primary it is; ``start`` and ``finish`` the sequences of the cut's records there;
    ``needs`` the lowest sequence that what follows the cut rests on. ``moved``: the latest moment
    since the cut before at which a partition came here (0: none did); earlier moments of that time
    cannot be restored, since its rows came as they were then."""

    member: int
    identity: str
    partitions: tuple[int, ...]
    start: int
    finish: int
    needs: int
    moved: int = 0
    segments: tuple[SegmentObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A restorable state: cut ``version`` at ``timestamp``. A base has data. An increment has a
    ``parent``, the cut before, with the SHA-256 of its manifest, and the segments of all data
    members from ``needs`` of the parent to ``finish`` of its own. A base may be both: then the
    moments before it stay restorable, from an earlier base. ``catalog`` is opaque here; ``created``
    in microseconds since 1970; ``key`` names the encryption key ("": none). ``changes``: of an
    increment, the maps that were written to; None: nobody has counted, as in format 1."""

    name: str
    version: int
    timestamp: int
    created: int
    cluster: str
    view: int
    catalog: str
    logs: tuple[MemberLog, ...]
    maps: tuple[MapEntry, ...] = ()
    data: tuple[DataObject, ...] = ()
    is_base: bool = False
    parent: int | None = None
    parent_sha256: str = ""
    key: str = ""
    changes: tuple[MapChanges, ...] | None = None

    @property
    def objects(self) -> tuple[DataObject | SegmentObject, ...]:
        return (*self.data, *(each for log in self.logs for each in log.segments))

    def log_of(self, identity: str) -> MemberLog | None:
        return next((log for log in self.logs if log.identity == identity), None)

    def __str__(self) -> str:
        kind = "base" if self.is_base else "increment"
        if self.parent is not None:
            kind += f" after {self.parent}"
        size = sum(each.size for each in self.objects)
        return f"cut {self.version} at {self.timestamp}: {kind}, {size} bytes"


def encode_manifest(manifest: Manifest, number: int | None = None) -> bytes:
    """``number``: the format it has, if not the latest one. Format 1 has no ``changes``."""
    fields = asdict(manifest)
    if number is not None and number < _WITH_CHANGES:
        del fields["changes"]
    body = json.dumps(fields, sort_keys=True, indent=1).encode() + b"\n"
    return with_headline(_NAME, MANIFEST, body, number)


def decode_manifest(data: bytes) -> Manifest:
    """Raises ``UnknownFormat``, and ``DataCorrupted`` unless every byte is as it was written."""
    number, body = below_headline(data, _NAME, MANIFEST)
    try:
        manifest = _manifest(json.loads(body))
    except (ValueError, TypeError, KeyError) as problem:
        raise DataCorrupted(f"the manifest cannot be read: {problem}") from problem
    identities = [manifest.cluster, *(log.identity for log in manifest.logs)]
    if not all(_IDENTITY.fullmatch(each) for each in identities):
        raise DataCorrupted("the manifest names an identity that is none")
    if encode_manifest(manifest, number) != data:
        raise DataCorrupted("the manifest has fields that this version does not know")
    return manifest


def _manifest(fields: dict[str, Any]) -> Manifest:
    logs = [
        MemberLog(
            **{
                **log,
                "partitions": tuple(log["partitions"]),
                "segments": tuple(SegmentObject(**each) for each in log["segments"]),
            }
        )
        for log in fields["logs"]
    ]
    data = [
        DataObject(**{**each, "partitions": tuple(each["partitions"])}) for each in fields["data"]
    ]
    maps = [MapEntry(**each) for each in fields["maps"]]
    counted = fields.get("changes")
    changes = None if counted is None else tuple(MapChanges(**each) for each in counted)
    parts = {"logs": tuple(logs), "data": tuple(data), "maps": tuple(maps), "changes": changes}
    return Manifest(**{**fields, **parts})
