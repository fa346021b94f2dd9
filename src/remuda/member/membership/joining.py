"""Requests to join, on the members that are asked: the shell of ``cluster.joiners``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from remuda.cluster import membership as ms
from remuda.datatypes.view import MemberInfo
from remuda.errors import MemberUnavailable, RemudaError
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.membership.forming import Forming
from remuda.member.membership.meeting import HINT, MEETING_TIMEOUT, Meetings
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)


class Joining:
    """``step`` gives the state machine of membership an event; ``why_not`` says why a majority
    cannot meet a process, as far as this member knows."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        peers: Peers,
        forming: Forming,
        meetings: Meetings,
        step: Callable[[ms.Event], None],
        why_not: Callable[[MemberInfo], str],
    ) -> None:
        self._core = core
        self._peers = peers
        self._forming = forming
        self._meetings = meetings
        self._step = step
        self._why_not = why_not

    def on_join(self, request: Request) -> None:
        self._core.serve(request, self._answer_join(request))

    async def _answer_join(self, request: Request) -> None:
        message = control_pb2.Join.FromString(request.pbody)
        answer = await self._forming.answer_join(message, request.channel, self._ask)
        request.reply(RpcType.JOIN, answer)

    def _ask(self, info: MemberInfo) -> None:
        """Wish for a view with a process that this member has met. Raises MemberUnavailable when
        the others cannot meet it."""
        self._step(ms.JoinAsked(info))
        why = self._why_not(info)
        if why:
            raise MemberUnavailable(
                f"too few members find the process that asks to join: {why}", hint=HINT
            )

    def on_view_install(self, request: Request) -> None:
        """The first view of a cluster that was founded, or formed again."""
        message = control_pb2.ViewInstall.FromString(request.pbody)
        self._core.observe(message.context)
        self._forming.install(codec.decode_view(message.view), message.cluster_identity)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def meet(self, to: int, info: MemberInfo) -> None:
        """Have a member look for a process, and tell the state machine."""
        self._core.spawn(self._meet(to, info), f"member {to} looks for {info.uuid}")

    async def _meet(self, to: int, info: MemberInfo) -> None:
        core = self._core
        try:
            if to == core.number:
                await self._meetings.meet(info)
            else:
                message = control_pb2.MembershipWish(
                    context=core.context(), join=codec.encode_member(info)
                )
                patience = 2 * MEETING_TIMEOUT
                await self._peers.request(to, RpcType.MEET, message, timeout=patience)
        except RemudaError as error:
            self._step(ms.NotMet(to, info, error.message))
        else:
            self._step(ms.Met(to, info))

    def on_meet(self, request: Request) -> None:
        """With a process: has this member met it? Without: who is this member?"""
        message = control_pb2.MembershipWish.FromString(request.pbody)
        if not message.HasField("join"):
            mine = codec.encode_member(self._core.info)
            request.reply(RpcType.MEET, control_pb2.MembershipWish(join=mine))
            return
        self._core.observe_peer(message.context)
        info = replace(codec.decode_member(message.join), number=0)
        self._core.serve(request, self._answer_meet(request, info))

    async def _answer_meet(self, request: Request, info: MemberInfo) -> None:
        await self._meetings.meet(info)
        request.reply(RpcType.MEET, control_pb2.MembershipWish(context=self._core.context()))
