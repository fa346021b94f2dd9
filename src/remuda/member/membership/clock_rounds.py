"""Rounds that bring the clocks of members together: a statement reads above all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from remuda.errors import MemberUnavailable
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request


class ClockRounds:
    """``heartbeat`` makes the answer of this member; ``reported`` is told the answers of others."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        heartbeat: Callable[[], control_pb2.Heartbeat],
        reported: Callable[[control_pb2.Heartbeat], None],
    ) -> None:
        self._core = core
        self._peers = peers
        self._heartbeat = heartbeat
        self._reported = reported

    def on_clock(self, request: Request) -> None:
        """The answer says that this member serves: a query may begin here (design rules 14, 15)."""
        message = control_pb2.Heartbeat.FromString(request.pbody)
        core = self._core
        if message.probe:
            core.observe_peer(message.context)
            request.reply(RpcType.CLOCK, self._heartbeat())
            return
        core.observe_member(message.context)
        if core.ready:
            self._answer_clock(request)
        else:
            core.serve(request, self._answer_clock_when_ready(request))

    async def _answer_clock_when_ready(self, request: Request) -> None:
        await self._core.until_ready()
        self._answer_clock(request)

    def _answer_clock(self, request: Request) -> None:
        self._core.timestamp()
        request.reply(RpcType.CLOCK, self._heartbeat())

    async def clocks(self, members: tuple[int, ...]) -> None:
        """Advance the own clock past the clocks of ``members`` (design rule 15)."""
        for reply in await self._all_clocks(members):
            answer = control_pb2.Heartbeat.FromString(reply.pbody)
            self._core.observe(answer.context)
            self._reported(answer)

    async def _all_clocks(self, members: tuple[int, ...]) -> list[Reply]:
        """One round. If one of them leaves in order meanwhile, all that stay are asked, as some of
        them have what it kept. Raises what they answer."""
        core = self._core
        while True:
            view = core.view
            message = control_pb2.Heartbeat(context=core.context())
            try:
                return await asyncio.gather(
                    *(self._peers.request(number, RpcType.CLOCK, message) for number in members)
                )
            except MemberUnavailable:
                gone = [number for number in members if number not in core.view.by_number]
                if core.view is view or not gone:
                    raise
            members = tuple(number for number in core.live_members() if number != core.number)
