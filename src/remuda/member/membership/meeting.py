"""Finding out whether a process that asks to join is where it says that it is (design rule 13).

A request to join is bytes that anybody can send, with any address in them. A member that connects
to the address, finishes a handshake and asks who is there knows that the process exists, that it
can be reached, and that it is the very one: its identity is chosen anew whenever a process starts.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from google.protobuf.message import DecodeError

from remuda.datatypes.view import MemberInfo
from remuda.errors import MemberUnavailable, ProtocolError, RemudaError
from remuda.member.base.core import Core
from remuda.member.base.peers import dial
from remuda.member.state.log import fields
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType

log = logging.getLogger(__name__)

MEETING_TIMEOUT = 3.0
"""Seconds for a connection and a handshake."""
ANSWER_TIMEOUT = 1.5
"""Seconds for the process to say who it is; with the above less than it waits itself."""
MEETINGS_MAX = 16
"""Connections that are made at a time to look for strangers; further requests are refused."""
HINT = "The members must be able to connect to the address that the process advertises (host)."


class Meetings:
    """Those of one member. Requests of one process at a time share a connection, and a meeting
    counts for one heartbeat interval."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._under_way: dict[MemberInfo, asyncio.Future[str]] = {}
        self._met: dict[MemberInfo, float] = {}
        """When they were met, of the last heartbeat interval."""

    async def meet(self, info: MemberInfo, *, stranger: bool = True) -> None:
        """Raises MemberUnavailable when another process, or none, is at the address in ``info``,
        when it says something else of itself there, or when too many strangers are looked for. Its
        number is 0 there, or the one in ``info``."""
        if self._lately(info):
            return
        under_way = self._under_way.get(info)
        if under_way is None:
            if stranger and len(self._under_way) >= MEETINGS_MAX:
                raise MemberUnavailable(
                    f"member {self._core.number} looks for {MEETINGS_MAX} other processes that ask"
                    " to join",
                    hint="Ask again.",
                )
            under_way = self._under_way[info] = asyncio.get_running_loop().create_future()
            self._core.spawn(self._look(info, under_way), f"meeting {info.uuid}")
        why = await asyncio.shield(under_way)
        if why:
            raise MemberUnavailable(
                f"member {self._core.number} does not find the process that asks to join at"
                f" {info.host}:{info.control_port}: {why}",
                hint=HINT,
            )

    async def is_there(self, info: MemberInfo) -> bool:
        """Whether a process that this member has met before still is there."""
        try:
            await self.meet(info, stranger=False)
        except MemberUnavailable:
            return False
        return True

    def _lately(self, info: MemberInfo) -> bool:
        now = self._core.world.clock.monotonic()
        oldest = now - self._core.config.heartbeat_interval
        self._met = {known: met for known, met in self._met.items() if met >= oldest}
        return info in self._met

    async def _look(self, info: MemberInfo, found: asyncio.Future[str]) -> None:
        why = "the member stops"
        try:
            why = await self._difference(info)
        finally:
            del self._under_way[info]
            found.set_result(why)
        if why:
            log.info(
                "a process that asks to join is not there",
                extra=fields(address=f"{info.host}:{info.control_port}", uuid=info.uuid, why=why),
            )
        else:
            self._met[info] = self._core.world.clock.monotonic()

    async def _difference(self, info: MemberInfo) -> str:
        """How the process at the address differs from ``info``; empty: it is the one."""
        there = await self._handshake(info)
        if isinstance(there, RemudaError):
            return there.message
        if there.uuid != info.uuid:
            return f"the process there is {there.uuid}, not {info.uuid}"
        if there.number not in {0, info.number}:
            return f"the process there is member {there.number}"
        if replace(there, number=info.number) != info:
            return "the process there says something else of itself than the request"
        return ""

    async def _handshake(self, info: MemberInfo) -> MemberInfo | RemudaError:
        """The word of the process at the address about itself, or why there is no answer."""
        core = self._core
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(core.info), context=core.context()
        )
        port, kind = info.control_port, ChannelKind.CONTROL
        try:
            channel = await dial(core, info.host, port, kind, hello, MEETING_TIMEOUT)
        except RemudaError as error:
            return error
        try:  # its welcome says nothing where the cluster has a secret: that came before the proof
            asked = control_pb2.MembershipWish(context=core.context())
            reply = await channel.request(RpcType.MEET, asked, timeout=ANSWER_TIMEOUT)
            return codec.decode_member(control_pb2.MembershipWish.FromString(reply.pbody).join)
        except DecodeError as error:
            return ProtocolError(f"its answer cannot be read: {error}")
        except RemudaError as error:
            return error
        finally:
            channel.close()
