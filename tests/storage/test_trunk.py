"""The last cut is found as by reading the whole chain, and one manifest is read for it."""

from __future__ import annotations

from snapshot_grid import NAME, Grid, filled

from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import decode_manifest
from remuda.storage.snapshot.object_store import DirectoryStore
from remuda.storage.snapshot.trunk import Trunk, extended, trunk_of
from remuda.storage.snapshot.writing import abandon, begin, manifest_key


class CountingStore:
    """Notes which objects are read."""

    def __init__(self, store: DirectoryStore) -> None:
        self.put, self.keys, self.delete = store.put, store.keys, store.delete
        self._get = store.get
        self.read: list[str] = []

    def get(self, key: str) -> bytes:
        self.read.append(key)
        return self._get(key)


def found(grid: Grid, known: Trunk | None) -> tuple[Trunk | None, int, int]:
    """What is found, the last number, and how many objects were read."""
    store = CountingStore(grid.store)
    trunk, highest = trunk_of(store, NAME, known)
    return trunk, highest, len(store.read)


def whole(grid: Grid) -> Trunk:
    trunk, _, _ = found(grid, None)
    assert trunk is not None
    return trunk


def test_a_known_cut_is_found_again_by_one_manifest() -> None:
    grid = filled(3, steps=3)
    known = whole(grid)
    assert known.manifest.version == 5
    assert not known.problem
    for number in range(6, 10):  # however long the chain is
        grid.increment()
        again, highest, read = found(grid, known)
        assert (again, highest, read) == (whole(grid), number, 2)
        assert found(grid, again)[2] == 1
        known = again
    begin(grid.store, NAME, 12)
    assert found(grid, known) == (known, 12, 1)
    abandon(grid.store, NAME, 12)  # the number was given out all the same
    assert found(grid, known) == (known, 12, 1)
    grid.base()
    assert found(grid, known)[0] == whole(grid)


def test_cuts_of_others_are_followed_and_own_ones_known() -> None:
    grid = filled(2, steps=3)
    known = whole(grid)
    for _ in range(3):
        own = known
        grid.increment()
        data = grid.store.get(manifest_key(NAME, grid.version))
        made = extended(own, decode_manifest(data), sha256(data))
        assert made == whole(grid)
        grid.increment()  # by another member
        known = whole(grid)
        assert found(grid, own) == (known, grid.version, 3)
        assert found(grid, made) == (known, grid.version, 2)
        data = grid.store.get(manifest_key(NAME, grid.version))
        assert extended(own, decode_manifest(data), sha256(data)) is None  # it rests on another


def test_nothing_rests_on_a_path_that_is_broken() -> None:
    for seed in range(2):
        grid = filled(seed, steps=2)
        known = whole(grid)
        kept = {key: grid.store.get(key) for key in known.needed}
        broken = 0
        for key, data in kept.items():
            grid.store.delete(key)
            last = manifest_key(NAME, 5)
            trunk = found(grid, known)[0]
            assert trunk == whole(grid)
            broken += bool(trunk.problem)
            assert trunk.problem or key == last
            grid.store.put(key, b"\0" + data if key == last else data)
            if key == last:  # damaged: it is no cut of this chain any more
                assert found(grid, known)[0] == whole(grid) != known
                grid.store.delete(key)
                grid.store.put(key, data)
        assert broken == len(kept) - 1
        assert found(grid, known)[0] == known


def test_a_snapshot_of_the_same_name_is_another_one() -> None:
    grid, other = filled(1), filled(2, steps=3)
    known, theirs = whole(grid), whole(other)
    assert known.manifest.version == theirs.manifest.version
    assert found(other, known)[0] == theirs
    for key in other.store.keys(f"{NAME}/"):
        other.store.delete(key)
    assert found(other, known)[0] is None
