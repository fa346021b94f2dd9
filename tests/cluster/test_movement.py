"""Movement of copies: from any table, moves lead to the balanced one and no copy is ever missed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from seeds import seeds

from remuda.cluster.movement import Move, next_move, progress
from remuda.cluster.next_view import next_view
from remuda.cluster.places import groups_of
from remuda.cluster.replicas import first_table, without
from remuda.datatypes.view import MemberInfo, View


def member(number: int) -> MemberInfo:
    return MemberInfo(number, f"u{number}", "h", 1, 2, 3)


def view_of(count: int, copies: int) -> View:
    members = tuple(member(number) for number in range(1, count + 1))
    return View(1, members, first_table(range(1, count + 1), copies), count)


def settle(view: View, copies: int, leaving: frozenset[int] = frozenset()) -> tuple[View, int]:
    """All primaries move until nothing is left to do."""
    copied = 0
    for _ in range(500):
        moved = False
        for number in view.by_number:
            move = next_move(view, number, copies, 16, leaving)
            if move is None:
                continue
            check(view, move, copies)
            copied += len(move.placements) * (move.receiver is not None)
            view = next_view(view, (), (), move.placements)
            moved = True
        if not moved:
            return view, copied
    raise AssertionError("it never ends")


def check(view: View, move: Move, copies: int) -> None:
    for place in move.placements:
        assert place.fits(view)
        have = {*place.before, move.receiver}
        assert set(place.after) <= have, "a member is named that has no copy"
        enough = min(copies, len(have - {None}))
        assert len(place.after) >= min(enough, len(place.before)), "a copy is given up too early"


@pytest.mark.parametrize("seed", seeds(3, 8))
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_losses_and_joins_end_in_a_balanced_table(copies: int, seed: int) -> None:
    chance = random.Random(f"{copies}-{seed}")
    view = view_of(chance.randint(2, 5), copies)
    for _ in range(4):
        lost = chance.sample(sorted(view.by_number), chance.choice([0, 1]))
        if len(view.by_number) - len(lost) < 1:
            continue
        joining = [member(0) for _ in range(chance.choice([0, 1, 2]))]
        joining = [replace(m, uuid=f"{seed}-{chance.random()}") for m in joining]
        if copies == 1:
            lost = []
        view = next_view(view, lost, joining)
        view, _ = settle(view, copies)
        members = len(view.by_number)
        assert all(len(row) == min(copies, members) for row in view.replicas)
        primaries = [len(view.partitions_of(number)) for number in view.by_number]
        assert max(primaries) - min(primaries) <= 1
        assert progress(view, copies) == {"partitions_to_place": 0, "copies_missing": 0}


def test_a_joiner_gets_its_share_and_nothing_else_is_copied() -> None:
    view = next_view(view_of(3, 2), (), [member(0)])
    view, copied = settle(view, 2)
    assert copied in (135, 136)
    assert sorted(sum(n in row for row in view.replicas) for n in view.by_number) == [
        135, 135, 136, 136,
    ]  # fmt: skip


def test_a_leaving_member_ends_with_nothing() -> None:
    view, _ = settle(view_of(4, 2), 2, frozenset({3}))
    assert all(3 not in row and len(row) == 2 for row in view.replicas)


def test_too_few_copies_come_first() -> None:
    view = view_of(4, 2)
    lost = replace(view, replicas=without(view.replicas, [4]), members=view.members[:3])
    moves = [move for number in (1, 2, 3) if (move := next_move(lost, number, 2, 8))]
    assert moves
    for move in moves:
        assert move.receiver is not None
        assert all(len(place.before) == 1 for place in move.placements)


def test_racks_are_told_apart_when_members_come_and_go() -> None:
    for seed in range(2):
        chance = random.Random(f"racks-{seed}")
        copies = 2 + seed
        view = view_of(3, copies)
        for _ in range(3):
            lost = chance.sample(sorted(view.by_number), chance.choice([0, 1]))
            joining = [
                replace(member(0), uuid=f"{seed}-{chance.random()}", labels=(("rack", rack),))
                for rack in chance.sample("aabbc", 2)
            ]
            view, _ = settle(next_view(view, lost, joining), copies)
            groups = groups_of(view.members)
            assert progress(view, copies) == {"partitions_to_place": 0, "copies_missing": 0}
            racks = len({groups[number][1] for number in view.by_number})
            for row in view.replicas:
                assert len({groups[number][1] for number in row}) == min(racks, len(row), copies)


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("members", [2, 3, 5])
def test_primaries_do_not_go_back_and_forth_when_a_member_joins(members: int, copies: int) -> None:
    """Each change of a primary stops its partition for a moment. The moves of different primaries
    come in any order, a few partitions at a time."""
    chance = random.Random(f"{members}-{copies}")
    view = next_view(view_of(members, copies), (), [member(0)])
    primaries = [[row[0]] for row in view.replicas]
    copied, moved = 0, True
    while moved:
        moved = False
        for number in chance.sample(sorted(view.by_number), members + 1):
            move = next_move(view, number, copies, chance.choice((1, 8, 16)))
            if move is None:
                continue
            moved = True
            check(view, move, copies)
            copied += len(move.placements) * (move.receiver is not None)
            view = next_view(view, (), (), move.placements)
            for owners, row in zip(primaries, view.replicas, strict=True):
                if owners[-1] != row[0]:
                    owners.append(row[0])
    assert progress(view, copies) == {"partitions_to_place": 0, "copies_missing": 0}
    joined = view.last_number
    assert copied == sum(joined in row for row in view.replicas)
    share = len(view.partitions_of(joined))
    assert all(len(set(owners)) == len(owners) <= 3 for owners in primaries)
    assert sum(len(owners) - 1 for owners in primaries) <= 1.5 * share


class Moving:
    """A cluster whose primaries move copies, a few at a time and in any order, while members join,
    leave and are lost."""

    def __init__(self, seed: str, members: int, copies: int) -> None:
        self.chance = random.Random(seed)
        self.copies = copies
        self.view = view_of(members, copies)
        self.leaving: frozenset[int] = frozenset()
        self.primaries = [[row[0]] for row in self.view.replicas]

    def changed(self, view: View) -> None:
        self.view = view
        for owners, row in zip(self.primaries, view.replicas, strict=True):
            if owners[-1] != row[0]:
                owners.append(row[0])

    def happen(self, event: str) -> None:
        staying = sorted(self.view.by_number.keys() - self.leaving)
        if event == "join":
            joining = replace(member(0), uuid=f"{self.chance.random()}")
            self.changed(next_view(self.view, (), [joining]))
        elif len(staying) > self.copies:
            gone = self.chance.choice(staying)
            if event == "leave":
                self.leaving |= {gone}
            else:
                self.changed(next_view(self.view, [gone], ()))

    def move(self) -> bool:
        """Whether a member had anything to move."""
        moved = False
        for number in self.chance.sample(sorted(self.view.by_number), len(self.view.members)):
            together = self.chance.choice((1, 8, 16))
            move = next_move(self.view, number, self.copies, together, self.leaving)
            if move is not None:
                check(self.view, move, self.copies)
                self.changed(next_view(self.view, (), (), move.placements))
                moved = True
        for number in sorted(self.leaving):
            if not any(number in row for row in self.view.replicas):
                self.leaving -= {number}
                self.view = next_view(self.view, [number], (), left={number: 0})
        return moved

    def run(self, events: Sequence[str]) -> None:
        for event in events:
            self.happen(event)
            for _ in range(self.chance.randint(0, 12)):
                self.move()
        for _ in range(1000):
            if not self.move() and not self.leaving:
                break
        else:
            raise AssertionError("it never ends")
        numbers = self.view.by_number
        assert progress(self.view, self.copies) == {"partitions_to_place": 0, "copies_missing": 0}
        assert all(len(row) == min(self.copies, len(numbers)) for row in self.view.replicas)
        for held in (
            [len(self.view.partitions_of(number)) for number in numbers],
            [sum(number in row for row in self.view.replicas) for number in numbers],
        ):
            assert max(held) - min(held) <= 1


@pytest.mark.parametrize(("members", "copies"), [(2, 2), (3, 2), (3, 3), (5, 2)])
def test_joins_that_overlap_change_primaries_as_often_as_needed(members: int, copies: int) -> None:
    """As with one that joins, no primary changes more than twice, and none goes back."""
    moving = Moving(f"{members}-{copies}", members, copies)
    moving.run(["join", "join"])
    joined = [number for number in moving.view.by_number if number > members]
    needed = sum(len(moving.view.partitions_of(number)) for number in joined)
    assert all(len(set(owners)) == len(owners) <= 3 for owners in moving.primaries)
    assert sum(len(owners) - 1 for owners in moving.primaries) <= needed * 1.1


def changed_at_random(seed: int) -> None:
    chance = random.Random(seed)
    members, copies = chance.randint(2, 6), chance.randint(1, 4)
    kinds = ("join", "join", "leave", "lose" if copies > 1 else "leave")
    events = [chance.choice(kinds) for _ in range(chance.randint(2, 5))]
    moving = Moving(f"{seed}", members, copies)
    moving.run(events)
    assert max(len(owners) - 1 for owners in moving.primaries) <= len(events) + 1


def test_any_changes_that_overlap_end_in_an_even_table() -> None:
    for seed in (1, 18, 22, 29, 35):
        changed_at_random(seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_changes_that_overlap_end_in_even_tables() -> None:
    for seed in range(300):
        changed_at_random(seed)
