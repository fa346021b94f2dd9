"""Connections to the other members: opened when first needed, one control and one data each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from google.protobuf.message import Message

from remuda.datatypes.view import MemberInfo
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    JobAborted,
    MemberGivenUp,
    MemberUnavailable,
    RemudaError,
    ResourceError,
    TransientError,
)
from remuda.limits import HEARTBEAT_TIMEOUT
from remuda.member.base.core import Core, attempt, bug
from remuda.member.state.log import fields
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind, Reply
from remuda.rpc.messages import control_pb2, data_pb2
from remuda.rpc.transport import Body, Buffers, Channel, connect

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
PEER_TIMEOUT = HEARTBEAT_TIMEOUT
"""To connect to a member of the view. One that is busy with many queries answers late; whether
it lives, heartbeats tell."""
ATTEMPTS = 3
"""Control connections that are tried at a time, at most."""
ATTEMPT_SHARE = 0.25
"""Of the heartbeat timeout, after which another one is tried."""
REQUEST_TIMEOUT = 30.0
TELL_AGAIN = 0.5
TELL_AGAIN_MAX = 4.0
"""Seconds after which a member that has not answered is told again: at first, and at most."""
ASK_AGAIN = 2.0
"""Seconds after which a request that holds others up is sent again (``request``)."""


Failed: TypeAlias = Callable[[RemudaError], None]


async def dial(  # noqa: PLR0917 (an address, a channel, a patience)
    core: Core,
    host: str,
    port: int,
    kind: ChannelKind,
    hello: Message,
    timeout: float = CONNECT_TIMEOUT,
) -> Channel:
    """Connect to another member as the defences of this one demand. Raises as ``connect``."""
    return await connect(
        host,
        port,
        kind,
        hello,
        timeout=timeout,
        tls=core.defences.tls,
        login=core.defences.login(kind),
    )


def _unheard(error: RemudaError) -> None:
    """Of messages that are sent again, or whose loss others notice."""
    log.debug("message not sent", extra=fields(cause=error.message))


class Peer:
    """One other member, one kind of channel. Messages sent while the connection is being made wait
    for it, in order, with everything behind them."""

    def __init__(
        self,
        core: Core,
        member: MemberInfo,
        kind: ChannelKind,
        on_broken: Callable[[int, ChannelKind, RemudaError], None],
    ) -> None:
        self._core = core
        self._kind = kind
        self._on_broken = on_broken
        self._waiting: list[tuple[Callable[[Channel], None], Failed]] = []
        self._opening: asyncio.Task[None] | None = None
        self.member = member
        self.channel: Channel | None = None

    def use(self, action: Callable[[Channel], None], failed: Failed = _unheard) -> None:
        """Call ``action`` with the open channel: at once if there is one, else when it opens.
        ``failed`` hears when it does not open, or the error that ``action`` raised then."""
        if self.channel is not None and not self.channel.closed:
            action(self.channel)
            return
        self._waiting.append((action, failed))
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        try:
            channel = await self._dialled()
        except RemudaError as error:
            self._opening = None
            self._give_up(error)
            return
        self._opening = None
        self.channel = channel
        channel.on_closed.append(self._closed)
        waiting, self._waiting = self._waiting, []
        for action, failed in waiting:
            try:
                action(channel)
            except RemudaError as error:
                attempt("failure of a message", partial(failed, error))
            except Exception as error:  # noqa: BLE001 (one message must not stop those behind it)
                failure = bug(error, f"a message to {self.member}")
                attempt("failure of a message", partial(failed, failure))

    async def _dialled(self) -> Channel:
        """The first connection that is made. A handshake that nobody answers may have been lost,
        and the others drop a member that they do not hear: the control channel makes another
        attempt before they do. Raises as ``connect``."""
        if self._kind is not ChannelKind.CONTROL:
            return await self._attempt()
        patience = self._core.config.heartbeat_timeout * ATTEMPT_SHARE
        attempts: list[asyncio.Task[Channel]] = []
        made: Channel | None = None
        try:
            while True:
                if len(attempts) < ATTEMPTS:
                    attempts.append(asyncio.get_running_loop().create_task(self._attempt()))
                done, _ = await asyncio.wait(
                    attempts, timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    made = done.pop().result()
                    return made
        finally:
            for each in attempts:
                if each.cancel() or each.cancelled() or each.exception() is not None:
                    continue
                if each.result() is not made:
                    each.result().close()

    async def _attempt(self) -> Channel:
        member, control = self.member, self._kind is ChannelKind.CONTROL
        port = member.control_port if control else member.data_port
        return await dial(self._core, member.host, port, self._kind, self._hello(), PEER_TIMEOUT)

    def _hello(self) -> Message:
        if self._kind is ChannelKind.CONTROL:
            return control_pb2.ControlHandshake(
                member=codec.encode_member(self._core.info), context=self._core.context()
            )
        return data_pb2.BitClientHandshake(context=self._core.context())

    def _give_up(self, error: RemudaError) -> None:
        self._fail_waiting(error)
        self._on_broken(self.member.number, self._kind, error)

    def _fail_waiting(self, error: RemudaError) -> None:
        waiting, self._waiting = self._waiting, []
        for _, failed in waiting:
            attempt("failure of a message", partial(failed, error))

    def _closed(self, error: RemudaError) -> None:
        self.channel = None
        if not self._core.stopping:
            self._on_broken(self.member.number, self._kind, error)

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        self._fail_waiting(ConnectionBroken(f"the connection to {self.member} was given up"))


class Peers:
    """All other members of the view."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._peers: dict[tuple[int, ChannelKind], Peer] = {}
        self.gone_on: set[int] = set()
        """Members that have refused a connection of this one, because their view does not have
        it."""

    def peer(self, number: int, kind: ChannelKind) -> Peer:
        """Raises MemberUnavailable when the member is lost or unknown."""
        self._core.require_alive(number)
        peer = self._peers.get((number, kind))
        if peer is None:
            member = self._core.view.by_number.get(number)
            if member is None:
                raise MemberUnavailable(f"member {number} is not in the view", member=str(number))
            peer = self._peers[number, kind] = Peer(self._core, member, kind, self._broken)
        return peer

    def _broken(self, number: int, kind: ChannelKind, error: RemudaError) -> None:
        if isinstance(error, MemberGivenUp):  # counts whoever says it, lost to this member or not
            self.gone_on.add(number)
            self.given_up(error)
            return
        if number in self._core.lost:
            return  # everybody knows; only heartbeats go on trying
        log.info(
            "connection to a member broke",
            extra=fields(peer=number, channel=kind.value, cause=error.message),
        )
        self._core.listeners.broken.tell(number, kind, error)

    def given_up(self, error: MemberGivenUp) -> None:
        """A member answers that a view has dropped a sender: this member, unless the answer was
        passed on for another one."""
        if error.member == str(self._core.number):
            self._core.listeners.given_up.tell(error)

    def send_control(self, number: int, rpc_type: int, body: Message) -> None:
        """One-way. A member that is lost gets nothing (whoever cares hears of the loss)."""
        if number in self._core.lost or self._core.stopping:
            return
        known = self._peers.get((number, ChannelKind.CONTROL))
        channel = None if known is None else known.channel
        if channel is not None and not channel.closed:  # the usual case
            channel.send(rpc_type, body)
            return
        self.peer(number, ChannelKind.CONTROL).use(lambda channel: channel.send(rpc_type, body))

    def send_membership(self, number: int, rpc_type: int, body: Message) -> None:
        """One-way, about membership: also to members that are suspected, and to those of former
        views over a connection that is still open."""
        if self._core.stopping:
            return
        key = (number, ChannelKind.CONTROL)
        peer = self._peers.get(key)
        member = self._core.view.by_number.get(number)
        if member is None and (peer is None or peer.channel is None):
            return
        if peer is None:
            assert member is not None
            peer = self._peers[key] = Peer(self._core, member, ChannelKind.CONTROL, self._broken)
        try:
            peer.use(lambda channel: channel.send(rpc_type, body))
        except ConnectionBroken as error:
            _unheard(error)

    def send_data(
        self, number: int, rpc_type: int, body: Message, dbody: Buffers, failed: Failed
    ) -> None:
        """One-way on the data channel. ``failed`` hears when it could not be sent: a connection
        that broke or does not open is a MemberUnavailable that names the member."""
        if number in self._core.lost or self._core.stopping:
            return

        def not_sent(error: RemudaError) -> None:
            broken = isinstance(error, ConnectionBroken | ConnectionRefused)
            failed(unavailable(number, error) if broken else error)

        peer = self.peer(number, ChannelKind.DATA)
        try:
            peer.use(lambda channel: channel.send(rpc_type, body, dbody), not_sent)
        except ConnectionBroken as error:
            not_sent(error)

    def request_nowait(
        self,
        number: int,
        rpc_type: int,
        body: Body,
        dbody: Buffers,
        on_reply: Callable[[Reply | RemudaError], None],
    ) -> None:
        """A request on the control channel. A broken connection answers MemberUnavailable."""

        def answered(reply: Reply | RemudaError) -> None:
            if isinstance(reply, MemberGivenUp):
                self.given_up(reply)
            if isinstance(reply, ConnectionBroken):
                reply = self._gone(number, reply)
            on_reply(reply)

        try:
            peer = self.peer(number, ChannelKind.CONTROL)
        except MemberUnavailable as error:
            on_reply(error)
            return
        channel = peer.channel
        if channel is not None and not channel.closed:  # ``use`` written out: the hot path
            channel.request_nowait(rpc_type, body, dbody, answered)
            return
        peer.use(
            lambda channel: channel.request_nowait(rpc_type, body, dbody, answered),
            lambda error: on_reply(unavailable(number, error)),
        )

    def tell(
        self,
        number: int,
        rpc_type: int,
        message: Callable[[], Message],
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a request on the control channel again and again until the member has answered it:
        for the end of something that the member would hold for ever if one message were lost. The
        receiver must accept repeated ones. ``heard`` is called when it has answered, has left the
        view, or refuses the request for good. A member that stops tells nothing any more."""
        Telling(self._core, self, number, rpc_type, message, heard).send()

    async def request(
        self,
        number: int,
        rpc_type: int,
        body: Message,
        dbody: Buffers = (),
        timeout: float = REQUEST_TIMEOUT,
        *,
        repeated: bool = False,
    ) -> Reply:
        """Raises what the peer answers, or MemberUnavailable (lost, or silent for ``timeout``).
        ``repeated``: while there is no answer, send it again every ASK_AGAIN seconds; the receiver
        must accept repeated ones. For a request that others wait for: without it, a request or an
        answer that is lost would hold them up for the whole timeout."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def settle(reply: Reply | RemudaError) -> None:
            if future.done():
                return
            if isinstance(reply, RemudaError):
                future.set_exception(reply)
            else:
                future.set_result(reply)

        self.request_nowait(number, rpc_type, body, dbody, settle)
        again = self.ask_again(number, rpc_type, body, dbody, settle) if repeated else None
        try:
            return await asyncio.wait_for(future, timeout)
        except TimeoutError as problem:
            raise unanswered(number, timeout) from problem
        finally:
            if again is not None:
                again.cancel()

    def ask_again(
        self,
        number: int,
        rpc_type: int,
        body: Message,
        dbody: Buffers,
        on_reply: Callable[[Reply | RemudaError], None],
    ) -> asyncio.Task[None]:
        """Send a request that is under way again and again, until the task is cancelled."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(ASK_AGAIN)
                self.request_nowait(number, rpc_type, body, dbody, on_reply)

        return asyncio.get_running_loop().create_task(repeat())

    def _gone(self, number: int, broken: ConnectionBroken) -> RemudaError:
        """Why a request was not answered: the loss of the member, where that closed the channel."""
        try:
            self._core.require_alive(number)
        except MemberUnavailable as lost:
            return lost
        return unavailable(number, broken)

    def forget(self, number: int) -> None:
        for kind in (ChannelKind.CONTROL, ChannelKind.DATA):
            peer = self._peers.pop((number, kind), None)
            if peer is not None:
                peer.close()

    @property
    def open_channels(self) -> int:
        return sum(peer.channel is not None for peer in self._peers.values())

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


class Telling:
    """A request that is sent until it is answered (``Peers.tell``), with pauses that grow: more
    of them would not help a slow member."""

    def __init__(  # noqa: PLR0917 (a request, and where it goes)
        self,
        core: Core,
        peers: Peers,
        number: int,
        rpc_type: int,
        message: Callable[[], Message],
        heard: Callable[[], None],
    ) -> None:
        self._core = core
        self._peers = peers
        self._number = number
        self._rpc_type = rpc_type
        self._message = message
        self._heard = heard
        self._pause = TELL_AGAIN
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def send(self) -> None:
        if self._over or self._core.stopping:
            return
        number = self._number
        if number not in self._core.view.by_number:
            self._end()
            return
        self._timer = asyncio.get_running_loop().call_later(self._pause, self.send)
        self._pause = min(2 * self._pause, TELL_AGAIN_MAX)
        if number not in self._core.lost:
            self._peers.request_nowait(number, self._rpc_type, self._message(), (), self._answered)

    def _answered(self, reply: Reply | RemudaError) -> None:
        if self._over:
            return
        if isinstance(reply, RemudaError):
            if may_be_heard_later(reply):
                return
            log.warning(
                "a member refuses for good what it is told",
                extra=fields(
                    peer=self._number,
                    rpc=control_pb2.RpcType.Name(self._rpc_type),
                    cause=reply.message,
                    kind=type(reply).__name__,
                ),
            )
        self._end()

    def _end(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self._heard()


def may_be_heard_later(error: RemudaError) -> bool:
    """Whether a member that answers a request with ``error`` may take the same request later: the
    member does not serve now, is in another view, or lacks room. A member that was given
    up is never heard again, and a message that cannot be read today cannot be read tomorrow."""
    if isinstance(error, MemberGivenUp | JobAborted):
        return False
    return isinstance(error, TransientError | ResourceError)


def unanswered(number: int, timeout: float) -> MemberUnavailable:
    """The error for a member that is connected and has not answered for ``timeout`` seconds."""
    return MemberUnavailable(
        f"member {number} did not answer within {timeout:.0f} s", member=str(number)
    )


def unavailable(number: int, cause: RemudaError) -> TransientError:
    return MemberUnavailable(f"member {number} is unavailable: {cause.message}", member=str(number))
