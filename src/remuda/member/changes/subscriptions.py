"""Clients who read the changes of maps: entry listeners, continuous queries, near caches.

A client asks again and again, each time with its positions; a request waits here until there is
something to tell. So a member holds nothing for a slow client: changes that it has not fetched lie
in the versions of the map, as long as these are kept. A subscription is only the memory of the
client in between: its query, made ready to be applied, and the figures of ``sys.subscriptions``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from remuda.catalog.catalog import Catalog
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.errors import InputError, LimitExceeded, ProtocolError, RemudaError, UndefinedMap
from remuda.limits import (
    CHANGES_PAGE_ROWS,
    CHANGES_STREAM_ROWS,
    CHANGES_WAIT_MAX,
    PARTITIONS,
    SUBSCRIPTION_IDLE_TIMEOUT,
    SUBSCRIPTIONS_MAX,
)
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.base.wing import Routes, Wing
from remuda.member.changes.change_logs import EVERYTHING, ChangeLogs, Positions
from remuda.member.changes.change_pages import Page, key_columns, page_of
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.packing import packer
from remuda.rpc.transport import Channel, Request
from remuda.session.planning import bound
from remuda.session.privileges import Need, check_needs, needs_of
from remuda.session.watching import WatchedQuery

TICK = 0.002
"""Seconds between two looks at maps that somebody waits for, when they change all the time."""
TICK_MAX = 0.010
"""The same when they do not."""
NEAR_CACHE = "near cache"
STREAM = "stream"
KINDS = frozenset({"listener", "query", NEAR_CACHE, STREAM})
SETTLE_MAX = 0.05
"""So many seconds an answer to a near cache waits for writes that were pending when it was asked
for: an answer that confirms nothing lets the cache grow old."""
TEXT_SHOWN = 10_000


@dataclass(eq=False, slots=True)
class Subscription:
    name: str
    kind: str
    text: str
    types: tuple[SqlType, ...]
    values: Sequence[PhysicalValue]
    """Of its parameters."""
    user: str
    channel: Channel
    started: int
    query: WatchedQuery
    needs: tuple[Need, ...]
    catalog: Catalog
    """Under which the query was bound."""
    map_id: int
    keys_only: bool
    used: float
    """Monotonic seconds."""
    position: int = 0
    changes: int = 0
    reading: int = 0
    """Requests that are being served."""
    on_closed: Callable[[RemudaError], None] = field(default=lambda _: None)


class Subscriptions(Wing):
    def __init__(self, core: Core, offload: Offload) -> None:
        self._core = core
        self.logs = self._logs = ChangeLogs(core, offload, self.wake)
        self._known: dict[str, Subscription] = {}
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        """By map id: requests to be told when something has changed."""
        self._ticking: asyncio.Task[None] | None = None
        core.listeners.moved.add_later(self._logs.on_moved)
        core.listeners.placed.add_later(self._look_again)

    def __len__(self) -> int:
        return len(self._known)

    def routes(self) -> Routes:
        return Routes(user={RpcType.CHANGES_READ: self._on_read, RpcType.CHANGES_END: self._on_end})

    # --- requests -----------------------------------------------------------------------------

    def _on_read(self, request: Request) -> None:
        message = user_pb2.ChangesRequest.FromString(request.pbody)
        self._core.observe_client(message.context)
        positions = _positions(message)
        # At once where possible: what ends the subscription may come in the same step.
        found = self._subscription(request, message) if self._core.ready else None
        self._core.serve(request, self._read(request, message, positions, found))

    def _on_end(self, request: Request) -> None:
        message = user_pb2.ChangesEnd.FromString(request.pbody)
        subscription = self._known.get(message.subscription)
        if subscription is not None and subscription.channel is request.channel:
            self._end(subscription)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    async def _read(
        self,
        request: Request,
        message: user_pb2.ChangesRequest,
        positions: Positions,
        found: Subscription | None,
    ) -> None:
        core = self._core
        now = core.world.clock.monotonic
        until = now() + min(max(message.wait, 0.0), CHANGES_WAIT_MAX)
        await core.until_ready()
        arrived = core.timestamp()
        subscription = found or self._subscription(request, message)
        settles = now() + (SETTLE_MAX if subscription.kind == NEAR_CACHE else 0.0)
        subscription.reading += 1
        try:
            while not request.channel.closed:
                if not core.ready:
                    await core.until_ready()
                if self._known.get(subscription.name) is not subscription:
                    raise InputError("the subscription was ended")
                self._fresh(subscription)
                query = subscription.query
                most = CHANGES_STREAM_ROWS if subscription.kind == STREAM else CHANGES_PAGE_ROWS
                rows = min(message.rows or CHANGES_PAGE_ROWS, most)
                schema = query.schema
                news = await self._logs.read(schema.map_id, schema.name, positions, rows)
                page = page_of(news, query, rows, keys_only=subscription.keys_only)
                told = page.rows or page.last is not None
                confirmed = news.high >= arrived
                if now() >= until or (told and (confirmed or now() >= settles)):
                    kept = self._logs.kept_since(schema.map_id, positions)
                    self._answer(request, subscription, page, (news.high, confirmed, kept))
                    return
                if told:  # what was pending when the request came is decided in a moment
                    await asyncio.sleep(TICK)
                    continue
                positions.advance(news.high)  # nothing of it is wanted
                await self._change(query.schema.map_id, until - now())
        finally:
            subscription.reading -= 1
            subscription.used = now()

    def _answer(
        self,
        request: Request,
        subscription: Subscription,
        page: Page,
        state: tuple[int, bool, int],
    ) -> None:
        """``state``: how far the log is, whether that confirms the client's writes, and since when
        changes are kept."""
        high, confirmed, kept = state
        query = subscription.query
        columns = [*key_columns(query), *(() if subscription.keys_only else query.columns)]
        answer = user_pb2.ChangesPage(
            context=self._core.context(),
            columns=[codec.encode_column(column) for column in columns],
            changes=page.body,
            timestamp=high,
            map_id=subscription.map_id,
            confirmed=confirmed,
            kept_since=kept,
        )
        if page.last is not None:
            answer.timestamp, answer.partition, answer.hash = page.last
        subscription.position = max(subscription.position, answer.timestamp)
        subscription.changes += page.rows
        request.reply(RpcType.CHANGES_READ, answer)

    # --- waiting ------------------------------------------------------------------------------

    async def _change(self, map_id: int, timeout: float) -> None:
        """Return when something has happened to the map, or the time is over."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(map_id, [])
        waiting.append(told)
        if self._ticking is None:
            self._ticking = self._core.spawn(self._tick(), "changes of maps")
        try:
            await asyncio.wait([told], timeout=max(timeout, TICK))
        finally:
            if told in waiting:
                waiting.remove(told)
            if not waiting and self._waiting.get(map_id) is waiting:
                del self._waiting[map_id]

    async def _tick(self) -> None:
        """Look at the maps that somebody waits for. It takes a fifth of the time at most."""
        pause, now = TICK, self._core.world.clock.monotonic
        try:
            while self._waiting:
                await asyncio.sleep(pause)
                begin = now()
                changed = False
                for map_id in list(self._waiting):
                    if map_id not in self._core.stores:
                        self.wake(map_id)
                    elif await self._logs.advance(map_id):
                        changed = True
                wanted = TICK if changed else min(pause * 1.5, TICK_MAX)
                pause = max(wanted, 4 * (now() - begin))
        finally:
            self._ticking = None

    def wake(self, map_id: int) -> None:
        for told in self._waiting.pop(map_id, ()):
            if not told.done():
                told.set_result(None)

    def _look_again(self) -> None:
        """Partitions may have moved."""
        for map_id in list(self._waiting):
            self.wake(map_id)

    def on_view(self, _before: View, _view: View) -> None:
        self._look_again()

    def on_dropped(self, map_id: int) -> None:
        self._logs.on_dropped(map_id)
        self.wake(map_id)

    # --- subscriptions ------------------------------------------------------------------------

    def _subscription(self, request: Request, message: user_pb2.ChangesRequest) -> Subscription:
        """Raises LimitExceeded, InsufficientPrivilege, NotSupported, InputErrors of the query."""
        known = self._known.get(message.subscription)
        if known is not None and known.channel is request.channel and known.text == message.text:
            return known
        if not message.subscription or message.kind not in KINDS:
            raise ProtocolError("a subscription needs a name and one of the kinds that there are")
        if known is not None:
            self._end(known)
        self._expire()
        core = self._core
        if len(self._known) >= SUBSCRIPTIONS_MAX:
            raise LimitExceeded(
                f"member {core.number} has {SUBSCRIPTIONS_MAX} subscriptions already",
                hint="Stop listeners and continuous queries that nobody needs, or share them.",
            )
        types = type_codec.decode_types(message.parameter_types)
        values = packer(types).unpack(message.parameters) if types else ()
        catalog = core.access.catalog(request.user)
        query, needs = self._bound(message.text, types, values, catalog, request.user)
        subscription = Subscription(
            name=message.subscription,
            kind=message.kind,
            text=message.text,
            types=types,
            values=values,
            user=request.user,
            channel=request.channel,
            started=core.world.clock.wall_micros(),
            query=query,
            needs=needs,
            catalog=catalog,
            map_id=message.map_id or query.schema.map_id,
            keys_only=message.keys_only,
            used=core.world.clock.monotonic(),
        )
        self._known[subscription.name] = subscription
        subscription.on_closed = lambda _: self._end(subscription)
        request.channel.on_closed.append(subscription.on_closed)
        return subscription

    def _bound(
        self,
        text: str,
        types: tuple[SqlType, ...],
        values: Sequence[PhysicalValue],
        catalog: Catalog,
        user: str,
    ) -> tuple[WatchedQuery, tuple[Need, ...]]:
        statement = bound(text, types, catalog)
        needs = needs_of(statement, catalog)
        self._check(user, needs)
        return WatchedQuery(statement, values, types), needs

    def _check(self, name: str, needs: tuple[Need, ...]) -> None:
        user = self._core.access.user(name)
        if user is not None:
            check_needs(user, needs)

    def _fresh(self, subscription: Subscription) -> None:
        """Bind its query again if the catalog has changed, and check the rights of its user, which
        may have changed as well. Raises UndefinedMap, InsufficientPrivilege."""
        catalog = self._core.access.catalog(subscription.user)
        if catalog is subscription.catalog:
            self._check(subscription.user, subscription.needs)
        else:
            subscription.query, subscription.needs = self._bound(
                subscription.text,
                subscription.types,
                subscription.values,
                catalog,
                subscription.user,
            )
            subscription.catalog = catalog
        schema = subscription.query.schema
        if schema.map_id != subscription.map_id:
            raise UndefinedMap(
                f'map "{schema.name}" was dropped, another one has its name now',
                hint="Begin again.",
            )

    def _expire(self) -> None:
        before = self._core.world.clock.monotonic() - SUBSCRIPTION_IDLE_TIMEOUT
        for subscription in list(self._known.values()):
            if not subscription.reading and subscription.used < before:
                self._end(subscription)

    def _end(self, subscription: Subscription) -> None:
        if self._known.get(subscription.name) is not subscription:
            return
        del self._known[subscription.name]
        callbacks = subscription.channel.on_closed
        if subscription.on_closed in callbacks:
            callbacks.remove(subscription.on_closed)
        map_id = subscription.map_id
        if not any(other.map_id == map_id for other in self._known.values()):
            self._logs.release(map_id)
        self.wake(map_id)

    # --- state --------------------------------------------------------------------------------

    def describe(self) -> Iterable[control_pb2.Subscription]:
        for each in self._known.values():
            yield control_pb2.Subscription(
                subscription=each.name,
                kind=each.kind,
                map=each.query.schema.name,
                text=each.text[:TEXT_SHOWN],
                user=each.user,
                started=each.started,
                position=each.position,
                changes=each.changes,
            )

    def gauges(self) -> dict[str, int]:
        return {"subscriptions": len(self._known), **self._logs.gauges()}


def _positions(message: user_pb2.ChangesRequest) -> Positions:
    """Raises InputError."""
    positions = Positions()
    for each in message.positions:
        if any(not 0 <= partition < PARTITIONS for partition in each.partitions):
            raise InputError("a position names a partition that there is not")
        if each.timestamp < 0:
            raise InputError(f"position {each.timestamp} is negative")
        hash_ = each.hash if each.HasField("hash") else EVERYTHING
        positions.set(each.partitions, each.timestamp, hash_)
    if not positions.asked.any():
        raise InputError("a request for changes names no partition")
    return positions
