"""Giving up old cuts, and nothing that a kept one needs.

``expire`` keeps every cut from some moment on, with the base that the oldest of them rests on.
``drop`` takes named cuts and refuses if another one would no longer be restorable. Both first make
a plan, which can be shown; manifests go before objects, so an interrupted run leaves objects that
nobody names, which the next one takes away.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from remuda.errors import DependentObjects, InputError
from remuda.storage.snapshot.chain import Chain
from remuda.storage.snapshot.cut_records import (
    CutRecord,
    mark_version,
    put_mark,
    put_record,
    record_key,
)
from remuda.storage.snapshot.object_store import ObjectStore, remove_unfinished
from remuda.storage.snapshot.writing import begun, data_folder, manifest_key, pending_key

LEFT_AFTER: Final = 24 * 3600 * 1_000_000
"""Microseconds: nobody makes a cut for so long."""


@dataclass(frozen=True, slots=True)
class ExpirePlan:
    """``cuts``, ``kept`` and ``unfinished`` are versions; the cuts and the unfinished ones go (of
    these, or those that have lost their manifests, whatever they have left). ``objects`` are keys
    that no kept cut needs. ``mark``: the highest number that goes, which is not to be given out
    again; 0: a higher one stays, or all goes that there is. ``records``: those of kept cuts that
    somebody deleted; they are written again."""

    cuts: tuple[int, ...]
    kept: tuple[int, ...]
    objects: tuple[str, ...]
    name: str
    unfinished: tuple[int, ...] = ()
    mark: int = 0
    records: tuple[CutRecord, ...] = ()

    def __str__(self) -> str:
        return (
            f"{len(self.cuts)} cuts and {len(self.objects)} objects go, {len(self.kept)} cuts stay"
        )


def left_behind(store: ObjectStore, chain: Chain, *, now: int) -> frozenset[int]:
    """Cuts that somebody began more than a day before ``now`` (microseconds since 1970) and has not
    finished: their makers are gone."""
    times = {version: begun(store, chain.name, version) for version in chain.pending()}
    return frozenset(each for each, at in times.items() if 0 < at < now - LEFT_AFTER)


def plan_expire(
    chain: Chain, *, before: int, unfinished: frozenset[int] = frozenset()
) -> ExpirePlan:
    """Give up what is not needed to restore any cut or moment from timestamp ``before`` on, and the
    cuts ``unfinished``. A damaged or lost manifest keeps everything: nobody knows what it needs."""
    _refuse_damaged(chain)
    _refuse_lost(chain)
    states = [each.manifest for each in chain.states() if not each.problem]
    younger = [each.version for each in states if each.timestamp >= before]
    if not younger and states:
        younger = [states[-1].version]  # the last one stays, or there would be none
    bases = [chain.path(version)[0].version for version in younger]
    if any(reach.holds(before) for reach in chain.ranges()):
        target = chain.target(moment=before)
        bases.append(chain.path(target.version, target.moment)[0].version)
    first = min(bases, default=0)
    going = frozenset(version for version in chain.manifests if version < first)
    return _plan(chain, going, unfinished)


def plan_drop(chain: Chain, versions: Collection[int], *, force: bool = False) -> ExpirePlan:
    """Give up these cuts. Raises ``DependentObjects`` when others rest on them, unless ``force``:
    then these go, too. Those that somebody began and has not finished, or that have lost their
    manifests, go with their objects; a member that is still making one cannot finish it."""
    _refuse_damaged(chain)
    _refuse_lost(chain, frozenset(versions))
    without_manifest = {*chain.pending(), *chain.lost()} - set(chain.manifests)
    unfinished = frozenset(versions) & without_manifest
    versions = frozenset(versions) - unfinished
    unknown = sorted(versions - set(chain.manifests))
    if unknown:
        raise InputError(f"snapshot {chain.name} has no cut {unknown[0]}")
    going = versions
    before = {each.manifest.version for each in chain.states() if not each.problem}
    after = {each.manifest.version for each in chain.without(going).states() if not each.problem}
    broken = sorted(before - going - after)
    if broken and not force:
        listed = ", ".join(str(version) for version in broken)
        raise DependentObjects(
            f"cuts of snapshot {chain.name} rest on what is to go",
            detail=f"no longer restorable would be: {listed}",
            hint="Make a new base first, or give these up, too: CASCADE.",
        )
    return _plan(chain, going | frozenset(broken), unfinished)


def carry_out(store: ObjectStore, plan: ExpirePlan) -> None:
    """A record goes before what it speaks for: without one, nothing is missed. The last cut goes
    first: an increment that is left without the cut that it rests on would be damage."""
    if plan.mark:
        put_mark(store, plan.name, plan.mark)
    for record in plan.records:
        put_record(store, plan.name, record)
    for version in plan.unfinished:
        store.delete(record_key(plan.name, version))
    for version in sorted(plan.cuts, reverse=True):
        store.delete(record_key(plan.name, version))
        store.delete(manifest_key(plan.name, version))
    for key in plan.objects:
        store.delete(key)
    for version in plan.unfinished:
        remove_unfinished(store, data_folder(plan.name, version))
    if not plan.kept and all(map(mark_version, store.keys(f"{plan.name}/"))):
        remove_unfinished(store, f"{plan.name}/")


def remove_old_files(store: ObjectStore, name: str, *, now: int) -> int:
    """Take away the unfinished files that killed processes have left in a snapshot; how many."""
    return remove_unfinished(store, f"{name}/", before=now - LEFT_AFTER)


def _refuse_damaged(chain: Chain) -> None:
    if chain.damaged:
        key, problem = chain.damaged[0]
        raise InputError(
            f"manifest {key} is damaged, and nobody knows what it needs",
            detail=problem,
            hint="Put it back, or delete it by hand if the cut is given up.",
        )


def _refuse_lost(chain: Chain, given_up: frozenset[int] = frozenset()) -> None:
    lost = [version for version in chain.lost() if version not in given_up]
    if lost:
        raise InputError(
            f"the manifest of cut {lost[0]} of snapshot {chain.name} is missing, and nobody knows"
            " what it needs",
            hint=f"Put {manifest_key(chain.name, lost[0])} back from a copy, or give the cut up:"
            f" DROP SNAPSHOT {chain.name} CUT {lost[0]}.",
        )


def _plan(chain: Chain, going: frozenset[int], unfinished: frozenset[int]) -> ExpirePlan:
    kept = chain.without(going)
    notes = {key for key in chain.keys if key.endswith(".note")}
    done_with = unfinished | frozenset(chain.manifests)  # the note of one that is there was left
    given_up = {pending_key(chain.name, version) for version in done_with} & notes
    spare = kept.spare()
    if notes - given_up:  # somebody is writing: what has no manifest may get one
        named = {each.key for version in going for each in chain.manifests[version].objects}
        mine = tuple(data_folder(chain.name, version) for version in unfinished)
        spare = frozenset(key for key in spare if key in named or key.startswith(mine))
    return ExpirePlan(
        tuple(sorted(going)),
        tuple(sorted(kept.manifests)),
        (*sorted(given_up), *sorted(spare)),  # who is still at it must see that first
        chain.name,
        tuple(sorted(unfinished)),
        _mark(chain, set(kept.manifests), unfinished),
        _lacking(kept),
    )


def _lacking(kept: Chain) -> tuple[CutRecord, ...]:
    """The records that cuts should have and do not, as their manifests say them."""
    lacking = sorted(set(kept.manifests) - kept.records())
    return tuple(CutRecord(v, kept.digests[v], kept.manifests[v].created) for v in lacking)


def _mark(chain: Chain, kept: set[int], unfinished: frozenset[int]) -> int:
    """Where nothing stays and nobody was at it, the name begins anew."""
    being_made = set(chain.pending()) - unfinished
    told = kept | being_made | set(map(mark_version, chain.keys))
    needed = (kept or being_made or unfinished) and chain.highest not in told
    return chain.highest if needed else 0
