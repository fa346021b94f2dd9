"""Copies of partitions lie apart, evenly, and move as little as they can."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.cluster.places import groups_of
from remuda.cluster.replicas import Replicas, balanced, first_table, moves, without
from remuda.datatypes.view import MemberInfo
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
    racks = {1: ("a",), 2: ("a",), 3: ("b",), 4: ("b",), 5: ("c",)}
    table = first_table([1, 2, 3, 4, 5], 3, racks)
    for row in table:
        assert len({racks[member] for member in row}) == 3
    left = balanced(without(table, {5}), [1, 2, 3, 4], 3, racks)
    for row in left:
        assert len(set(row)) == 3, "two racks for three copies: two share one"
        assert racks[row[0]] != racks[row[1]]


def test_hosts_by_default_and_zones_before_racks() -> None:
    def info(number: int, host: str, **labels: str) -> MemberInfo:
        return MemberInfo(number, f"u{number}", host, 1, 2, 3, tuple(sorted(labels.items())))

    hosts = [info(1, "h1"), info(2, "h1"), info(3, "h2"), info(4, "h2")]
    for row in first_table([1, 2, 3, 4], 2, groups_of(hosts)):
        assert (row[0] <= 2) != (row[1] <= 2)
    zones = [
        info(1, "h1", zone="z1", rack="a"), info(2, "h2", zone="z1", rack="b"),
        info(3, "h3", zone="z2", rack="a"), info(4, "h4", zone="z2", rack="a"),
    ]  # fmt: skip
    for row in first_table([1, 2, 3, 4], 3, groups_of(zones)):
        assert (row[0] <= 2) != (row[1] <= 2), "another zone"
        if row[0] >= 3:
            assert {1, 2} < set(row), "the third copy: another rack, rather than this one's"
    one_machine = [info(number, "127.0.0.1") for number in (1, 2, 3)]
    assert first_table([1, 2, 3], 2, groups_of(one_machine)) == first_table([1, 2, 3], 2)


GROUPED = st.dictionaries(
    st.integers(1, 20),
    st.tuples(st.sampled_from("xy"), st.sampled_from("abc"), st.sampled_from("pqrs")),
    min_size=1,
    max_size=9,
)


def farthest(row: tuple[int, ...], level: int, groups: dict[int, tuple[str, ...]]) -> bool:
    """Whether the copy at ``level`` is as far away from those before it as one can be."""
    return distance(row[:level], row[level], groups) == max(
        distance(row[:level], other, groups) for other in groups if other not in row[:level]
    )


def distance(
    before: tuple[int, ...], member: int, groups: dict[int, tuple[str, ...]]
) -> list[bool]:
    return [
        all(groups[member][kind] != groups[other][kind] for other in before) for kind in range(3)
    ]


@settings(max_examples=30, deadline=None)
@given(GROUPED, st.integers(1, 3), st.data())
def test_grouped_copies_are_apart_and_stay(
    groups: dict[int, tuple[str, ...]], copies: int, data: st.DataObject
) -> None:
    members = sorted(groups)
    table = first_table(members, copies, groups)
    check(table, members, copies)
    assert balanced(table, members, copies, groups) == table, "nothing moves without a reason"
    lost = data.draw(st.sets(st.sampled_from(members), max_size=len(members) - 1))
    live = [member for member in members if member not in lost]
    left = {member: groups[member] for member in live}
    healed = balanced(without(table, lost), live, copies, left)
    joined = balanced(table, [*members, 30], copies, {**groups, 30: ("y", "a", "s")})
    for after, there in (
        (table, groups),
        (healed, left),
        (joined, {**groups, 30: ("y", "a", "s")}),
    ):
        check(after, sorted(there), copies)
        for row in set(after):
            assert all(farthest(row, level, there) for level in range(1, len(row)))
        assert balanced(after, sorted(there), copies, there) == after
    # A backup is even among those who may have it: nobody has two more than another one could take.
    for level in range(1, min(copies, len(members))):
        counts = Counter(row[level] for row in table)
        for row in set(table):
            for other in members:
                changed = (*row[:level], other)
                if other not in row[:level] and farthest(changed, level, groups):
                    assert counts[row[level]] - counts[other] < 2


def test_one_member_keeps_everything() -> None:
    assert first_table([7], 3) == ((7,),) * PARTITIONS
    assert without(first_table([7], 3), {7}) == ((),) * PARTITIONS
