"""What belongs to no cut of a snapshot: a lost manifest is missed, what killed processes have left
is told and goes, and numbers are given out once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from snapshot_grid import NAME, Grid, filled

from remuda.errors import InputError, ResourceError, UndefinedObject
from remuda.storage.snapshot.chain import load, load_if_there, snapshot_names
from remuda.storage.snapshot.cut_records import mark_version, record_key
from remuda.storage.snapshot.expiring import (
    LEFT_AFTER,
    carry_out,
    plan_drop,
    plan_expire,
    remove_old_files,
)
from remuda.storage.snapshot.object_store import DirectoryStore, unfinished_files
from remuda.storage.snapshot.verifying import DAMAGE, LEFT_OVER, Level, verify
from remuda.storage.snapshot.writing import (
    abandon,
    begin,
    data_folder,
    finish,
    manifest_key,
    put_rows,
)
from remuda.world import SystemDisk


def found(grid: Grid, now: int = 0) -> list[tuple[str, str]]:
    report = verify(grid.store, NAME, Level.OBJECTS, now=now)
    return [(each.kind, each.place) for each in report.findings]


def test_a_lost_manifest_keeps_what_it_may_need_until_it_is_given_up() -> None:
    grid = filled(1)
    grid.store.delete(manifest_key(NAME, 5))
    [finding] = verify(grid.store, NAME, Level.OBJECTS).findings
    assert (finding.kind, finding.place) == (DAMAGE, "cut 5")
    assert "DROP SNAPSHOT nightly CUT 5" in finding.problem
    with pytest.raises(InputError, match=r"manifest of cut 5 .* is missing"):
        plan_expire(grid.chain(), before=grid.cuts[4])
    with pytest.raises(InputError, match=r"manifest of cut 5 .* is missing"):
        plan_drop(grid.chain(), [3])
    carry_out(grid.store, plan_drop(grid.chain(), [5]))
    assert found(grid) == []
    assert grid.chain().highest == 5, "the number was given out"


def test_another_manifest_in_its_place_is_noticed() -> None:
    grid, other = filled(1), filled(2)
    grid.store.delete(manifest_key(NAME, 5))
    grid.store.put(manifest_key(NAME, 5), other.store.get(manifest_key(NAME, 5)))
    assert (DAMAGE, manifest_key(NAME, 5)) in found(grid)


def test_with_the_record_gone_too_objects_tell() -> None:
    for version in (4, 5):
        grid = filled(1)
        mine = {each.key for each in grid.chain().manifests[version].objects}
        others = {
            each.key
            for number, manifest in grid.chain().manifests.items()
            for each in manifest.objects
            if number != version
        }
        grid.store.delete(record_key(NAME, version))
        grid.store.delete(manifest_key(NAME, version))
        places = {place for kind, place in found(grid) if kind == LEFT_OVER}
        assert mine - others <= places
        assert mine - others


@pytest.mark.parametrize("version", [1, 3, 5])
@pytest.mark.parametrize("being_made", [False, True])
def test_a_deleted_record_is_named_and_written_again(version: int, being_made: bool) -> None:
    """Of the first cut, too, before which none has a record."""
    grid = filled(1)
    key, cuts = record_key(NAME, version), sorted(grid.chain().manifests)
    whole = grid.store.get(key)
    if being_made:
        begin(grid.store, NAME, 6, now=1_000)
    grid.store.delete(key)
    [finding] = verify(grid.store, NAME, Level.OBJECTS, now=2_000).findings
    assert (finding.kind, finding.place) == (DAMAGE, f"cut {version}")
    assert key in finding.problem
    carry_out(grid.store, plan_expire(grid.chain(), before=grid.cuts[1]))
    assert grid.store.get(key) == whole
    assert sorted(grid.chain().manifests) == cuts
    assert found(grid, now=2_000) == []


def test_records_of_a_snapshot_that_has_lost_them_all_are_missed() -> None:
    grid = filled(1)
    cuts = sorted(grid.chain().manifests)
    for version in cuts:
        grid.store.delete(record_key(NAME, version))
    assert found(grid) == [(DAMAGE, f"cut {version}") for version in cuts]


def test_a_cut_that_is_being_made_is_no_finding() -> None:
    grid = filled(1)
    begin(grid.store, NAME, 6, now=1_000)
    grid.store.put(f"{data_folder(NAME, 6)}1-0000.arrow", b"rows")
    assert found(grid, now=LEFT_AFTER) == []
    assert found(grid, now=LEFT_AFTER + 2_000) == [(LEFT_OVER, "cut 6")]


def test_a_crash_between_record_and_manifest_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = filled(1)
    manifest = replace(grid.chain().manifests[5], version=6)
    begin(grid.store, NAME, 6)
    with monkeypatch.context() as patch:
        put = grid.store.put

        def dying(key: str, data: bytes) -> None:
            if key.endswith(".manifest"):
                raise KeyboardInterrupt
            put(key, data)

        patch.setattr(grid.store, "put", dying)
        with pytest.raises(KeyboardInterrupt):
            finish(grid.store, manifest)
    assert grid.store.keys(record_key(NAME, 6))
    assert found(grid) == []
    abandon(grid.store, NAME, 6)
    assert found(grid) == []


def test_a_cut_that_is_finished_while_keys_are_listed_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stores list many keys part by part."""
    grid = filled(1)
    last, keys, calls = max(grid.chain().manifests), grid.store.keys, []

    def listed(prefix: str) -> list[str]:
        calls.append(prefix)
        return [key for key in keys(prefix) if len(calls) > 1 or key != manifest_key(NAME, last)]

    monkeypatch.setattr(grid.store, "keys", listed)
    chain = load(grid.store, NAME)
    assert not chain.lost()
    assert last in chain.manifests


class Interrupted:
    """A store in which ``other`` happens before the operation number ``at``."""

    def __init__(self, store: Any, at: int, other: Callable[[], object]) -> None:
        self.store, self.left, self.other = store, at, other

    def __getattr__(self, name: str) -> Any:
        def operate(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                self.other()
            return getattr(self.store, name)(*arguments)

        return operate


def late_object(store: Any, version: int) -> None:
    """A member puts an object of a cut, and hears perhaps that it was given up."""
    batch = pa.record_batch({"id": [1]})
    with suppress(ResourceError):
        put_rows(
            store,
            NAME,
            version,
            map_id=1,
            schema_version=1,
            group=0,
            partitions=(0,),
            batches=[batch],
            schema=batch.schema,
        )


def gives_up(store: Any, version: int) -> None:
    abandon(store, NAME, version)


@pytest.mark.parametrize(("first", "other"), [(late_object, gives_up), (gives_up, late_object)])
def test_an_object_that_comes_while_its_cut_is_given_up_goes_too(
    first: Callable[[Any, int], None], other: Callable[[Any, int], None]
) -> None:
    """Each of the two happens before every operation of the other one."""
    grid = filled(1)
    for at in itertools.count(1):
        version = 5 + at
        begin(grid.store, NAME, version)
        between = Interrupted(grid.store, at, partial(other, grid.store, version))
        first(between, version)
        if between.left > 0:
            break
        assert grid.store.keys(data_folder(NAME, version)) == []
    assert at > 2
    abandon(grid.store, NAME, version)
    assert found(grid) == []


def test_numbers_are_given_out_once() -> None:
    """Who began a cut that was given up may still put its objects."""
    grid = filled(1)
    for version in (6, 7):
        assert load_if_there(grid.store, NAME)[1] + 1 == version
        begin(grid.store, NAME, version)
        carry_out(grid.store, plan_drop(grid.chain(), [version]))
    begin(grid.store, NAME, 8)
    abandon(grid.store, NAME, 8)
    assert grid.chain().highest == 8
    carry_out(grid.store, plan_drop(grid.chain(), [4, 5]))
    assert grid.chain().highest == 8
    assert sum(map(bool, map(mark_version, grid.chain().keys))) == 1
    assert found(grid) == []


def test_a_name_without_cuts_is_no_snapshot_and_goes_on_counting() -> None:
    grid = filled(1)
    begin(grid.store, NAME, 6)
    carry_out(grid.store, plan_drop(grid.chain(), [1, 2, 3, 4, 5, 6]))
    assert snapshot_names(grid.store) == []
    with pytest.raises(UndefinedObject):
        load(grid.store, NAME)
    assert load_if_there(grid.store, NAME) == (None, 6)


def test_a_snapshot_that_is_given_up_as_a_whole_leaves_nothing() -> None:
    grid = filled(1)
    carry_out(grid.store, plan_drop(grid.chain(), [1, 2, 3, 4, 5]))
    assert grid.store.keys("") == []


def test_a_cut_that_is_given_up_while_it_is_verified_is_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = filled(1)
    get, going = grid.store.get, plan_expire(grid.chain(), before=grid.cuts[4])

    def late(key: str) -> bytes:
        if not key.endswith((".manifest", ".record")):
            monkeypatch.setattr(grid.store, "get", get)
            carry_out(grid.store, going)
        return get(key)

    monkeypatch.setattr(grid.store, "get", late)
    assert verify(grid.store, NAME).findings == []
    assert sorted(grid.chain().manifests) == [4, 5]


# --- files of killed processes --------------------------------------------------------------------


def test_a_file_that_a_killed_process_has_left_is_told_and_goes(tmp_path: Path) -> None:
    grid = filled(1)
    store = DirectoryStore(SystemDisk(), tmp_path, writer="a")
    for key in grid.chain().keys:
        store.put(key, grid.store.get(key))
    left = tmp_path / NAME / ".writing-b-cut-0000000006.manifest"
    left.write_bytes(b"half")
    [seen] = unfinished_files(store, f"{NAME}/")
    assert (seen.path, seen.size) == (f"{NAME}/{left.name}", 4)
    [finding] = verify(store, NAME, Level.OBJECTS, now=seen.modified).findings
    assert (finding.kind, finding.place) == (LEFT_OVER, seen.path)
    begin(store, NAME, 6, now=seen.modified)
    assert verify(store, NAME, Level.OBJECTS, now=seen.modified).ok, "it may be the cut's own"
    abandon(store, NAME, 6)
    assert remove_old_files(store, NAME, now=seen.modified) == 0
    assert remove_old_files(store, NAME, now=seen.modified + LEFT_AFTER + 1) == 1
    assert not left.exists()
    assert verify(store, NAME, Level.OBJECTS, now=seen.modified).ok


def test_what_a_cut_has_left_in_the_middle_goes_with_it(tmp_path: Path) -> None:
    store = DirectoryStore(SystemDisk(), tmp_path)
    begin(store, NAME, 1)
    folder = tmp_path / data_folder(NAME, 1)
    folder.mkdir()
    (folder / ".writing-1-0000.arrow").write_bytes(b"half")
    abandon(store, NAME, 1)
    assert not folder.exists()


def test_two_processes_that_put_one_object_do_not_write_to_one_file(tmp_path: Path) -> None:
    one, other = (DirectoryStore(SystemDisk(), tmp_path, writer=name) for name in "ab")
    appender = one._appender(tmp_path / "s" / (one._temporary + "x.txt"))
    appender.append(b"ha")
    other.put("s/x.txt", b"whole")
    appender.append(b"lf")
    appender.close()
    assert other.get("s/x.txt") == b"whole"
