"""What one operator may hold before it spills."""

from __future__ import annotations

import io

from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.spill import SpillSpace


def account() -> MemoryAccount:
    return MemoryAccount(4000, SpillSpace(io.BytesIO, 10_000))


def test_instances_of_an_operator_share_its_part() -> None:
    """Each with the whole part would use the statement's memory up before one of them spills."""
    shared = account()
    alone = Reservation(shared, "Sort")
    instances = [Reservation(shared, "Sort", instances=4) for _ in range(4)]
    assert alone.share == sum(instance.share for instance in instances) == 1000
    for instance in instances:
        assert instance.try_grow(250)
        assert not instance.try_grow(1)
        assert instance.beside().share == 250
    assert shared.held == 1000
