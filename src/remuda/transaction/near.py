"""A transaction on the member that coordinates it (design rule 17). Pure.

Two phases: every part is prepared by its primary and kept by all its backups; with the last vote
the transaction *is* committed, at the largest prepare timestamp, because from then on whoever
recovers it finds all parts prepared and decides the same. Rolling back is different: the user may
be told so only when a part can no longer be prepared, that is, when its primary has refused it or
has rolled it back on all copies; otherwise a recovery might still find everything prepared. The
refusal of a part that an earlier primary was asked for proves nothing: a backup may have kept it.

The user is told of a commit when the clocks of all its primaries have reached the commit
timestamp: a reader who asks only one of them, after the user was told, must not read at a timestamp
at which nothing has changed. (At or above it, readers wait for the end of the part.) A vote tells
the clock of its primary; one that is behind is heard of when it has finished. The near member
prepares its own parts before it asks others, so of two primaries, one of them the near member,
none is behind. Where one member has the only copy of a part, and others have parts, too, the user
is told when all have finished: the loss of that copy takes with it what it had prepared, and the
others would roll back what the user was told.

Every message is sent again until it is answered, to whoever is the primary by then. While a
partition is unreachable, the transaction stays in doubt: its user is told that nobody knows, and
it goes on when a copy has come back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from remuda.errors import MemberUnavailable, PartitionsLost, PartitionsUnreachable, RemudaError
from remuda.transaction.states import (
    CATALOG,
    DecideHere,
    Effect,
    Finish,
    Finished,
    Inquire,
    KeptAll,
    Layout,
    Prepare,
    Report,
    Send,
    State,
    Told,
    ToNear,
    TransactionId,
    Vote,
    made,
)

PAUSE_MAX: Final = 8
"""The longest pause between two sendings, in first ones: more of them do not help a slow member."""


class Near:
    """One transaction; ``work`` holds its parts by partition (at least one)."""

    def __init__(
        self,
        me: int,
        transaction: TransactionId,
        work: Mapping[int, object],
        layout: Layout,
        *,
        one_phase: bool = False,
        when_finished: bool = False,
        resend: float,
        last: int | None = None,
    ) -> None:
        """``when_finished``: the user is told of a commit when all parts have finished, not before:
        then nothing of it stands in the way of others. ``last``: the part that decides, when all
        others are prepared (``transaction.last_part``); CATALOG for that of the catalog, whose
        ``work`` nobody looks at."""
        assert work, "a transaction without parts needs no commit"
        self.transaction = transaction
        self.state = State.ACTIVE
        self.commit_timestamp = 0
        self._me = me
        self._work = work
        self.partitions = tuple(sorted(work))
        """Of its parts, in one order for everybody: recovery chooses the first one."""
        self._layout = layout
        self._one_phase = one_phase and len(work) == 1 and len(layout.backups(next(iter(work)))) < 2
        self._resend = resend
        self._pause = resend
        self._sent = 0.0
        self._last = last
        self._last_asked = False
        self._wish: RemudaError | None = None
        """Why it is to be rolled back, if the last part is not decided yet."""
        self._copies: dict[int, tuple[int, ...]] = {}
        """By part: backups that have committed it before its primary."""
        self._votes: dict[int, int] = {}
        self._clocks: dict[int, int] = {}
        """Of the primaries, as far as their votes tell."""
        self._when_finished = when_finished
        self._unfinished = set(self.partitions)
        self._by_catalog = last == CATALOG
        if self._by_catalog:
            self._unfinished.discard(CATALOG)
        self._moved: set[int] = set()
        """Parts of which an earlier primary was asked."""
        self._reported = False
        self._cause: RemudaError | None = None
        """Why it is rolled back."""

    @property
    def in_doubt(self) -> bool:
        """Whether it waits for a partition that is unreachable."""
        return any(self._layout.unreachable(partition) for partition in self._unfinished)

    @property
    def _catalog_asked(self) -> bool:
        """Whether it depends on the catalog alone."""
        return self._by_catalog and self._last_asked

    @property
    def done(self) -> bool:
        """Nothing of it is left anywhere that needs this member."""
        return self._reported and (not self._unfinished or self.state is State.UNKNOWN)

    def prepare(self, now: float) -> list[Effect]:
        """Begin to commit."""
        assert self.state is State.ACTIVE
        self.state = State.PREPARING
        return self._send(now)

    def begin_alone(self, now: float) -> None:
        """Begin to commit the one part of which this member is the primary, too, and which it has
        prepared by itself (``Parts.prepare_alone``): there is nothing to ask."""
        assert self.state is State.ACTIVE
        assert self._one_phase
        self.state, self._sent = State.PREPARING, now

    def begin_with_last(self, now: float) -> None:
        """Begin to commit parts that this member has prepared by itself
        (``Parts.prepare_companion``). The member that is asked last is told of them, and commits:
        the primary of the last part, or the common backup of all."""
        assert self.state is State.ACTIVE
        self.state, self._sent, self._last_asked = State.PREPARING, now, True

    def on_kept_all(self, now: float, sender: int, timestamp: int) -> list[Effect]:
        """The common backup has committed all parts, which are this member's own."""
        if self.state is not State.PREPARING:
            return []
        self._copies = dict.fromkeys(self.partitions, (sender,))
        return self._decided(now, timestamp)

    def committed_alone(self, timestamp: int) -> Report | None:
        """All copies of the part that this member has prepared by itself have committed, as a vote
        says that tells of a commit."""
        if self.state is not State.PREPARING or self._reported:
            return None
        self.state, self.commit_timestamp = State.COMMITTED, timestamp
        self._unfinished.clear()
        self._reported = True
        return made(Report, (self.transaction, State.COMMITTED, timestamp, None))

    def ends_with(self, vote: Vote) -> bool:
        """Whether ``committed_with_last`` may follow: the vote says that the last part has
        committed, and that its primary has ended its copies of all others."""
        if not vote.committed or vote.partition != self._last or self._reported:
            return False
        everything = {vote.partition, *vote.companions}
        return self.state is State.PREPARING and self._unfinished == everything

    def committed_with_last(self, timestamp: int) -> Report:
        """``ends_with`` holds, and this member's own parts have committed in this very step."""
        self.state, self.commit_timestamp = State.COMMITTED, timestamp
        self._unfinished.clear()
        self._reported = True
        return made(Report, (self.transaction, State.COMMITTED, timestamp, None))

    def on_catalog(self, now: float, cause: RemudaError | None) -> list[Effect]:
        """The answer to ``DecideHere``: a majority has the edit that commits the transaction, or it
        is certain that it is never made, for ``cause``."""
        if self.state is not State.PREPARING:
            return []
        if cause is None:
            out = self._decided(now, max(self._votes.values()))
        else:
            out = [*self._roll_back(now, cause), *self._report(cause)]
        return [*out, *self._without(self._lost())]

    def on_doubt(self, cause: RemudaError) -> list[Effect]:
        """Nobody can tell yet whether the catalog has committed it. It goes on."""
        if self.state is not State.PREPARING or self._reported:
            return []
        self._reported = True
        return [Report(self.transaction, State.UNKNOWN, cause=cause)]

    def rollback(self, now: float, cause: RemudaError) -> list[Effect]:
        """The user's wish, or a timeout; too late once it is committed."""
        if self.state is State.ACTIVE:  # no part was prepared, none will be
            self.state, self._unfinished = State.ROLLED_BACK, set()
            return self._report(cause)
        if self.state is not State.PREPARING or self._one_phase:
            return []
        if self._catalog_asked:
            return []
        if self._last_asked:  # all may have been committed: the primary of the last part knows
            self._wish = None if self._last is None else cause
            return self._inquire()
        return self._roll_back(now, cause)

    def on_message(self, now: float, sender: int, message: ToNear) -> list[Effect]:
        match message:
            case Vote():
                return self.on_vote(now, message)
            case Finished():
                return self.on_finished(message)
            case KeptAll(_, timestamp):
                return self.on_kept_all(now, sender, timestamp)
            case Told():
                return self.on_told(now, message)

    def on_vote(self, now: float, vote: Vote) -> list[Effect]:
        if self.state is not State.PREPARING or (self._by_catalog and self._last_asked):
            return []
        if vote.refusal is not None:
            out = self._roll_back(now, vote.refusal)
            return out if vote.partition in self._moved else [*out, *self._report(vote.refusal)]
        if vote.committed:
            return self._committed(now, vote)
        self._votes[vote.partition] = vote.timestamp
        primary = self._layout.primary(vote.partition)
        if primary is not None:
            self._clocks[primary] = max(vote.timestamp, self._clocks.get(primary, 0))
        missing = len(self.partitions) - len(self._votes)
        if missing == 1 and self._last is not None and self._last not in self._votes:
            return [] if self._last_asked else self._send(now)
        if missing:
            return []
        self.commit_timestamp = max(self._votes.values())
        self.state = State.COMMITTING
        self._pause = self._resend
        self._clocks[self._me] = self.commit_timestamp  # it has heard all votes
        self._when_finished = self._when_finished or self._rests_on_one_copy()
        report = self._report(None) if not self._awaited() else []
        return [*report, *self._send(now)]

    def on_told(self, now: float, told: Told) -> list[Effect]:
        """The state of the last part, which was asked for because the transaction is to be rolled
        back. A primary that had not prepared it never will."""
        if self.state is not State.PREPARING or told.partition != self._last:
            return []
        if told.state is State.COMMITTED:
            vote = Vote(self.transaction, told.partition, told.timestamp, committed=True)
            return self._committed(now, vote)
        if told.state is State.ROLLED_BACK and self._wish is not None:
            return [*self._roll_back(now, self._wish), *self._report(self._wish)]
        return []

    def _inquire(self) -> list[Effect]:
        last = self._last
        primary = None if last is None else self._layout.primary(last)
        if last is None or primary is None:
            return []
        return [Send(primary, Inquire(self.transaction, last, asking=last))]

    def _committed(self, now: float, vote: Vote) -> list[Effect]:
        """A part has committed on all its copies: the only one, or the last one, or one whose
        backup has heard of that before this member."""
        at = vote.timestamp
        self._unfinished.discard(vote.partition)
        if not self._unfinished:
            self.state, self.commit_timestamp = State.COMMITTED, at
            return self._report(None)
        primary = self._layout.primary(vote.partition)
        if primary is not None:
            self._clocks[primary] = max(at, self._clocks.get(primary, 0))
            self._copies = dict.fromkeys(vote.companions, (primary,))
        return self._decided(now, at)

    def _decided(self, now: float, timestamp: int) -> list[Effect]:
        """Another member has decided; the other parts are to be finished."""
        self.commit_timestamp = self._clocks[self._me] = timestamp
        self.state, self._pause = State.COMMITTING, self._resend
        report = self._report(None) if not self._awaited() else []
        return [*report, *self._send(now)]

    def _rests_on_one_copy(self) -> bool:
        """Whether a part has one copy (no backups, or a member's copy of a REPLICATED map), and
        another member has a copy of another part."""
        primary, backups = self._layout.primary, self._layout.backups
        if all(backups(p) for p in self.partitions):
            return False
        return len({copy for p in self.partitions for copy in (primary(p), *backups(p))}) > 1

    def _awaited(self) -> set[int]:
        """Parts whose end the user waits for, of a transaction that has committed."""
        if self._when_finished and len(self.partitions) > 1:
            return self._unfinished
        at = self.commit_timestamp
        primary, clocks = self._layout.primary, self._clocks
        return {p for p in self._unfinished if clocks.get(primary(p) or 0, 0) < at}

    def on_finished(self, message: Finished) -> list[Effect]:
        if self.state not in {State.COMMITTING, State.ROLLING_BACK}:
            return []
        self._unfinished.discard(message.partition)
        rolled_back = self.state is State.ROLLING_BACK
        if not self._unfinished:
            self.state = State.ROLLED_BACK if rolled_back else State.COMMITTED
        return self._report(self._cause) if rolled_back or not self._awaited() else []

    def on_layout(self, now: float, layout: Layout) -> list[Effect]:
        """Another view. If this member is not in it, it speaks to nobody any more."""
        before, self._layout = self._layout, layout
        self._moved.update(p for p in self.partitions if before.primary(p) != layout.primary(p))
        self._clocks.clear()  # others may be the primaries now
        self._copies.clear()
        if not layout.alive(self._me):
            if not self._reported:
                self.state = State.UNKNOWN
                cause = MemberUnavailable("the cluster goes on without this member")
                self._reported = True
                return [Report(self.transaction, State.UNKNOWN, cause=cause)]
            self.state = State.UNKNOWN
            return []
        lost = self._lost()
        out: list[Effect] = []
        if self.in_doubt and not self._reported:
            self._reported = True
            cause = PartitionsUnreachable(
                f"partition {min(p for p in self._unfinished if layout.unreachable(p))} cannot be"
                " reached: the members that keep it may come back"
            )
            out = [Report(self.transaction, State.UNKNOWN, cause=cause)]
        if lost and self.state is State.PREPARING and not self._catalog_asked:
            cause = PartitionsLost(f"every copy of partition {min(lost)} is lost")
            out += self._roll_back(now, cause)
        if lost and self.state in {State.COMMITTING, State.ROLLING_BACK}:
            out += self._without(lost)
        return [*out, *self._send(now)]

    def _lost(self) -> set[int]:
        """Parts of which no copy is left."""
        primary, unreachable = self._layout.primary, self._layout.unreachable
        return {p for p in self._unfinished if primary(p) is None and not unreachable(p)}

    def _without(self, lost: set[int]) -> list[Effect]:
        """There is nobody to finish these."""
        out: list[Effect] = []
        for partition in sorted(lost):
            out += self.on_finished(Finished(self.transaction, partition))
        return out

    def on_tick(self, now: float) -> list[Effect]:
        if now - self._sent < self._pause:
            return []
        self._pause = min(2 * self._pause, PAUSE_MAX * self._resend)
        return self._send(now)

    def _roll_back(self, now: float, cause: RemudaError) -> list[Effect]:
        self.state = State.ROLLING_BACK
        self._cause = cause
        return self._send(now)

    def _send(self, now: float) -> list[Effect]:
        """The messages that are not answered yet."""
        self._sent = now
        if self._wish is not None and self.state is State.PREPARING:
            return self._inquire()
        if self.state is State.PREPARING:
            missing = len(self.partitions) - len(self._votes)
            if missing == 1 and self._last is not None and self._last not in self._votes:
                if self._by_catalog:
                    return self._ask_catalog()
                return self._ask_last(self._last)  # all others are prepared
            groups: dict[int, dict[int, object]] = defaultdict(dict)
            for partition in self.partitions:
                primary = self._layout.primary(partition)
                if partition not in self._votes and primary is not None and partition != self._last:
                    groups[primary][partition] = self._work[partition]
            asked = self.transaction, self.partitions
            return [
                made(Send, (to, made(Prepare, (*asked, work, self._one_phase, ()))))
                for to, work in sorted(groups.items())
            ]
        if self.state in {State.COMMITTING, State.ROLLING_BACK}:
            end = self.commit_timestamp if self.state is State.COMMITTING else None
            transaction, copies, me = self.transaction, self._copies, self._me
            out: list[Effect] = []
            for partition in sorted(self._unfinished):
                primary = self._layout.primary(partition)
                if primary is not None:
                    ended = copies.get(partition, ()) if primary == me else ()
                    finish = made(Finish, (transaction, partition, end, ended))
                    out.append(made(Send, (primary, finish)))
            return out
        return []

    def _ask_catalog(self) -> list[Effect]:
        if self._last_asked:
            return []
        self._last_asked = True
        return [DecideHere(self.transaction, max(self._votes.values()))]

    def _ask_last(self, last: int) -> list[Effect]:
        """With more than one backup it votes as the others have: a part in one phase could get two
        timestamps if its primary was lost."""
        primary = self._layout.primary(last)
        if primary is None:
            return []
        self._last_asked = True
        one_phase = len(self._layout.backups(last)) < 2
        work = {last: self._work[last]}
        return [Send(primary, Prepare(self.transaction, self.partitions, work, one_phase))]

    def _report(self, cause: RemudaError | None) -> list[Effect]:
        if self._reported:
            return []
        self._reported = True
        if cause is not None:
            return [Report(self.transaction, State.ROLLED_BACK, cause=cause)]
        report = (self.transaction, State.COMMITTED, self.commit_timestamp, None)
        return [made(Report, report)]
