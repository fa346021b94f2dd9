"""The clients of the members, their work and its locks: asked of all members in one round when
somebody wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from remuda.datatypes.violations import key_text
from remuda.errors import RemudaError
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.maps.maps import Maps
from remuda.member.state.clients import application_of
from remuda.member.state.lock_rows import LockRow
from remuda.member.statements.statements import Statements
from remuda.member.system.lock_pages import IDLE_MAX, LockPages
from remuda.member.system.system_state import SystemState
from remuda.member.transactions.transactions import Transactions
from remuda.query.wire import encode_query_id
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request


class ActivityReport(Wing):
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        peers: Peers,
        system: SystemState,
        statements: Statements,
        transactions: Transactions,
        maps: Maps,
        commits: Commits,
    ) -> None:
        self._core = core
        self._peers = peers
        self._system = system
        self._statements = statements
        self._transactions = transactions
        self._locks = (transactions.locks.rows, maps.writes.small.rows, commits.turns.rows)
        self._pages = LockPages(core.world.clock.monotonic)

    def routes(self) -> Routes:
        ending = self._statements.control.routes()
        return Routes(control={RpcType.ACTIVITY: self.on_request, **ending})

    async def all(self, *, locks: bool = False) -> Gathered[control_pb2.Activity]:
        """Of the members that answer soon. ``locks``: with the first page of all locks (``pages``
        has the others); else with all those that somebody waits for."""
        core = self._core
        message = control_pb2.ActivityRequest(context=core.context(), locks=locks)
        found = await in_one_round(
            core,
            self._peers,
            RpcType.ACTIVITY,
            message,
            control_pb2.Activity.FromString,
            PATIENCE,
        )
        found = found.with_own(core.number, self.here(locks=locks))
        if locks:
            return found
        waits: dict[int, list[control_pb2.HeldLock]] = {number: [] for number in found.known}
        async for number, page in self.pages(found):
            waits[number] += page or ()
        for number, activity in found.known.items():
            activity.ClearField("locks")
            activity.locks.extend(waits[number])
        return found

    async def pages(
        self, found: Gathered[control_pb2.Activity]
    ) -> AsyncIterator[tuple[int, Sequence[control_pb2.HeldLock] | None]]:
        """The locks of each member, page by page; None for a member that does not answer any
        more."""
        for number, first in found.known.items():
            yield number, first.locks
            more = first.more
            while more:
                try:
                    page = await self._page(number, more)
                except RemudaError:
                    yield number, None
                    break
                yield number, page.locks
                more = page.more

    async def _page(self, number: int, page: int) -> control_pb2.Activity:
        """Raises MemberUnavailable, and UndefinedObject from a member that did not wait."""
        core = self._core
        if number == core.number:
            await asyncio.sleep(0)
            return self._next(page)
        message = control_pb2.ActivityRequest(context=core.context(), page=page)
        reply = await self._peers.request(number, RpcType.ACTIVITY, message, (), PATIENCE)
        return control_pb2.Activity.FromString(reply.pbody)

    def on_request(self, request: Request) -> None:
        message = control_pb2.ActivityRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        answer = self._next(message.page) if message.page else self.here(locks=message.locks)
        request.reply(RpcType.ACTIVITY, answer)

    def here(self, *, locks: bool) -> control_pb2.Activity:
        activity = control_pb2.Activity(
            context=self._core.context(),
            statements=self._system.running_statements(),
            transactions=self._system.open_transactions(),
        )
        for channel, client in self._statements.clients.all():
            activity.clients.add(
                pid=client.pid,
                address=channel.peer,
                application=application_of(channel),
                user=channel.user,
                since=client.since,
                changed=client.changed,
                requests=channel.unanswered,
                protocol="drill" if client.stock else channel.protocol,
            )
        known, kept = self._all_locks(), len(self._pages)
        rows, activity.more = self._pages.begin([r for r in known if locks or not r.granted])
        if len(self._pages) and not kept:
            asyncio.get_running_loop().call_later(IDLE_MAX, self._expire)
        self._fill(activity, rows)
        return activity

    # --- locks --------------------------------------------------------------------------------

    def _next(self, page: int) -> control_pb2.Activity:
        """Raises UndefinedObject."""
        activity = control_pb2.Activity(context=self._core.context())
        rows, activity.more = self._pages.next(page)
        self._fill(activity, rows)
        return activity

    def _expire(self) -> None:
        self._pages.expire()
        if len(self._pages):
            asyncio.get_running_loop().call_later(IDLE_MAX, self._expire)

    def _fill(self, activity: control_pb2.Activity, rows: Sequence[LockRow]) -> None:
        pids = {channel: client.pid for channel, client in self._statements.clients.all()}
        activity.locks.extend(self._held(row, pids) for row in rows)

    def _all_locks(self) -> Iterator[LockRow]:
        for known in self._locks:
            yield from known()
        for row in self._transactions.pending.rows(self._serves):
            store = self._core.stores.get(row.map_id)
            if store is None or not store.schema.internal:  # users know nothing of those
                yield row

    def _serves(self, partition: int) -> bool:
        return partition >= PARTITIONS or self._core.view.owners[partition] == self._core.number

    def _held(self, row: LockRow, pids: dict[ClientChannel, int]) -> control_pb2.HeldLock:
        store = self._core.stores.get(row.map_id)
        name = store.schema.name if store is not None else self._core.dropped.get(row.map_id, "")
        message = control_pb2.HeldLock(
            map_id=row.map_id,
            map=name,
            kind=row.kind,
            mode=row.mode.value,
            granted=row.granted,
            owner=row.owner,
            client=row.client,
            since=row.since,
            blockers=row.blockers,
            pid=0 if row.channel is None else pids.get(row.channel, 0),
        )
        if row.statement is not None:
            message.query_id.CopyFrom(encode_query_id(row.statement))
        if row.key is not None:
            message.key = str(row.key) if store is None else key_text(store.schema, row.key)
        return message
