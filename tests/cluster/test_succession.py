"""Paxos about values that follow each other: orders in which two proposers reach the voters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from remuda.cluster.decree import Ballot
from remuda.cluster.succession import Candidate, Voter, agreed

VIEW = (1, 2, 3)
LOW, HIGH = Ballot(1, 1), Ballot(2, 2)


def test_a_majority_of_the_view_agrees() -> None:
    assert agreed(VIEW, (1, 3))
    assert not agreed(VIEW, (1,))
    assert not agreed(VIEW, (1, 4, 5))


def test_a_higher_version_or_ballot_is_the_one_that_may_be_decided() -> None:
    voter: Voter[str] = Voter()
    for number, ballot, value, kept in (
        (5, LOW, "a", "a"),
        (5, HIGH, "b", "b"),
        (5, LOW, "a", "b"),
        (6, LOW, "c", "c"),
        (5, HIGH, "b", "c"),
    ):
        voter.learn(Candidate(number, ballot, value))
        assert voter.candidate is not None
        assert voter.candidate.value == kept
    voter.decided(5)
    assert voter.candidate is not None
    voter.decided(6)
    assert voter.candidate is None


def test_a_voter_that_has_left_a_view_votes_in_the_next_one() -> None:
    voter: Voter[str] = Voter()
    assert voter.votes_in(3)
    voter.leave(3)
    assert not voter.votes_in(3)
    assert voter.votes_in(4)


def test_ballots_are_above_all_that_were_seen_and_never_given_twice() -> None:
    voter: Voter[str] = Voter()
    assert voter.next_ballot(3) == Ballot(1, 3)
    assert voter.next_ballot(3) == Ballot(2, 3)
    assert not voter.accept(Candidate(1, Ballot(7, 1), "a")) or voter.next_ballot(3) == Ballot(8, 3)
    assert not voter.promise(Ballot(6, 9))


def outcomes() -> Iterator[set[str]]:
    """What two proposers have decided: the first has asked ``readers`` and is interrupted by the
    second when ``before`` voters have accepted its value."""
    groups = [group for size in (2, 3) for group in combinations(VIEW, size)]
    for readers in groups:
        for others in groups:
            for early in [(), *combinations(VIEW, 1), *groups]:
                yield played(readers, others, early)


def played(readers: tuple[int, ...], others: tuple[int, ...], early: tuple[int, ...]) -> set[str]:
    voters: dict[int, Voter[str]] = {number: Voter() for number in VIEW}
    decided: set[str] = set()
    assert all(voters[number].promise(LOW) for number in readers)
    mine = Candidate(1, LOW, "first")
    accepted = {number for number in early if voters[number].accept(mine)}
    # The second one reads, and proposes what it finds.
    promised = [number for number in others if voters[number].promise(HIGH)]
    found = [c.value for number in promised if (c := voters[number].candidate) is not None]
    theirs = Candidate(1, HIGH, found[0] if found else "second")
    # The first one goes on with the voters that are left, before the second one's value arrives.
    accepted |= {number for number in VIEW if voters[number].accept(mine)}
    if agreed(VIEW, accepted):
        decided.add(mine.value)
    if agreed(VIEW, [number for number in VIEW if voters[number].accept(theirs)]):
        decided.add(theirs.value)
    return decided


def test_two_proposers_decide_one_value() -> None:
    found = list(outcomes())
    assert all(len(decided) <= 1 for decided in found)
    assert {"first"} in found
    assert {"second"} in found


def test_promises_that_bind_nobody_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Voter, "promise", lambda *_: True)
    assert any(len(decided) > 1 for decided in outcomes())
