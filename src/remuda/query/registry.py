"""The queries that a member takes part in, as a pure state machine (design rules 1, 3, 4, 5, 10).

``step(now, event) -> effects``; ``now`` is monotonic seconds, one thread. Source of the protocol:
the newer seed document (start, cancel, batch, flow_control, check, check_response) with design
section 5a. A query on a member is in one of four states::

    (unknown) --batch, flow control--> EARLY --start--> RUNNING --fragments done--> (unknown)
    (unknown) --cancel--> CANCELLED --start, check_response, age--> (unknown)
    EARLY, RUNNING --own failure--> CANCELLED: waits for the initiator's broadcast, asks again
    EARLY, RUNNING --cancel of the initiator, check_response, initiator left--> (unknown)

The initiator only knows RUNNING: it registers a query before it sends anything, so a message
for an unknown query of its own is stale. Ids of ended queries are remembered for a while, so that
late messages are dropped at once instead of being kept for a query that might still start.

Cancel takes two steps and at most 2N messages: each participant tells the initiator once, the
initiator tells each participant once. ``check`` heals what is lost: a participant asks about every
query that has not moved for a while, started or not; the initiator, in turn, asks participants
that have not reported their fragments, so that a lost start does not hang the query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from remuda.errors import (
    LimitExceeded,
    MemberUnavailable,
    QueryTimeout,
    RemudaError,
    TransientError,
    ViewChanged,
)
from remuda.limits import (
    ACTIVE_QUERIES_MAX,
    CANCELLED_SURROGATE_TTL,
    EARLY_BATCHES_SIZE_MAX,
    ENDED_QUERY_IDS_KEPT,
    QUERY_SUSPECT_AFTER,
)
from remuda.query import effects as do
from remuda.query import events as on
from remuda.query.effects import Effect
from remuda.query.events import Event
from remuda.query.ids import QueryId
from remuda.query.state import Phase, QueryState

FLOW_CONTROL_SIZE = 128
"""The charge for a retained flow control message, in bytes."""


Instances = tuple[tuple[int, int], ...]
"""(fragment, instance) of each."""


class QueryRegistry:
    """The queries of member number ``member``."""

    def __init__(
        self,
        member: int,
        *,
        active_max: int = ACTIVE_QUERIES_MAX,
        early_size_max: int = EARLY_BATCHES_SIZE_MAX,
    ) -> None:
        self.member = member
        self.view = 0
        self.members: frozenset[int] = frozenset({member})
        self.early_size = 0
        """Bytes of retained messages, of all queries."""
        self._active_max = active_max
        self._early_size_max = early_size_max
        self._queries: dict[QueryId, QueryState] = {}
        self._own = 0  # queries that this member initiated
        # Ended queries, oldest first: what ended well here, (fragment, instance) each, or None.
        self._ended: dict[QueryId, Instances | None] = {}
        self._handlers: dict[type, Callable[..., list[Effect]]] = {
            on.Begin: self._begin,
            on.StartReceived: self._start_received,
            on.BatchReceived: self._batch_received,
            on.FlowControlReceived: self._flow_control_received,
            on.CancelReceived: self._cancel_received,
            on.CheckReceived: self._check_received,
            on.CheckResponseReceived: self._check_response_received,
            on.FragmentFinished: self._fragment_finished,
            on.FragmentDoneReceived: self._fragment_done_received,
            on.QueryFailed: self._query_failed,
            on.Progressed: self._progressed,
            on.MemberLeft: self._member_left,
            on.ViewInstalled: self._view_installed,
            on.Expired: self._expired,
            on.Tick: self._tick,
        }

    def step(self, now: float, event: Event) -> list[Effect]:
        """Take an event in; the effects for the shell, in order."""
        return self._handlers[type(event)](now, event)

    def active(self, query: QueryId) -> bool:
        """Whether the query runs here (batches for it go straight to its fragments)."""
        state = self._queries.get(query)
        return state is not None and state.phase is Phase.RUNNING

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, query: QueryId) -> bool:
        return query in self._queries

    def __str__(self) -> str:
        return "\n".join(state.line() for state in self._queries.values()) or "empty"

    # ---- the initiator's own ----

    def _begin(self, now: float, event: on.Begin) -> list[Effect]:
        query = event.query
        assert query.member == self.member, "a query is begun by the member that its id names"
        assert query not in self._queries, "a query is begun once"
        if (refusal := self._refusal(event)) is not None:
            return [do.FailQuery(query, self.member, refusal)]
        state = QueryState(query, Phase.RUNNING, moved=now, asked=now)
        state.participants = event.participants
        state.instances = _instances(event.fragments, event.instances)
        state.remaining = set(state.instances)
        state.root = event.root
        state.profiled = event.profiled
        state.owed = {member: event.owed.get(member, 1) for member in self._others(state)}
        self._queries[query] = state
        self._own += 1
        out: list[Effect] = []
        if event.timeout is not None:
            state.timeout = event.timeout
            state.deadline = now + event.timeout
            out.append(do.WakeAt(state.deadline, query))
        # Other members first: they work while this one builds its own fragments. What they send
        # back cannot overtake that, because the shell performs all of this in one turn.
        out += [do.SendStart(to, query, event.start) for to in self._others(state)]
        if state.remaining:
            out.append(do.StartFragments(query, event.start))
        return out

    def _refusal(self, event: on.Begin) -> RemudaError | None:
        if self._own >= self._active_max:
            return LimitExceeded(
                f"{self._own} queries are active on member {self.member}, which is the limit",
                hint="Run fewer queries at a time, or through several members.",
            )
        for member in event.participants:
            if member not in self.members:
                return MemberUnavailable(
                    f"member {member} left the cluster before the query began", member=str(member)
                )
        return None

    def _others(self, state: QueryState) -> list[int]:
        return [member for member in state.participants if member != self.member]

    def _complete(self, state: QueryState) -> list[Effect]:
        out: list[Effect] = []
        if state.remaining:  # a LIMIT was satisfied before they ended
            why = TransientError("the query is complete; nothing more is needed")
            out.append(do.CancelFragments(state.id, why))
        out.append(do.CompleteQuery(state.id))
        return out + self._forget(state)

    def _fail_everywhere(
        self, state: QueryState, cancel_initiator: int, error: RemudaError
    ) -> list[Effect]:
        """The initiator's half of cancel: once, because the query is forgotten with it."""
        out: list[Effect] = []
        if state.remaining:
            out.append(do.CancelFragments(state.id, error))
        out += [
            do.SendCancel(to, state.id, cancel_initiator, error)
            for to in self._others(state)
            if to in self.members
        ]
        out.append(do.FailQuery(state.id, cancel_initiator, error))
        return out + self._forget(state)

    # ---- start, data ----

    def _start_received(self, now: float, event: on.StartReceived) -> list[Effect]:
        query = event.query
        state = self._queries.get(query)
        if query in self._ended or (state is not None and state.phase is Phase.RUNNING):
            return [do.Discard(query, "repeated start")]
        if query.member not in self.members:
            out: list[Effect] = [do.Discard(query, "start of a member that has left")]
            return out + (self._forget(state) if state is not None else [])
        if state is not None and state.phase is Phase.CANCELLED:
            discard = do.Discard(query, "start of a cancelled query")
            # One that was cancelled here lives on until the initiator knows.
            return [discard, *(self._forget(state) if state.untold is None else [])]
        if event.view != self.view:
            return self._refuse_start(now, event)
        assert event.fragments, "a member that runs no fragment is no participant"
        if state is None:
            state = self._queries[query] = QueryState(query, Phase.EARLY, moved=now, asked=now)
        state.phase = Phase.RUNNING
        state.moved = state.asked = now
        state.participants = event.participants
        state.instances = _instances(event.fragments, event.instances)
        state.remaining = set(state.instances)
        early = self._free_early(state)
        return [do.StartFragments(query, event.start), *early]

    def _refuse_start(self, now: float, event: on.StartReceived) -> list[Effect]:
        error = ViewChanged(
            f"member {self.member} is in view {self.view}, the query was planned in {event.view}",
            member=str(self.member),
        )
        state = self._queries.get(event.query)
        if state is None:
            state = QueryState(event.query, Phase.EARLY, moved=now, asked=now)
            self._queries[event.query] = state
        return self._cancel_here(now, state, error)

    def _batch_received(self, now: float, event: on.BatchReceived) -> list[Effect]:
        delivery = do.DeliverBatch(event.query, event.batch)
        return self._data(now, event.query, delivery, event.size, "batch")

    def _flow_control_received(self, now: float, event: on.FlowControlReceived) -> list[Effect]:
        delivery = do.DeliverFlowControl(event.query, event.flow)
        return self._data(now, event.query, delivery, FLOW_CONTROL_SIZE, "flow control")

    def _data(
        self, now: float, query: QueryId, delivery: Effect, size: int, what: str
    ) -> list[Effect]:
        state = self._queries.get(query)
        if state is not None and state.phase is Phase.RUNNING:
            if what == "batch":  # a grant is repeated even when nothing moves
                state.moved = now
            return [delivery]
        if state is not None and state.phase is Phase.CANCELLED:
            return [do.Discard(query, f"{what} of a cancelled query", size)]
        if query.member == self.member or query in self._ended:
            return [do.Discard(query, f"late {what}", size)]
        if query.member not in self.members:
            return [do.Discard(query, f"{what} of a query whose initiator has left", size)]
        if state is None:
            state = self._queries[query] = QueryState(query, Phase.EARLY, moved=now, asked=now)
        if self.early_size + size > self._early_size_max:
            error = LimitExceeded(
                f"more than {self._early_size_max} bytes arrived on member {self.member}"
                " for queries that had not started there",
                member=str(self.member),
            )
            return self._cancel_here(now, state, error)
        state.early.append(delivery)
        state.early_size += size
        self.early_size += size
        return []

    def _free_early(self, state: QueryState) -> list[Effect]:
        early, state.early = state.early, []
        self.early_size -= state.early_size
        state.early_size = 0
        return early

    # ---- cancel ----

    def _query_failed(self, now: float, event: on.QueryFailed) -> list[Effect]:
        query = event.query
        state = self._queries.get(query)
        if state is None:
            if self._ended.get(query) is None or query.member not in self.members:
                return []
            # Its fragments here ended well, but what they sent was lost: the initiator must know.
            self._ended[query] = None
            return [do.SendCancel(query.member, query, self.member, event.error)]
        if query.member == self.member:
            return self._fail_everywhere(state, self.member, event.error)
        if state.phase is Phase.CANCELLED:
            return []
        return self._cancel_here(now, state, event.error)

    def _cancel_here(self, now: float, state: QueryState, error: RemudaError) -> list[Effect]:
        """The participant's half of cancel: stop at once, tell the initiator, swallow the rest."""
        out = self._stop(state, error)
        if state.id.member not in self.members:
            return out + self._forget(state)
        state.phase = Phase.CANCELLED
        state.since = state.moved = state.asked = now
        state.untold = error
        return [*out, do.SendCancel(state.id.member, state.id, self.member, error)]

    def _stop(self, state: QueryState, error: RemudaError) -> list[Effect]:
        out: list[Effect] = []
        if state.phase is Phase.RUNNING and state.remaining:
            out.append(do.CancelFragments(state.id, error))
        state.remaining.clear()
        if state.early:
            size = state.early_size
            count = len(self._free_early(state))
            out.append(do.Discard(state.id, f"{count} early messages", size))
        return out

    def _cancel_received(self, now: float, event: on.CancelReceived) -> list[Effect]:
        query = event.query
        state = self._queries.get(query)
        if query.member == self.member:
            if state is None:
                return [do.Discard(query, "late cancel")]
            return self._fail_everywhere(state, event.cancel_initiator, event.error)
        if event.sender != query.member:
            return [do.Discard(query, f"cancel of member {event.sender}, who did not begin it")]
        if state is not None:
            return [*self._stop(state, event.error), *self._forget(state)]
        if query in self._ended or query.member not in self.members:
            return [do.Discard(query, "late cancel")]
        # It has overtaken its start: leave a surrogate that swallows batches.
        state = QueryState(query, Phase.CANCELLED, moved=now, asked=now, since=now)
        self._queries[query] = state
        return []

    # ---- check ----

    def _check_received(self, now: float, event: on.CheckReceived) -> list[Effect]:  # noqa: ARG002
        out: list[Effect] = []
        inactive: list[QueryId] = []
        ended: list[tuple[QueryId, int, int, int]] = []
        for query in event.suspected:
            state = self._queries.get(query)
            ended_well = self._ended.get(query)
            if state is not None and state.phase is Phase.RUNNING:
                ended += self._ended_instances(state)
                continue
            if state is not None and state.untold is not None:
                out.append(do.SendCancel(event.sender, query, self.member, state.untold))
            elif ended_well is not None and query.member == event.sender:
                out += [do.SendFragmentDone(event.sender, query, f, None, i) for f, i in ended_well]
            else:
                inactive.append(query)
        if inactive or ended:
            out.append(do.SendCheckResponse(event.sender, tuple(inactive), tuple(ended)))
        return out

    def _ended_instances(self, state: QueryState) -> list[tuple[QueryId, int, int, int]]:
        """On the initiator: the instances that have sent everything. Their last batch to the
        asking member may be lost; this tells the member that it waits for nothing (rule 5)."""
        if state.id.member != self.member:
            return []
        here = {(self.member, *which) for which in state.instances if which not in state.remaining}
        return [(state.id, *which) for which in sorted(here | state.reported)]

    def _check_response_received(
        self,
        now: float,  # noqa: ARG002
        event: on.CheckResponseReceived,
    ) -> list[Effect]:
        out: list[Effect] = []
        error: RemudaError
        for query in event.inactive:
            state = self._queries.get(query)
            if state is None:
                continue
            if query.member == self.member:
                error = MemberUnavailable(
                    f"member {event.sender} does not know the query any more, or never did",
                    member=str(event.sender),
                )
                out += self._fail_everywhere(state, self.member, error)
            elif event.sender == query.member:
                error = TransientError("the query has ended on the member that began it")
                out += [*self._stop(state, error), *self._forget(state)]
        return out

    def _expired(self, now: float, event: on.Expired) -> list[Effect]:
        state = self._queries.get(event.query)
        if state is None or state.deadline is None or now < state.deadline:
            return []
        return self._time_out(state)

    def _time_out(self, state: QueryState) -> list[Effect]:
        error = QueryTimeout(f"the query did not end within {state.timeout:g} s")
        return self._fail_everywhere(state, self.member, error)

    def _tick(self, now: float, _: on.Tick) -> list[Effect]:
        out: list[Effect] = []
        suspects: defaultdict[int, list[QueryId]] = defaultdict(list)
        for state in list(self._queries.values()):
            if state.deadline is not None and now >= state.deadline:
                out += self._time_out(state)
            elif state.phase is Phase.CANCELLED and now >= state.since + CANCELLED_SURROGATE_TTL:
                out += self._forget(state)
            elif now >= max(state.moved, state.asked) + QUERY_SUSPECT_AFTER:
                state.asked = now
                out += self._suspect(state, suspects)
        out += [do.SendCheck(to, tuple(queries)) for to, queries in sorted(suspects.items())]
        return out

    def _suspect(
        self, state: QueryState, suspects: defaultdict[int, list[QueryId]]
    ) -> Iterable[Effect]:
        query = state.id
        if query.member != self.member:
            suspects[query.member].append(query)
            if state.untold is not None:
                return [do.SendCancel(query.member, query, self.member, state.untold)]
            return []
        for member, count in state.owed.items():
            if count > 0:
                suspects[member].append(query)
        return []

    def _progressed(self, now: float, event: on.Progressed) -> list[Effect]:
        state = self._queries.get(event.query)
        if state is not None:
            state.moved = now
        return []

    # ---- end ----

    def _fragment_finished(self, now: float, event: on.FragmentFinished) -> list[Effect]:
        state = self._queries.get(event.query)
        which = (event.fragment, event.instance)
        if state is None or which not in state.remaining:
            return []
        state.moved = now
        state.remaining.discard(which)
        query = state.id
        if query.member != self.member:
            done = do.SendFragmentDone(
                query.member, query, event.fragment, event.profile, event.instance
            )
            return [done, *([] if state.remaining else self._forget(state, state.instances))]
        report = do.ReportProfile(query, self.member, event.fragment, event.profile, event.instance)
        state.root_done = state.root_done or event.fragment == state.root
        return [report, *self._complete_if_done(state)]

    def _fragment_done_received(self, now: float, event: on.FragmentDoneReceived) -> list[Effect]:
        state = self._queries.get(event.query)
        key = (event.sender, event.fragment, event.instance)
        if state is None or event.query.member != self.member or key in state.reported:
            return [do.Discard(event.query, "late fragment_done")]
        state.moved = now
        state.reported.add(key)
        if event.sender in state.owed:
            state.owed[event.sender] -= 1
        report = do.ReportProfile(
            event.query, event.sender, event.fragment, event.profile, event.instance
        )
        return [report, *self._complete_if_done(state)]

    def _complete_if_done(self, state: QueryState) -> list[Effect]:
        if state.root_done and not (state.profiled and any(state.owed.values())):
            return self._complete(state)
        return []

    def _forget(self, state: QueryState, ended_well: Instances | None = None) -> list[Effect]:
        self._free_early(state)
        del self._queries[state.id]
        self._own -= state.id.member == self.member
        self._ended[state.id] = ended_well
        if len(self._ended) > ENDED_QUERY_IDS_KEPT:
            del self._ended[next(iter(self._ended))]
        return [do.Forget(state.id)]

    # ---- membership ----

    def _view_installed(self, now: float, event: on.ViewInstalled) -> list[Effect]:  # noqa: ARG002
        left = self.members - set(event.members)
        self.view = event.view
        self.members = frozenset(event.members)
        out: list[Effect] = []
        for member in sorted(left):
            error = MemberUnavailable(f"member {member} left the cluster", member=str(member))
            out += self._without(member, error)
        return out

    def _member_left(self, now: float, event: on.MemberLeft) -> list[Effect]:  # noqa: ARG002
        self.members -= {event.member}
        return self._without(event.member, event.error)

    def _without(self, member: int, error: RemudaError) -> list[Effect]:
        """End the queries that need ``member``. Participants ask nobody when it began them, and
        leave the rest to the initiator, who notices as well (design rule 10)."""
        out: list[Effect] = []
        for state in list(self._queries.values()):
            if state.id.member == self.member:
                if member in state.participants and not self._done(state, member):
                    out += self._fail_everywhere(state, self.member, error)
            elif state.id.member == member:
                out += [*self._stop(state, error), *self._forget(state)]
        return out

    @staticmethod
    def _done(state: QueryState, member: int) -> bool:
        """Whether another member has run its whole part of a query of this one: it has sent
        everything, and a slow reader here needs it no more. Should one of its batches be missing,
        the break of its connection or the gap in its stream ends the query."""
        return not state.owed.get(member, 1)


def _instances(fragments: Iterable[int], counts: Mapping[int, int]) -> Instances:
    return tuple((f, instance) for f in fragments for instance in range(counts.get(f, 1)))
