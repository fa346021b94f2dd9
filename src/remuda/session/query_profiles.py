"""The profile of one query as JSON, as a console shows it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from remuda.errors import RemudaError
from remuda.execution.context import FragmentProfile
from remuda.execution.profile import OperatorProfile
from remuda.plan.explain.explain import explain
from remuda.plan.explain.json import explain_json
from remuda.plan.physical import PhysicalPlan
from remuda.session.explaining import by_operator

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(slots=True)
class PlanRun:
    """One run of a plan for a statement: most have one, a change that is tried again or a recursive
    query has several."""

    plan: PhysicalPlan
    profiles: Sequence[FragmentProfile] = ()


@dataclass(slots=True)
class QueryFacts:
    """The facts about a statement besides its plans. ``started`` is in microseconds since 1970,
    times are seconds. ``rows`` and ``bytes`` are those that went to the client, or the rows that
    were changed. ``queued`` is the wait for memory, ``waited`` the waits for locks and turns."""

    query: str
    member: int
    user: str
    text: str
    state: str
    started: int
    planning: float = 0.0
    queued: float = 0.0
    waited: float = 0.0
    execution: float = 0.0
    rows: int = 0
    bytes: int = 0
    error: RemudaError | None = None
    runs: list[PlanRun] = field(default_factory=list)

    @property
    def memory(self) -> int:
        """The most that it held on one member."""
        return max(
            (profile.peak_memory for run in self.runs for profile in run.profiles), default=0
        )

    @property
    def spilled(self) -> int:
        """Compressed bytes that it put on disks."""
        return sum(
            operator.spilled
            for run in self.runs
            for profile in run.profiles
            for operator in profile.operators
        )


def profile_json(facts: QueryFacts) -> dict[str, Any]:
    """Times are seconds; ``first`` and ``last`` are relative to the start of the statement, by the
    clocks of the members. ``plan`` is EXPLAIN (ANALYZE, FORMAT JSON), ``plan_text`` EXPLAIN
    ANALYZE."""
    error = facts.error
    started = facts.started / 1e6
    return {
        "query": facts.query,
        "member": facts.member,
        "user": facts.user or None,
        "text": facts.text,
        "state": facts.state,
        "started": (_EPOCH + dt.timedelta(microseconds=facts.started)).isoformat(),
        "planning": round(facts.planning, 6),
        "queued": round(facts.queued, 6),
        "waited": round(facts.waited, 6),
        "execution": round(facts.execution, 6),
        "rows": facts.rows,
        "bytes": facts.bytes,
        "memory": facts.memory,
        "spilled": facts.spilled,
        "error": None
        if error is None
        else {
            "message": error.message,
            "sqlstate": error.sqlstate,
            "detail": error.detail or None,
            "hint": error.hint or None,
        },
        "runs": [_run(run, started) for run in facts.runs],
    }


def _run(run: PlanRun, started: float) -> dict[str, Any]:
    actual = by_operator(run.profiles)
    in_order = sorted(run.profiles, key=lambda p: (p.fragment, p.member, p.instance))
    return {
        "plan": explain_json(run.plan, actual),
        "plan_text": explain(run.plan, profile=actual),
        "fragments": [_fragment(profile, started) for profile in in_order],
    }


def _fragment(profile: FragmentProfile, started: float) -> dict[str, Any]:
    active = [operator for operator in profile.operators if operator.first]
    return {
        "fragment": profile.fragment,
        "member": profile.member,
        "instance": profile.instance,
        "first": _since(min((o.first for o in active), default=0.0), started),
        "last": _since(max((o.last for o in active), default=0.0), started),
        "seconds": round(profile.seconds, 6),
        "wait": round(sum(operator.wait for operator in profile.operators), 6),
        "operators": [_operator(operator, started) for operator in profile.operators],
    }


def _operator(operator: OperatorProfile, started: float) -> dict[str, Any]:
    made = dataclasses.asdict(operator)
    made["seconds"], made["wait"] = round(operator.seconds, 6), round(operator.wait, 6)
    made["first"], made["last"] = _since(operator.first, started), _since(operator.last, started)
    return made


def _since(time: float, started: float) -> float | None:
    return round(time - started, 6) if time else None
