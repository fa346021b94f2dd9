"""The view after another one."""

from __future__ import annotations

from dataclasses import replace

from remuda.cluster.assignment import first_view
from remuda.cluster.next_view import Placement, next_view
from remuda.datatypes.view import NOBODY, MemberInfo, Missing


def info(number: int, uuid: str = "") -> MemberInfo:
    return MemberInfo(number, uuid or f"u{number}", "h", 1, 2, 3)


THREE = first_view(tuple(info(n) for n in (1, 2, 3)), backups=1)


def test_backups_move_up_and_nothing_else_moves() -> None:
    after = next_view(THREE, {2}, ())
    assert after.number == 2
    assert set(after.by_number) == {1, 3}
    assert after.backups == 1
    assert not after.lost
    for before, row in zip(THREE.replicas, after.replicas, strict=True):
        assert row == tuple(member for member in before if member != 2)


def test_what_had_one_copy_is_unreachable() -> None:
    alone = first_view(tuple(info(n) for n in (1, 2)), backups=0)
    after = next_view(alone, {2}, ())
    assert tuple(after.unreachable) == after.absent == alone.partitions_of(2)
    assert not after.lost
    assert {after.owners[p] for p in after.absent} == {NOBODY}
    assert after.primaries == (1,)
    assert set(after.missing) == {Missing(p, 1, (2,)) for p in after.absent}
    assert after.former == (info(2),)
    assert after.awaited == {2}


def test_what_a_member_that_left_had_alone_is_lost() -> None:
    alone = first_view(tuple(info(n) for n in (1, 2)), backups=0)
    after = next_view(alone, {2}, (), left={2: 0})
    assert after.lost == after.absent == alone.partitions_of(2)
    assert not after.awaited


def test_numbers_are_never_given_twice() -> None:
    after = next_view(THREE, {3}, (info(0, "y"), info(0, "x")))
    assert [(m.number, m.uuid) for m in after.members][2:] == [(4, "x"), (5, "y")]
    assert next_view(after, {5}, (info(0, "z"),)).members[-1].number == 6
    assert not after.partitions_of(4)


def test_a_placement_that_was_overtaken_is_dropped() -> None:
    row = THREE.replicas[0]
    other = next(n for n in (1, 2, 3) if n not in row)
    place = Placement(0, row, (other, row[0]))
    assert place.fits(THREE)
    moved = next_view(THREE, (), (), (place,))
    assert moved.replicas[0] == (other, row[0])
    assert moved.replicas[1:] == THREE.replicas[1:]
    assert not place.fits(moved)
    again = next_view(moved, (), (), (place,))
    assert again.replicas == moved.replicas


def test_a_placement_on_somebody_who_is_lost_at_the_same_time() -> None:
    row = THREE.replicas[0]
    other = next(n for n in (1, 2, 3) if n not in row)
    after = next_view(THREE, {other}, (), (Placement(0, row, (other, row[0])),))
    assert after.replicas[0] == (row[0],)


def test_placements_that_no_view_takes() -> None:
    row = THREE.replicas[0]
    for place in (
        Placement(0, row, ()),
        Placement(0, row, (9,)),
        Placement(0, row, row),
        Placement(271, row, (1,)),
        Placement(-1, row, (1,)),
    ):
        assert not place.fits(THREE)
    gone = replace(THREE, replicas=((), *THREE.replicas[1:]))
    assert not Placement(0, row, (1,)).fits(gone)
