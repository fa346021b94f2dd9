"""The shell around ``query.admission``: statements wait here before their queries begin."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from remuda.errors import QueryTimeout, RemudaError
from remuda.member.base.core import Core
from remuda.member.queries.short_plans import is_short
from remuda.member.sessions.statement import Statement
from remuda.plan.physical import (
    HashAggregate,
    HashJoin,
    NestedLoopJoin,
    Physical,
    PhysicalPlan,
    SortRows,
    Store,
    WindowRows,
    inputs_of,
)
from remuda.query import admission
from remuda.query.admission import Admission
from remuda.query.ids import QueryId

_BYTES_PER_VALUE: Final = 16
_DEMAND_MIN: Final = 1 << 20


class AdmissionGate:
    """A statement passes once, whichever queries it runs then. Others would wait with it for the
    things that it waits for later, such as the turn of a map."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._machine = Admission()
        self._waiting: dict[QueryId, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return self._machine.waiting

    def waits(self, query: QueryId) -> bool:
        return self._machine.waits(query)

    async def pass_(
        self, statement: Statement, plan: PhysicalPlan, members: tuple[int, ...]
    ) -> None:
        """Returns when the statement may begin. Raises OutOfMemory, TooManyQueries, QueryTimeout,
        and the error that ends the statement meanwhile. Short ones do not wait."""
        progress = statement.progress
        if progress.admitted or is_short(plan, self._core.stores):
            return
        statement.check()
        config = self._core.config
        now = self._core.world.clock.monotonic()
        deadline = None if statement.timeout is None else now + statement.timeout
        self._report_own()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[statement.query] = future
        asked = admission.Asked(
            statement.query, members, demand(plan), now + config.admission_timeout, deadline
        )
        self._happened(asked)
        if future.done():
            future.result()
        else:
            withdraw = partial(self._withdraw, statement.query)
            try:
                with progress.telling(withdraw):
                    await future
            finally:
                self._waiting.pop(statement.query, None)
                progress.queued += self._core.world.clock.monotonic() - now
                if future.cancelled():
                    self._happened(admission.Ended(statement.query))
        progress.admitted = True

    def left(self, statement: Statement) -> float | None:
        """The rest of the statement's time after it has waited. Raises QueryTimeout."""
        if statement.timeout is None:
            return None
        left = statement.timeout - statement.progress.queued
        if left <= 0:
            raise QueryTimeout("the query's time was over before it could begin")
        return left

    def ended(self, query: QueryId) -> None:
        """A query of this member is through."""
        self._happened(admission.Ended(query))

    def reported(self, member: int, held: int, limit: int) -> None:
        self._happened(admission.Reported(member, held, limit))

    def member_lost(self, member: int, _error: RemudaError) -> None:
        self._happened(admission.MemberGone(member))

    def _withdraw(self, query: QueryId, error: RemudaError) -> None:
        future = self._waiting.pop(query, None)
        if future is not None and not future.done():
            future.set_exception(error)
        self._happened(admission.Ended(query))

    def _report_own(self) -> None:
        memory = self._core.memory
        now = self._core.world.clock.monotonic()
        report = admission.Reported(self._core.number, memory.total, memory.limit or 0)
        self._carry_out(self._machine.step(now, report))

    def _happened(self, event: admission.Event) -> None:
        self._carry_out(self._machine.step(self._core.world.clock.monotonic(), event))

    def _carry_out(self, effects: list[admission.Effect]) -> None:
        for effect in effects:
            match effect:
                case admission.Admit(query):
                    future = self._waiting.pop(query, None)
                    if future is not None and not future.done():
                        future.set_result(None)
                case admission.Refuse(query, error):
                    future = self._waiting.pop(query, None)
                    if future is not None and not future.done():
                        future.set_exception(error)
                case admission.LookAt(time):
                    if self._timer is None:
                        delay = max(0.0, time - self._core.world.clock.monotonic())
                        loop = asyncio.get_running_loop()
                        self._timer = loop.call_later(delay, self._look)

    def _look(self) -> None:
        self._timer = None
        self._report_own()

    def close(self, error: RemudaError) -> None:
        """The member stops."""
        if self._timer is not None:
            self._timer.cancel()
        for query in list(self._waiting):
            self._withdraw(query, error)


def demand(plan: PhysicalPlan) -> int:
    """Bytes that a query may come to hold on each of its members: a guess by the plan's own."""
    rows = sum(_held(fragment.root) for fragment in plan.fragments)
    return _DEMAND_MIN + int(rows * _BYTES_PER_VALUE)


def _held(node: Physical) -> float:
    """Values (rows by columns) that operators of the tree hold."""
    held = sum(_held(child) for child in inputs_of(node))
    match node:
        case HashJoin() | NestedLoopJoin():
            return held + _values(node.right)
        case HashAggregate():
            return held + _values(node)
        case SortRows(limit=None) | WindowRows() | Store():
            return held + _values(node.input)
        case _:
            return held


def _values(node: Physical) -> float:
    return node.traits.rows * max(1, len(node.output))
