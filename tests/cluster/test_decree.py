"""A decree has one outcome, whatever is lost, late, repeated or forgotten in between.

Three acceptors and three proposers who each want another value, thousands of random schedules. A
mutation of the rules must give two outcomes in one of them.
"""

from __future__ import annotations

from random import Random

import pytest

from remuda.cluster import decree
from remuda.cluster.decree import LOWEST, Acceptor, Ballot, Proposal, Vote, majority

VOTERS = (1, 2, 3)
SCHEDULES = 4000


def outcomes(random: Random, *, forgets: bool = False) -> set[int]:
    """The values that proposers found decided in one random schedule."""
    acceptors: dict[int, Acceptor[int]] = {voter: Acceptor() for voter in VOTERS}
    proposals: list[Proposal[int]] = []
    wire: list[tuple[str, int, Proposal[int], object]] = []
    decided: set[int] = set()
    for step in range(120):
        choice = random.random()
        if (choice < 0.05 and len(proposals) < 6) or not wire:
            proposer = random.choice(VOTERS)
            proposal = Proposal(Ballot(len(proposals) + 1, proposer), step, VOTERS)
            proposals.append(proposal)
            wire += [("prepare", voter, proposal, None) for voter in VOTERS]
            continue
        if choice < 0.1:
            voter = random.choice(VOTERS)
            known = acceptors[voter]
            acceptors[voter] = Acceptor() if forgets else Acceptor(known.promised, known.vote)
            continue
        place = random.randrange(len(wire))
        kind, voter, proposal, content = wire[place]
        if random.random() < 0.9:
            wire.pop(place)
        if random.random() < 0.05:
            continue
        acceptor, ballot = acceptors[voter], proposal.ballot
        if kind == "prepare" and acceptor.promise(ballot):
            wire.append(("promise", voter, proposal, acceptor.vote))
        elif kind == "promise" and proposal.on_promise(voter, content):  # type: ignore[arg-type]
            wire += [("accept", each, proposal, proposal.value) for each in VOTERS]
        elif kind == "accept" and acceptor.accept(ballot, content):  # type: ignore[arg-type]
            wire.append(("accepted", voter, proposal, None))
        elif kind == "accepted" and proposal.on_accepted(voter):
            decided.add(proposal.value)
    return decided


def split_decisions(*, forgets: bool = False) -> int:
    return sum(len(outcomes(Random(seed), forgets=forgets)) > 1 for seed in range(SCHEDULES))


def test_one_outcome() -> None:
    found = [outcomes(Random(seed)) for seed in range(SCHEDULES)]
    assert max(map(len, found)) == 1
    assert sum(map(len, found)) > SCHEDULES // 2, "most schedules must decide something"


def test_forgetting_what_was_promised_is_caught() -> None:
    assert split_decisions(forgets=True)


def test_half_as_a_majority_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decree, "majority", lambda voters: voters // 2)
    assert split_decisions()


def test_hiding_an_accepted_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Proposal.on_promise
    monkeypatch.setattr(Proposal, "on_promise", lambda self, voter, vote: keep(self, voter, None))
    assert split_decisions()


def test_taking_any_accepted_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Proposal.on_promise

    def on_promise(self: Proposal[int], voter: int, vote: Vote[int] | None) -> bool:
        return keep(self, voter, None if vote is None else Vote(Ballot(99 - voter, 0), vote.value))

    monkeypatch.setattr(Proposal, "on_promise", on_promise)
    assert split_decisions()


def test_accepting_below_a_promise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(self: Acceptor[int], ballot: Ballot, value: int) -> bool:
        self.vote = Vote(ballot, value)
        return True

    monkeypatch.setattr(Acceptor, "accept", accept)
    assert split_decisions()


def test_a_late_promise_changes_nothing() -> None:
    proposal = Proposal(Ballot(2, 1), 10, VOTERS)
    assert not proposal.on_promise(1, None)
    assert not proposal.on_promise(1, None), "one voter, one promise"
    assert proposal.on_promise(2, None)
    assert not proposal.on_promise(3, Vote(Ballot(1, 2), 20))
    assert proposal.value == 10
    assert not proposal.on_promise(9, None), "not a voter"


def test_majorities_overlap() -> None:
    for voters in range(1, 20):
        assert 2 * majority(voters) > voters
    assert LOWEST < Ballot(1, 0) < Ballot(1, 2) < Ballot(2, 1)
