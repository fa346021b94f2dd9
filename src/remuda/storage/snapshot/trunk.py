"""The last cut of a snapshot, on which the next increment rests, without reading the whole chain.

Each manifest names the one before by its SHA-256, so a reader that has found the path to a cut
whole once needs no more than the manifests that came behind it, and that no object of the path has
gone. A cut costs the same, then, after a day of cuts as after the first one.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from remuda.errors import DataCorrupted, InputError, UndefinedObject, UnknownFormat
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import Manifest, decode_manifest
from remuda.storage.snapshot.chain import load_if_there, segments_of, tried_version
from remuda.storage.snapshot.object_store import ObjectStore, check_name
from remuda.storage.snapshot.writing import manifest_key

_NEW_MAX = 100
"""So many manifests behind a known cut are followed; with more of them all are read."""


@dataclass(frozen=True, slots=True)
class Trunk:
    """The last cut, and the SHA-256 of its manifest. ``problem``: why nothing can rest on it; "" =
    it can be restored, and ``needed`` are all objects that this takes, manifests included."""

    manifest: Manifest
    digest: str
    problem: str
    needed: frozenset[str]


def trunk_of(store: ObjectStore, name: str, known: Trunk | None) -> tuple[Trunk | None, int]:
    """The last cut of snapshot ``name``, None when there is none; and the last number that was
    given out in it. ``known``: an earlier result of this. Raises InputError for the name."""
    check_name(name)
    keys = store.keys(f"{name}/")
    if known is not None and not known.problem and known.manifest.name == name:
        found = _followed(store, keys, known)
        if found is not None:
            return found, _highest(name, keys)
    chain, highest = load_if_there(store, name)
    if chain is None or not chain.manifests:
        return None, highest
    version = max(chain.manifests)
    manifest, digest = chain.manifests[version], chain.digests[version]
    try:
        path = chain.path(version)
    except InputError as unreachable:
        problem = unreachable.detail or unreachable.message
        return Trunk(manifest, digest, problem, frozenset()), highest
    return Trunk(manifest, digest, "", _needed_by(path)), highest


def extended(trunk: Trunk | None, manifest: Manifest, digest: str) -> Trunk | None:
    """With a cut that was just made: a base, or an increment that rests on ``trunk``. None: it
    must be read to know."""
    if manifest.is_base and manifest.parent is None:
        return Trunk(manifest, digest, "", _needed_by([manifest]))
    if trunk is None or trunk.problem or manifest.is_base or manifest.parent_sha256 != trunk.digest:
        return None
    if not _rests_on(manifest, trunk.manifest):
        return None
    return Trunk(manifest, digest, "", trunk.needed | _needed_by([manifest]))


def _followed(store: ObjectStore, keys: list[str], known: Trunk) -> Trunk | None:
    """The cut that is the last one now, if it rests on the known one and all is there."""
    name = known.manifest.name
    new: list[tuple[Manifest, str]] = []
    last = _last_manifest(name, keys)
    while last is not None and len(new) <= _NEW_MAX:
        try:
            data = store.get(last)
            manifest = decode_manifest(data)
        except (UndefinedObject, DataCorrupted, UnknownFormat):
            return None
        digest = sha256(data)
        if last != manifest_key(name, manifest.version):
            return None
        if digest == known.digest:  # so it is known that nothing of what it rests on was altered
            found: Trunk | None = known
            for each in reversed(new):
                found = extended(found, *each)
            return found if found is not None and found.needed <= set(keys) else None
        if manifest.parent is None or manifest.parent >= manifest.version:
            return None
        new.append((manifest, digest))
        last = manifest_key(name, manifest.parent)
    return None


def _rests_on(manifest: Manifest, parent: Manifest) -> bool:
    try:
        for log in manifest.logs:
            segments_of([parent, manifest], log.identity)
    except InputError:
        return False
    return parent.version == manifest.parent and parent.version < manifest.version


def _needed_by(path: list[Manifest]) -> frozenset[str]:
    objects = {each.key for part in path for each in part.objects}
    return frozenset(objects | {manifest_key(part.name, part.version) for part in path})


def _last_manifest(name: str, keys: list[str]) -> str | None:
    """``keys`` are sorted, and numbers have leading zeros."""
    place = bisect_left(keys, f"{name}/cut.")
    while place > 0 and keys[place - 1].startswith(f"{name}/cut-"):
        place -= 1
        if keys[place].endswith(".manifest"):
            return keys[place]
    return None


def _highest(name: str, keys: list[str]) -> int:
    """As ``Chain.highest``, by the last key of each kind."""
    found = [0]
    for kind in ("cut", "data", "pending", "tried"):
        place = bisect_left(keys, f"{name}/{kind}.") - 1
        if place >= 0 and keys[place].startswith(f"{name}/{kind}-"):
            found.append(tried_version(keys[place]))
    return max(found)
