"""Jobs that are being committed pause moves of partitions (design rule 22): the tables of both
sides. Pure.

The coordinator of a job asks every member to pause (``OpenPauses``), and tells each of them, until
it answers, that the pause is over. A member notes which pauses hold its moves up (``HeldPauses``).
Messages may be lost, repeated and overtaken. So each pause has a number, larger than those of all
earlier pauses of its coordinator: a late "over" ends no later pause of the same job, and a late
"pause" holds nothing after its "over".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

HELD_MAX: Final = 120.0
"""Seconds after which a pause that nobody has ended holds no move up any more: its coordinator may
have failed without leaving the view."""


@dataclass(frozen=True, slots=True)
class Pause:
    """``number`` is a timestamp of the job's coordinator."""

    job: str
    number: int


class OpenPauses:
    """Of the jobs that this member coordinates."""

    def __init__(self) -> None:
        self._open: dict[str, Pause] = {}
        self._asked: dict[Pause, set[int]] = {}
        """The members that may hold the pause: asked, and not known to have heard its end."""

    def begin(self, pause: Pause) -> Pause:
        """A job whose pause is open already keeps it."""
        pause = self._open.setdefault(pause.job, pause)
        self._asked.setdefault(pause, set())
        return pause

    def ask(self, pause: Pause, member: int) -> None:
        """The member may hold the pause from now on."""
        self._asked[pause].add(member)

    def end(self, job: str) -> Pause | None:
        """The pause of the job that was open, if there was one."""
        pause = self._open.pop(job, None)
        if pause is not None:
            self._forget(pause)
        return pause

    def unheard(self, pause: Pause) -> tuple[int, ...]:
        """The members that must still hear that the pause is over."""
        return tuple(sorted(self._asked.get(pause, ())))

    def heard(self, pause: Pause, member: int) -> None:
        """The member knows that the pause is over, or has left the view and moves nothing."""
        self._asked.get(pause, set()).discard(member)
        self._forget(pause)

    def _forget(self, pause: Pause) -> None:
        if not self._asked.get(pause) and self._open.get(pause.job) != pause:
            self._asked.pop(pause, None)

    def oldest(self, pause: Pause) -> int:
        """Every pause of this coordinator with a smaller number is over for all members."""
        return min((known.number for known in self._asked), default=pause.number)


@dataclass(frozen=True, slots=True)
class _Held:
    coordinator: int
    number: int
    until: float
    """Monotonic seconds."""


class HeldPauses:
    """Of a member that moves partitions. ``coordinator`` is a member's number."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        """By job."""
        self._over: dict[int, set[int]] = {}
        """By coordinator: the numbers of pauses that are over, from ``_oldest`` on."""
        self._oldest: dict[int, int] = {}
        """By coordinator: pauses with smaller numbers are over."""

    def hold(self, now: float, coordinator: int, pause: Pause) -> bool:
        """False: the pause is over already, and holds nothing."""
        if pause.number < self._oldest.get(coordinator, 0):
            return False
        if pause.number in self._over.get(coordinator, ()):
            return False
        held = self._held.get(pause.job)
        if held is not None and pause.number < held.number:
            return False  # the coordinator ended it before it began the one that is held
        self._held[pause.job] = _Held(coordinator, pause.number, now + HELD_MAX)
        return True

    def release(self, coordinator: int, pause: Pause) -> None:
        """The pause is over, here or before it has been heard of."""
        self._over.setdefault(coordinator, set()).add(pause.number)
        held = self._held.get(pause.job)
        if held is not None and held.number == pause.number:
            del self._held[pause.job]

    def forget(self, coordinator: int, oldest: int) -> None:
        """The coordinator has no pause below ``oldest`` any more."""
        oldest = max(oldest, self._oldest.get(coordinator, 0))
        self._oldest[coordinator] = oldest
        self._over[coordinator] = {n for n in self._over.get(coordinator, ()) if n >= oldest}

    def jobs(self, now: float, members: Collection[int]) -> Collection[str]:
        """The jobs that hold moves up. A coordinator that is not in the view, ``members``, would
        end no pause any more."""
        self._held = {
            job: held
            for job, held in self._held.items()
            if held.until > now and held.coordinator in members
        }
        for known in (self._over, self._oldest):
            for coordinator in known.keys() - set(members):
                del known[coordinator]
        return self._held.keys()
