"""QUERY_PROFILES: the profiles of statements, asked from the members that initiated them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Final

from remuda.execution.context import FragmentProfile
from remuda.limits import FRAME_SIZE_MAX
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round
from remuda.member.base.wing import Routes, Wing
from remuda.member.queries.fragment_reports import decode_operator
from remuda.member.sessions.statement import Statement
from remuda.member.statements.query_history import QueryHistory
from remuda.member.system.statement_statistics import StatementStatistics
from remuda.member.system.system_state import SystemState
from remuda.query.ids import QueryId
from remuda.query.wire import decode_query_id
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.session.query_profiles import QueryFacts, profile_json

_ANSWER_SIZE_MAX: Final = FRAME_SIZE_MAX // 4
"""The profiles of one member that travel; the latest ones."""

_PART: Final = PATIENCE / 2
"""Seconds that a member waits for reports of its fragments on others, while it is waited for."""


class ProfileService(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        state: SystemState,
        history: QueryHistory,
        statements: Callable[[], Iterable[tuple[Statement, int, int]]],
    ) -> None:
        """``statements``: see ``SystemState``."""
        self._core = core
        self._peers = peers
        self._state = state
        self._history = history
        self._statements = statements
        self.sums = StatementStatistics(core, peers)

    def routes(self) -> Routes:
        serve, profiles, sums = self._core.serve, self.on_request, self.sums.on_request
        return Routes(
            control={
                RpcType.QUERY_PROFILES: lambda request: serve(request, profiles(request)),
                RpcType.STATEMENT_STATISTICS: lambda request: serve(request, sums(request)),
            }
        )

    async def all(self, *, full: bool) -> Gathered[control_pb2.QueryProfiles]:
        """Of the members that answer soon, the latest statement of a member first. ``full``: with
        their profiles, and those that still run."""
        core = self._core
        found, own = await asyncio.gather(
            in_one_round(
                core,
                self._peers,
                RpcType.QUERY_PROFILES,
                control_pb2.QueryProfilesRequest(context=core.context(), full=full),
                control_pb2.QueryProfiles.FromString,
                PATIENCE,
            ),
            self._here(full),
        )
        return found.with_own(core.number, own)

    async def on_request(self, request: Request) -> None:
        message = control_pb2.QueryProfilesRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        request.reply(RpcType.QUERY_PROFILES, await self._here(message.full))

    async def _here(self, full: bool) -> control_pb2.QueryProfiles:
        answer = control_pb2.QueryProfiles(context=self._core.context())
        facts = [*await self._running(), *self._history.finished()] if full else [
            *self._history.finished()
        ]  # fmt: skip
        size = 0
        for found in facts:
            kept = _encoded(found)
            if full:
                kept.profile = json.dumps(profile_json(found), ensure_ascii=False)
                size += len(kept.profile) + len(kept.text)
                if size > _ANSWER_SIZE_MAX:
                    break
                await asyncio.sleep(0)  # a long plan takes a millisecond to print
            answer.queries.append(kept)
        return answer

    async def _running(self) -> list[QueryFacts]:
        statements = list(self._statements())
        if not statements:
            return []
        profiles: dict[QueryId, list[FragmentProfile]] = {}
        for number, state in (await self._state.answered(_PART)).known.items():
            for fragment in state.fragments:
                profile = FragmentProfile(
                    fragment=fragment.fragment,
                    member=number,
                    operators=tuple(decode_operator(found) for found in fragment.operators),
                    seconds=fragment.seconds,
                    peak_memory=fragment.memory,
                    instance=fragment.instance,
                )
                profiles.setdefault(decode_query_id(fragment.query_id), []).append(profile)
        return list(self._history.running(statements, self._state.state_of, profiles))


def _encoded(facts: QueryFacts) -> control_pb2.KeptQuery:
    error = facts.error
    return control_pb2.KeptQuery(
        query=facts.query,
        user=facts.user,
        text=facts.text,
        state=facts.state,
        started=facts.started,
        planning=facts.planning,
        queued=facts.queued,
        waited=facts.waited,
        execution=facts.execution,
        rows=facts.rows,
        bytes=facts.bytes,
        memory=facts.memory,
        spilled=facts.spilled,
        error="" if error is None else error.message,
        sqlstate="" if error is None else error.sqlstate,
    )
