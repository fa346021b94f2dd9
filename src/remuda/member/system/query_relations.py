"""Rows of ``sys.queries``, ``sys.fragments``, ``sys.operators``, ``sys.query_history``,
``sys.query_profiles`` and ``sys.statement_statistics``: the work of statements now, and of the last
ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from remuda.catalog.system_relations import OWNER
from remuda.datatypes.timestamp import moment
from remuda.member.base.access import HIDDEN_TEXT
from remuda.member.base.core import Core
from remuda.member.base.round import no_answer
from remuda.member.sessions.statement import Statement
from remuda.member.system.profile_service import ProfileService
from remuda.member.system.system_state import SystemState
from remuda.query.wire import decode_query_id
from remuda.rpc.messages import control_pb2

Row = tuple[Any, ...]


class QueryRelations:
    def __init__(self, core: Core, state: SystemState, profiles: ProfileService) -> None:
        self._core = core
        self._state = state
        self._profiles = profiles

    def suppliers(self) -> dict[str, Callable[[Statement], Awaitable[Iterable[Row]]]]:
        return {
            "sys.queries": self._queries,
            "sys.fragments": self._fragments,
            "sys.operators": self._operators,
            "sys.query_history": self._history,
            "sys.query_profiles": self._query_profiles,
            "sys.statement_statistics": self._profiles.sums.rows,
            "sys.transactions": self._transactions,
            "sys.subscriptions": self._subscriptions,
        }

    def _text(self, statement: Statement, user: str, text: str) -> str:
        """The text of a statement of ``user``, for those who may see it."""
        return text if self._core.access.owns(statement.user, user) else HIDDEN_TEXT

    # --- what runs ----------------------------------------------------------------------------

    async def _queries(self, statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        states, now = answers.known, self._core.world.clock.wall_micros()
        members: dict[str, dict[int, int]] = {}
        spilled: dict[str, int] = {}
        for number, state in states.items():
            for fragment in state.fragments:
                query = _id(fragment.query_id)
                # Instances on one member share an account: each says what all hold.
                members.setdefault(query, {})[number] = fragment.memory
                spilled[query] = spilled.get(query, 0) + sum(o.spilled for o in fragment.operators)
        rows: list[Row] = [
            (
                _id(s.query_id), number, s.state, moment(s.started),
                max(0, now - s.started) / 1e6, self._text(statement, s.user, s.text),
                s.rows, s.bytes, len(members.get(_id(s.serving), ())), s.planning, s.queued,
                sum(members.get(_id(s.serving), {}).values()), spilled.get(_id(s.serving), 0),
                s.user or OWNER, s.pid or None, s.transaction or None, s.waited,
            )
            for number, state in states.items()
            for s in state.statements
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 1, 17, 2) for number in answers.silent)]

    async def _fragments(self, _statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        states = answers.known
        served = _served(states)
        rows: list[Row] = [
            (
                served.get(_id(f.query_id), _id(f.query_id)), number, f.fragment, f.state,
                " ".join(operator.name for operator in f.operators),
                f.operators[0].rows if f.operators else 0,
                f.operators[0].bytes if f.operators else 0, f.seconds, f.memory, f.instance,
                sum(operator.wait for operator in f.operators),
                _time(min((o.first for o in f.operators if o.first), default=0.0)),
                _time(max((o.last for o in f.operators), default=0.0)),
            )
            for number, state in states.items()
            for f in state.fragments
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 1, 13, 3) for number in answers.silent)]

    async def _operators(self, _statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        states = answers.known
        served = _served(states)
        rows: list[Row] = [
            (
                served.get(_id(f.query_id), _id(f.query_id)), number, f.fragment, f.instance,
                o.operator, o.name, o.rows, o.batches, o.bytes, o.seconds, o.wait, o.waits,
                o.memory, o.spilled, o.files, _time(o.first), _time(o.last),
            )
            for number, state in states.items()
            for f in state.fragments
            for o in f.operators
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 1, 17) for number in answers.silent)]

    async def _transactions(self, statement: Statement) -> Iterable[Row]:
        """Those of others without their labels."""
        now = self._core.world.clock.wall_micros()
        answers = await self._state.answered()
        rows: list[Row] = [
            (
                t.transaction, number, t.state, t.isolation, t.read_only, t.user or OWNER,
                t.label if self._core.access.owns(statement.user, t.user) else HIDDEN_TEXT,
                moment(t.started), max(0, now - t.started) / 1e6, t.snapshot or None, t.writes,
                t.bytes, t.reads, t.savepoints, t.pid or None,
                0.0 if t.busy else max(0, now - t.used) / 1e6,
            )
            for number, state in answers.known.items()
            for t in state.transactions
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 1, 16, 2) for number in answers.silent)]

    async def _subscriptions(self, statement: Statement) -> Iterable[Row]:
        """One row for each member that a subscription reads at; those of others without their
        queries."""
        answers = await self._state.answered()
        rows: list[Row] = [
            (
                s.subscription, number, s.kind, s.map,
                s.text if self._core.access.owns(statement.user, s.user) else HIDDEN_TEXT,
                s.user or OWNER, moment(s.started), s.position or None, s.changes,
            )
            for number, state in answers.known.items()
            for s in state.subscriptions
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 1, 9, 2) for number in answers.silent)]

    # --- what ran -----------------------------------------------------------------------------

    async def _history(self, statement: Statement) -> Iterable[Row]:
        """Those that have ended, the latest first."""
        rows: list[Row] = []
        answers = await self._profiles.all(full=False)
        for number, kept in _kept(answers.known):
            seen = self._core.access.owns(statement.user, kept.user)
            rows.append(
                (
                    kept.query, number, kept.state, moment(kept.started), kept.planning,
                    kept.queued, kept.execution, kept.rows, kept.bytes, kept.memory, kept.spilled,
                    (kept.error or None) if seen else None, kept.sqlstate or None,
                    kept.text if seen else HIDDEN_TEXT, kept.waited,
                )
            )  # fmt: skip
        return [*rows, *(no_answer(number, 1, 15, 2) for number in answers.silent)]

    async def _query_profiles(self, statement: Statement) -> Iterable[Row]:
        """Of statements that run, and of those that have ended."""
        answers = await self._profiles.all(full=True)
        rows: list[Row] = [
            (kept.query, number, kept.state, kept.profile)
            for number, kept in _kept(answers.known)
            if self._core.access.owns(statement.user, kept.user)
        ]
        return [*rows, *(no_answer(number, 1, 4, 2) for number in answers.silent)]


def _served(states: dict[int, control_pb2.SystemState]) -> dict[str, str]:
    """The statement that a query runs for."""
    return {_id(s.serving): _id(s.query_id) for state in states.values() for s in state.statements}


def _kept(
    answers: Mapping[int, control_pb2.QueryProfiles],
) -> Iterator[tuple[int, control_pb2.KeptQuery]]:
    return ((number, kept) for number, answer in answers.items() for kept in answer.queries)


def _id(message: Any) -> str:
    return str(decode_query_id(message))


def _time(seconds: float) -> dt.datetime | None:
    return moment(round(seconds * 1e6)) if seconds else None
