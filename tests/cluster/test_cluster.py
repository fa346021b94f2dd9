"""Founding a cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest

from remuda.cluster.joining import Founding
from remuda.datatypes.view import MemberInfo
from remuda.errors import InvalidDefinition, MemberUnavailable
from remuda.limits import PARTITIONS


def member(uuid: str, port: int = 1) -> MemberInfo:
    return MemberInfo(0, uuid, "127.0.0.1", port, port + 1, port + 2)


def test_everyone_has_a_place_and_the_same_again() -> None:
    founding = Founding("c", 3, MemberInfo(1, "a", "127.0.0.1", 1, 2, 3))
    assert founding.join("c", member("b")).number == 2
    assert not founding.complete
    assert founding.join("c", member("b", 9)).number == 2
    assert founding.join("c", member("d")).number == 3
    assert founding.complete
    view = founding.view()
    assert [m.uuid for m in view.members] == ["a", "d", "b"]
    assert view.by_number[3].user_port == 9
    counts = Counter(view.owners)
    assert sum(counts.values()) == PARTITIONS
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("arrival", list(permutations(range(1, 5))))
def test_numbers_follow_addresses_in_any_order_of_arrival(arrival: tuple[int, ...]) -> None:
    places = [("h", 31010), ("h", 31020), ("h", 31100), ("node-9", 31010), ("node-10", 31010)]
    members = [
        MemberInfo(0, f"{9 - number}", host, port, port + 1, port + 2)
        for number, (host, port) in enumerate(places)
    ]
    founding = Founding("c", 5, replace(members[0], number=1))
    for each in arrival:
        founding.join("c", members[each])
    view = founding.view()
    assert [(m.number, m.host, m.user_port) for m in view.members] == [
        (number, *place) for number, place in enumerate(places, 1)
    ]


def test_strangers_are_refused() -> None:
    founding = Founding("c", 1, MemberInfo(1, "a", "127.0.0.1", 1, 2, 3))
    with pytest.raises(InvalidDefinition, match='cluster "c"'):
        founding.join("other", member("b"))
    with pytest.raises(MemberUnavailable, match="complete"):
        founding.join("c", member("b"))
