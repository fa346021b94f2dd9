"""Profiles of the statements that this member initiated: those that run, and the last ones."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from remuda.errors import ConnectionBroken, InternalError, QueryCanceled, RemudaError
from remuda.execution.context import FragmentProfile
from remuda.limits import FINISHED_QUERIES_KEPT, FINISHED_QUERIES_SIZE_MAX
from remuda.member.base.core import Core
from remuda.member.metrics.statement_table import Key
from remuda.member.metrics.traces import Traces
from remuda.member.queries.query_state import Initiated
from remuda.member.sessions.statement import Statement
from remuda.member.state.log import fields
from remuda.query.ids import QueryId
from remuda.session.query_profiles import PlanRun, QueryFacts

if TYPE_CHECKING:
    from opentelemetry.context import Context

log = logging.getLogger(__name__)

TEXT_KEPT: Final = 4000
"""Characters of a statement's text."""
_BYTES_PER_OPERATOR: Final = 400
_BYTES_PER_NODE: Final = 2000


@dataclass(slots=True)
class _Kept:
    facts: QueryFacts
    runs: tuple[Initiated, ...]
    size: int


class QueryHistory:
    """Reads by key that are answered at once (``point_reads``) leave no profile."""

    def __init__(
        self,
        core: Core,
        kept_max: int = FINISHED_QUERIES_KEPT,
        size_max: int = FINISHED_QUERIES_SIZE_MAX,
    ) -> None:
        self._core = core
        self._traces = core.traces
        self._kept_max = kept_max
        self._size_max = size_max
        self._kept: OrderedDict[QueryId, _Kept] = OrderedDict()
        """Oldest first."""
        self._by_run: dict[QueryId, tuple[Initiated, Key]] = {}
        self._contexts: dict[QueryId, tuple[Context, float]] = {}
        """Of statements whose fragments may still report: the trace, and when it began."""
        self.size = 0
        """Bytes that all of them take, roughly."""
        self.internal_errors = 0
        """How many statements ended with a bug (XX000) since this member began."""

    def __len__(self) -> int:
        return len(self._kept)

    # --- what happens -------------------------------------------------------------------------

    def watch(self, statement: Statement) -> Callable[[RemudaError | None, int, int], None]:
        """To be called with the statement's end: its error, and the rows and bytes of its
        result."""
        return lambda error, rows, size: self.ended(statement, error, rows, size)

    def ended(self, statement: Statement, error: RemudaError | None, rows: int, size: int) -> None:
        """A statement has ended, with the rows and bytes of its result."""
        if isinstance(error, InternalError):
            self.internal_errors += 1
            log.error(
                "statement ended with an internal error",
                extra=fields(
                    query=str(statement.query),
                    number=self.internal_errors,
                    error=error.message,
                    text=statement.text[:TEXT_KEPT],
                ),
            )
        facts = self._facts(statement, rows, size)
        seconds = facts.planning + facts.queued + facts.waited + facts.execution
        self._core.measures.statements.ended(seconds, facts, error)
        if self._core.audit.active or self._core.config.log_statements:
            self._note(statement, facts, seconds, error)
        if statement.session.values and error is None and not statement.session.keeps_profiles:
            return
        facts.error = None if error is None else error.plain()
        facts.state = "finished" if error is None else _state(error)
        runs = tuple(statement.progress.runs)
        profiles = [profile for run in runs for profile in run.profiles] if runs else ()
        key = self._core.measures.by_fingerprint.ended(
            statement.text, facts, seconds, error, profiles
        )
        cost = len(facts.text) + _BYTES_PER_NODE
        if runs:
            cost += _BYTES_PER_OPERATOR * sum([len(each.operators) for each in profiles])
            cost += _BYTES_PER_NODE * sum(
                [len(f.nodes) for run in runs for f in run.plan.fragments]
            )
        if statement.query in self._kept:
            self._drop(statement.query)
        self._kept[statement.query] = _Kept(facts, runs, cost)
        self.size += cost
        for run in runs:
            self._by_run[run.query] = run, key
        if self._traces is not None:
            self._trace(self._traces, statement, facts, seconds)
        while len(self._kept) > 1 and (
            len(self._kept) > self._kept_max or self.size > self._size_max
        ):
            self._drop(next(iter(self._kept)))

    def _trace(
        self, traces: Traces, statement: Statement, facts: QueryFacts, seconds: float
    ) -> None:
        context = traces.statement(facts, seconds, statement.text, statement.traceparent)
        began = facts.started / 1e6
        for run in statement.progress.runs:
            self._contexts[run.query] = context, began
            for profile in run.profiles:
                self._trace_fragment(traces, context, profile, began)

    def _trace_fragment(
        self, traces: Traces, context: Context, profile: FragmentProfile, began: float
    ) -> None:
        member = self._core.view.by_number.get(profile.member)
        instance = self._core.uuid if member is None else member.uuid
        traces.fragment(context, profile, began, instance)

    def _note(
        self, statement: Statement, facts: QueryFacts, seconds: float, error: RemudaError | None
    ) -> None:
        """In the log, a slow one; in the audit, what it keeps."""
        core, peer = self._core, statement.channel.peer
        defines = statement.progress.defines
        core.audit.statement(facts.user, peer, facts.text, error, defines=defines)
        if core.config.log_statements and seconds >= core.config.log_statements:
            log.warning(
                "slow statement",
                extra=fields(
                    query=facts.query,
                    user=facts.user,
                    peer=peer,
                    seconds=round(seconds, 3),
                    planning=round(facts.planning, 3),
                    queued=round(facts.queued, 3),
                    waited=round(facts.waited, 3),
                    rows=facts.rows,
                    outcome="ok" if error is None else error.sqlstate,
                    text=facts.text,
                ),
            )

    def _drop(self, query: QueryId) -> None:
        kept = self._kept.pop(query, None)
        if kept is not None:
            self.size -= kept.size
            for run in kept.runs:
                self._by_run.pop(run.query, None)
                self._contexts.pop(run.query, None)

    def reported(self, query: QueryId, profile: FragmentProfile) -> None:
        """The work of a fragment whose query has ended before the report came."""
        found = self._by_run.get(query)
        if found is None:
            return
        run, key = found
        place = (profile.fragment, profile.member, profile.instance)
        if all((p.fragment, p.member, p.instance) != place for p in run.profiles):
            run.profiles.append(profile)
            self._core.measures.by_fingerprint.used(key, profile)
            if self._traces is not None:
                context, began = self._contexts[query]
                self._trace_fragment(self._traces, context, profile, began)

    # --- what is asked ------------------------------------------------------------------------

    def state(self, query: QueryId) -> str:
        """How a statement ended, "" for one that is not known."""
        kept = self._kept.get(query)
        return "" if kept is None else kept.facts.state

    def finished(self) -> Iterator[QueryFacts]:
        """The latest first."""
        for kept in reversed(list(self._kept.values())):
            kept.facts.runs = [PlanRun(run.plan, run.profiles) for run in kept.runs]
            yield kept.facts

    def running(
        self,
        statements: Iterable[tuple[Statement, int, int]],
        state_of: Callable[[Statement], str],
        profiles: dict[QueryId, list[FragmentProfile]],
    ) -> Iterator[QueryFacts]:
        """``statements`` with their rows and bytes so far, ``profiles`` of the fragments that run
        anywhere, by query."""
        for statement, rows, size in statements:
            facts = self._facts(statement, rows, size)
            facts.state = state_of(statement)
            facts.runs = [
                PlanRun(run.plan, [*run.profiles, *profiles.get(run.query, ())])
                for run in statement.progress.runs
            ]
            yield facts

    def _facts(self, statement: Statement, rows: int, size: int) -> QueryFacts:
        progress = statement.progress
        clock = self._core.world.clock
        since_start = max(0.0, clock.wall_micros() - statement.started) / 1e6
        waited = progress.waited
        if progress.waits_since is not None:
            waited = progress.waited_until(clock.monotonic())
        return QueryFacts(
            query=str(statement.query),
            member=self._core.number,
            user=statement.user,
            text=statement.text[:TEXT_KEPT],
            state="",
            started=statement.started,
            planning=progress.planning,
            queued=progress.queued,
            waited=waited,
            execution=max(0.0, since_start - progress.planning - progress.queued - waited),
            rows=rows,
            bytes=size,
        )


def _state(error: RemudaError) -> str:
    return "cancelled" if isinstance(error, QueryCanceled | ConnectionBroken) else "failed"
