"""One decree of single-decree Paxos: which view follows view n, decided by the members of view n.

Source: L. Lamport, "Paxos Made Simple" (2001); design rule 13. Safe with any number of proposers,
whatever is lost, repeated or late: two majorities have a member in common, and it tells the later
proposer what the earlier one may have decided.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True, order=True)
class Ballot:
    """Of one proposer: no two members ever use the same one."""

    round: int
    proposer: int

    def __str__(self) -> str:
        return f"{self.round}.{self.proposer}"


LOWEST = Ballot(0, 0)


@dataclass(frozen=True, slots=True)
class Vote(Generic[V]):
    """The proposal that an acceptor has accepted last."""

    ballot: Ballot
    value: V


@dataclass(slots=True)
class Acceptor(Generic[V]):
    """One member's part. Its state must be durable before its answer leaves the member, or the
    member must never come back under the same number."""

    promised: Ballot = LOWEST
    vote: Vote[V] | None = None

    def promise(self, ballot: Ballot) -> bool:
        """Whether ``ballot`` is promised: nothing below it will be accepted from now on."""
        if ballot < self.promised:
            return False
        self.promised = ballot
        return True

    def accept(self, ballot: Ballot, value: V) -> bool:
        """Whether ``value`` is accepted."""
        if ballot < self.promised:
            return False
        self.promised = ballot
        self.vote = Vote(ballot, value)
        return True


def majority(voters: int) -> int:
    """The least number of ``voters`` that any two such groups share a member of."""
    return voters // 2 + 1


class Proposal(Generic[V]):
    """One proposer's attempt with one ballot. ``value`` is what it wishes, until the promises show
    that another value may have been decided: then it is that one."""

    def __init__(self, ballot: Ballot, value: V, voters: Iterable[int]) -> None:
        self.ballot = ballot
        self.value = value
        self.voters = frozenset(voters)
        self._promises: set[int] = set()
        self._accepts: set[int] = set()
        self._highest = LOWEST

    @property
    def _needed(self) -> int:
        return majority(len(self.voters))

    @property
    def free(self) -> bool:
        """No promise so far tells of a value that may have been decided."""
        return self._highest == LOWEST

    def on_promise(self, voter: int, vote: Vote[V] | None) -> bool:
        """True once: a majority has promised, so ``value`` may be put to the vote."""
        if voter not in self.voters or voter in self._promises:
            return False
        if len(self._promises) >= self._needed:
            return False  # the value is settled; a late promise must not change it
        self._promises.add(voter)
        if vote is not None and vote.ballot > self._highest:
            self._highest = vote.ballot
            self.value = vote.value
        return len(self._promises) == self._needed

    def on_accepted(self, voter: int) -> bool:
        """True once: ``value`` is decided."""
        if voter not in self.voters or voter in self._accepts:
            return False
        self._accepts.add(voter)
        return len(self._accepts) == self._needed
