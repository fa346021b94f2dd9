"""A member's knowledge of one part of a transaction (``transaction.parts``). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from remuda.errors import RemudaError
from remuda.transaction.states import Message, State, Told

ROUND_FIRST: Final = 2
ROUND_LAST: Final = 8
"""The longest pause, in rounds."""


@dataclass(slots=True)
class Part:
    """A member's knowledge of a part; ``state`` is PREPARING, PREPARED, COMMITTED or
    ROLLED_BACK."""

    state: State
    partitions: tuple[int, ...] = ()
    work: object = None
    one_phase: bool = False
    prepare_timestamp: int = 0
    commit_timestamp: int | None = None
    refusal: RemudaError | None = None
    withdrawn: bool = False
    """A backup has refused it, others may have kept it: the refusal is told when it is settled."""
    companions: tuple[int, ...] = ()
    """Parts that are prepared because this member keeps them (``transaction.last_part``)."""
    pledged: int = 0
    """The view in which the last part was asked to commit, which rests on this one; 0: it was not,
    or not before this one was prepared."""
    decided: int | None = None
    """The commit timestamp, heard before all backups were known to have the part."""
    answered: set[int] = field(default_factory=set)
    """Backups that have it in its state."""
    settled: bool = False
    """All backups have."""
    to_tell: dict[Message, int] = field(default_factory=dict)
    """The answers that wait until it is settled, and for whom."""
    told: dict[int, Told] = field(default_factory=dict)
    """In a recovery: the answers of the primaries of the other parts."""
    rounds: int = 0
    """Of sending again, since it has come or ended."""
    promised: bool = False
    """Another primary has prepared it, or all copies had it: the near member may count on its
    timestamp."""
    lapsed: bool = False
    """Another member has become the primary since its timestamp was given out, and has not said
    that it knows the part: it may have served reads above that timestamp."""
    unfinished: set[int] | None = None
    """In a recovery, once it has ended: other parts whose end has not been confirmed."""

    @property
    def ended(self) -> bool:
        return self.state is State.COMMITTED or self.state is State.ROLLED_BACK


def due(part: Part) -> bool:
    """Whether a part that has waited for one round more is to be sent again: not in the round in
    which it has come, and with pauses that grow, since whoever is slow is not helped by more."""
    part.rounds += 1
    rounds = part.rounds
    return rounds >= ROUND_FIRST and (rounds & (rounds - 1) == 0 or rounds % ROUND_LAST == 0)
