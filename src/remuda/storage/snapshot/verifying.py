"""Verifying a snapshot, on three levels, each with all before it:

``OBJECTS``  every manifest, and every object that one names: there, and its SHA-256
``RECORDS``  every row and every record of the logs can be read, and is where it belongs
``REPLAY``   every cut is replayed: its sets and timestamps agree, each transaction is whole

All problems are found, not the first only; the caller ends with a failure if there is any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from remuda.errors import DataCorrupted, InputError, RemudaError, UndefinedObject, UnknownFormat
from remuda.storage.format.manifest import DataObject, Manifest, MemberLog, SegmentObject
from remuda.storage.format.records import CopiedRows, PartitionTaken
from remuda.storage.format.rows_object import decode_rows, partitions_and_times
from remuda.storage.format.sealing import ObjectKey, unseal
from remuda.storage.log.replay import JobCommit, PartCommit, Replay, Step
from remuda.storage.snapshot.chain import Chain, load, load_if_there
from remuda.storage.snapshot.left_over import left_over, lost_cuts
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import cut_goal, entries, fetch_stored

DAMAGE: Final = "damage"
LEFT_OVER: Final = "left over"

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the steps that are done, and all of them."""


class Level(IntEnum):
    OBJECTS = 1
    RECORDS = 2
    REPLAY = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """``place``: a key, or a cut. ``kind``: ``DAMAGE``, or ``LEFT_OVER``: an object that belongs to
    nothing, and harms nothing but the space that it takes."""

    place: str
    problem: str
    kind: str = DAMAGE

    def __str__(self) -> str:
        mild = f" ({self.kind})" if self.kind != DAMAGE else ""
        return f"{self.place}: {self.problem}{mild}"


@dataclass(slots=True)
class VerifyReport:
    level: Level
    objects: int = 0
    size: int = 0
    rows: int = 0
    records: int = 0
    commits: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings

    def add(self, other: VerifyReport) -> None:
        """The parts that somebody else has looked at."""
        self.objects += other.objects
        self.size += other.size
        self.rows += other.rows
        self.records += other.records
        self.commits += other.commits
        self.findings += other.findings

    def __str__(self) -> str:
        found = f"{len(self.findings)} findings" if self.findings else "nothing found"
        return (
            f"{self.objects} objects of {self.size} bytes, {self.rows} rows, {self.records}"
            f" records, {self.commits} commits: {found}"
        )


def verify(
    store: ObjectStore,
    name: str,
    level: Level = Level.REPLAY,
    key: ObjectKey | None = None,
    progress: Progress | None = None,
    *,
    now: int = 0,
) -> VerifyReport:
    """``now``: microseconds since 1970, to tell what is being made from what was left. Raises
    ``UndefinedObject`` when there is no such snapshot, ``InputError`` for the wrong encryption
    key."""
    chain = load(store, name)
    report = begun(store, chain, level, now=now)
    named = owners_of(chain)
    versions = sorted(chain.manifests)
    total = len(named) + (len(versions) if level >= Level.REPLAY else 0)
    verifier = Verifier(store, key, report, named)
    for done, each in enumerate(named, 1):
        verifier.check_object(each, level)
        if progress is not None:
            progress(done, total)
    for done, version in enumerate(versions if level >= Level.REPLAY else (), len(named) + 1):
        verifier.check_cut(chain, chain.manifests[version])
        if progress is not None:
            progress(done, total)
    if report.findings:
        forget_given_up(store, chain, report)
    return report


def forget_given_up(store: ObjectStore, chain: Chain, report: VerifyReport) -> None:
    """An object that is missing because somebody gave the cut up meanwhile is no finding."""
    again = load_if_there(store, chain.name)[0]
    left = set() if again is None else set(again.manifests)
    gone = set(chain.manifests) - left - set(() if again is None else again.lost())
    if not gone:
        return
    needed = {each.key for version in left for each in chain.manifests[version].objects}
    cuts = tuple(_cut(chain.manifests[version]) for version in gone)
    objects = {each.key for version in gone for each in chain.manifests[version].objects} - needed

    def is_gone(place: str) -> bool:
        return place in objects or place.partition(",")[0] in cuts

    report.findings[:] = [each for each in report.findings if not is_gone(each.place)]


def begun(store: ObjectStore, chain: Chain, level: Level, *, now: int = 0) -> VerifyReport:
    """The findings from the manifests, the records of cuts and the names of objects."""
    report = VerifyReport(level)
    report.findings += [Finding(*each) for each in lost_cuts(store, chain)]
    report.findings += [Finding(*each, LEFT_OVER) for each in left_over(store, chain, now=now)]
    for place, problem in chain.damaged:
        report.findings.append(Finding(place, problem))
    for state in chain.states():
        if state.problem:
            report.findings.append(Finding(_cut(state.manifest), state.problem))
    return report


def _cut(manifest: Manifest) -> str:
    return f"cut {manifest.version}"


def owners_of(chain: Chain) -> dict[DataObject | SegmentObject, Manifest]:
    """Every object as it is named, with the first cut that does."""
    owners: dict[DataObject | SegmentObject, Manifest] = {}
    for version in sorted(chain.manifests):
        for each in chain.manifests[version].objects:
            owners.setdefault(each, chain.manifests[version])
    return owners


@dataclass(slots=True)
class Verifier:
    """Looks at one object or one cut at a time; its findings go into ``report``."""

    store: ObjectStore
    key: ObjectKey | None
    report: VerifyReport
    owners: dict[DataObject | SegmentObject, Manifest]

    def check_object(self, each: DataObject | SegmentObject, level: Level) -> None:
        try:
            stored = fetch_stored(self.store, each)
            self.report.objects += 1
            self.report.size += each.size
            if level >= Level.RECORDS and isinstance(each, DataObject):
                self._check_rows(each, unseal(self.key, each.key, stored))
            elif level >= Level.RECORDS and isinstance(each, SegmentObject):
                self._check_segment(each)
        except (DataCorrupted, UnknownFormat, UndefinedObject) as problem:
            self._found(each.key, problem)

    def _check_rows(self, each: DataObject, data: bytes) -> None:
        table = decode_rows(data)
        manifest = self.owners[each]
        partitions, begins, ends = partitions_and_times(table)
        self.report.rows += table.num_rows
        if table.num_rows != each.rows:
            raise DataCorrupted(f"it has {table.num_rows} rows; the manifest says {each.rows}")
        if not set(partitions.tolist()) <= set(each.partitions):
            raise DataCorrupted("it has rows of other partitions than the manifest says")
        if len(begins) and int(begins.max()) > manifest.timestamp:
            raise DataCorrupted(f"it has rows of after {manifest.timestamp}")
        if len(ends) and int(ends.min()) <= manifest.timestamp:
            raise DataCorrupted(f"it has rows that had ended at {manifest.timestamp}")

    def _check_segment(self, each: SegmentObject) -> None:
        manifest = self.owners[each]
        log = next(log for log in manifest.logs if each in log.segments)
        first = last = 0
        for entry in entries(self.store, manifest, log, [each], self.key):
            first, last = first or entry.sequence, entry.sequence
            self.report.records += 1
        if (first, last) != (each.first, each.last):
            raise DataCorrupted(
                f"it has records {first} to {last}; the manifest says {each.first} to {each.last}"
            )

    def check_cut(self, chain: Chain, manifest: Manifest) -> None:
        """An increment is replayed from its parent: so every record is replayed once or twice, not
        once for each cut."""
        if manifest.is_base:
            self._check_base(manifest)
        parent = None if manifest.parent is None else chain.manifests.get(manifest.parent)
        if parent is None:
            return  # a base alone, or found before
        steps: dict[int, list[Step]] = {}
        for log in manifest.logs:
            try:
                steps[log.member] = self._replay(parent, manifest, log)
            except (DataCorrupted, UnknownFormat, UndefinedObject, InputError) as problem:
                self._found(f"{_cut(manifest)}, member {log.member}", problem)
                return
        self._check_whole(manifest, [step for each in steps.values() for step in each])
        self._check_jobs(manifest, steps)

    def _check_base(self, manifest: Manifest) -> None:
        for entry in manifest.maps:
            rows = sum(each.rows for each in manifest.data if each.map_id == entry.map_id)
            if rows != entry.rows:
                problem = f"map {entry.name} has {rows} rows; the manifest says {entry.rows}"
                self.report.findings.append(Finding(_cut(manifest), problem))
        seen: set[tuple[int, int]] = set()
        for each in manifest.data:
            both = {(each.map_id, partition) for partition in each.partitions}
            if both & seen:
                problem = f"partition {min(both & seen)[1]} of map {each.map_id} is there twice"
                self.report.findings.append(Finding(each.key, problem))
            seen |= both

    def _replay(self, parent: Manifest, manifest: Manifest, log: MemberLog) -> list[Step]:
        before = parent.log_of(log.identity)
        goal = cut_goal(self.store, manifest, log, self.key)
        start = log.segments[0].first if before is None else before.needs
        replay = Replay(parent.timestamp, goal, frozenset(log.partitions))
        steps: list[Step] = []
        for entry in entries(self.store, manifest, log, list(log.segments), self.key):
            if entry.sequence >= start and not replay.done:
                step = replay.on_entry(entry)
                if step is not None:
                    steps.append(step)
        replay.finish()
        return steps

    def _check_whole(self, manifest: Manifest, steps: list[Step]) -> None:
        """Each transaction in all its partitions, at one timestamp. A partition that has moved
        since the parent brings rows instead of commits."""
        moved = {s.partition for s in steps if isinstance(s, PartitionTaken | CopiedRows)}
        kept = {partition for log in manifest.logs for partition in log.partitions}
        parts: dict[tuple[int, int], list[PartCommit]] = {}
        for step in steps:
            if isinstance(step, PartCommit):
                parts.setdefault(step.part.transaction, []).append(step)
        for (began, near), commits in parts.items():
            self.report.commits += 1
            name = f"transaction {near}:{began}"
            there = {each.part.partition for each in commits}
            wanted = set(commits[0].partitions) & kept
            problem = ""
            if len({each.timestamp for each in commits}) > 1:
                problem = f"{name} is committed at more than one timestamp"
            elif len(there) != len(commits):
                problem = f"{name} is committed twice in one partition"
            elif wanted - there - moved:
                problem = f"{name} lacks its part in partition {min(wanted - there - moved)}"
            if problem:
                self.report.findings.append(Finding(_cut(manifest), problem))

    def _check_jobs(self, manifest: Manifest, steps: dict[int, list[Step]]) -> None:
        """Each job on all its participants, at one timestamp."""
        jobs: dict[str, dict[int, JobCommit]] = {}
        for member, each in steps.items():
            for step in each:
                if isinstance(step, JobCommit):
                    jobs.setdefault(step.job, {})[member] = step
        for job, commits in jobs.items():
            self.report.commits += 1
            wanted = {member for each in commits.values() for member in each.participants}
            lacking = (wanted & steps.keys()) - commits.keys()
            problem = ""
            if len({each.timestamp for each in commits.values()}) > 1:
                problem = f"job {job} is committed at more than one timestamp"
            elif lacking:
                problem = f"job {job} lacks its rows on member {min(lacking)}"
            if problem:
                self.report.findings.append(Finding(_cut(manifest), problem))

    def _found(self, place: str, problem: RemudaError) -> None:
        text = f"{problem.message} ({problem.detail})" if problem.detail else problem.message
        self.report.findings.append(Finding(place, text))
