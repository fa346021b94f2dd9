"""How a member leaves its cluster in order. Pure: ``step(now, found) -> effects``.

Sessions of clients that do not retry by themselves (PostgreSQL's) go first. The member refuses new
ones, closes each when its client is sure to notice before it sends a request, and serves them
meanwhile. It waits for them no longer than half the timeout, and not if nobody stays to serve them.

Then the member refuses what begins, and gives its copies away, while open work goes on:
transactions, statements, queries of others. It ends the work that is open at the deadline. When
nothing is open and nothing is kept here any more, clients are not served any more. When their last
request is answered, and all others know that this member has installed the view in which it keeps
nothing, a view without it is asked for. (Otherwise those that have taken over its partitions would
wait until its lease is over.) When all others have installed that view, the clients are told that
this member answers nothing any more, and the process may end. A client is told once it has
acknowledged its results: it would send again a statement whose end it has not read.

If nobody stays to take the copies, because all members leave or no majority is there, the member
waits for nobody but for other leaving members whose open work may need it. While a majority is
there, it waits long for the view without it: the others may be no majority without this member.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

DISMISSED_WITHIN = 10.0
"""Seconds that sessions may take which are in use all the time."""
DROPPED_WITHIN = 5.0
"""Seconds that a view without the member may take when no majority is heard."""
DROPPED_AT_LAST = 60.0
"""Seconds that it may take while a majority is heard. The others may need this member to decide it:
of two members the one that stays would serve nothing any more."""
TOLD_WITHIN = 2.0
"""Seconds that the others may take to install it, and clients to acknowledge results."""
ENDED_WITHIN = 5.0
"""Seconds that work which was ended at the deadline may take to answer."""
ANSWERED_WITHIN = 2.0
"""Seconds that requests may take which are under way when nothing is open any more."""
PARTING = 0.3
"""Seconds in which clients read the last word before the process ends."""


class Phase(Enum):
    DISMISSING = "sends clients elsewhere"
    DRAINING = "drains"
    CLOSING = "serves clients no more"
    DROPPING = "asks for a view without it"
    TELLING = "waits until the others know"
    PARTING = "says goodbye"
    GONE = "has left"


@dataclass(frozen=True, slots=True)
class Found:
    """The state that the shell sees. ``open``: transactions, statements, jobs and queries;
    ``requests``: those that were received and are not answered; ``copies``: partitions that are
    kept here; ``stranded``: nobody stays to take them, because all want to leave or no majority is
    there; ``heard``: all others know that this one has installed the present view; ``others_open``:
    another member that leaves has open work; ``dropped``: a view without this member was decided;
    ``known``: all of its members have installed it; ``sessions``: those of clients that do not
    retry; ``unheard``: connections of clients that have not acknowledged all results."""

    open: int
    requests: int
    copies: int
    stranded: bool = False
    heard: bool = True
    others_open: bool = False
    dropped: bool = False
    known: bool = False
    sessions: int = 0
    unheard: int = 0


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Sessions of clients that do not retry are closed, each at a moment that fails no request."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """New sessions, transactions and statements are refused; the others learn that this member
    wants to leave."""


@dataclass(frozen=True, slots=True)
class EndOpen:
    """The deadline: open work is rolled back or cancelled."""


@dataclass(frozen=True, slots=True)
class AskToLeave:
    """Ask for a view without this member: again at every look."""


@dataclass(frozen=True, slots=True)
class ServeNoClient:
    """No request of a client is served from now on."""


@dataclass(frozen=True, slots=True)
class ServeNothing:
    """No message that relies on the view is served from now on."""


@dataclass(frozen=True, slots=True)
class Part:
    """Tell the clients, and let them go."""


Effect = Dismiss | Refuse | EndOpen | ServeNoClient | AskToLeave | ServeNothing | Part


class Leaving:
    """``timeout``: seconds until what is open is ended, and until copies are not waited for."""

    def __init__(self, now: float, timeout: float) -> None:
        self.phase = Phase.DISMISSING
        self.drained = False
        """Nothing is open here any more."""
        self._deadline = now + timeout
        self._until = now + min(DISMISSED_WITHIN, timeout / 2)
        """When the present phase ends in any case, but for that of draining."""
        self._dismissed = self._ended = False

    @property
    def over(self) -> bool:
        return self.phase is Phase.GONE

    def step(self, now: float, found: Found) -> list[Effect]:
        """A look; call it every few hundredths of a second."""
        match self.phase:
            case Phase.DISMISSING:
                return self._dismiss(now, found)
            case Phase.DRAINING:
                return self._drain(now, found)
            case Phase.CLOSING:
                return self._close(now, found)
            case Phase.DROPPING:
                if found.dropped:
                    return self._enter(Phase.TELLING, now + TOLD_WITHIN, ServeNothing())
                heard = 0.0 if found.stranded else DROPPED_AT_LAST - DROPPED_WITHIN
                if now >= self._until + heard:
                    return self._enter(Phase.PARTING, now + PARTING, ServeNothing(), Part())
                return [AskToLeave()]
            case Phase.TELLING:
                answered = not found.requests and not found.unheard
                if (found.known and answered) or now >= self._until:
                    return self._enter(Phase.PARTING, now + PARTING, Part())
                return []
            case Phase.PARTING:
                if now >= self._until:
                    self.phase = Phase.GONE
                return []
            case Phase.GONE:
                return []

    def _dismiss(self, now: float, found: Found) -> list[Effect]:
        first: list[Effect] = [] if self._dismissed else [Dismiss()]
        self._dismissed = True
        if found.sessions and not found.stranded and now < self._until:
            return first
        self.phase = Phase.DRAINING
        return [*first, Refuse(), *self._drain(now, found)]

    def _drain(self, now: float, found: Found) -> list[Effect]:
        out: list[Effect] = []
        late = now >= self._deadline
        if late and found.open and not self._ended:
            self._ended = True
            out.append(EndOpen())
        self.drained = not found.open or now >= self._deadline + ENDED_WITHIN
        kept = found.copies and not found.stranded and not late
        needed = found.stranded and found.others_open and now < self._deadline + ENDED_WITHIN
        if not self.drained or kept or needed:
            return out
        return out + self._enter(Phase.CLOSING, now + ANSWERED_WITHIN, ServeNoClient())

    def _close(self, now: float, found: Found) -> list[Effect]:
        if found.requests and now < self._until:
            return []
        if found.stranded:
            return self._enter(Phase.PARTING, now + PARTING, ServeNothing(), Part())
        if not found.heard and now < self._until:
            return []
        return self._enter(Phase.DROPPING, now + DROPPED_WITHIN, AskToLeave())

    def _enter(self, phase: Phase, until: float, *effects: Effect) -> list[Effect]:
        self.phase, self._until = phase, until
        return list(effects)
