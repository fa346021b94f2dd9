"""The restorable cuts of a snapshot: its manifests, and how they rest on each other. Pure but for
``load``.

A cut is reached from the nearest base at or below it, through every increment between: each names
the manifest of the cut before by its SHA-256, and from the log of each member there must be all
segments from what the base needs to the cut's Finish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from remuda.errors import DataCorrupted, InputError, UndefinedObject, UnknownFormat
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import (
    Manifest,
    MemberLog,
    SegmentObject,
    decode_manifest,
)
from remuda.storage.snapshot.cut_records import mark_version, record_key, record_version
from remuda.storage.snapshot.object_store import ObjectStore, check_name

_NOTE: Final = re.compile(r"pending-(\d+)\.note")
_TRIED: Final = re.compile(r"[^/]*/(?:cut|data|pending|tried)-(\d+)[./].*")
_MANIFEST: Final = re.compile(r".*/cut-(\d+)\.manifest")


@dataclass(frozen=True, slots=True)
class Target:
    """The cut to go to, and the moment that is meant (the cut's own, or an earlier one)."""

    version: int
    moment: int


@dataclass(frozen=True, slots=True)
class CutState:
    """A line of ``describe``. ``problem``: why it cannot be restored; "" = it can."""

    manifest: Manifest
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.manifest}" + (f", not restorable: {self.problem}" if self.problem else "")


@dataclass(frozen=True, slots=True)
class MomentRange:
    """Every moment from ``start`` to ``stop``, both included, is restorable."""

    start: int
    stop: int

    def holds(self, moment: int) -> bool:
        return self.start <= moment <= self.stop

    def __str__(self) -> str:
        return f"{self.start} to {self.stop}"


@dataclass(frozen=True, slots=True)
class Chain:
    """The manifests of snapshot ``name`` by cut version, with their SHA-256. ``damaged``: key and
    problem; ``keys``: all objects of the snapshot."""

    name: str
    manifests: Mapping[int, Manifest]
    digests: Mapping[int, str]
    damaged: tuple[tuple[str, str], ...]
    keys: frozenset[str]

    # --- restoring ---

    def path(self, version: int, moment: int | None = None) -> list[Manifest]:
        """From the nearest base, at or below the moment if one is meant, to the cut. Raises
        ``InputError``: why there is none."""
        wanted = self.manifests.get(version)
        if wanted is None:
            known = ", ".join(str(each) for each in sorted(self.manifests)) or "none"
            raise InputError(f"snapshot {self.name} has no cut {version}", detail=f"cuts: {known}")
        path = [wanted]
        moment = wanted.timestamp if moment is None else moment
        while not path[0].is_base or path[0].timestamp > moment:
            parent = path[0].parent
            if parent is None:
                raise self._unreachable(version, f"there is no base at or below {moment}")
            if parent not in self.manifests or parent >= path[0].version:
                raise self._unreachable(version, f"the manifest of cut {parent} is missing")
            if self.digests[parent] != path[0].parent_sha256:
                raise self._unreachable(version, f"it rests on another cut {parent}")
            path.insert(0, self.manifests[parent])
        for log in wanted.logs:
            segments_of(path, log.identity)
        missing = {each.key for part in path for each in part.objects} - self.keys
        if missing:
            raise self._unreachable(version, f"object {min(missing)} is missing")
        return path

    def target(self, *, version: int | None = None, moment: int | None = None) -> Target:
        """The last cut, the given one, or the one that reaches a moment: the first cut at or above
        it, from a base at or below it. Raises ``InputError``."""
        if version is not None:
            return Target(version, self.path(version)[-1].timestamp)
        states = [each for each in self.states() if not each.problem]
        if not states:
            raise InputError(f"snapshot {self.name} has nothing to restore")
        if moment is None:
            last = states[-1].manifest
            return Target(last.version, last.timestamp)
        for each in states:
            if self._reach(each.manifest).holds(moment):
                return Target(each.manifest.version, moment)
        ranges = "; ".join(str(each) for each in self.ranges())
        raise InputError(
            f"snapshot {self.name} does not reach moment {moment}", detail=f"it reaches {ranges}"
        )

    # --- describing ---

    def states(self) -> list[CutState]:
        """All cuts, in order."""
        found: list[CutState] = []
        for version in sorted(self.manifests):
            try:
                self.path(version)
                problem = ""
            except InputError as unreachable:
                problem = unreachable.detail or unreachable.message
            found.append(CutState(self.manifests[version], problem))
        return found

    def ranges(self) -> list[MomentRange]:
        """The moments that can be restored; between them are gaps."""
        found: list[MomentRange] = []
        for state in self.states():
            if state.problem:
                continue
            reach = self._reach(state.manifest)
            if found and reach.holds(found[-1].stop):
                found[-1] = MomentRange(found[-1].start, max(reach.stop, found[-1].stop))
            else:
                found.append(reach)
        return found

    def _reach(self, cut: Manifest) -> MomentRange:
        """The moments that a restorable cut adds to those of the cut before."""
        before = None if cut.parent is None else self.manifests.get(cut.parent)
        if before is None:
            return MomentRange(cut.timestamp, cut.timestamp)
        start = max([before.timestamp, *(log.moved for log in cut.logs)])
        try:
            self.path(cut.version, start)
        except InputError:  # a base whose past is gone
            start = cut.timestamp
        return MomentRange(start, cut.timestamp)

    def pending(self) -> list[int]:
        """Versions that somebody began and has not finished."""
        notes = [_NOTE.fullmatch(key.removeprefix(f"{self.name}/")) for key in self.keys]
        return sorted(int(note[1]) for note in notes if note is not None)

    def spare(self) -> frozenset[str]:
        """Objects that no manifest names, and that say nothing by themselves."""
        needed = {each.key for manifest in self.manifests.values() for each in manifest.objects}
        return frozenset(
            key
            for key in self.keys - needed
            if not key.endswith((".manifest", ".note"))
            and not record_version(key)
            and not mark_version(key)
        )

    def records(self) -> frozenset[int]:
        """Versions of the cuts that were finished, or are about to be."""
        return frozenset(map(record_version, self.keys)) - {0}

    def lost(self) -> list[int]:
        """Cuts that were finished, and whose manifests are gone."""
        damaged = {version_of(key) for key, _ in self.damaged}
        known = damaged | set(self.manifests) | set(self.pending())
        return sorted(self.records() - known)

    @property
    def highest(self) -> int:
        """The last version that anybody has tried; 0: none has."""
        return max(map(tried_version, self.keys), default=0)

    def without(self, versions: frozenset[int]) -> Chain:
        """The same without these cuts; objects stay."""
        kept = {v: m for v, m in self.manifests.items() if v not in versions}
        digests = {v: self.digests[v] for v in kept}
        return Chain(self.name, kept, digests, self.damaged, self.keys)

    def _unreachable(self, version: int, why: str) -> InputError:
        return InputError(f"cut {version} of snapshot {self.name} cannot be restored", detail=why)


def segments_of(path: list[Manifest], identity: str) -> list[SegmentObject]:
    """The segments of one log along a path, in order. Raises ``InputError`` for a hole."""
    cut = path[-1]
    last = cut.log_of(identity)
    assert last is not None
    by_number = {
        segment.number: segment
        for part in path[1:]
        if (log := part.log_of(identity)) is not None
        for segment in log.segments
    }
    if len(path) == 1:
        return []
    found = [by_number[number] for number in sorted(by_number)]
    base = path[0].log_of(identity)
    start = 1 if base is None else base.needs
    problem = _hole(found, start, last)
    if problem:
        raise InputError(
            f"cut {cut.version} of snapshot {cut.name} cannot be restored",
            detail=f"the log of member {last.member} {problem}",
        )
    return found


def _hole(found: list[SegmentObject], start: int, last: MemberLog) -> str:
    if not found or found[0].first > start:
        return f"does not reach back to record {start}"
    for one, next_one in pairwise(found):
        if next_one.number != one.number + 1 or next_one.first != one.last + 1:
            return f"has a hole behind segment {one.number}"
    return "" if found[-1].last >= last.finish else f"ends before record {last.finish}"


def tried_version(key: str) -> int:
    """The number whose attempt the key tells of; 0 for one that tells of none."""
    found = _TRIED.fullmatch(key)
    return 0 if found is None else int(found[1])


def version_of(key: str) -> int:
    """The cut that the key of a manifest stands for; 0 for one that is none's."""
    found = _MANIFEST.fullmatch(key)
    return 0 if found is None else int(found[1])


def load(store: ObjectStore, name: str) -> Chain:
    """Raises ``UndefinedObject`` when there is no snapshot of this name."""
    check_name(name)
    found = _load(store, name)
    # A long list is no picture of one moment: a cut may have been finished while it was made.
    return _load(store, name) if found.lost() else found


def _load(store: ObjectStore, name: str) -> Chain:
    keys = store.keys(f"{name}/")
    if all(map(mark_version, keys)):
        raise UndefinedObject(f"there is no snapshot {name}")
    manifests: dict[int, Manifest] = {}
    digests: dict[int, str] = {}
    damaged: list[tuple[str, str]] = []
    gone: set[str] = set()
    for key in [each for each in keys if each.endswith(".manifest")]:
        try:
            data = store.get(key)
            manifest = decode_manifest(data)
        except UndefinedObject:  # given up since it was listed
            gone |= {key, record_key(name, version_of(key))}
            continue
        except (DataCorrupted, UnknownFormat) as problem:
            damaged.append((key, problem.message))
            continue
        if key != f"{name}/cut-{manifest.version:010}.manifest" or manifest.name != name:
            damaged.append(
                (key, f"it is the manifest of cut {manifest.version} of {manifest.name}")
            )
            continue
        manifests[manifest.version], digests[manifest.version] = manifest, sha256(data)
    return Chain(name, manifests, digests, tuple(damaged), frozenset(keys) - gone)


def manifest_at(store: ObjectStore, key: str) -> Manifest:
    """Raises DataCorrupted and UnknownFormat, with the object's name, and UndefinedObject."""
    try:
        return decode_manifest(store.get(key))
    except DataCorrupted as problem:
        raise DataCorrupted(f"object {key} is damaged: {problem.message}") from problem
    except UnknownFormat as problem:
        raise UnknownFormat(f"object {key}: {problem.message}", hint=problem.hint) from problem


def snapshot_names(store: ObjectStore) -> list[str]:
    """Of all snapshots in a store."""
    keys = (key for key in store.keys("") if "/" in key and not mark_version(key))
    return sorted({key.partition("/")[0] for key in keys})


def load_if_there(store: ObjectStore, name: str) -> tuple[Chain | None, int]:
    """A snapshot, or None when there is none of this name, and the last number that was given out
    in it, even if all is gone that had it (0: none was)."""
    try:
        known = load(store, name)
    except UndefinedObject:
        return None, max(map(mark_version, store.keys(f"{name}/")), default=0)
    return known, known.highest
