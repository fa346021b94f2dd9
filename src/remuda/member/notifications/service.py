"""LISTEN and NOTIFY of this member's clients.

A commit that notifies writes entries of the queue's map beside its own writes, so it sends all of
its notifications or none. While a session of this member listens, one task follows the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from remuda.catalog.notification_queue import ENTRY_TTL, QUEUE_NAME, is_queue
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import (
    ChangesExpired,
    PartitionsLost,
    RemudaError,
    TransientError,
    UndefinedMap,
)
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.notifications.inbox import Inbox
from remuda.member.notifications.queue import Changelog, NotificationQueue, partition_of
from remuda.member.state.transaction_sets import Write
from remuda.member.transactions.transactions import Transactions
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.notifications import (
    Follower,
    Heard,
    Listen,
    Notification,
    OwnNotifications,
    Sent,
    Unlisten,
)

log = logging.getLogger(__name__)

ENTRY_SIZE: Final = 64 * 1024
"""Bytes of an entry; more notifications of one commit take several."""
WAIT: Final = 5.0
"""Seconds for which the queue keeps a question for news."""
ANSWER_TIMEOUT: Final = WAIT + 5.0
PAUSE: Final = 0.05
PATIENCE: Final = 30.0
"""Seconds for which LISTEN asks while members are lost and views change."""
OWN_PATIENCE: Final = 1.0
"""Seconds that a commit waits to be heard by its own session, which is told then without delay."""


class Notifications(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        transactions: Transactions,
        changes: Changelog,
        create: Callable[[], Awaitable[MapSchema]],
    ) -> None:
        """``create`` makes the map of the queue, if there is none."""
        self._core = core
        self._peers = peers
        self._transactions = transactions
        self._create = create
        self.queue = NotificationQueue(core, changes)
        self._inboxes: dict[Inbox, None] = {}
        """Of sessions that listen."""
        self._following: asyncio.Task[None] | None = None
        self._follower: Follower | None = None
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []
        core.listeners.placed.add_later(self.queue.look_again)
        transactions.on_lower.append((self.queue.readers, self.queue.wake))

    def routes(self) -> Routes:
        return Routes(control={RpcType.NOTIFICATIONS: self._on_request})

    def gauges(self) -> dict[str, int]:
        return {"listeners": len(self._inboxes)}

    def on_view(self, _before: View, _view: View) -> None:
        self.queue.look_again()

    def close(self) -> None:
        self.queue.close()
        if self._following is not None:
            self._following.cancel()

    # --- sending ------------------------------------------------------------------------------

    async def entries(self, own: OwnNotifications, pid: int) -> Sequence[Write]:
        """The entries that a commit writes to send its notifications."""
        if not own.sent:
            return ()
        schema = await self._map()
        tag = self._core.world.chance.bits(63)
        return [
            Write(schema.map_id, schema.version, key, (*key, body), ENTRY_TTL)
            for place, body in enumerate(_bodies(own.sent, pid))
            for key in ((0, tag, place),)
        ]

    async def send(self, entries: Sequence[Write], timeout: float | None) -> int:
        """Commit entries alone; the commit timestamp. Raises what a commit raises."""
        return await self._transactions.commit(list(entries), None, timeout)

    async def _map(self) -> MapSchema:
        found = self._core.catalog.find(QUEUE_NAME)
        if found is None:
            found = await self._create()
        assert is_queue(found)
        return found

    # --- listening ----------------------------------------------------------------------------

    async def since(self, own: OwnNotifications) -> int:
        """The timestamp after which commits count for channels that a session is about to listen
        to: every commit that begins when this has returned has a higher one. 0 if there are none.
        Raises TransientError."""
        if not any(isinstance(choice, Listen) for choice in own.choices):
            return 0
        schema = await self._map()
        deadline = self._core.world.clock.monotonic() + PATIENCE
        while True:
            try:
                return (await self._asked(schema, 0, 0.0)).until
            except TransientError:
                if self._core.world.clock.monotonic() > deadline:
                    raise
            await asyncio.sleep(PAUSE)

    def choose(self, inbox: Inbox, choices: Sequence[Listen | Unlisten], since: int) -> None:
        """A session listens from now on to what it has chosen; ``since``: as the method gives."""
        inbox.choose(choices, since)
        if not inbox.channels:
            self._inboxes.pop(inbox, None)
            return
        self._inboxes[inbox] = None
        if self._following is None:
            self._follower = Follower(since)
            self._following = self._core.spawn(self._follow(self._follower), "notifications")

    def end(self, inbox: Inbox) -> None:
        """Its session is over, or listens to nothing any more."""
        inbox.choose([Unlisten(None)], 0)
        self._inboxes.pop(inbox, None)

    async def heard(self, inbox: Inbox, own: OwnNotifications, timestamp: int) -> None:
        """Return when a session has heard of its own commit, if it listens to that, or when it
        should wait no longer."""
        follower = self._follower
        if follower is None or follower.position >= timestamp:
            return
        if not any(notification.channel in inbox.channels for notification in own.sent):
            return
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((timestamp, told))
        await asyncio.wait([told], timeout=OWN_PATIENCE)

    # --- following ----------------------------------------------------------------------------

    async def _follow(self, follower: Follower) -> None:
        try:
            while self._inboxes:
                try:
                    await self._read(follower)
                except (ChangesExpired, PartitionsLost, UndefinedMap) as error:
                    self._lose(error)
                except RemudaError as error:
                    log.debug("the queue of notifications was not read: %s", error.message)
                    await asyncio.sleep(PAUSE)
        finally:
            self._following = self._follower = None
            self._reached(1 << 63)

    async def _read(self, follower: Follower) -> None:
        """Raises ChangesExpired, UndefinedMap, TransientError."""
        schema = await self._map()
        asked = follower.position
        answer = await self._asked(schema, asked, WAIT)
        sent = tuple(map(_sent, answer.entries))
        for each in follower.step(Heard(asked, answer.until, sent)):
            for inbox in list(self._inboxes):
                inbox.hear(each)
        self._reached(follower.position)

    def _reached(self, position: int) -> None:
        awaited, self._awaited = self._awaited, []
        for timestamp, told in awaited:
            if timestamp > position:
                self._awaited.append((timestamp, told))
            elif not told.done():
                told.set_result(None)

    def _lose(self, error: RemudaError) -> None:
        """The queue has not kept what this member has not read."""
        log.warning("notifications were lost: %s", error.message)
        inboxes, self._inboxes = self._inboxes, {}
        for inbox in inboxes:
            inbox.lose(f"notifications were lost: {error.message}", "Connect and listen again.")

    async def _asked(
        self, schema: MapSchema, after: int, wait: float
    ) -> control_pb2.NotificationsAnswer:
        """Raises ChangesExpired, TransientError."""
        core = self._core
        await core.until_ready()
        message = control_pb2.NotificationsRequest(
            context=core.context(), map_id=schema.map_id, after=after, wait=wait
        )
        owner = core.view.owners[partition_of(schema)]
        if owner == core.number:
            return await self.queue.answer(message)
        core.require_reached(owner)
        reply = await self._peers.request(
            owner, RpcType.NOTIFICATIONS, message, timeout=ANSWER_TIMEOUT, repeated=not wait
        )
        answer = control_pb2.NotificationsAnswer.FromString(reply.pbody)
        core.observe_peer(answer.context)
        return answer

    def _on_request(self, request: Request) -> None:
        message = control_pb2.NotificationsRequest.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._answer(request, message))

    async def _answer(self, request: Request, message: control_pb2.NotificationsRequest) -> None:
        request.reply(RpcType.NOTIFICATIONS, await self.queue.answer(message))


def _bodies(sent: Sequence[Notification], pid: int) -> Iterator[bytes]:
    """The values of entries, in order."""
    body, size = control_pb2.NotificationBody(pid=pid), 0
    for notification in sent:
        if size and size + notification.size > ENTRY_SIZE:
            yield body.SerializeToString()
            body, size = control_pb2.NotificationBody(pid=pid), 0
        body.channels.append(notification.channel)
        body.payloads.append(notification.payload)
        size += notification.size
    yield body.SerializeToString()


def _sent(entry: control_pb2.NotificationEntry) -> Sent:
    body = control_pb2.NotificationBody.FromString(entry.body)
    found = tuple(map(Notification, body.channels, body.payloads))
    return Sent(entry.timestamp, entry.tag, entry.place, body.pid, found)
