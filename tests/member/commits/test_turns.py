"""Turns of atomic writes, without messages: who is granted one, and who is refused."""

from __future__ import annotations

import pytest

from remuda.errors import JobAborted
from remuda.member.commits.turns import ENDED_KEPT, Turns


def test_turns_are_granted_in_the_order_of_arrival() -> None:
    turns, granted = Turns(), list[str]()
    for job in ("1-a", "2-b", "3-c"):
        turns.take(7, job, lambda job=job: granted.append(job))  # type: ignore[misc]
    assert granted == ["1-a"]
    turns.end(7, "2-b")
    turns.end(7, "1-a")
    assert granted == ["1-a", "3-c"]
    turns.end(7, "3-c")
    assert len(turns) == 0


def test_a_turn_ended_before_it_was_taken_is_refused() -> None:
    """COMMIT_TURN on a connection that broke may arrive after COMMIT_TURN_END on the next one:
    granted then, it would hold the map for ever."""
    turns, granted = Turns(), list[str]()
    turns.end(7, "1-a")
    with pytest.raises(JobAborted, match="1-a"):
        turns.take(7, "1-a", lambda: granted.append("1-a"))
    turns.take(8, "1-a", lambda: granted.append("another map"))
    turns.take(7, "2-b", lambda: granted.append("2-b"))
    assert granted == ["another map", "2-b"]


def test_what_is_remembered_is_bounded() -> None:
    turns, granted = Turns(), list[str]()
    for number in range(ENDED_KEPT + 1):
        turns.end(7, f"1-{number}")
    turns.take(7, "1-0", lambda: granted.append("the oldest"))
    assert granted == ["the oldest"]
    with pytest.raises(JobAborted):
        turns.take(7, "1-1", lambda: granted.append("the others"))


def test_a_turn_that_is_asked_for_again_keeps_its_place_and_is_answered() -> None:
    """The first request, or its answer, may be lost."""
    turns, granted = Turns(), list[str]()
    turns.take(7, "1-a", lambda: granted.append("1-a"), 1)
    turns.take(7, "1-a", lambda: granted.append("1-a again"), 1)
    turns.take(7, "2-b", lambda: granted.append("2-b"), 5)
    turns.take(7, "3-c", lambda: granted.append("3-c"), 6)
    turns.take(7, "2-b", lambda: granted.append("2-b again"), 5)
    assert granted == ["1-a", "1-a again"]
    turns.end(7, "1-a", 1)
    assert granted[2:] == ["2-b again"]
    assert len(turns) == 2


def test_a_late_repeat_begins_no_turn_that_was_ended_and_ends_no_later_one() -> None:
    turns, granted = Turns(), list[str]()
    turns.take(7, "1-a", lambda: granted.append("1-a"), 1)
    turns.end(7, "1-a", 1)
    with pytest.raises(JobAborted, match="1-a"):
        turns.take(7, "1-a", lambda: granted.append("late"), 1)
    turns.take(7, "1-a", lambda: granted.append("1-a tries again"), 2)
    turns.take(7, "2-b", lambda: granted.append("2-b"), 5)
    turns.end(7, "1-a", 1)
    assert granted == ["1-a", "1-a tries again"]
    turns.member_lost(1)
    assert granted[2:] == ["2-b"]
