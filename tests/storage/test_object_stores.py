"""The stores of snapshot objects, on real folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs
from sim_disk import SimulatedDisk
from snapshot_grid import NAME, filled

from remuda.errors import DiskFull, DuplicateObject, InputError, ResourceError, UndefinedObject
from remuda.storage.snapshot.arrow_store import ArrowStore
from remuda.storage.snapshot.object_store import DirectoryStore, ObjectStore
from remuda.storage.snapshot.verifying import verify
from remuda.world import Appender, SystemDisk

STORES = {
    "directory": lambda root: DirectoryStore(SystemDisk(), root),
    "arrow": lambda root: ArrowStore(fs.LocalFileSystem(), str(root)),
    "below a folder": lambda root: ArrowStore(
        fs.SubTreeFileSystem(str(root.parent), fs.LocalFileSystem()), root.name
    ),
}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES.keys())
def test_objects(tmp_path: Path, make) -> None:
    store: ObjectStore = make(tmp_path / "store")
    assert store.keys("a/") == []
    store.put("a/b/c.txt", b"one")
    store.put("a/b-2/c.txt", b"two")
    store.put("a/d.txt", b"three")
    assert store.keys("a/") == ["a/b-2/c.txt", "a/b/c.txt", "a/d.txt"]
    assert store.keys("a/b") == ["a/b-2/c.txt", "a/b/c.txt"]
    assert store.keys("") == store.keys("a/")
    assert store.get("a/d.txt") == b"three"
    with pytest.raises(DuplicateObject, match="exists already"):
        store.put("a/d.txt", b"other")
    assert store.get("a/d.txt") == b"three"
    store.delete("a/d.txt")
    store.delete("a/d.txt")
    with pytest.raises(UndefinedObject, match="no object"):
        store.get("a/d.txt")
    for wrong in ("../x.txt", "/x.txt", "a/B.txt", "a", "a/.x", "a//b.txt"):
        with pytest.raises(InputError, match="is no key"):
            store.put(wrong, b"")


def test_what_a_process_has_left_in_the_middle_is_no_object(tmp_path: Path) -> None:
    store = DirectoryStore(SystemDisk(), tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".writing-e.txt").write_bytes(b"half")
    assert store.keys("a/") == []
    store.put("a/e.txt", b"whole")
    assert store.get("a/e.txt") == b"whole"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["e.txt"]


def test_folders_go_with_their_last_object(tmp_path: Path) -> None:
    store = DirectoryStore(SystemDisk(), tmp_path)
    store.put("a/b/c.txt", b"one")
    store.put("a/d.txt", b"two")
    store.delete("a/b/c.txt")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "d.txt"]
    store.delete("a/d.txt")
    store.delete("a/d.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_while_an_object_is_put_is_made_again(tmp_path: Path) -> None:
    class Contended(SystemDisk):
        times = 1

        def create(self, path: Path) -> Appender:
            if self.times:
                self.times -= 1
                self.remove_folder(path.parent)
            return super().create(path)

    disk = Contended()
    store = DirectoryStore(disk, tmp_path)
    store.put("a/b.txt", b"one")
    assert store.get("a/b.txt") == b"one"
    disk.times = 100
    with pytest.raises(ResourceError, match="deleted again and again"):
        store.put("c/d.txt", b"two")


def test_folders_that_go_while_they_are_made_are_made_again(tmp_path: Path) -> None:
    """The folder above goes as well, if that was the last object in it."""

    class Contended(SystemDisk):
        times = 1

        def sync_folder(self, path: Path) -> None:
            if self.times and path.name == "a":
                self.times -= 1
                self.remove_folder(path / "b")
                self.remove_folder(path)
            super().sync_folder(path)

    disk = Contended()
    store = DirectoryStore(disk, tmp_path)
    store.put("a/b/c.txt", b"one")
    assert (disk.times, store.get("a/b/c.txt")) == (0, b"one")


def test_a_full_disk_keeps_nothing_of_an_object_that_it_did_not_take() -> None:
    disk = SimulatedDisk()
    store = DirectoryStore(disk, Path("/store"))
    store.put("a/b.txt", b"x" * 100)
    disk.capacity = 150
    with pytest.raises(DiskFull):
        store.put("a/c/d.txt", b"y" * 100)
    assert (disk.used, store.keys("")) == (100, ["a/b.txt"])
    store.delete("a/b.txt")
    store.put("a/c/d.txt", b"y" * 100)
    assert store.get("a/c/d.txt") == b"y" * 100


def test_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"a file, no folder")
    for make in STORES.values():
        store = make(tmp_path / "store")
        with pytest.raises(ResourceError):
            store.put("a/b.txt", b"x")


@pytest.mark.parametrize("make", STORES.values(), ids=STORES.keys())
def test_a_snapshot_may_be_copied_from_store_to_store(tmp_path: Path, make) -> None:
    grid = filled(1, steps=10)
    copy = make(tmp_path / "store")
    for key in grid.chain().keys:
        copy.put(key, grid.store.get(key))
    assert verify(copy, NAME).ok
    before = grid.restored(version=3)
    grid.store = copy
    assert grid.restored(version=3) == before
