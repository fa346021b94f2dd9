"""Founding a cluster, and noticing who has gone."""

from __future__ import annotations

from collections import Counter

import pytest

from remuda.cluster.joining import Founding
from remuda.cluster.liveness import Liveness
from remuda.datatypes.view import MemberInfo
from remuda.errors import InvalidDefinition, MemberUnavailable
from remuda.limits import PARTITIONS


def member(uuid: str, port: int = 1) -> MemberInfo:
    return MemberInfo(0, uuid, "127.0.0.1", port, port + 1, port + 2)


def test_numbers_in_order_of_arrival_and_the_same_again() -> None:
    founding = Founding("c", 3, MemberInfo(1, "a", "127.0.0.1", 1, 2, 3))
    assert founding.join("c", member("b")).number == 2
    assert not founding.complete
    assert founding.join("c", member("b", 9)).number == 2
    assert founding.join("c", member("d")).number == 3
    assert founding.complete
    view = founding.view()
    assert [m.uuid for m in view.members] == ["a", "b", "d"]
    assert view.by_number[2].user_port == 9
    counts = Counter(view.owners)
    assert sum(counts.values()) == PARTITIONS
    assert max(counts.values()) - min(counts.values()) <= 1


def test_strangers_are_refused() -> None:
    founding = Founding("c", 1, MemberInfo(1, "a", "127.0.0.1", 1, 2, 3))
    with pytest.raises(InvalidDefinition, match='cluster "c"'):
        founding.join("other", member("b"))
    with pytest.raises(MemberUnavailable, match="complete"):
        founding.join("c", member("b"))


def test_silence_and_loss() -> None:
    liveness = Liveness((2, 3), now=0.0, timeout=10.0)
    liveness.heard(2, 8.0)
    assert liveness.silent(10.0) == []
    assert liveness.silent(11.0) == [(3, 11.0)]
    assert liveness.lose(3)
    assert not liveness.lose(3)
    liveness.heard(3, 12.0)
    assert liveness.silent(30.0) == [(2, 22.0)]
