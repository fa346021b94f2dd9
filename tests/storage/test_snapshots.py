"""Bases and increments: every cut and every moment between is restored as it was; verify finds each
changed byte; what is interrupted is not there; nothing that a kept cut needs is given up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sim_disk import Appending, PowerCut, SimulatedDisk
from snapshot_grid import NAME, Grid, filled

from remuda.errors import (
    DataCorrupted,
    DependentObjects,
    DuplicateObject,
    InputError,
    ResourceError,
    UndefinedObject,
)
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import decode_manifest, encode_manifest
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.log.replay import JobCommit, Step
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.chain import load
from remuda.storage.snapshot.cut_records import CutRecord, encode_record, record_key
from remuda.storage.snapshot.expiring import (
    LEFT_AFTER,
    carry_out,
    left_behind,
    plan_drop,
    plan_expire,
)
from remuda.storage.snapshot.object_store import DirectoryStore
from remuda.storage.snapshot.restoring import fetch_stored, plan
from remuda.storage.snapshot.verifying import Level, Verifier, VerifyReport, verify
from remuda.storage.snapshot.writing import abandon, begin, finish, manifest_key

SEEDS = 4


def counter_key(secret: bytes = b"k" * 32) -> ObjectKey:
    numbers = iter(range(10**9))
    return ObjectKey(secret, lambda: next(numbers).to_bytes(12))


def test_a_chain_of_format_1_is_restored_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(writing, "encode_manifest", partial(encode_manifest, number=1))
        grid = filled(2, steps=15)
    assert grid.store.get(manifest_key(NAME, 5)).startswith(b"remuda-snapshot 1 ")
    grid.work(15)
    assert grid.increment() == 6
    assert grid.store.get(manifest_key(NAME, 6)).startswith(b"remuda-snapshot 2 ")
    for version, timestamp in grid.cuts.items():
        assert grid.restored(version=version) == grid.state(timestamp)
    report = verify(grid.store, NAME)
    assert report.ok, report.findings


@pytest.mark.parametrize("encrypted", [False, True])
def test_every_cut_and_moment_is_restored(encrypted: bool) -> None:
    for seed in range(1 if encrypted else SEEDS):
        joined = seed % 2 == 1
        grid = filled(seed, key=counter_key() if encrypted else None, steps=15, joined=joined)
        assert len(grid.chain().ranges()) == 1 + (not joined)
        for version, timestamp in grid.cuts.items():
            assert grid.restored(version=version) == grid.state(timestamp)
        for reach in grid.chain().ranges():
            for moment in {*range(reach.start, reach.stop, 11), reach.stop}:
                assert grid.restored(moment=moment) == grid.state(moment)
        assert grid.restored() == grid.state(grid.cuts[5])
        report = verify(grid.store, NAME, key=grid.key)
        assert report.ok, report.findings
        assert report.commits > 5
        assert "nothing found" in str(report)


def test_what_is_described() -> None:
    grid = filled(1)
    chain = grid.chain()
    lines = [str(state).partition(",")[0] for state in chain.states()]
    assert lines == [
        f"cut 1 at {grid.cuts[1]}: base",
        f"cut 2 at {grid.cuts[2]}: increment after 1",
        f"cut 3 at {grid.cuts[3]}: increment after 2",
        f"cut 4 at {grid.cuts[4]}: base",
        f"cut 5 at {grid.cuts[5]}: increment after 4",
    ]
    assert [str(each) for each in chain.ranges()] == [
        f"{grid.cuts[1]} to {grid.cuts[3]}",
        f"{grid.cuts[4]} to {grid.cuts[5]}",
    ]


def test_a_base_that_is_an_increment_leaves_no_gap() -> None:
    grid = filled(1, joined=True)
    states = [str(state).partition(",")[0] for state in grid.chain().states()]
    assert states[3] == f"cut 4 at {grid.cuts[4]}: base after 3"
    assert [str(each) for each in grid.chain().ranges()] == [f"{grid.cuts[1]} to {grid.cuts[5]}"]
    assert [m.version for m in plan(grid.chain(), version=5).path] == [4, 5]
    moment = grid.cuts[4] - 1
    assert [m.version for m in plan(grid.chain(), moment=moment).path] == [1, 2, 3, 4]
    assert grid.restored(moment=moment) == grid.state(moment)
    carry_out(grid.store, plan_expire(grid.chain(), before=grid.cuts[4]))
    assert [str(each) for each in grid.chain().ranges()] == [f"{grid.cuts[4]} to {grid.cuts[5]}"]
    assert grid.restored(version=4) == grid.state(grid.cuts[4])
    assert verify(grid.store, NAME).ok


def test_moments_before_a_partition_came_are_a_gap() -> None:
    grid = filled(1)
    moved = (grid.cuts[2] + grid.cuts[3]) // 2
    rewritten(grid, 3, lambda m: replace(m, logs=(replace(m.logs[0], moved=moved), *m.logs[1:])))
    assert [str(each) for each in grid.chain().ranges()] == [
        f"{grid.cuts[1]} to {grid.cuts[2]}",
        f"{moved} to {grid.cuts[3]}",
        f"{grid.cuts[4]} to {grid.cuts[5]}",
    ]
    assert grid.restored(moment=moved) == grid.state(moved)
    with pytest.raises(InputError, match="does not reach moment"):
        plan(grid.chain(), moment=moved - 1)


def test_what_cannot_be_restored_is_said() -> None:
    grid = filled(1)
    with pytest.raises(InputError, match="does not reach moment 0") as refused:
        plan(grid.chain(), moment=0)
    assert str(grid.cuts[1]) in refused.value.detail
    with pytest.raises(InputError, match="does not reach"):
        plan(grid.chain(), moment=grid.cuts[5] + 1)
    if grid.cuts[4] - grid.cuts[3] > 1:
        with pytest.raises(InputError, match="does not reach"):
            plan(grid.chain(), moment=grid.cuts[3] + 1)
    with pytest.raises(InputError, match="no cut 9"):
        plan(grid.chain(), version=9)
    with pytest.raises(UndefinedObject, match="no snapshot weekly"):
        load(grid.store, "weekly")
    for name in ("../nightly", "Nightly", "", "a/b"):
        with pytest.raises(InputError, match="is no name of a snapshot"):
            load(grid.store, name)
        with pytest.raises(InputError, match="is no name of a snapshot"):
            begin(grid.store, name, 7)


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encrypted", [False, True])
def test_every_byte_that_is_changed_is_found(encrypted: bool) -> None:
    """In every object, by the first level already."""
    grid = Grid(3, key=counter_key() if encrypted else None)
    grid.work(12)
    grid.base()
    grid.work(12)
    grid.increment()
    chain = grid.chain()
    objects = {each.key: each for m in chain.manifests.values() for each in m.objects}
    for key in chain.keys:
        path, size = Path("/store") / key, len(grid.store.get(key))
        for offset in range(size):
            grid.disk.flip(path, offset, 0x20)
            with pytest.raises(DataCorrupted):
                if key in objects:
                    fetch_stored(grid.store, objects[key])
                else:
                    decode_manifest(grid.store.get(key))
            if offset in {0, size // 2, size - 1}:
                report = verify(grid.store, NAME, Level.OBJECTS)
                assert any(finding.place == key for finding in report.findings)
            grid.disk.flip(path, offset, 0x20)
    assert verify(grid.store, NAME, Level.OBJECTS).ok


def test_a_missing_object_is_found_and_the_cut_is_not_restorable() -> None:
    grid = filled(2)
    for key in grid.chain().keys:
        kept = grid.store.get(key)
        grid.store.delete(key)
        report = verify(grid.store, NAME, Level.OBJECTS)
        assert not report.ok, key
        grid.store.put(key, kept)
    assert verify(grid.store, NAME).ok


def rewritten(grid: Grid, version: int, change) -> None:
    """As by somebody who can make manifests: the digests of all that follow are right."""
    chain = grid.chain()
    old = chain.manifests[version]
    data = encode_manifest(change(old))
    grid.store.delete(manifest_key(NAME, version))
    grid.store.delete(record_key(NAME, version))
    record = CutRecord(version, sha256(data), old.created)
    grid.store.put(record_key(NAME, version), encode_record(record))
    grid.store.put(manifest_key(NAME, version), data)


def test_the_second_level_reads_rows_and_records() -> None:
    grid = filled(2)
    rewritten(grid, 1, lambda m: replace(m, data=(replace(m.data[0], rows=99), *m.data[1:])))
    assert any("99" in str(f) for f in verify(grid.store, NAME, Level.RECORDS).findings)

    grid = filled(2)
    rewritten(grid, 1, lambda m: replace(m, data=(replace(m.data[0], partitions=()), *m.data[1:])))
    found = verify(grid.store, NAME, Level.RECORDS).findings
    assert any("other partitions" in str(f) for f in found)

    grid = filled(2)
    rewritten(grid, 1, lambda m: replace(m, timestamp=1))
    found = verify(grid.store, NAME, Level.RECORDS).findings
    assert any("rows of after 1" in str(f) for f in found)


def test_the_third_level_replays() -> None:
    grid = filled(2)
    rewritten(grid, 3, lambda m: replace(m, timestamp=m.timestamp + 1))
    assert any("another one" in str(f) for f in verify(grid.store, NAME).findings)
    assert verify(grid.store, NAME, Level.RECORDS).ok

    broken = 0
    for seed in range(5):
        grid = filled(seed)
        # A member's log without the partition of half a transaction: what an edited log looks like.
        rewritten(
            grid,
            3,
            lambda m: replace(m, logs=(replace(m.logs[0], partitions=(0,)), *m.logs[1:])),
        )
        rewritten(
            grid,
            3,
            lambda m: replace(
                m, logs=(m.logs[0], replace(m.logs[1], partitions=(1, 3, 4)), *m.logs[2:])
            ),
        )
        broken += any("lacks its part" in str(f) for f in verify(grid.store, NAME).findings)
    assert broken > 1


def test_the_third_level_knows_the_participants_of_a_job() -> None:
    manifest = filled(2).chain().manifests[2]

    def findings(*commits: tuple[int, int]) -> list[str]:
        report = VerifyReport(Level.REPLAY)
        steps: dict[int, list[Step]] = {1: [], 2: []}
        for member, at in commits:
            steps[member].append(JobCommit(1, "j", at, 1, False, (1, 2, 3), (), b""))
        Verifier(Grid(0).store, None, report, {})._check_jobs(manifest, steps)
        return [str(each) for each in report.findings]

    assert findings((1, 5), (2, 5)) == [], "member 3 has left"
    assert findings((1, 5)) == ["cut 2: job j lacks its rows on member 2"]
    assert findings((1, 5), (2, 6)) == ["cut 2: job j is committed at more than one timestamp"]


def test_a_parent_that_was_made_anew_is_not_the_parent() -> None:
    grid = filled(2)
    rewritten(grid, 1, lambda m: replace(m, catalog="another"))
    problems = [state.problem for state in grid.chain().states()]
    assert problems == ["", "it rests on another cut 1", "it rests on another cut 1", "", ""]
    assert not verify(grid.store, NAME, Level.OBJECTS).ok


def test_manifests_come_back() -> None:
    for manifest in filled(4).chain().manifests.values():
        assert decode_manifest(encode_manifest(manifest)) == manifest


# --- interruptions ------------------------------------------------------------------------------


def interrupted(points: range) -> int:
    """The power goes at operations of making a base and an increment: what was there before stays
    restorable, and another attempt works. How often it went."""
    cuts = 0
    for point in points:
        grid = Grid(5)
        grid.work(20)
        grid.base()
        grid.work(10)
        before = grid.state(grid.cuts[1])
        make = grid.increment if point % 2 else grid.base
        grid.disk.power_cut = point // 2
        try:
            make()
        except PowerCut:
            cuts += 1
        grid.disk.lose_power()
        chain = grid.chain()
        if 2 in chain.manifests:  # the manifest made it: then all of it did
            assert grid.restored(version=2) == grid.state(grid.cuts[2])
        assert grid.restored(version=1) == before
        assert verify(grid.store, NAME).ok
        for version in chain.pending():
            abandon(grid.store, NAME, version)
        assert grid.chain().pending() == []
        grid.work(5)
        version = grid.base()
        assert grid.restored(version=version) == grid.state(grid.cuts[version])
    return cuts


def test_what_is_interrupted_is_not_there() -> None:
    assert interrupted(range(70)) > 40


def broken_when_interrupted() -> bool:
    try:
        interrupted(range(120))
    except (AssertionError, DataCorrupted, InputError, ResourceError):
        return True
    return False


def test_a_manifest_before_its_objects_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    put = DirectoryStore.put

    def hasty(store: DirectoryStore, key: str, data: bytes) -> None:
        """Objects reach the disk when the manifest has."""
        held = hasty.held  # type: ignore[attr-defined]
        if key.endswith((".note", ".manifest")):
            put(store, key, data)
        else:
            held.append((key, data))
        if key.endswith(".manifest"):
            while held:
                put(store, *held.pop())

    hasty.held = []  # type: ignore[attr-defined]
    monkeypatch.setattr(DirectoryStore, "put", hasty)
    assert broken_when_interrupted()


def test_objects_that_are_not_synced_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Appending, "sync", lambda self: None)
    assert broken_when_interrupted()


def test_names_that_are_not_synced_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync_folder", lambda self, path: None)
    assert broken_when_interrupted()


def test_a_cut_is_made_once() -> None:
    grid = filled(1)
    with pytest.raises(DuplicateObject, match="has cut 5 already"):
        begin(grid.store, NAME, 5)
    begin(grid.store, NAME, 6)
    with pytest.raises(DuplicateObject):
        begin(grid.store, NAME, 6)
    grid.store.put(f"{NAME}/pending-mine.note", b"of somebody else")
    assert grid.chain().pending() == [6]


# --- expiring -----------------------------------------------------------------------------------


def test_what_is_kept_stays_restorable() -> None:
    for seed in range(1):
        for place in range(7):
            grid = filled(seed, steps=12, joined=place % 2 == 0)
            reached = grid.chain().ranges()
            before = grid.cuts.get(place, place * 1000) - seed
            going = plan_expire(grid.chain(), before=before)
            wanted = [v for v, at in grid.cuts.items() if at >= before]
            assert set(wanted) <= set(going.kept)
            carry_out(grid.store, going)
            assert sorted(grid.chain().manifests) == list(going.kept)
            assert going.kept, "something always stays"
            for version in going.kept:
                assert grid.restored(version=version) == grid.state(grid.cuts[version])
            for reach in reached:  # what was restorable is
                for moment in range(max(before, reach.start), reach.stop, 25):
                    assert grid.restored(moment=moment) == grid.state(moment)
            assert verify(grid.store, NAME).ok


def test_old_objects_go() -> None:
    grid = filled(1)
    before = len(grid.chain().keys)
    going = plan_expire(grid.chain(), before=grid.cuts[4])
    assert going.cuts == (1, 2, 3)
    assert str(going).startswith("3 cuts and ")
    carry_out(grid.store, going)
    left = grid.chain().keys
    assert len(left) < before
    named = {each.key for m in grid.chain().manifests.values() for each in m.objects}
    assert {key for key in left if not key.endswith((".manifest", ".record"))} == named


def test_dropping_what_others_rest_on_is_refused() -> None:
    grid = filled(1)
    for version in (1, 2):
        with pytest.raises(DependentObjects) as refused:
            plan_drop(grid.chain(), [version])
        assert "3" in refused.value.detail
    assert plan_drop(grid.chain(), [3]).cuts == (3,)
    assert plan_drop(grid.chain(), [1], force=True).cuts == (1, 2, 3)
    assert plan_drop(grid.chain(), [1, 2, 3]).cuts == (1, 2, 3)
    with pytest.raises(InputError, match="no cut 8"):
        plan_drop(grid.chain(), [8])
    carry_out(grid.store, plan_drop(grid.chain(), [3]))
    assert grid.restored(version=2) == grid.state(grid.cuts[2])
    assert verify(grid.store, NAME).ok


def test_objects_of_a_snapshot_that_is_being_made_stay() -> None:
    grid = filled(1)
    begin(grid.store, NAME, 6)
    grid.store.put(f"{NAME}/data-0000000006/1-0000.arrow", b"rows")
    going = plan_expire(grid.chain(), before=grid.cuts[4])
    assert not any("data-0000000006" in key for key in going.objects)
    assert abandon(grid.store, NAME, 6) == 1


def test_what_was_begun_and_left_can_be_given_up() -> None:
    grid = filled(1)
    begin(grid.store, NAME, 6, now=1_000)
    begin(grid.store, NAME, 7, now=2_000)
    for version in (6, 7):
        grid.store.put(f"{NAME}/data-000000000{version}/1-0000.arrow", b"rows")
    chain = grid.chain()
    assert left_behind(grid.store, chain, now=LEFT_AFTER) == frozenset()
    assert left_behind(grid.store, chain, now=LEFT_AFTER + 1_500) == {6}
    going = plan_expire(chain, before=0, unfinished=frozenset({6}))
    assert going.objects == (
        f"{NAME}/pending-0000000006.note",
        f"{NAME}/data-0000000006/1-0000.arrow",
    )
    carry_out(grid.store, going)
    assert grid.chain().pending() == [7]
    carry_out(grid.store, plan_drop(grid.chain(), [7]))
    assert grid.store.keys(f"{NAME}/data-0000000007/") == []
    assert verify(grid.store, NAME).ok
    assert not any(path.name.startswith("data-0000000007") for path in grid.disk.folders)


def test_a_cut_that_was_given_up_cannot_be_finished() -> None:
    grid = filled(1)
    manifest = grid.chain().manifests[5]
    begin(grid.store, NAME, 6)
    carry_out(grid.store, plan_drop(grid.chain(), [6]))
    with pytest.raises(ResourceError, match="was given up while it was made"):
        finish(grid.store, replace(manifest, version=6))


def test_a_damaged_manifest_stops_expiring() -> None:
    grid = filled(1)
    path = next(p for p in grid.disk.names_now if p.name == "cut-0000000002.manifest")
    grid.disk.flip(path, 100, 1)
    with pytest.raises(InputError, match="damaged"):
        plan_expire(grid.chain(), before=grid.cuts[4])
    with pytest.raises(InputError, match="damaged"):
        plan_drop(grid.chain(), [5])


# --- encryption ---------------------------------------------------------------------------------


def test_another_key_or_none_is_refused() -> None:
    grid = filled(1, key=counter_key())
    with pytest.raises(InputError, match="this is key"):
        verify(grid.store, NAME, key=counter_key(b"x" * 32))
    with pytest.raises(InputError, match="is encrypted"):
        verify(grid.store, NAME)
    assert verify(grid.store, NAME, Level.OBJECTS).ok, "the first level needs no key"
