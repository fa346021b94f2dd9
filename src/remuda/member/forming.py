"""How a process becomes a member: it founds a cluster with others, or joins one that runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from remuda.cluster.joining import Founding
from remuda.config import split_address
from remuda.datatypes.view import View
from remuda.errors import (
    InputError,
    InvalidDefinition,
    MemberUnavailable,
    ProtocolError,
    RemudaError,
)
from remuda.limits import MEMBERS_MAX
from remuda.member.core import Core
from remuda.member.log import fields
from remuda.member.peers import CONNECT_TIMEOUT, Peers, dial
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel, Request

log = logging.getLogger(__name__)

RETRY_FIRST = 0.02
RETRY_MAX = 1.0
ASK_AGAIN = 0.2
"""Seconds between two requests to be let into a running cluster."""


class Forming:
    """``installed`` is called with the first view that has this process."""

    def __init__(self, core: Core, peers: Peers, installed: Callable[[View], None]) -> None:
        self._core = core
        self._peers = peers
        self._installed = installed
        self._founding: Founding | None = None
        self._complete = asyncio.Event()
        self.formed = asyncio.Event()
        """This process is a member."""
        self.decided = asyncio.Event()
        """A view may have this process: it asks again at once."""
        self._cause = ""
        """Why it was not let in when it asked last."""
        self.catalog_state: Callable[[], control_pb2.CatalogState]
        self.catalog_received: Callable[[control_pb2.CatalogState], None]
        """What a joining process takes over before it is in the view."""

    async def form(self) -> None:
        """Return when a view is installed here. Raises MemberUnavailable after join_timeout."""
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
                + (f": {progress}" if have else f": no view from {self._core.config.join}"),
                detail=self._cause,
            ) from problem

    # --- a new cluster --------------------------------------------------------------------------

    async def _found(self) -> None:
        core = self._core
        core.number = 1
        core.info = replace(core.info, number=1)
        config = core.config
        self._founding = Founding(config.cluster, config.cluster_size, core.info, config.backups)
        if self._founding.complete:
            self._complete.set()
        await self._complete.wait()
        view = self._founding.view()
        self._installed(view)
        message = control_pb2.ViewInstall(context=core.context(), view=codec.encode_view(view))
        others = [member.number for member in view.members if member.number != core.number]
        await asyncio.gather(
            *(self._peers.request(number, RpcType.VIEW_INSTALL, message) for number in others)
        )

    def _number(self, message: control_pb2.Join, founding: Founding) -> control_pb2.Join:
        joined = founding.join(message.cluster, codec.decode_member(message.member))
        log.info(
            "member joined",
            extra=fields(peer=joined.number, address=f"{joined.host}:{joined.control_port}"),
        )
        if founding.complete:
            self._complete.set()
        return control_pb2.Join(
            context=self._core.context(),
            member=codec.encode_member(joined),
            cluster=founding.cluster,
        )

    # --- the process that wants to be a member --------------------------------------------------

    async def _join(self) -> None:
        """Ask again and again until a view has this process."""
        pause = RETRY_FIRST
        while not self.formed.is_set():
            try:
                await self._ask_to_join()
            except (InputError, ProtocolError):
                raise
            except RemudaError as error:
                self._cause = error.message
                log.info("join failed, trying again", extra=fields(cause=error.message))
            await asyncio.sleep(pause * (0.5 + self._core.world.chance.fraction()))
            pause = min(pause * 2, RETRY_MAX)

    async def _ask_to_join(self) -> None:
        """Join over a connection of its own and wait on it: its end means to start again."""
        core = self._core
        host, port = split_address(core.config.join, "join")
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(core.info), context=core.context()
        )
        channel = await dial(core, host, port, ChannelKind.CONTROL, hello)
        broken = asyncio.Event()
        channel.on_closed.append(lambda _: broken.set())
        try:
            while not self.formed.is_set() and not broken.is_set():
                self.decided.clear()
                numbered = await self._asked(channel)
                if not self.formed.is_set():
                    soon = () if numbered else (self.decided,)
                    await self._first_of(self.formed, broken, *soon, limit=not numbered)
        finally:
            channel.close()

    async def _asked(self, channel: Channel) -> bool:
        """One request; True: a new cluster has given this process a number."""
        core = self._core
        join = control_pb2.Join(
            context=core.context(),
            member=codec.encode_member(replace(core.info, number=0)),
            cluster=core.config.cluster,
        )
        reply = await channel.request(RpcType.JOIN, join, timeout=CONNECT_TIMEOUT)
        answer = control_pb2.Join.FromString(reply.pbody)
        core.observe(answer.context)
        if answer.HasField("view"):
            view = codec.decode_view(answer.view)
            self.catalog_received(answer.catalog)
            self.install(view)
        elif answer.member.number:
            core.number = answer.member.number
            core.info = replace(core.info, number=core.number)
            return True
        return False

    async def _first_of(self, *happened: asyncio.Event, limit: bool) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in happened]
        try:
            await asyncio.wait(
                waits,
                timeout=ASK_AGAIN if limit else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for wait in waits:
                wait.cancel()

    def install(self, view: View) -> None:
        """A view that others have decided. Raises MemberUnavailable when it does not have this
        process."""
        core = self._core
        if self.formed.is_set():
            return
        me = next((m for m in view.members if m.uuid == core.uuid), None)
        if me is None:
            raise MemberUnavailable("the view does not include this member")
        core.number = me.number
        core.info = me
        self._installed(view)

    # --- the member that is asked ---------------------------------------------------------------

    def answer_join(
        self, request: Request, ask: Callable[[control_pb2.Join], None]
    ) -> control_pb2.Join:
        """``ask`` wishes for a view with the process. Raises MemberUnavailable,
        InvalidDefinition."""
        core = self._core
        message = control_pb2.Join.FromString(request.pbody)
        if not self.formed.is_set():
            if self._founding is None:
                raise MemberUnavailable(
                    f"member {core.number or core.uuid} is not in a cluster yet",
                    hint="Join the member that was started without --join.",
                )
            return self._number(message, self._founding)
        if message.cluster != core.config.cluster:
            raise InvalidDefinition(
                f'this is cluster "{core.config.cluster}", not "{message.cluster}"'
            )
        uuid = message.member.uuid
        answer = control_pb2.Join(context=core.context(), cluster=core.config.cluster)
        known = next((m for m in core.view.members if m.uuid == uuid), None)
        if known is not None:
            answer.member.CopyFrom(codec.encode_member(known))
            answer.view.CopyFrom(codec.encode_view(core.view))
            answer.catalog.CopyFrom(self.catalog_state())
            return answer
        if len(core.view.members) >= MEMBERS_MAX:
            raise InvalidDefinition(
                f'cluster "{core.config.cluster}" has {MEMBERS_MAX} members, which is the limit'
            )
        if core.readiness.hopeless:
            core.readiness.require_lease()  # without a majority there is no view that has it
        ask(message)
        return answer
