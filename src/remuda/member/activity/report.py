"""The clients of the members, their work and its locks: asked of all members in one round when
somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from remuda.catalog.unique_guards import is_guards
from remuda.datatypes.violations import key_text
from remuda.limits import PARTITIONS
from remuda.member.activity.clients import application_of
from remuda.member.activity.lock_rows import LockRow
from remuda.member.commits import Commits
from remuda.member.core import Core
from remuda.member.maps import Maps
from remuda.member.peers import Peers
from remuda.member.round import PATIENCE, Gathered, in_one_round
from remuda.member.statements import Statements
from remuda.member.system_state import SystemState
from remuda.member.transactions import Transactions
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel, Request

LOCKS_SHOWN: Final = 10_000
"""Of one member. Locks that somebody waits for come first."""


class ActivityReport:
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

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Handlers of the control channel."""
        return {RpcType.ACTIVITY: self.on_request, **self._statements.control.routes()}

    async def all(self, *, locks: bool = False) -> Gathered[control_pb2.Activity]:
        """Of the members that answer soon."""
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
        return found.with_own(core.number, self.here(locks=locks))

    def on_request(self, request: Request) -> None:
        message = control_pb2.ActivityRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        request.reply(RpcType.ACTIVITY, self.here(locks=message.locks))

    def here(self, *, locks: bool) -> control_pb2.Activity:
        activity = control_pb2.Activity(
            context=self._core.context(),
            statements=self._system.running_statements(),
            transactions=self._system.open_transactions(),
        )
        pids: dict[Channel, int] = {}
        for channel, client in self._statements.clients.all():
            pids[channel] = client.pid
            activity.clients.add(
                pid=client.pid,
                address=channel.peer,
                application=application_of(channel),
                user=channel.user,
                since=client.since,
                changed=client.changed,
                requests=channel.unanswered,
            )
        chosen = self._chosen() if locks else (r for r in self._all_locks() if not r.granted)
        activity.locks.extend(self._held(row, pids) for row in islice(chosen, LOCKS_SHOWN))
        return activity

    # --- locks --------------------------------------------------------------------------------

    def _all_locks(self) -> Iterator[LockRow]:
        for known in self._locks:
            yield from known()
        for row in self._transactions.pending.rows(self._serves):
            store = self._core.stores.get(row.map_id)
            if store is None or not is_guards(store.schema):  # users know nothing of those
                yield row

    def _serves(self, partition: int) -> bool:
        return partition >= PARTITIONS or self._core.view.owners[partition] == self._core.number

    def _chosen(self) -> Iterator[LockRow]:
        """Those that are waited for and those that wait, then the others."""
        awaited = {(row.map_id, row.key) for row in self._all_locks() if not row.granted}
        for first in (True, False):
            for row in self._all_locks():
                if ((row.map_id, row.key) in awaited) is first:
                    yield row

    def _held(self, row: LockRow, pids: dict[Channel, int]) -> control_pb2.HeldLock:
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
        if row.key is not None:
            message.key = str(row.key) if store is None else key_text(store.schema, row.key)
        return message
