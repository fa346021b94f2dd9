"""Copies of partitions lie apart, evenly, and move as little as they can."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.cluster.places import groups_of
from remuda.cluster.replicas import Replicas, balanced, first_table, moves, without
from remuda.cluster.spread import Groups
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
    assert len(moves(table, after)) <= fewest_moves(table, joined, copies) + 1
    primaries = sum(b[0] != a[0] for b, a in zip(table, after, strict=True))
    assert primaries == sum(row[0] == 99 for row in after), "primaries only move to the joiner"


def copies_of(table: Replicas, members: list[int]) -> list[int]:
    counts = Counter(member for row in table for member in row)
    return [counts[member] for member in members]


def fewest_moves(table: Replicas, members: list[int], copies: int) -> int:
    """No table in which members differ by at most one in their copies costs less: rows lack so
    many copies, or members so many for their share."""
    levels = min(copies, len(members))
    rows = [[member for member in row if member in members] for row in table]
    share, extra = divmod(levels * PARTITIONS, len(members))
    there = sorted(copies_of(tuple(map(tuple, rows)), members), reverse=True)
    lacking = sum(max(0, share + (rank < extra) - count) for rank, count in enumerate(there))
    return max(lacking, sum(levels - min(levels, len(row)) for row in rows))


EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 99)), min_size=1, max_size=5
)
"""How many members are lost and how many join, and a number that says which."""


@settings(max_examples=50, deadline=None)
@given(MEMBERS, st.integers(1, 4), EVENTS)
def test_any_sequence_of_joins_leaves_and_replacements_stays_even(
    members: list[int], copies: int, events: list[tuple[int, int, int]]
) -> None:
    table, newest, made, fewest = first_table(members, copies), 100, 0, 0
    for losses, joins, which in events:
        lost = {members[(which + n) % len(members)] for n in range(min(losses, len(members) - 1))}
        joined = range(newest, newest + joins)
        newest += joins
        members = sorted({*members, *joined} - lost)
        left = without(table, lost)
        table = balanced(left, members, copies)
        check(table, members, copies)
        held = copies_of(table, members)
        assert max(held) - min(held) <= 1
        assert balanced(table, members, copies) == table, "nothing moves without a reason"
        made += len(moves(left, table))
        fewest += fewest_moves(left, members, copies)
    assert made <= fewest * 1.02 + 10, "copies are made that nobody needs"


def test_a_joiner_and_a_replacement_leave_nobody_short() -> None:
    """Those that outside judges met: 159/158/158/67 and 227/225/90 copies, for good."""
    table = first_table([1, 2, 3], 2)
    joined = balanced(table, [1, 2, 3, 4], 2)
    assert sorted(copies_of(joined, [1, 2, 3, 4])) == [135, 135, 136, 136]
    assert len(moves(table, joined)) in (135, 136)
    replaced = balanced(without(table, {3}), [1, 2, 4], 2)
    assert sorted(copies_of(replaced, [1, 2, 4])) == [180, 181, 181]
    assert len(moves(without(table, {3}), replaced)) in (180, 181)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.integers(3, 4))
def test_what_a_lost_member_led_goes_to_many(count: int, copies: int) -> None:
    members = list(range(1, count + 1))
    first = first_table(members, copies)
    for table in (first, balanced(without(first, {1}), members[1:], copies)):
        for primary, rows in Counter(row[0] for row in table).items():
            heirs = Counter(row[1] for row in table if row[0] == primary)
            assert max(heirs.values()) <= rows / (len({m for row in table for m in row}) - 1) + 2


def test_many_members_on_few_machines_are_even_too() -> None:
    """Of several members per host, two keep the same partition only if there is no other host."""
    groups = {n: (f"z{n % 3}", f"z{n % 3}/r{n % 6}", f"h{n // 4}") for n in range(1, 121)}
    table = first_table(sorted(groups), 3, groups)
    groups[121] = ("z0", "z0/r0", "h30")
    joined = balanced(table, sorted(groups), 3, groups)
    assert len(moves(table, joined)) <= 3 * PARTITIONS // 121 + 2
    for zone in ("z0", "z1", "z2"):  # each keeps every partition once
        held = copies_of(joined, [n for n in groups if groups[n][0] == zone])
        assert max(held) - min(held) <= 1
    assert all(apart(row, groups) for row in set(joined))
    assert balanced(joined, sorted(groups), 3, groups) == joined


def test_nobody_is_left() -> None:
    assert balanced(first_table([1, 2], 2), [], 2) == ((),) * PARTITIONS


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


def farthest(row: tuple[int, ...], level: int, groups: Groups) -> bool:
    """Whether the copy at ``level`` is as far away from those before it as one can be."""
    return distance(row[:level], row[level], groups) == max(
        distance(row[:level], other, groups) for other in groups if other not in row[:level]
    )


def distance(before: tuple[int, ...], member: int, groups: Groups) -> list[bool]:
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
            assert apart(row, there)
        assert balanced(after, sorted(there), copies, there) == after


def nested(names: tuple[str, str, str]) -> tuple[str, str, str]:
    """A zone, a rack in it, a host in that."""
    zone, rack, host = names
    return zone, zone + rack, zone + rack + host


@settings(max_examples=40, deadline=None)
@given(GROUPED, st.integers(1, 4), EVENTS)
def test_grouped_copies_are_as_even_as_groups_allow(
    drawn: dict[int, tuple[str, str, str]], copies: int, events: list[tuple[int, int, int]]
) -> None:
    groups = {member: nested(names) for member, names in drawn.items()}
    table = first_table(sorted(groups), copies, groups)
    for losses, joins, which in events:
        members = sorted(groups)
        lost = {members[(which + n) % len(members)] for n in range(min(losses, len(members) - 1))}
        groups = {number: names for number, names in groups.items() if number not in lost}
        for n in range(joins):
            place = divmod(which + n, 12)
            names = "xy"[place[0] % 2], "abc"[place[1] % 3], "pqrs"[place[1] // 3]
            groups[max(groups) + 1] = nested(names)
        table = balanced(without(table, lost), sorted(groups), copies, groups)
        check(table, sorted(groups), copies)
        assert all(apart(row, groups) for row in set(table))
        assert balanced(table, sorted(groups), copies, groups) == table
        assert not evener(table, groups)


def evener(table: Replicas, groups: Groups) -> list[tuple[int, int]]:
    """Members of which the first could give a copy to the second, which has two fewer at least."""
    counts = Counter(member for row in table for member in row)
    return [
        (row[level], other)
        for row in set(table)
        for level in range(1, len(row))
        for other in groups
        if other not in row and counts[row[level]] - counts[other] >= 2
        if apart((*row[:level], other, *row[level + 1 :]), groups)
    ]


def apart(row: tuple[int, ...], groups: Groups) -> bool:
    """Whether each copy is as far away from those before it as one can be."""
    return all(farthest(row, level, groups) for level in range(1, len(row)))


def test_one_member_keeps_everything() -> None:
    assert first_table([7], 3) == ((7,),) * PARTITIONS
    assert without(first_table([7], 3), {7}) == ((),) * PARTITIONS
