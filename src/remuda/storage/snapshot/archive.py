"""The archive of members' logs: complete segments, each with a note that says what it holds.

An object store of its own, whose keys begin with ``ARCHIVE`` here, so that nobody takes them for
those of a snapshot::

    @archive/<cluster>/<log's identity>-<generation>/0000000042.segment     and .note
    @archive/<cluster>/catalog/0000000007.catalog

Members *close* their logs at a timestamp now and then: nothing at or below it that they are the
primary of is missing before the record ``finish``. A cut, and the segments of all its logs from
what it needs to where they are closed at or above a moment, give that moment, as long as the view
is that of the cut: in another one, other logs speak for a partition.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

from remuda.errors import DataCorrupted, UnknownFormat
from remuda.formats import ARCHIVE_NOTE
from remuda.storage.format.headline import below_headline, with_headline
from remuda.storage.format.manifest import Manifest, MemberLog, SegmentObject
from remuda.storage.snapshot.chain import Chain, MomentRange
from remuda.storage.snapshot.object_store import (
    KeepsUnfinished,
    ObjectStore,
    UnfinishedFile,
    unfinished_files,
)

ARCHIVE: Final = "@archive/"
_NAME: Final = "remuda-archive"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchivedSegment:
    """A complete segment. ``view``, ``closed`` and ``finish`` are of the last closing in it: the
    view, the timestamp and the record's sequence (0: none is in it). ``archived`` in microseconds
    since 1970. ``sha256`` and ``size`` are of the bytes as they are stored."""

    cluster: str
    identity: str
    generation: int
    member: int
    number: int
    first: int
    last: int
    size: int
    sha256: str
    view: int
    closed: int
    finish: int
    archived: int

    @property
    def log(self) -> tuple[str, int]:
        return self.identity, self.generation

    @property
    def object(self) -> SegmentObject:
        key = segment_key(self.cluster, self.identity, self.generation, self.number)
        return SegmentObject(key, self.sha256, self.size, self.number, self.first, self.last)

    @property
    def note(self) -> str:
        return self.object.key.removesuffix(".segment") + ".note"


@dataclass(frozen=True, slots=True)
class ArchivedCatalog:
    """The catalog from ``timestamp`` on, in the form of a manifest."""

    version: int
    timestamp: int
    catalog: str


def segment_key(cluster: str, identity: str, generation: int, number: int) -> str:
    return f"{ARCHIVE}{cluster}/{identity}-{generation}/{number:010}.segment"


def catalog_key(cluster: str, version: int) -> str:
    return f"{ARCHIVE}{cluster}/catalog/{version:010}.catalog"


def encode_note(note: ArchivedSegment | ArchivedCatalog) -> bytes:
    body = json.dumps(asdict(note), sort_keys=True).encode()
    return with_headline(_NAME, ARCHIVE_NOTE, body) + b"\n"


def decode_segment(data: bytes) -> ArchivedSegment:
    """Raises DataCorrupted, UnknownFormat."""
    return _decoded(ArchivedSegment, data)


def decode_catalog(data: bytes) -> ArchivedCatalog:
    """Raises DataCorrupted, UnknownFormat."""
    return _decoded(ArchivedCatalog, data)


def _decoded(kind: Callable[..., T], data: bytes) -> T:
    _, body = below_headline(data.removesuffix(b"\n"), _NAME, ARCHIVE_NOTE)
    try:
        return kind(**json.loads(body))
    except (ValueError, TypeError) as problem:
        raise DataCorrupted(f"a note of the log archive cannot be read: {problem}") from problem


# --- what is there --------------------------------------------------------------------------------


class Archive:
    """The notes of one cluster's archive, read once each. A damaged note is one that is missing:
    there is a gap then, and ``damaged`` names it."""

    def __init__(self, store: ObjectStore, cluster: str) -> None:
        self.store = store
        self.cluster = cluster
        self.damaged: dict[str, str] = {}
        self._segments: dict[str, ArchivedSegment] = {}
        self._catalogs: dict[str, ArchivedCatalog] = {}

    def read(self) -> None:
        """Look again. Raises ResourceError."""
        keys = set(self.store.keys(f"{ARCHIVE}{self.cluster}/"))
        self._segments = {key: note for key, note in self._segments.items() if key in keys}
        for key in sorted(keys - self._segments.keys() - self._catalogs.keys()):
            try:
                if key.endswith(".note"):
                    self._segments[key] = decode_segment(self.store.get(key))
                elif key.endswith(".catalog"):
                    self._catalogs[key] = decode_catalog(self.store.get(key))
            except (DataCorrupted, UnknownFormat) as problem:
                self.damaged[key] = problem.message

    @property
    def segments(self) -> list[ArchivedSegment]:
        return list(self._segments.values())

    def catalog_at(self, moment: int, at_least: int) -> ArchivedCatalog | None:
        """The last one that was made at or below a moment, above version ``at_least``."""
        found = [
            each
            for each in self._catalogs.values()
            if each.timestamp <= moment and each.version > at_least
        ]
        return max(found, key=lambda each: each.version, default=None)

    def catalog_versions(self) -> set[int]:
        return {each.version for each in self._catalogs.values()}


# --- what can be restored -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Of one log: the segments behind a cut, and the record at which they are closed."""

    segments: tuple[SegmentObject, ...]
    finish: int


def _run(log: MemberLog, archived: Iterable[ArchivedSegment]) -> list[ArchivedSegment]:
    """The segments of a log from the one with ``needs`` on, without a hole."""
    logs: dict[int, list[ArchivedSegment]] = defaultdict(list)
    for each in archived:
        if each.identity == log.identity:
            logs[each.generation].append(each)
    best: list[ArchivedSegment] = []
    for each_log in logs.values():
        run: list[ArchivedSegment] = []
        for each in sorted(each_log, key=lambda each: each.number):
            begins = not run and each.first <= log.needs <= each.last
            if begins or (run and each.number == run[-1].number + 1):
                run.append(each)
        if any(each.finish > log.finish for each in run) and len(run) > len(best):
            best = run
    return best


def _closings(cut: Manifest, log: MemberLog, run: Iterable[ArchivedSegment]) -> list[int]:
    """Timestamps at which the log is closed behind the cut, in its view."""
    return [each.closed for each in run if each.view == cut.view and each.finish > log.finish]


def reach(cut: Manifest, archived: Sequence[ArchivedSegment]) -> int:
    """Up to which moment the archive goes on from a cut; the cut's own timestamp: not at all."""
    if not cut.logs:
        return cut.timestamp
    ends = [max(_closings(cut, each, _run(each, archived)), default=0) for each in cut.logs]
    return max(cut.timestamp, min(ends))


def pieces(
    cut: Manifest, archived: Sequence[ArchivedSegment], moment: int
) -> Mapping[str, LogPiece]:
    """The addition of each log to a cut that reaches the moment, by identity."""
    found: dict[str, LogPiece] = {}
    for log in cut.logs:
        run = _run(log, archived)
        wanted = next(
            place
            for place, each in enumerate(run)
            if each.view == cut.view and each.finish > log.finish and each.closed >= moment
        )
        segments = tuple(each.object for each in run[: wanted + 1])
        found[log.identity] = LogPiece(segments, run[wanted].finish)
    return found


def start_of(chain: Chain, archived: Sequence[ArchivedSegment], moment: int) -> Manifest | None:
    """The last cut from which the archive reaches a moment."""
    states = [each.manifest for each in chain.states() if not each.problem]
    found = [
        each for each in states if each.timestamp <= moment and reach(each, archived) >= moment
    ]
    return max(found, key=lambda each: each.timestamp, default=None)


def ranges(chain: Chain, archived: Sequence[ArchivedSegment]) -> list[MomentRange]:
    """All moments that can be restored, with the archive; between them are gaps."""
    found = list(chain.ranges())
    for state in chain.states():
        if not state.problem:
            cut = state.manifest
            found.append(MomentRange(cut.timestamp, reach(cut, archived)))
    found.sort(key=lambda each: each.start)
    merged: list[MomentRange] = []
    for each in found:
        if merged and each.start <= merged[-1].stop:
            merged[-1] = MomentRange(merged[-1].start, max(merged[-1].stop, each.stop))
        else:
            merged.append(each)
    return merged


# --- what may go ----------------------------------------------------------------------------------


def expired(
    archived: Sequence[ArchivedSegment],
    cuts: Iterable[Manifest],
    *,
    before: int,
    size: int,
) -> list[ArchivedSegment]:
    """The segments that nobody needs: those of before all cuts of their log, those that were
    archived before ``before`` (microseconds since 1970), and, of each log, the oldest above
    ``size`` bytes (0: any size). The oldest of a log go first, so that no hole is left."""
    needs: dict[str, int] = {}
    for cut in cuts:
        for log in cut.logs:
            needs[log.identity] = min(log.needs, needs.get(log.identity, log.needs))
    logs: dict[tuple[str, int], list[ArchivedSegment]] = defaultdict(list)
    for each in archived:
        logs[each.log].append(each)
    gone: list[ArchivedSegment] = []
    for segments in logs.values():
        segments.sort(key=lambda each: each.number)
        newest = max(
            generation for identity, generation in logs if identity == segments[0].identity
        )
        left = sum(each.size for each in segments)
        for each in segments:
            covered = each.generation == newest and each.last < needs.get(each.identity, 0)
            if not (covered or each.archived < before or (size and left > size)):
                break
            left -= each.size
            gone.append(each)
    return gone


def remove(store: ObjectStore, gone: Iterable[ArchivedSegment]) -> None:
    """The note first: a segment without one is nothing."""
    for each in gone:
        store.delete(each.note)
        store.delete(each.object.key)


class WithArchive:
    """An object store, and that of the archive for keys that begin with ``ARCHIVE``."""

    def __init__(self, main: ObjectStore, archive: ObjectStore) -> None:
        self._main = main
        self._archive = archive

    def _of(self, key: str) -> tuple[ObjectStore, str]:
        if key.startswith(ARCHIVE):
            return self._archive, key.removeprefix(ARCHIVE)
        return self._main, key

    def put(self, key: str, data: bytes) -> None:
        store, key = self._of(key)
        store.put(key, data)

    def get(self, key: str) -> bytes:
        store, key = self._of(key)
        return store.get(key)

    def keys(self, prefix: str) -> list[str]:
        store, inner = self._of(prefix)
        front = ARCHIVE if prefix.startswith(ARCHIVE) else ""
        return [front + key for key in store.keys(inner)]

    def delete(self, key: str) -> None:
        store, key = self._of(key)
        store.delete(key)

    def unfinished(self, prefix: str) -> list[UnfinishedFile]:
        """Of snapshots alone; the archive takes its own away."""
        return unfinished_files(self._main, prefix)

    def remove_unfinished(self, path: str) -> None:
        if isinstance(self._main, KeepsUnfinished):
            self._main.remove_unfinished(path)
