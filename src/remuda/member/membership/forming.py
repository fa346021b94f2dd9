"""How a process becomes a member: it founds a cluster with others, or joins one that runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from remuda.cluster.joining import Founding
from remuda.cluster.versions import require_fit
from remuda.config import split_address
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import (
    DataCorrupted,
    InputError,
    InvalidDefinition,
    MemberUnavailable,
    ProtocolError,
    RemudaError,
)
from remuda.limits import MEMBERS_MAX
from remuda.member.base.core import Core
from remuda.member.base.peers import CONNECT_TIMEOUT, TELL_AGAIN, dial, may_be_heard_later
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.forming_again import Gathering, Prospect, returned
from remuda.member.membership.meeting import Meetings
from remuda.member.membership.recovery import Recovery
from remuda.member.state.log import fields
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind, Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel, Request

log = logging.getLogger(__name__)

RETRY_FIRST = 0.02
RETRY_MAX = 1.0
RECOVER_TIMEOUT = 300.0
RECOVER_AGAIN = 2.0
"""Seconds after which a member that has not answered RECOVER is asked again; then twice as many."""
VIEW_AGAIN = 2.0
"""Seconds after which a member that has not answered is sent the first view again."""
PATIENCE = 3.0
"""Heartbeat timeouts that a cluster which starts again waits for members whose copies others have,
too."""
ASK_AGAIN = 0.2
"""Seconds between two requests to be let into a running cluster."""


async def _answer(channel: Channel, message: control_pb2.Recover) -> Reply:
    """The answer of a member that may be reading its log. All others wait for it: the member is
    asked again, over the same connection. Raises as ``Channel.request``."""
    asked: list[asyncio.Task[Reply]] = []
    pause = RECOVER_AGAIN
    try:
        while True:
            request = channel.request(RpcType.RECOVER, message, timeout=RECOVER_TIMEOUT)
            asked.append(asyncio.ensure_future(request))
            done, _ = await asyncio.wait(asked, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return done.pop().result()
            pause *= 2
    finally:
        for each in asked:
            each.cancel()


def _address(member: MemberInfo) -> dict[str, dict[str, object]]:
    """For the log: a member of a cluster that is being founded has no number yet."""
    return fields(address=f"{member.host}:{member.control_port}")


class Forming:
    """``installed`` is called with the first view that has this process. ``catalog`` is taken over
    by a joining process before it is in the view. ``recovery`` is what the member knows from its
    folder, if it has one."""

    def __init__(
        self,
        core: Core,
        meetings: Meetings,
        installed: Callable[[View], None],
        catalog: CatalogService,
        recovery: Recovery | None,
    ) -> None:
        self._core = core
        self._meetings = meetings
        self._installed = installed
        self._founding: Founding | None = None
        self._placed: dict[str, Channel] = {}
        """The connections of processes that have a place in the founding, by their identity."""
        self._catalog = catalog
        self._recovery = recovery
        self._gathering: Gathering | None = None
        """The members that have come back, when the cluster starts again from its logs."""
        self._gathered: dict[int, Channel] = {}
        self._settling = asyncio.Lock()
        self._settled = b""
        """The decision that was settled last."""
        self._arrived = asyncio.Event()
        self._complete = asyncio.Event()
        self.formed = asyncio.Event()
        """This process is a member."""
        self.decided = asyncio.Event()
        """A view may have this process: it asks again at once."""
        self._limit: asyncio.Timeout
        """Of forming as a whole."""
        self._cause = ""
        """Why it was not let in when it asked last."""

    async def form(self) -> None:
        """Return when a view is installed here. Raises MemberUnavailable after join_timeout."""
        timeout = self._core.config.join_timeout
        try:
            async with asyncio.timeout(timeout) as self._limit:
                if self._core.config.join:
                    await self._join()
                elif self._recovery is not None and self._recovery.state is not None:
                    await self._form_again(self._recovery)
                else:
                    await self._found()
        except TimeoutError as problem:
            if self._gathering is not None:
                raise MemberUnavailable(
                    f"the cluster could not start again within {timeout:.0f} s: "
                    + self._gathering.progress(),
                    detail=self._cause,
                    hint="Start the missing members. To go without them, and without what only"
                    " they have, name them in start_without.",
                ) from problem
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
        while await self._some_have_gone(self._founding):
            await self._complete.wait()
        cluster = b"" if self._recovery is None else self._recovery.new_cluster()
        await self._become(self._founding.view(), cluster)
        for member in self._founding.members[1:]:
            if member.number not in core.view.by_number:
                self._placed[member.uuid].close()  # it was dropped at once, and may join anew

    async def _some_have_gone(self, founding: Founding) -> bool:
        """Whether processes that have got a place are not there any more: the first view must not
        name them, and others may take their places."""
        others = founding.members[1:]
        there = await asyncio.gather(*(self._meetings.is_there(member) for member in others))
        gone = [member for member, is_there in zip(others, there, strict=True) if not is_there]
        for member in gone:
            founding.forget(member)
            self._placed.pop(member.uuid).close()  # it asks again, if it lives
            log.warning("member gone before the cluster was complete", extra=_address(member))
        if gone:
            self._complete.clear()
        return bool(gone)

    async def _become(self, view: View, cluster: bytes) -> None:
        """The first member installs the first view, here and at all others."""
        core = self._core
        core.wal.begin(view, cluster)
        self._installed(view)
        message = control_pb2.ViewInstall(
            context=core.context(), view=codec.encode_view(view), cluster_identity=cluster
        )
        others = [member for member in view.members if member.number != core.number]
        await asyncio.gather(*(self._tell_first_view(member, message) for member in others))

    async def _tell_first_view(self, member: MemberInfo, message: control_pb2.ViewInstall) -> None:
        """Return when the member has installed the first view, or a later view has dropped it.

        Until it has, it answers no heartbeat: a connection that broke makes it suspected, and it
        would not be heard again. So each attempt opens a connection of its own."""
        core = self._core
        while core.view.by_number.get(member.number) == member:
            try:
                async with self._connected(member) as channel:
                    await channel.request(RpcType.VIEW_INSTALL, message, timeout=VIEW_AGAIN)
            except RemudaError as error:
                if not may_be_heard_later(error):
                    raise
                self._cause = error.message
                log.info(
                    "the first view is sent again",
                    extra=fields(peer=member.number, cause=error.message),
                )
                await asyncio.sleep(TELL_AGAIN)
            else:
                return

    @asynccontextmanager
    async def _connected(self, member: MemberInfo) -> AsyncGenerator[Channel]:
        """A control connection to a process that may not be a member yet. Raises as ``dial``."""
        core = self._core
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(core.info), context=core.context()
        )
        channel = await dial(core, member.host, member.control_port, ChannelKind.CONTROL, hello)
        try:
            yield channel
        finally:
            channel.close()

    async def _place(
        self, founding: Founding, cluster: str, info: MemberInfo, channel: Channel
    ) -> control_pb2.Join:
        await self._meetings.meet(info)
        if self.formed.is_set():
            return self._asked_too_early()
        joined = founding.join(cluster, info)
        self._placed[joined.uuid] = channel
        log.info("member joined", extra=_address(info))
        if founding.complete:
            self._complete.set()
        return control_pb2.Join(
            context=self._core.context(),
            member=codec.encode_member(joined),
            cluster=founding.cluster,
        )

    # --- a cluster that starts again ------------------------------------------------------------

    async def _form_again(self, recovery: Recovery) -> None:
        """Wait for the members that have what is needed, settle with them, form a view."""
        core, state = self._core, recovery.log_state()
        assert state is not None
        gathering = self._gathering = Gathering(recovery.cluster, core.config.members_given_up)
        core.number = state.member
        core.info = replace(core.info, number=core.number)
        gathering.here[core.number] = returned(core.info, state)
        now = core.world.clock.monotonic
        patience = now() + PATIENCE * core.config.heartbeat_timeout
        told = ""
        while True:
            self._arrived.clear()
            found = gathering.complete(patient=now() < patience)
            if found is not None and self._refuse_older(gathering, found):
                continue
            if found is not None and await self._agreed(recovery, gathering, found):
                return
            gathering.require_logs()
            progress = gathering.progress()
            if progress != told:
                told = progress
                log.warning("starting again from logs", extra=fields(progress=progress))
            await self._first_of(self._arrived, limit=True)

    def _refuse_older(self, gathering: Gathering, found: Prospect) -> bool:
        """Whether there were logs that lack what others know of them; the rest may be enough.
        Raises DataCorrupted for the own one."""
        older = gathering.older(found)
        if self._core.number in older:
            raise older[self._core.number]
        for number, error in older.items():
            log.error("an older log is refused", extra=fields(peer=number, why=error.message))
            self._cause = error.message
            gathering.refuse(number, error)
            self._gathered.pop(number).close()  # it asks again, and hears why
        return bool(older)

    async def _agreed(self, recovery: Recovery, gathering: Gathering, found: Prospect) -> bool:
        """Have all that are here settle what is in doubt; False: one of them has gone."""
        core, view = self._core, gathering.new_view(found, self._core.number)
        for each in gathering.here.values():
            core.observe_clock(each.state.clock)
        asked = gathering.in_doubt()
        asked.context.CopyFrom(core.context())
        others = [member for member in view.members if member.uuid != core.uuid]
        told = [recovery.ends_of(asked)]
        try:
            told += [await self._recover(member, asked) for member in others]
            decided = gathering.decide(found, told)
            decided.context.CopyFrom(core.context())
            decided.view.CopyFrom(codec.encode_view(view))
            for member in others:
                gathering.settles(member.number, found)
                await self._recover(member, decided)
        except RemudaError as error:
            self._cause = error.message
            log.warning("a member went while the cluster started", extra=fields(why=error.message))
            return False
        if core.number in view.by_number:
            await recovery.settle(decided)
        else:  # the others had gone on without it: it is a new member of theirs
            core.info = next(member for member in view.members if member.uuid == core.uuid)
            core.number = core.info.number
            decided.catalog.context.CopyFrom(core.context())
            self._catalog.install(decided.catalog)
        if found.gaps:
            log.error("partitions are lost", extra=fields(partitions=found.gaps))
        await self._become(view, recovery.cluster)
        for number, channel in self._gathered.items():
            if number not in core.view.by_number:  # it may join anew, without what it has
                channel.close()
        return True

    async def _recover(
        self, member: MemberInfo, message: control_pb2.Recover
    ) -> control_pb2.Recover:
        """Raises what the member answers, and forgets it when it cannot be reached."""
        try:
            async with self._connected(member) as channel:
                reply = await _answer(channel, message)
        except RemudaError:
            if self._gathering is not None:
                self._gathering.here.pop(member.number, None)
            raise
        answer = control_pb2.Recover.FromString(reply.pbody)
        self._core.observe(answer.context)
        return answer

    def on_recover(self, request: Request) -> None:
        """The side of those that came back."""
        message = control_pb2.Recover.FromString(request.pbody)
        core, recovery = self._core, self._recovery
        if recovery is None or self.formed.is_set():
            raise MemberUnavailable(f"member {core.number} does not start from its log now")
        core.observe(message.context)
        if message.HasField("view"):
            core.serve(request, self._settle(request, recovery, message))
        else:
            request.reply(RpcType.RECOVER, recovery.ends_of(message))

    async def _settle(
        self, request: Request, recovery: Recovery, message: control_pb2.Recover
    ) -> None:
        """Asked again, it settles once."""
        async with self._settling:
            if self._settled != request.pbody:
                await recovery.settle(message)
                self._settled = bytes(request.pbody)
        request.reply(RpcType.RECOVER, control_pb2.Recover(context=self._core.context()))

    async def _gather(
        self, gathering: Gathering, message: control_pb2.Join, info: MemberInfo, channel: Channel
    ) -> control_pb2.Join:
        gathering.require_this_cluster(message)  # before its number is compared with others'
        had = message.log.member
        await self._meetings.meet(replace(info, number=had))
        here = gathering.here.get(had)
        another = here is not None and here.info.uuid != info.uuid
        if here is not None and another and await self._meetings.is_there(here.info):
            raise InvalidDefinition(
                f"member {had} is back already, at {here.info.host}:{here.info.control_port}",
                hint="Two processes have copies of one data_dir: start one of them alone.",
            )
        if self.formed.is_set():
            return self._asked_too_early()
        info = gathering.join(message)
        self._gathered[info.number] = channel
        self._arrived.set()
        log.info("member is back", extra=fields(peer=info.number, progress=gathering.progress()))
        return control_pb2.Join(
            context=self._core.context(),
            member=codec.encode_member(info),
            cluster=self._core.config.cluster,
        )

    # --- the process that wants to be a member --------------------------------------------------

    async def _join(self) -> None:
        """Ask again and again until a view has this process. All that meet it learn from its
        handshake, too, which number it had."""
        folder = None if self._recovery is None else self._recovery.state
        if folder is not None:
            self._core.comes_back(folder.number)
        pause = RETRY_FIRST
        while not self.formed.is_set():
            try:
                await self._ask_to_join()
            except (InputError, ProtocolError, DataCorrupted):
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
                placed = await self._asked(channel)
                if not self.formed.is_set():
                    soon = () if placed else (self.decided,)
                    await self._first_of(self.formed, broken, *soon, limit=not placed)
        finally:
            channel.close()

    async def _asked(self, channel: Channel) -> bool:
        """One request; True: a new cluster has a place for this process."""
        core = self._core
        state = None if self._recovery is None else self._recovery.log_state()
        join = control_pb2.Join(
            context=core.context(),
            member=codec.encode_member(replace(core.info, number=0)),
            cluster=core.config.cluster,
            logs=self._recovery is not None,
        )
        if state is not None:
            join.log.CopyFrom(state)
        reply = await channel.request(RpcType.JOIN, join, timeout=CONNECT_TIMEOUT)
        answer = control_pb2.Join.FromString(reply.pbody)
        core.observe(answer.context)
        if answer.HasField("view"):
            view = codec.decode_view(answer.view)
            self._catalog.install(answer.catalog)
            self.install(view, answer.cluster_identity)
        elif answer.reading:
            self._cause = "the first member reads its log"
            patience = self._core.config.join_timeout
            self._limit.reschedule(asyncio.get_running_loop().time() + patience)
        return bool(answer.member.number)  # the number of this process comes with the view

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

    def install(self, view: View, cluster: bytes = b"") -> None:
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
        core.wal.begin(view, cluster)
        self._installed(view)

    # --- the member that is asked ---------------------------------------------------------------

    async def answer_join(
        self, message: control_pb2.Join, channel: Channel, ask: Callable[[MemberInfo], None]
    ) -> control_pb2.Join:
        """Nothing is kept of a process that this member has not met. ``ask`` wishes for a view with
        the process. Raises MemberUnavailable, InvalidDefinition, ProtocolError, VersionMismatch."""
        core = self._core
        self._require_alike(message)
        info = replace(codec.decode_member(message.member), number=0)
        if not self.formed.is_set():
            if self._gathering is not None:
                return await self._gather(self._gathering, message, info, channel)
            if self._recovery is not None and self._recovery.reading and not core.config.join:
                return control_pb2.Join(
                    context=core.context(), cluster=core.config.cluster, reading=True
                )
            if self._founding is None:
                raise MemberUnavailable(
                    f"member {core.number or core.uuid} is not in a cluster yet",
                    hint="Join the member that was started without --join.",
                )
            if message.HasField("log"):
                raise InvalidDefinition(
                    "the member's data_dir belongs to another cluster: this one is new",
                    hint="To start a cluster again, start its first member with the data_dir of one"
                    " of its members.",
                )
            return await self._place(self._founding, message.cluster, info, channel)
        if message.cluster != core.config.cluster:
            raise InvalidDefinition(
                f'this is cluster "{core.config.cluster}", not "{message.cluster}"'
            )
        answer = control_pb2.Join(context=core.context(), cluster=core.config.cluster)
        known = next((m for m in core.view.members if m.uuid == info.uuid), None)
        if known is not None:
            answer.member.CopyFrom(codec.encode_member(known))
            answer.view.CopyFrom(codec.encode_view(core.view))
            answer.catalog.CopyFrom(self._catalog.state())
            if self._recovery is not None:
                answer.cluster_identity = self._recovery.cluster
            return answer
        require_fit(info, core.view)
        self._require_no_last_copies(message)
        if len(core.view.members) >= MEMBERS_MAX:
            raise InvalidDefinition(
                f'cluster "{core.config.cluster}" has {MEMBERS_MAX} members, which is the limit'
            )
        if core.readiness.hopeless:
            core.readiness.require_lease()  # without a majority there is no view that has it
        await self._meetings.meet(info)
        ask(info)
        return answer

    def _asked_too_early(self) -> control_pb2.Join:
        """The cluster was formed while the process was met: it asks again."""
        return control_pb2.Join(context=self._core.context(), cluster=self._core.config.cluster)

    def _require_alike(self, message: control_pb2.Join) -> None:
        """Raises InvalidDefinition: all members keep logs, or none does."""
        if message.logs and self._recovery is None:
            raise InvalidDefinition(
                "the members of this cluster keep no logs, and the new one has a data_dir",
                hint="Start all members with data_dir, or none.",
            )
        if self._recovery is not None and not message.logs:
            raise InvalidDefinition(
                "the members of this cluster keep logs, and the new one has no data_dir",
                hint="Start all members with data_dir, or none.",
            )

    def _require_no_last_copies(self, message: control_pb2.Join) -> None:
        """A member of this cluster that others went on without joins anew, and its rows are void;
        raises InvalidDefinition when nobody else has it."""
        recovery, log_state = self._recovery, message.log
        if recovery is None or recovery.state is None or not message.HasField("log"):
            return
        if log_state.cluster_identity != recovery.cluster:
            raise InvalidDefinition(
                "data_dir of the member belongs to another cluster",
                hint="Start the member with its own folder, or with an empty one.",
            )
        lost = [p for p, e in recovery.state.lost.items() if log_state.member in e.members]
        if lost:
            raise InvalidDefinition(
                f"data_dir of the member has the only copies of {len(lost)} partitions, and a"
                " process that has ended gives none back while the cluster runs",
                detail="The others cannot reach these partitions. They join nobody who has copies"
                " of them, so that nothing of the folder is void.",
                hint="Stop all members and start them again, this one among them: then the cluster"
                " takes the partitions from its log. To give them up, run remuda cluster"
                " accept-loss; then this member may join.",
            )
