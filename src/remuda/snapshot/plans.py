"""The cuts and logs from which a statement restores, found in a snapshot and in the archive of
logs, and all moments that could be restored."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.times.datetimetext import parse_timestamp
from remuda.datatypes.timestamp import from_micros, moment, to_micros
from remuda.errors import DataCorrupted, InputError
from remuda.sql.trees.snapshot import RestoreSnapshotTree
from remuda.storage.snapshot import archive as archives
from remuda.storage.snapshot import chain
from remuda.storage.snapshot.archive import Archive
from remuda.storage.snapshot.chain import Chain, MomentRange
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan, archived_plan, plan


def planned(store: ObjectStore, tree: RestoreSnapshotTree, *, archive: bool) -> RestorePlan:
    """To a moment, a cut, or the last one: which is never another one because the last one is
    damaged. ``archive``: there is one. Raises InputError, DataCorrupted, UndefinedObject."""
    known = chain.load(store, tree.name)
    if tree.moment:
        return _to_moment(known, tree.moment, archive_of(store, known) if archive else None)
    last = max((chain.version_of(key) for key in known.keys), default=0)
    if tree.cut is None and not last:
        raise InputError(f"snapshot {known.name} has nothing to restore")
    wanted = last if tree.cut is None else tree.cut
    for key, problem in known.damaged:
        if chain.version_of(key) == wanted:
            chain.manifest_at(store, key)  # tells a format that is not known from damage
            raise DataCorrupted(f"object {key} is damaged: {problem}")
    return plan(known, version=wanted)


def archive_of(store: ObjectStore, known: Chain) -> Archive | None:
    """Of the cluster that made the cuts; None: they have no logs."""
    clusters = {each.cluster for each in known.manifests.values() if each.logs}
    if len(clusters) != 1:
        return None
    found = Archive(store, clusters.pop())
    found.read()
    return found


def restorable(known: Chain, archive: Archive | None) -> list[MomentRange]:
    """The ranges of moments that can be restored; the times between them are gaps."""
    return known.ranges() if archive is None else archives.ranges(known, archive.segments)


def _to_moment(known: Chain, text: str, archive: Archive | None) -> RestorePlan:
    """The last timestamp of the microsecond that is meant, or of what a cut has of it. Raises
    InputError."""
    micros = parse_timestamp(text, zoned=True)
    first, last = from_micros(micros), from_micros(micros + 1) - 1
    ranges = known.ranges()
    if not ranges or any(each.holds(last) for each in ranges):
        return plan(known, moment=last)
    found = None if archive is None else archived_plan(known, archive, last)
    if found is not None:
        return found
    for each in ranges:
        if first <= each.stop <= last:
            return plan(known, moment=each.stop)
    raise InputError(
        f"snapshot {known.name} does not reach {text}",
        detail=f"it reaches {_listed(restorable(known, archive))}",
        hint="Restore a moment that it reaches, or a cut: CUT n.",
    )


def _listed(ranges: Sequence[MomentRange]) -> str:
    return "; ".join(
        f"{moment(to_micros(each.start))} to {moment(to_micros(each.stop))}" for each in ranges
    )
