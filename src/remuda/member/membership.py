"""How members find each other, and how they notice that one has gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from remuda.cluster.joining import Founding
from remuda.cluster.liveness import Liveness
from remuda.config import split_address
from remuda.datatypes.view import View
from remuda.errors import (
    InputError,
    MemberGivenUp,
    MemberUnavailable,
    ProtocolError,
    RemudaError,
    TransientError,
)
from remuda.member.core import Core, attempt
from remuda.member.log import fields
from remuda.member.peers import CONNECT_TIMEOUT, Peers, dial
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)

RETRY_FIRST = 0.02
RETRY_MAX = 1.0


class Membership:
    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers
        self._founding: Founding | None = None
        self._liveness = Liveness((), 0.0, core.config.heartbeat_timeout)
        self._formed = asyncio.Event()
        self._complete = asyncio.Event()
        self._heartbeats: asyncio.Task[None] | None = None
        self.on_lost: list[Callable[[int, str], None]] = []
        """Called once per lost member with its number and the cause."""
        self.on_memory: list[Callable[[int, int, int], None]] = []
        """Called with what a member says of its memory: its number, bytes held, its limit."""
        self._refused: dict[int, str] = {}
        """Why the last heartbeat of a member was refused."""
        peers.on_broken.append(self._broken)

    # --- forming ------------------------------------------------------------------------------

    async def form(self) -> None:
        """Return when the view is installed here. Raises MemberUnavailable after join_timeout."""
        timeout = self._core.config.join_timeout
        try:
            async with asyncio.timeout(timeout):
                if self._core.config.join:
                    await self._join()
                else:
                    await self._found()
        except TimeoutError as problem:
            have = len(self._founding.members) if self._founding else 0
            progress = f"{have} of {self._core.config.cluster_size} members are here"
            raise MemberUnavailable(
                f"the cluster was not complete within {timeout:.0f} s"
                + (f": {progress}" if have else f": no view from {self._core.config.join}")
            ) from problem

    async def _found(self) -> None:
        core = self._core
        core.number = 1
        core.info = replace(core.info, number=1)
        self._founding = Founding(
            core.config.cluster, core.config.cluster_size, core.info, backups=0
        )
        if self._founding.complete:
            self._complete.set()
        await self._complete.wait()
        view = self._founding.view()
        self.install(view)
        message = control_pb2.ViewInstall(context=core.context(), view=codec.encode_view(view))
        others = [member.number for member in view.members if member.number != core.number]
        await asyncio.gather(
            *(self._peers.request(number, RpcType.VIEW_INSTALL, message) for number in others)
        )

    async def _join(self) -> None:
        """Ask the first member again and again until it gives a number; then wait for the view."""
        pause = RETRY_FIRST
        while not self._formed.is_set():
            try:
                await self._ask_to_join()
            except (InputError, ProtocolError):
                raise
            except RemudaError as error:
                log.info("join failed, trying again", extra=fields(cause=error.message))
            await asyncio.sleep(pause * (0.5 + self._core.world.chance.fraction()))
            pause = min(pause * 2, RETRY_MAX)

    async def _ask_to_join(self) -> None:
        """Join over a connection of its own and wait on it: its end means to start again."""
        core = self._core
        host, port = split_address(core.config.join, "join")
        member = codec.encode_member(core.info)
        channel = await dial(
            core,
            host,
            port,
            ChannelKind.CONTROL,
            control_pb2.ControlHandshake(member=member, context=core.context()),
        )
        broken = asyncio.Event()
        channel.on_closed.append(lambda _: broken.set())
        try:
            join = control_pb2.Join(
                context=core.context(), member=member, cluster=core.config.cluster
            )
            reply = await channel.request(RpcType.JOIN, join, timeout=CONNECT_TIMEOUT)
            answer = control_pb2.Join.FromString(reply.pbody)
            core.observe(answer.context)
            core.number = answer.member.number
            core.info = replace(core.info, number=core.number)
            waits = [asyncio.ensure_future(event.wait()) for event in (self._formed, broken)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        finally:
            channel.close()

    def on_join(self, request: Request) -> None:
        message = control_pb2.Join.FromString(request.pbody)
        if self._founding is None:
            raise MemberUnavailable(
                f"member {self._core.number or self._core.uuid} is not the first member",
                hint="Join the member that was started without --join.",
            )
        joined = self._founding.join(message.cluster, codec.decode_member(message.member))
        log.info(
            "member joined",
            extra=fields(peer=joined.number, address=f"{joined.host}:{joined.control_port}"),
        )
        request.reply(
            RpcType.JOIN,
            control_pb2.Join(
                context=self._core.context(),
                member=codec.encode_member(joined),
                cluster=self._founding.cluster,
            ),
        )
        if self._founding.complete:
            self._complete.set()

    def on_view_install(self, request: Request) -> None:
        message = control_pb2.ViewInstall.FromString(request.pbody)
        view = codec.decode_view(message.view)
        self._core.observe(message.context)
        if view.number > self._core.view.number:
            me = next((m for m in view.members if m.uuid == self._core.uuid), None)
            if me is None:
                raise MemberUnavailable("the view does not include this member")
            self._core.number = me.number
            self._core.info = me
            self.install(view)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def install(self, view: View) -> None:
        core = self._core
        core.view = view
        others = [member.number for member in view.members if member.number != core.number]
        now = core.world.clock.monotonic()
        self._liveness = Liveness(others, now, core.config.heartbeat_timeout)
        self._formed.set()
        log.info(
            "view installed",
            extra=fields(
                view=view.number,
                members=len(view.members),
                partitions=len(view.partitions_of(core.number)),
            ),
        )
        if self._heartbeats is None and others:
            self._heartbeats = core.spawn(self._beat(), "heartbeats")

    # --- staying ------------------------------------------------------------------------------

    async def _beat(self) -> None:
        core = self._core
        while True:
            message = self._heartbeat()
            for number in core.live_members():
                if number != core.number:
                    self._peers.send_control(number, RpcType.HEARTBEAT, message)
            await asyncio.sleep(core.config.heartbeat_interval)
            for number, silence in self._liveness.silent(core.world.clock.monotonic()):
                self.lose(number, f"no heartbeat for {silence:.1f} s")

    def on_heartbeat(self, request: Request) -> None:
        message = control_pb2.Heartbeat.FromString(request.pbody)
        context = message.context
        try:
            self._core.observe_member(context)
        except RemudaError as error:
            self._refused[context.sender] = error.message
            raise
        self._refused.pop(context.sender, None)
        self._liveness.heard(context.sender, self._core.world.clock.monotonic())
        self._reported(message)

    def _heartbeat(self) -> control_pb2.Heartbeat:
        memory = self._core.memory
        return control_pb2.Heartbeat(
            context=self._core.context(), memory_held=memory.total, memory_limit=memory.limit
        )

    def _reported(self, message: control_pb2.Heartbeat) -> None:
        for listener in self.on_memory:
            listener(message.context.sender, message.memory_held, message.memory_limit)

    def on_clock(self, request: Request) -> None:
        context = control_pb2.Heartbeat.FromString(request.pbody).context
        self._core.observe_member(context)
        self._core.timestamp()
        request.reply(RpcType.CLOCK, self._heartbeat())

    async def clocks(self, members: tuple[int, ...]) -> None:
        """Advance the own clock past the clocks of ``members`` (design rule 15)."""
        message = control_pb2.Heartbeat(context=self._core.context())
        replies = await asyncio.gather(
            *(self._peers.request(number, RpcType.CLOCK, message) for number in members)
        )
        for reply in replies:
            answer = control_pb2.Heartbeat.FromString(reply.pbody)
            self._core.observe(answer.context)
            self._reported(answer)

    def _broken(self, number: int, _kind: ChannelKind, error: RemudaError) -> None:
        """A broken connection is suspicion at once: the member is alive if it can be reached."""
        if number not in self._core.lost and self._core.serving:
            self._core.spawn(self._probe(number, error.message), f"probe of member {number}")

    async def _probe(self, number: int, cause: str) -> None:
        message = control_pb2.Heartbeat(context=self._core.context())
        member = self._core.view.by_number[number]
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(self._core.info), context=self._core.context()
        )
        try:
            channel = await dial(
                self._core, member.host, member.control_port, ChannelKind.CONTROL, hello
            )
        except RemudaError as error:
            self.lose(number, f"{cause}; {error.message}")
            return
        try:
            await channel.request(RpcType.CLOCK, message, timeout=self._liveness.timeout)
        except MemberGivenUp as error:
            self._peers.given_up(error)
        except TransientError as error:
            self.lose(number, f"{cause}; {error.message}")
        finally:
            channel.close()

    def lose(self, number: int, cause: str) -> None:
        if not self._liveness.lose(number) or self._core.stopping:
            return
        refused = self._refused.pop(number, None)
        if refused is not None:
            cause = f"{cause}; its heartbeats are refused: {refused}"
        log.warning("member lost", extra=fields(peer=number, cause=cause))
        self._core.lost[number] = cause
        for listener in self.on_lost:
            attempt(f"loss of member {number}", partial(listener, number, cause))
        self._peers.forget(number)

    def close(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
