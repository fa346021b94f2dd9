"""Partitions of which no member has a copy: whose copies may come back, and how often."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from remuda.cluster.assignment import first_view
from remuda.cluster.next_view import Placement, next_view
from remuda.datatypes.view import MemberInfo, View
from remuda.rpc import codec


def info(number: int, uuid: str = "") -> MemberInfo:
    return MemberInfo(number, uuid or f"u{number}", "h", 1, 2, 3)


PARTITION = 0
FIVE = replace(first_view(tuple(info(n) for n in range(1, 6)), backups=1), replicas=((4, 5),))
SPLIT = next_view(FIVE, {4, 5}, ())


def chosen(view: View, donor: int) -> View:
    place = Placement(PARTITION, (), (), view.generation(PARTITION), donor)
    assert place.fits(view)
    return next_view(view, (), (), (place,))


def returned(view: View, donor: int, receiver: int) -> Placement:
    return Placement(PARTITION, (), (receiver,), view.generation(PARTITION), donor)


def test_a_split_makes_partitions_unreachable_and_a_copy_comes_back() -> None:
    assert SPLIT.unreachable[PARTITION].holders == FIVE.replicas[PARTITION]
    assert {member.number for member in SPLIT.former} == {4, 5} == SPLIT.awaited
    view = chosen(SPLIT, 5)
    assert view.unreachable[PARTITION].donor == 5
    back = next_view(view, (), (), (returned(view, 5, 2),))
    assert back.replicas[PARTITION] == (2,)
    assert PARTITION not in back.unreachable
    assert back.generation(PARTITION) == 1
    assert PARTITION not in back.emptied_since(0)


def test_nothing_comes_back_from_whom_the_view_has_not_chosen() -> None:
    assert not returned(SPLIT, 4, 2).fits(SPLIT)
    view = chosen(SPLIT, 5)
    assert not returned(view, 4, 2).fits(view)
    # Another one may be chosen until a copy is there.
    assert returned(chosen(view, 4), 4, 2).fits(chosen(view, 4))


def test_a_copy_comes_back_once() -> None:
    view = chosen(SPLIT, 5)
    place = returned(view, 5, 2)
    back = next_view(view, (), (), (place,))
    assert not place.fits(back)
    again = next_view(back, {2}, ())  # and lost with the member that got it
    assert again.unreachable[PARTITION].holders == (2,)
    assert not place.fits(again)
    assert not replace(place, generation=1).fits(again)
    assert not Placement(PARTITION, (), (), 1, 5).fits(again)


def test_after_the_loss_was_accepted_no_copy_comes_back() -> None:
    view = chosen(SPLIT, 5)
    place = returned(view, 5, 2)
    accepted = next_view(view, (), (), (Placement(PARTITION, (), (1,)),))
    assert accepted.emptied_since(view.number) == {PARTITION}
    assert accepted.generation(PARTITION) == 1
    assert not place.fits(accepted)
    assert not place.fits(next_view(accepted, {1}, ()))
    late = Placement(PARTITION, (), (3,))  # accepted, of the time before
    assert not late.fits(next_view(accepted, {1}, ()))


def test_a_member_has_left_the_row_before() -> None:
    """Member 5 is dropped first; member 4 serves alone for a while."""
    alone = next_view(FIVE, {5}, ())
    assert alone.replicas[PARTITION] == (4,)
    split = next_view(alone, {4}, ())
    assert split.unreachable[PARTITION].holders == (4,)
    assert not Placement(PARTITION, (), (), 0, 5).fits(split)


def test_a_copy_is_not_given_to_whom_the_same_view_drops() -> None:
    view = chosen(SPLIT, 5)
    assert next_view(view, {2}, (), (returned(view, 5, 2),)).replicas[PARTITION] == ()


def test_views_are_the_same_after_a_journey() -> None:
    view = chosen(SPLIT, 5)
    for each in (view, next_view(view, (), (), (returned(view, 5, 2),))):
        assert codec.decode_view(codec.encode_view(each)) == each


class History:
    """What each process has of one partition: the writes that were acknowledged, and those that an
    administrator has given up. A view is served by the primary that it names, or by nobody."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.view = FIVE
        self.copies: dict[int, set[int]] = {n: set() for n in FIVE.replicas[PARTITION]}
        self.acknowledged: set[int] = set()
        self.late: list[Placement] = []
        """Wishes that are under way, and may arrive at any time."""

    def step(self, write: int) -> None:
        chance, view = self.random, self.view
        row = view.replicas[PARTITION]
        if row and chance.random() < 0.5:
            for holder in row:
                self.copies[holder].add(write)
            self.acknowledged.add(write)
        generation = view.generation(PARTITION)
        donors = [n for n in self.copies if n not in view.by_number]
        receiver = chance.choice(sorted(view.by_number))
        kind = chance.random()
        if not row and donors and kind < 0.6:
            missing = view.unreachable[PARTITION]
            donor = chance.choice((chance.choice(donors), missing.donor or missing.holders[0]))
            after = (receiver,) if missing.donor or chance.random() < 0.3 else ()
            self.late.append(Placement(PARTITION, (), after, generation, donor))
        elif not row and kind < 0.63:
            self.late.append(Placement(PARTITION, (), (receiver,), generation))
        elif row and receiver not in row and kind < 0.3:
            self.copies[receiver] = set(self.copies[row[0]])  # while writers are held
            self.late = [place for place in self.late if place.before != row]
            self.go_on((), Placement(PARTITION, row, (*row, receiver)))
            return
        lost = {n for n in view.by_number if chance.random() < 0.06}
        if chance.random() < 0.1:
            lost |= set(row)
        if len(lost) * 2 >= len(view.members):
            lost = set()
        places = [p for p in self.late if chance.random() < 0.4]
        self.go_on(lost, *places[:1])

    def go_on(self, lost: set[int] | tuple[()], *places: Placement) -> None:
        before = self.view
        joining = (info(0, f"j{before.number}"),) if len(before.members) < 5 else ()
        self.view = next_view(before, lost, joining, places)
        for place in places:
            if self.view.generation(PARTITION) == before.generation(PARTITION):
                continue
            (receiver,) = place.after
            if place.donor:
                self.copies[receiver] = set(self.copies[place.donor])
            else:
                self.copies[receiver] = set()
                self.acknowledged.clear()

    def check(self) -> None:
        row = self.view.replicas[PARTITION]
        for holder in row or self.view.unreachable[PARTITION].holders:
            assert self.copies.get(holder) == self.acknowledged


def run(seed: int) -> int:
    history = History(seed)
    returns = 0
    for write in range(60):
        before = history.view
        history.step(write)
        returns += history.view.generation(PARTITION) > before.generation(
            PARTITION
        ) and PARTITION not in history.view.emptied_since(before.number)
        history.check()
    return returns


def test_acknowledged_writes_are_on_every_copy_that_counts() -> None:
    assert sum(run(seed) for seed in range(150)) > 40


def test_a_donor_from_a_row_that_it_had_left_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Placement.fits

    def fits(self: Placement, view: View) -> bool:
        chooses = not self.before and self.donor and not self.after
        return bool(chooses and not view.replicas[self.partition]) or original(self, view)

    monkeypatch.setattr(Placement, "fits", fits)
    broken()


def test_a_copy_that_is_given_back_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: a wish of any time counts while the partition has no copy."""
    original = Placement.fits

    def fits(self: Placement, view: View) -> bool:
        returns = not self.before and self.donor and self.after
        there = view.by_number.keys() >= set(self.after)
        if returns and there and not view.replicas[self.partition]:
            return view.generation(self.partition) > self.generation or original(self, view)
        return original(self, view)

    monkeypatch.setattr(Placement, "fits", fits)
    broken()


def test_a_copy_that_comes_back_after_the_loss_was_accepted_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutation: to accept the loss does not make it void."""
    original = Placement.fits

    def fits(self: Placement, view: View) -> bool:
        returns = not self.before and self.donor and self.after
        if returns and self.partition in view.emptied_since(0):
            return view.by_number.keys() >= set(self.after)
        return original(self, view)

    monkeypatch.setattr(Placement, "fits", fits)
    broken()


def broken() -> None:
    with pytest.raises(AssertionError):
        for seed in range(150):
            run(seed)
