"""Agreement on the values of something that is replaced as a whole: the catalog. Pure.

One decree of Paxos (``cluster.decree``) for each version: which value is version n + 1, decided by
a majority of the members of a view. A member leads after a majority has promised its ballot and
told what it has accepted; it then completes what may have been decided, and puts one value after
the other to the vote with the same ballot.

A view may have other members than the one before, so the voters of two views need not have a member
in common. A member that has voted for the next view therefore neither promises nor accepts anything
in the current one (``leave``), and the member that decides the next view takes over what each of
these voters has accepted. A member installs a view only when it knows all that
(``cluster.agreement`` has the same rule for leases).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from remuda.cluster.decree import LOWEST, Ballot, majority

V = TypeVar("V")
Order = tuple[int, Ballot]
NOTHING: Order = (0, LOWEST)


@dataclass(frozen=True, slots=True)
class Candidate(Generic[V]):
    """A value that may be version ``number``, as it was proposed with ``ballot``."""

    number: int
    ballot: Ballot
    value: V

    @property
    def order(self) -> Order:
        """Of candidates, the highest one may have been decided: it is based on a decided version
        ``number - 1``, and its proposer has asked a majority for lower ballots."""
        return self.number, self.ballot


class Voter(Generic[V]):
    """The part of one process. It forgets everything when it ends, so a process that starts again
    must be another voter."""

    def __init__(self) -> None:
        self.promised = LOWEST
        self.candidate: Candidate[V] | None = None
        """The value that it has accepted and does not know to be decided."""
        self._highest = LOWEST
        self._left = 0

    @property
    def order(self) -> Order:
        return NOTHING if self.candidate is None else self.candidate.order

    def leave(self, view: int) -> None:
        """It has voted for the view that follows ``view``."""
        self._left = view

    def votes_in(self, view: int) -> bool:
        return view > self._left

    def promise(self, ballot: Ballot) -> bool:
        """Whether nothing with a lower ballot will be accepted from now on."""
        self.saw(ballot)
        if ballot < self.promised:
            return False
        self.promised = ballot
        return True

    def accept(self, candidate: Candidate[V]) -> bool:
        if not self.promise(candidate.ballot):
            return False
        self.learn(candidate)
        return True

    def learn(self, candidate: Candidate[V]) -> None:
        """Another voter has accepted this."""
        if candidate.order > self.order:
            self.candidate = candidate

    def decided(self, number: int) -> None:
        """This process has version ``number``."""
        if self.candidate is not None and self.candidate.number <= number:
            self.candidate = None

    def saw(self, ballot: Ballot) -> None:
        self._highest = max(self._highest, ballot)

    def next_ballot(self, proposer: int) -> Ballot:
        """Above all that this process has seen; it is never given out again."""
        self._highest = Ballot(self._highest.round + 1, proposer)
        return self._highest


def agreed(voters: Collection[int], saying_so: Collection[int]) -> bool:
    """Whether a majority of a view has promised, or has accepted."""
    return len(set(voters) & set(saying_so)) >= majority(len(voters))
