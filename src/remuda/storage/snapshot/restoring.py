"""Reading a snapshot back: the rows of its base, then the steps of its logs.

The restoring member applies both to maps that nobody sees yet. A part comes from the log of its
partition's primary in the cut's view; rows of a job come from the log of every participant, and the
reader keeps, of each log, the rows of ``MemberLog.partitions``. Clocks start above the plan's
moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from remuda.errors import DataCorrupted
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import DataObject, Manifest, MemberLog, SegmentObject
from remuda.storage.format.rows_object import decode_rows
from remuda.storage.format.sealing import ObjectKey, unseal
from remuda.storage.format.segment import HEADER_SIZE, Identity
from remuda.storage.log.reader import Entry, LogReader
from remuda.storage.log.replay import Goal, Replay, Step, ToCut, ToMoment, find_cut
from remuda.storage.snapshot.archive import Archive, LogPiece, pieces, start_of
from remuda.storage.snapshot.chain import Chain, Target, segments_of
from remuda.storage.snapshot.object_store import ObjectStore


def fetch(
    store: ObjectStore, wanted: DataObject | SegmentObject, key: ObjectKey | None = None
) -> bytes:
    """The object's plain bytes. Raises as ``fetch_stored``, and as ``unseal``."""
    return unseal(key, wanted.key, fetch_stored(store, wanted))


def fetch_stored(store: ObjectStore, wanted: DataObject | SegmentObject) -> bytes:
    """The object as it is stored. Raises ``DataCorrupted`` unless it is that of the manifest."""
    stored = store.get(wanted.key)
    if len(stored) != wanted.size or sha256(stored) != wanted.sha256:
        raise DataCorrupted(
            f"object {wanted.key} is damaged",
            detail=f"{len(stored)} bytes with SHA-256 {sha256(stored)}; the manifest says"
            f" {wanted.size} with {wanted.sha256}",
        )
    return stored


class StoredSegments:
    """Segments of one log in an object store, as ``LogReader`` wants them. The last one that was
    read is kept."""

    sector = 512

    def __init__(
        self, store: ObjectStore, segments: list[SegmentObject], key: ObjectKey | None
    ) -> None:
        self._store = store
        self._segments = {each.number: each for each in segments}
        self._key = key
        self._kept: tuple[int, bytes] = (0, b"")

    def numbers(self) -> list[int]:
        return sorted(self._segments)

    def read(self, number: int) -> bytes:
        if self._kept[0] != number:
            self._kept = (number, fetch(self._store, self._segments[number], self._key))
        return self._kept[1]

    def head(self, number: int) -> bytes:
        return self.read(number)[:HEADER_SIZE]

    def name(self, number: int) -> str:
        return self._segments[number].key


def entries(
    store: ObjectStore,
    manifest: Manifest,
    log: MemberLog,
    segments: list[SegmentObject],
    key: ObjectKey | None = None,
) -> Iterator[Entry]:
    """All records of complete segments. Raises ``DataCorrupted``."""
    if not segments:
        raise DataCorrupted(f"cut {manifest.version} has no log of member {log.member}")
    identity = Identity(bytes.fromhex(manifest.cluster), bytes.fromhex(log.identity))
    reader = LogReader(StoredSegments(store, segments, key), identity)
    tail = reader.tail()
    if tail.lost or tail.end.sequence != segments[-1].last:
        raise DataCorrupted(
            f"object {segments[-1].key} is no complete segment",
            detail=f"it ends after record {tail.end.sequence}, not {segments[-1].last}",
        )
    return reader.entries(tail=tail)


@dataclass(frozen=True, slots=True)
class Archived:
    """The addition of the archive of logs to a cut: pieces by the identity of their log, and the
    catalog of the moment, if it is not the cut's."""

    logs: Mapping[str, LogPiece]
    catalog: str = ""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """How to get to a target: the base's rows, then the logs' steps, then those of the archive."""

    target: Target
    path: tuple[Manifest, ...]
    archived: Archived | None = None

    @property
    def base(self) -> Manifest:
        return self.path[0]

    @property
    def cut(self) -> Manifest:
        return self.path[-1]

    @property
    def catalog(self) -> str:
        """As it was at the target."""
        return (self.archived and self.archived.catalog) or self.cut.catalog

    @property
    def from_logs(self) -> bool:
        """The base's rows alone are not enough."""
        return len(self.path) > 1 or self.archived is not None

    @property
    def segments(self) -> list[SegmentObject]:
        """All that are read, each once."""
        found = {each.key: each for m in self.path[1:] for log in m.logs for each in log.segments}
        if self.archived is not None:
            found |= {s.key: s for piece in self.archived.logs.values() for s in piece.segments}
        return list(found.values())

    @property
    def size(self) -> int:
        """Bytes to be read."""
        return sum(each.size for each in self.base.data) + sum(s.size for s in self.segments)

    def rows(
        self, store: ObjectStore, key: ObjectKey | None = None
    ) -> Iterator[tuple[DataObject, pa.Table]]:
        """The base's rows, object by object; each may be fetched on its own, in parallel."""
        for each in self.base.data:
            yield each, decode_rows(fetch(store, each, key))

    def steps(
        self, store: ObjectStore, log: MemberLog, key: ObjectKey | None = None
    ) -> Iterator[Step]:
        """The addition of one member's log, in order; logs may be read in parallel."""
        segments = segments_of(list(self.path), log.identity)
        if self.archived is not None:
            segments = joined(segments, self.archived.logs[log.identity].segments)
        if not segments:
            return
        base = self.base.log_of(log.identity)
        start = segments[0].first if base is None else base.needs
        goal: Goal
        if self.archived is None:
            goal = replace(cut_goal(store, self.cut, log, key), limit=self.target.moment)
        else:
            goal = ToMoment(self.target.moment, self.archived.logs[log.identity].finish)
        replay = Replay(self.base.timestamp, goal, frozenset(log.partitions))
        for entry in entries(store, self.cut, log, segments, key):
            if replay.done:
                break
            if entry.sequence >= start:
                step = replay.on_entry(entry)
                if step is not None:
                    yield step
        replay.finish()


def joined(
    segments: Sequence[SegmentObject], archived: Sequence[SegmentObject]
) -> list[SegmentObject]:
    """Those of increments, and those behind them; rows in both are the same."""
    last = max((each.number for each in segments), default=0)
    return [*segments, *(each for each in archived if each.number > last)]


def cut_goal(
    store: ObjectStore, manifest: Manifest, log: MemberLog, key: ObjectKey | None = None
) -> ToCut:
    """The cut as its own increment's segments tell it. Raises ``DataCorrupted`` when they tell
    another one than the manifest."""
    found = find_cut(entries(store, manifest, log, list(log.segments), key), manifest.version)
    if found is None:
        raise DataCorrupted(
            f"cut {manifest.version} was not finished in the log of member {log.member}"
        )
    if (found.timestamp, found.start, found.finish) != (manifest.timestamp, log.start, log.finish):
        raise DataCorrupted(
            f"cut {manifest.version} is another one in the log of member {log.member}",
            detail=f"there it is at {found.timestamp}, records {found.start} and {found.finish}",
        )
    return found


def archived_plan(chain: Chain, archive: Archive, moment: int) -> RestorePlan | None:
    """To a moment that the archive reaches from one of the cuts; None: it reaches it from none."""
    cut = start_of(chain, archive.segments, moment)
    if cut is None:
        return None
    version = json.loads(cut.catalog).get("version", 0)
    later = archive.catalog_at(moment, int(version))
    added = Archived(pieces(cut, archive.segments, moment), later.catalog if later else "")
    return RestorePlan(Target(cut.version, moment), tuple(chain.path(cut.version)), added)


def plan(chain: Chain, *, version: int | None = None, moment: int | None = None) -> RestorePlan:
    """Raises ``InputError`` for what cannot be restored."""
    target = chain.target(version=version, moment=moment)
    return RestorePlan(target, tuple(chain.path(target.version, target.moment)))
