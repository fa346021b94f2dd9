"""Which queries of an initiator may begin, and which wait until there is memory: pure.

A query that waits holds nothing, and one that runs never waits for memory: it spills or fails. So
whatever keeps a query waiting goes on and comes to an end, or the wait does.

Members say from time to time how much their statements hold (``Reported``). A query that was let in
is charged to its members besides, with what its plan is expected to hold, until that shows in their
reports or the query has ended. Queries are let in while no member that they need is short, in the
order in which they came: one that is waited for keeps all later ones waiting, so none starves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from remuda.errors import OutOfMemory, QueryTimeout, RemudaError, TooManyQueries
from remuda.limits import QUEUED_QUERIES_MAX
from remuda.query.ids import QueryId

ADMIT_BELOW: Final = 0.8
"""A member is short when more than this part of its memory is held or charged."""
CHARGE_MAX: Final = 1 / 8
"""Of a member's memory, for one query: estimates may be far too high."""
CHARGE_TIME: Final = 2.5
"""Seconds after which what a query holds shows in the reports."""
REPORT_TIME: Final = 10.0
"""Seconds after which a report says nothing any more."""
LOOK_AGAIN: Final = 0.05


@dataclass(frozen=True, slots=True)
class Asked:
    """A query wants to begin. ``demand``: bytes that it may come to hold on each of ``members``.
    It waits until ``wait_end`` at most, and fails at ``deadline``, the end of its own time."""

    query: QueryId
    members: tuple[int, ...]
    demand: int
    wait_end: float
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A query that was let in has ended, or one that waited is not wanted any more."""

    query: QueryId


@dataclass(frozen=True, slots=True)
class Reported:
    """The memory that all statements hold on a member, and may hold; 0: without limit."""

    member: int
    held: int
    limit: int


@dataclass(frozen=True, slots=True)
class MemberGone:
    member: int


@dataclass(frozen=True, slots=True)
class Looked:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Admit:
    query: QueryId


@dataclass(frozen=True, slots=True)
class Refuse:
    query: QueryId
    error: RemudaError


@dataclass(frozen=True, slots=True)
class LookAt:
    """Come back with ``Looked`` at this time, or before."""

    time: float


Event: TypeAlias = Asked | Ended | Reported | MemberGone | Looked
Effect: TypeAlias = Admit | Refuse | LookAt


@dataclass(slots=True)
class _Charge:
    members: tuple[int, ...]
    demand: int
    until: float


@dataclass(slots=True)
class _Report:
    held: int
    limit: int
    at: float


class Admission:
    """``step`` takes an event in and says what the shell must do, in order."""

    def __init__(self, queued_max: int = QUEUED_QUERIES_MAX) -> None:
        self._queued_max = queued_max
        self._queue: OrderedDict[QueryId, Asked] = OrderedDict()
        self._charges: OrderedDict[QueryId, _Charge] = OrderedDict()
        """Oldest first."""
        self._reports: dict[int, _Report] = {}
        self._handlers: dict[type, Callable[..., list[Effect]]] = {
            Asked: self._asked,
            Ended: self._ended,
            Reported: self._reported,
            MemberGone: self._member_gone,
            Looked: lambda _now, _event: [],
        }

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def waits(self, query: QueryId) -> bool:
        return query in self._queue

    def step(self, now: float, event: Event) -> list[Effect]:
        while self._charges and next(iter(self._charges.values())).until <= now:
            self._charges.popitem(last=False)
        effects = self._handlers[type(event)](now, event)
        if self._queue:
            effects += self._late(now)
            effects += self._let_in(now)
        if self._queue:
            effects.append(LookAt(min(now + LOOK_AGAIN, self._next_end())))
        return effects

    # --- events -------------------------------------------------------------------------------

    def _asked(self, _now: float, event: Asked) -> list[Effect]:
        if len(self._queue) >= self._queued_max:
            error = TooManyQueries(
                f"{len(self._queue)} queries wait for memory already, which is the limit",
                hint="Run fewer queries at a time, or raise member_memory.",
            )
            return [Refuse(event.query, error)]
        self._queue[event.query] = event
        return []

    def _ended(self, _now: float, event: Ended) -> list[Effect]:
        self._queue.pop(event.query, None)
        self._charges.pop(event.query, None)
        return []

    def _reported(self, now: float, event: Reported) -> list[Effect]:
        self._reports[event.member] = _Report(event.held, event.limit, now)
        return []

    def _member_gone(self, _now: float, event: MemberGone) -> list[Effect]:
        """A statement that needs it is let in, and fails with the reason."""
        self._reports.pop(event.member, None)
        return []

    # --- the queue ----------------------------------------------------------------------------

    def _let_in(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        while self._queue:
            asked = next(iter(self._queue.values()))
            if any(self._short(member, now) for member in asked.members):
                break
            del self._queue[asked.query]
            self._charges[asked.query] = _Charge(asked.members, asked.demand, now + CHARGE_TIME)
            effects.append(Admit(asked.query))
        return effects

    def _short(self, member: int, now: float) -> bool:
        report = self._reports.get(member)
        if report is None or not report.limit or report.at + REPORT_TIME < now:
            return False
        return report.held + self._charged(member, report) > ADMIT_BELOW * report.limit

    def _charged(self, member: int, report: _Report) -> int:
        most = int(report.limit * CHARGE_MAX)
        return sum(
            min(charge.demand, most)
            for charge in self._charges.values()
            if member in charge.members
        )

    def _late(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for asked in list(self._queue.values()):
            error: RemudaError
            if asked.deadline is not None and asked.deadline <= now:
                error = QueryTimeout("the query's time was over before there was memory for it")
            elif asked.wait_end <= now:
                short = [member for member in asked.members if self._short(member, now)]
                error = OutOfMemory(
                    "the query waited for memory, and the running queries gave none back",
                    detail=self._shown(short),
                    hint="Close cursors that nobody reads, run fewer queries at a time, "
                    "or raise member_memory or admission_timeout.",
                )
            else:
                continue
            del self._queue[asked.query]
            effects.append(Refuse(asked.query, error))
        return effects

    def _shown(self, members: list[int]) -> str:
        if not members:
            return "Others came before it."
        return "; ".join(self._state_of(member) for member in members) + "."

    def _state_of(self, member: int) -> str:
        report = self._reports[member]
        text = f"member {member} holds {report.held} of {report.limit} bytes"
        charged = self._charged(member, report)
        return f"{text}, queries that have just begun expect {charged} more" if charged else text

    def _next_end(self) -> float:
        return min(
            min(asked.wait_end, asked.deadline if asked.deadline is not None else asked.wait_end)
            for asked in self._queue.values()
        )
