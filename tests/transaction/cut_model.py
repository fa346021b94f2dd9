"""Consistent cuts: which transactions lie before version k, on every member the same ones (design
rules 23 to 26): a model of the protocol, whose logs tests of the storage read as well. Members run
``remuda.member.snapshots.cuts``.

Source: "Consistent Cut" (the Ignite seed document), after T. H. Lai and T. H. Yang (1987), with two
changes that design section 5c takes. Versions instead of two colours: a late message of an aborted
cut cannot be taken for one of the next. And the timestamp decides: a transaction lies before cut k
if and only if its commit timestamp is at most T_k, which no two members can see differently.

Of one cut::

    coordinator                          every data member
    asks for the clock       ------->    tells it; remembers commits from here on
    T_k = the largest one, version k agreed
    marker (k, T_k)          ------->    registers the cut; so does any message that carries k,
                                         before its payload is handled
                                         clock above T_k; Start; waits for parts that are prepared
                                         at or below T_k; Finish with BEFORE and AFTER
                             <-------    done
    all done: restorable

What is restored from a member's log for its primary partitions: commits before Start but for AFTER,
and those between Start and Finish that are in BEFORE. Nothing waits for a transaction that is only
ACTIVE or SUSPENDED: it will prepare above T_k. A view change, or a commit that a recovery decided,
aborts the cut; the coordinator tries again with another version.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)
"""A part: transaction and partition."""


# --- a member -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogStart:
    """Into the log, before anything that follows."""

    version: int
    timestamp: int

    def __str__(self) -> str:
        return f"cut {self.version} at {self.timestamp} starts"


@dataclass(frozen=True, slots=True)
class LogFinish(Generic[P]):
    """Into the log, durable before the coordinator is told. ``before``: commits since Start that
    belong to the cut; ``after``: earlier ones that do not."""

    version: int
    before: frozenset[P]
    after: frozenset[P]

    def __str__(self) -> str:
        return f"cut {self.version} finishes, before {len(self.before)}, after {len(self.after)}"


@dataclass(frozen=True, slots=True)
class TellDone:
    """To the coordinator. ``failure``: why this member's part is of no use; "" = it is."""

    version: int
    failure: str = ""


MemberEffect = LogStart | LogFinish[P] | TellDone


class LocalCut(Generic[P]):
    """One member's part in cut ``version``. The caller has advanced its clock past ``timestamp``
    and, in the same instant, collected its arguments: ``prepared``, every part here that has a
    prepare timestamp and has not ended, with that timestamp (PREPARING ones, too: a one-phase
    commit never gets further before it ends), and ``committed``, with theirs, the commits since the
    clock was last told for a cut and was not above ``timestamp``: earlier ones lie below it,
    because the clock was above them. (The last telling alone will not do: a question that is asked
    again after its answer has become T_k comes later than commits above T_k.)"""

    def __init__(
        self, version: int, timestamp: int, prepared: Mapping[P, int], committed: Mapping[P, int]
    ) -> None:
        self.version = version
        self.timestamp = timestamp
        self.ended = False
        self._waiting = {part for part, at in prepared.items() if at <= timestamp}
        self._before: set[P] = set()
        self._after = frozenset(part for part, at in committed.items() if at > timestamp)

    def begin(self) -> list[MemberEffect[P]]:
        return [LogStart(self.version, self.timestamp), *self._finish()]

    def on_end(self, part: P, commit: int | None, *, recovered: bool) -> list[MemberEffect[P]]:
        """After the part's end is in the log: committed at ``commit``, or rolled back (None)."""
        if self.ended or part not in self._waiting:
            return []
        if recovered and commit is not None:
            return self.abort("a recovery decided on a commit")
        self._waiting.discard(part)
        if commit is not None and commit <= self.timestamp:
            self._before.add(part)
        return self._finish()

    def abort(self, why: str) -> list[MemberEffect[P]]:
        """Start without Finish: never restorable."""
        if self.ended:
            return []
        self.ended = True
        return [TellDone(self.version, why)]

    def _finish(self) -> list[MemberEffect[P]]:
        if self._waiting:
            return []
        self.ended = True
        finish = LogFinish(self.version, frozenset(self._before), self._after)
        return [finish, TellDone(self.version)]


# --- the coordinator ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskClock:
    to: int


@dataclass(frozen=True, slots=True)
class AgreeOnVersion:
    """Have the next cut version issued for this timestamp (rule 13), then call ``on_version``."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class SendMarker:
    to: int
    version: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class ReportCut:
    """Once: restorable, or not and why."""

    version: int
    timestamp: int
    failure: str = ""


CoordinatorEffect = AskClock | AgreeOnVersion | SendMarker | ReportCut


@dataclass(slots=True)
class CutCoordinator:
    """One attempt at a cut over the data members of one view."""

    members: frozenset[int]
    version: int = 0
    timestamp: int = 0
    done: bool = False
    _clocks: dict[int, int] = field(default_factory=dict)
    _finished: set[int] = field(default_factory=set)

    def begin(self) -> list[CoordinatorEffect]:
        return [AskClock(to) for to in sorted(self.members)]

    def on_clock(self, member: int, clock: int) -> list[CoordinatorEffect]:
        if self.timestamp or member not in self.members:
            return []
        self._clocks[member] = clock
        if len(self._clocks) < len(self.members):
            return []
        self.timestamp = max(self._clocks.values())
        return [AgreeOnVersion(self.timestamp)]

    def on_version(self, version: int) -> list[CoordinatorEffect]:
        self.version = version
        return self.resend()

    def on_done(self, member: int, told: TellDone) -> list[CoordinatorEffect]:
        if self.done or told.version != self.version or member not in self.members:
            return []
        if told.failure:
            return self.abort(f"member {member}: {told.failure}")
        self._finished.add(member)
        if len(self._finished) < len(self.members):
            return []
        self.done = True
        return [ReportCut(self.version, self.timestamp)]

    def abort(self, why: str) -> list[CoordinatorEffect]:
        """A deadline, or another view."""
        if self.done:
            return []
        self.done = True
        return [ReportCut(self.version, self.timestamp, why)]

    def resend(self) -> list[CoordinatorEffect]:
        """What is unanswered, again."""
        if self.done:
            return []
        if not self.timestamp:
            return [AskClock(to) for to in sorted(self.members - self._clocks.keys())]
        if not self.version:
            return []
        left = sorted(self.members - self._finished)
        return [SendMarker(to, self.version, self.timestamp) for to in left]


# --- what a log says ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Committed(Generic[P]):
    """A part's commit in the log, with whatever it wrote."""

    part: P
    timestamp: int
    writes: object


def commits_of_cut(
    log: Iterable[Committed[P] | LogStart | LogFinish[P]], version: int
) -> list[Committed[P]] | None:
    """The commits that cut ``version`` is made of, in the order of the log (rule 26); None when it
    was not finished there."""
    found: list[Committed[P]] = []
    since: list[Committed[P]] | None = None
    for record in log:
        match record:
            case Committed():
                (found if since is None else since).append(record)
            case LogStart(version=started) if started == version:
                since = []
            case LogFinish(version=finished, before=before, after=after) if finished == version:
                kept = [commit for commit in found if commit.part not in after]
                return kept + [commit for commit in since or () if commit.part in before]
    return None
