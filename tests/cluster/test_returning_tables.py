"""Who keeps what while a member is away that is expected back: pure, over random clusters."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from remuda.cluster.movement import NOBODY, next_move, still_needed, table_to_reach
from remuda.cluster.next_view import next_view
from remuda.cluster.replicas import first_table
from remuda.datatypes.view import MemberInfo, View

UNTIL = 1000


def member(number: int, former: int = 0) -> MemberInfo:
    return MemberInfo(number, f"process {number}-{former}", "h", 1, 2, 3, former=former)


def cluster(members: int, backups: int) -> View:
    numbers = range(1, members + 1)
    table = first_table(numbers, backups + 1)
    return View(1, tuple(map(member, numbers)), table, members, backups)


def settled(
    view: View,
    leaving: frozenset[int] = NOBODY,
    returning: frozenset[int] = NOBODY,
    awaited: frozenset[int] = NOBODY,
) -> tuple[View, list[tuple[int, int]]]:
    """Moves until there is none, and what was copied: (partition, receiver)."""
    copied = []
    for _ in range(400):
        moves = [
            move
            for number in view.by_number
            if (
                move := next_move(
                    view, number, view.backups + 1, 64, leaving, NOBODY, returning, awaited
                )
            )
        ]
        if not moves:
            return view, copied
        for move in moves:
            places = [place for place in move.placements if place.fits(view)]
            if move.receiver is not None:
                copied += [(place.partition, move.receiver) for place in places]
            view = next_view(view, (), (), places)
    raise AssertionError("the table is not reached")


def left(view: View, number: int) -> View:
    """In order, to return: nothing is copied."""
    both = frozenset({number})
    ready, copied = settled(view, both, both)
    assert not copied
    assert not still_needed(ready, number, both, both)
    return next_view(ready, both, (), (), {number: UNTIL})


@pytest.mark.parametrize("seed", range(20))
def test_only_the_member_that_returns_is_given_copies(seed: int) -> None:
    chance = random.Random(seed)
    view = cluster(chance.randint(2, 6), chance.randint(1, 2))
    for _ in range(4):
        number = chance.choice(sorted(view.by_number))
        kept = {p for p, row in enumerate(view.replicas) if number in row}
        view = left(view, number)
        if len(view.members) == 1 and view.backups == 1:
            assert all(len(row) == 1 for row in view.replicas)
        (away,) = view.away
        assert set(away.partitions) == kept
        same, copied = settled(view, awaited=frozenset({number}))
        assert (same, copied) == (view, [])
        view = next_view(view, (), (member(0, former=number),))
        number = view.last_number
        assert view.away == (replace(away, member=view.by_number[number]),)
        view, copied = settled(view)
        assert {receiver for _, receiver in copied} <= {number}
        assert sorted(p for p, _ in copied) == sorted(kept)
        assert not view.away
        assert view.replicas == table_to_reach(view, tuple(view.by_number), view.backups + 1)


def test_what_was_kept_by_another_member_that_crashes_is_made_anew() -> None:
    view = left(cluster(5, 2), 3)
    view = next_view(view, {5}, ())
    awaited = frozenset({3})
    view, copied = settled(view, awaited=awaited)
    owed = set(view.away[0].partitions)
    assert copied
    for partition, row in enumerate(view.replicas):
        assert len(row) == (2 if partition in owed else 3)


def test_one_that_is_not_awaited_any_more_is_replaced() -> None:
    view, copied = settled(left(cluster(4, 1), 2))
    assert copied
    assert all(len(row) == 2 for row in view.replicas)
    late = next_view(view, (), (member(0, former=2),))
    balanced, _ = settled(late)
    assert balanced.replicas == table_to_reach(balanced, tuple(balanced.by_number), 2)


def test_a_member_that_crashes_after_its_return_is_not_awaited() -> None:
    view = next_view(left(cluster(3, 1), 3), (), (member(0, former=3),))
    assert view.away
    assert not next_view(view, {4}, ()).away


def test_one_that_leaves_again_before_it_has_everything_is_owed_all_of_it() -> None:
    view = left(cluster(3, 1), 3)
    owed = set(view.away[0].partitions)
    view = next_view(view, (), (member(0, former=3),))
    move = next_move(view, 1, 2, 5)
    assert move is not None
    view = left(next_view(view, (), (), move.placements), 4)
    (away,) = view.away
    assert (away.member.number, set(away.partitions)) == (4, owed)


def test_a_partition_without_a_backup_elsewhere_is_copied_before_a_leave() -> None:
    view = cluster(3, 0)
    both = frozenset({2})
    ready, copied = settled(view, both, both)
    assert {p for p, _ in copied} == set(view.partitions_of(2))
    assert not next_view(ready, both, (), (), {2: UNTIL}).away


def test_two_that_leave_at_once_leave_a_copy_of_everything() -> None:
    both = frozenset({2, 3})
    ready, copied = settled(cluster(4, 1), both, both)
    for number in both:
        assert not still_needed(ready, number, both, both)
    view = next_view(ready, both, (), (), {2: UNTIL, 3: UNTIL})
    assert all(row and not both & set(row) for row in view.replicas)
    only_these = sum(set(row) == both for row in cluster(4, 1).replicas)
    assert len(copied) == only_these
