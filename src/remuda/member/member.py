"""The life of one member: it listens, joins its cluster, serves, leaves and stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from google.protobuf.message import Message

from remuda.cluster.membership import Reached
from remuda.config import MemberConfig, check_exposure
from remuda.datatypes.view import MemberInfo
from remuda.errors import MemberGivenUp, MemberUnavailable, RemudaError, SessionTerminated
from remuda.member.base.logins import known_users
from remuda.member.base.routes import PRIMARY_CALLS
from remuda.member.base.wing import Requests, all_routes
from remuda.member.drill.server import server_infos
from remuda.member.leaving import Leaving
from remuda.member.open_work import OpenWork
from remuda.member.rooms import Rooms
from remuda.member.security.defences import defences
from remuda.member.state.log import fields
from remuda.member.upkeep import Upkeep
from remuda.rpc import codec, server
from remuda.rpc.connection import ChannelKind
from remuda.rpc.handshake import native_version
from remuda.rpc.messages import control_pb2, data_pb2, user_pb2
from remuda.rpc.transport import Channel
from remuda.world import World

log = logging.getLogger(__name__)


class Member(Rooms):
    """``await start()``, then it serves until ``await stop()``."""

    def __init__(self, config: MemberConfig, world: World) -> None:
        super().__init__(config, world, self._end_with)
        self._servers: dict[ChannelKind, server.Server] = {}
        served = self.statements, self.queries, self.jobs, self.transactions, self.commits
        work = OpenWork(self.open.sessions, *served)
        self._leaving = Leaving(self.core, self.membership, work, self._servers, self.postgres)
        reads = self.statements.oldest_read, self.queries.oldest_read, self.open.pins.oldest_read
        self.upkeep = Upkeep(
            self.core,
            self.offload,
            self.retention,
            oldest_reads=(*reads, self.transactions.oldest),
            expire_jobs=self.jobs.expire,
        )
        self.wings = (*self.wings, self.upkeep)
        self._begun = False
        """A view has this member, and its rooms work."""
        self._end: asyncio.Task[None] | None = None
        self.on_given_up: list[Callable[[str], None]] = []
        """Called with the reason when this member stops because others count it as lost."""
        self.core.listeners.given_up.add(self._given_up)

    @property
    def info(self) -> MemberInfo:
        return self.core.info

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, find the others, serve. Raises RemudaErrors; ``stop`` cleans up afterwards."""
        await self._listen()
        routes = all_routes(self.wings)
        self._member_routes.listen(routes.forming)
        if self.recovery is not None:
            await self.recovery.open()
        await self.membership.form()
        self._begun = True
        self.offload.start(self.hop)
        self.planner.start(self.hop)
        self.reading.start(self.hop)
        for wing in self.wings:
            wing.start()
        forwarded: Requests = {control_pb2.RpcType.FORWARD: self._user_routes.on_forward}
        self._member_routes.open({**routes.control, **forwarded}, routes.data)
        self._user_routes.open(routes.user, routes.calls, PRIMARY_CALLS)
        self.core.listeners.begin()
        self.membership.tell_losses()
        log.info("serving", extra=fields(**self.addresses()))

    async def _listen(self) -> None:
        config, network = self.core.config, self.core.world.network
        protection = self.core.protect(defences(config, self.core.world))
        users, verifier = known_users(self.core, self.password_checks)
        tls = protection.listening.get(ChannelKind.USER)
        await self.metrics.listen(tls, verifier)
        await self.postgres.listen(tls, users, verifier)
        greeted = {
            ChannelKind.USER: self.run_queries.connected,
            ChannelKind.DATA: self._data_connected,
        }
        for kind, port, answer, handler in (
            (ChannelKind.USER, config.user_port, self._greet_user, self._user_routes.handle),
            (
                ChannelKind.CONTROL,
                config.control_port,
                self._greet_control,
                self._member_routes.handle_control,
            ),
            (ChannelKind.DATA, config.data_port, self._greet_data, self._member_routes.handle_data),
        ):
            if kind is ChannelKind.CONTROL and config.control_fd >= 0:
                sock = network.adopt(config.control_fd)
                check_exposure(replace(config, host=sock.getsockname()[0]))
            else:
                sock = network.listen(config.host, port)
            connected = greeted.get(kind)
            self._servers[kind] = await server.listen(
                sock,
                kind,
                answer,
                handler,
                connected,
                tls=protection.listening.get(kind),
                guard=protection.guard(kind, verifier),
            )
        self.core.listens(
            user_port=self._servers[ChannelKind.USER].address[1],
            control_port=self._servers[ChannelKind.CONTROL].address[1],
            data_port=self._servers[ChannelKind.DATA].address[1],
        )

    def addresses(self) -> dict[str, str]:
        """Of its channels and of its pages for operators, as HOST:PORT; of what is served."""
        places = self._servers.items()
        found = {kind.value: f"{each.address[0]}:{each.address[1]}" for kind, each in places}
        more = {"metrics": self.metrics.address, "postgres": self.postgres.address}
        return found | {name: address for name, address in more.items() if address}

    async def leave(self) -> None:
        """Leave the cluster in order (``cluster.leaving``); ``stop`` comes after it."""
        if self._end is None and self.core.serving and self._begun:
            await self._leaving.leave()

    async def stop(self, reason: str = "it was stopped") -> None:
        """End every query and connection, and free everything, whether others want copies of this
        member or not."""
        self.donor.end()
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._stop(reason))
        await self._end

    def _given_up(self, error: MemberGivenUp) -> None:
        """The others go on without this member, for good: any answer of it might be wrong."""
        if self.membership.leaving:
            self.membership.has_left()
        elif self._end is None:
            log.error("the others have given this member up", extra=fields(cause=error.message))
            self._end_with(error.message, donor=True)

    async def ended(self) -> None:
        """Return when a member that was given up has ended, after it was a donor perhaps."""
        if self._end is not None:
            await self._end

    def _end_with(self, reason: str, *, donor: bool = False) -> None:
        """It must not answer anybody any more."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._stop(reason, donor=donor))
            for listener in self.on_given_up:
                listener(reason)

    async def _stop(self, reason: str, *, donor: bool = False) -> None:
        core = self.core
        log.info("stopping", extra=fields(reason=reason))
        error = MemberUnavailable(f"member {core.number} is stopping: {reason}")
        for wing in self.wings:
            wing.stop(error)
        core.stopping = True
        core.readiness.close(error)
        for wing in self.wings:
            wing.close()
        self.peers.close()
        self.postgres.disconnect(SessionTerminated(f"terminating connection: {error.message}"))
        servers = dict(self._servers)
        if donor and self._begun:
            # Users and load balancers that ask a donor are told what it is.
            for channel in list(servers.pop(ChannelKind.USER).channels):
                channel.close(error)
            self.donor.begin(reason)
        for listening in servers.values():
            await listening.close(error)
        await core.cancel_tasks()
        if self.donor.refusal is not None:
            await self.donor.run()
            await self._servers[ChannelKind.USER].close(error)
        if self.recovery is not None:
            await self.recovery.close()
        for wing in self.wings:
            wing.free()
        for offload in (self.offload, self.planner, self.reading, self.password_checks):
            offload.close()
        self.pool.close()
        core.audit.close()

    # --- greetings ----------------------------------------------------------------------------

    def _greet_user(self, _hello: Message) -> Message:
        self.core.departure.require_here()
        if self.donor.refusal is not None:
            raise self.donor.refusal
        return user_pb2.BitToUserHandshake(
            server_infos=server_infos(),
            supported_methods=self._user_routes.supported,
            arrow_results=True,
            member=self.core.number,
            native_version=native_version(self.core.view.version),
        )

    def _greet_control(self, hello: Message) -> Message:
        assert isinstance(hello, control_pb2.ControlHandshake)
        sender = codec.decode_member(hello.member)
        self.core.check_identity(sender, hello.context.view)
        if sender.number in self.core.lost:  # it lives, though its port may have been closed
            self.membership.step(Reached(sender.number))
        return control_pb2.ControlHandshake(
            member=codec.encode_member(self.core.info), context=self.core.context()
        )

    def _greet_data(self, hello: Message) -> Message:
        assert isinstance(hello, data_pb2.BitClientHandshake)
        self.core.observe_peer(hello.context)
        return data_pb2.BitServerHandshake()

    def _data_connected(self, channel: Channel) -> None:
        hello = channel.handshake
        assert isinstance(hello, data_pb2.BitClientHandshake)
        number = hello.context.sender

        def broken(error: RemudaError) -> None:
            if self._begun and not self.core.stopping:
                self.queries.connection_broken(number, ChannelKind.DATA, error)

        channel.on_closed.append(broken)
