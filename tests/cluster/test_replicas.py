"""Copies of partitions lie apart, evenly, and move as little as they can."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.cluster.replicas import Replicas, balanced, first_table, moves, without
from remuda.limits import PARTITIONS

MEMBERS = st.sets(st.integers(1, 40), min_size=1, max_size=12).map(sorted)


def spread(table: Replicas, level: int, members: list[int]) -> int:
    counts = Counter(row[level] for row in table)
    return max(counts.values()) - min(counts.get(member, 0) for member in members)


def check(table: Replicas, members: list[int], copies: int) -> None:
    levels = min(copies, len(members))
    assert len(table) == PARTITIONS
    for row in table:
        assert len(row) == len(set(row)) == levels
        assert set(row) <= set(members)
    assert spread(table, 0, members) <= 1


@settings(max_examples=60, deadline=None)
@given(MEMBERS, st.integers(1, 4))
def test_a_new_table_is_even(members: list[int], copies: int) -> None:
    table = first_table(members, copies)
    check(table, members, copies)
    assert table == first_table(list(reversed(members)), copies), "all members find the same"
    assert balanced(table, members, copies) == table, "nothing moves without a reason"


@settings(max_examples=60, deadline=None)
@given(MEMBERS, st.integers(1, 3), st.data())
def test_after_losses_backups_take_over_in_place(
    members: list[int], copies: int, data: st.DataObject
) -> None:
    table = first_table(members, copies)
    lost = data.draw(st.sets(st.sampled_from(members), max_size=len(members) - 1))
    left = without(table, lost)
    assert moves(table, left) == []
    for before, after in zip(table, left, strict=True):
        assert after == tuple(member for member in before if member not in lost)
        assert after or len(lost) >= min(copies, len(members))
    live = [member for member in members if member not in lost]
    check(balanced(left, live, copies), live, copies)


@settings(max_examples=40, deadline=None)
@given(MEMBERS, st.integers(1, 3))
def test_a_joiner_takes_its_share_and_no_more(members: list[int], copies: int) -> None:
    table = first_table(members, copies)
    joined = sorted([*members, 99])
    after = balanced(table, joined, copies)
    check(after, joined, copies)
    moved = moves(table, after)
    levels = min(copies, len(joined))
    assert len(moved) <= levels * (PARTITIONS // len(joined) + 1) + levels * PARTITIONS // 4
    primaries = sum(b[0] != a[0] for b, a in zip(table, after, strict=True))
    assert primaries == sum(row[0] == 99 for row in after), "primaries only move to the joiner"


def test_copies_lie_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    table = first_table([1, 2, 3, 4, 5], 3, racks)
    for row in table:
        assert len({racks[member] for member in row}) == 3
    left = balanced(without(table, {5}), [1, 2, 3, 4], 3, racks)
    for row in left:
        assert len(set(row)) == 3, "two racks for three copies: two share one"
        assert racks[row[0]] != racks[row[1]]


def test_one_member_keeps_everything() -> None:
    assert first_table([7], 3) == ((7,),) * PARTITIONS
    assert without(first_table([7], 3), {7}) == ((),) * PARTITIONS
