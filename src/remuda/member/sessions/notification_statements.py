"""LISTEN, NOTIFY, UNLISTEN and ``pg_notify``: they count with the commit of their transaction, or
are one themselves.

Only sessions that their members keep (``Client.kept``) can listen: others have no connection on
which they could be told. Every client can notify.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from remuda.errors import ConnectionBroken, NotSupported
from remuda.member.notifications.pending import PendingNotifications
from remuda.member.notifications.service import Notifications
from remuda.member.sessions.statement import Client, Statement
from remuda.rpc.client_channel import ClientChannel
from remuda.session.planning import PlannedQuery
from remuda.sql.scope.statements import NotifyCall
from remuda.sql.trees.session import ListenTree, NotifyTree, UnlistenTree
from remuda.transaction.notifications import Listen, Unlisten, check_channel, checked


class NotificationStatements:
    def __init__(
        self,
        service: Notifications,
        client_of: Callable[[ClientChannel], Client | None],
    ) -> None:
        self._service = service
        self._client_of = client_of

    async def run(self, statement: Statement, tree: ListenTree | NotifyTree | UnlistenTree) -> str:
        """The tag. Raises InvalidParameterValue, LimitExceeded, NotSupported, and outside of a
        transaction what a commit raises."""
        client = self._client(statement)
        pending, savepoints = self._pending(statement, client)
        match tree:
            case ListenTree(channel):
                check_channel(channel)
                if not client.kept:
                    raise NotSupported(
                        "this client has no session that could listen to a channel",
                        hint="Connect to the members' port for PostgreSQL's clients, or listen to "
                        "the changes of a map: map.listen().",
                    )
                pending.own.choose(Listen(channel), savepoints)
                tag = "LISTEN"
            case UnlistenTree(channel):
                pending.own.choose(Unlisten(channel), savepoints)
                tag = "UNLISTEN"
            case NotifyTree(channel, payload):
                pending.own.notify(checked(channel, payload), savepoints)
                tag = "NOTIFY"
        if statement.transaction is None:
            await self._committed(statement, pending)
        return tag

    async def acted(
        self, statement: Statement, found: PlannedQuery, rows: list[list[pa.Array]]
    ) -> None:
        """Send what the calls of ``pg_notify`` say, row by row; their places get empty texts.
        Raises as ``run``."""
        calls = [effect for effect in found.effects if isinstance(effect, NotifyCall)]
        if not calls:
            return
        pending, savepoints = self._pending(statement, self._client(statement))
        for batch in rows:
            given = [batch[call.column].to_pylist() for call in calls]
            for values in zip(*given, strict=True):
                for channel, payload in values:
                    pending.own.notify(checked(channel or "", payload or ""), savepoints)
            for call, values in zip(calls, given, strict=True):
                batch[call.column] = pa.array([""] * len(values), pa.string())
        if statement.transaction is None:
            await self._committed(statement, pending)

    def _client(self, statement: Statement) -> Client:
        client = self._client_of(statement.channel)
        if client is None:
            raise ConnectionBroken("the client is gone")
        return client

    def _pending(self, statement: Statement, client: Client) -> tuple[PendingNotifications, int]:
        """The wishes of the transaction until now, and the number of its savepoints."""
        transaction = statement.transaction
        if transaction is None:
            return PendingNotifications(self._service, client.inbox, client.pid), 0
        found = transaction.notifications
        if found is None:
            found = PendingNotifications(self._service, client.inbox, client.pid)
            transaction.announces(found)
        return found, len(transaction.writes.savepoints)

    async def _committed(self, statement: Statement, pending: PendingNotifications) -> None:
        """Outside of a transaction the statement is one."""
        writes = await statement.interruptible(pending.prepared())
        timestamp = 0
        if writes:
            statement.commits_rows()
            timestamp = await self._service.send(writes, statement.timeout)
        await pending.committed(timestamp)

    def disconnected(self, client: Client) -> None:
        self._service.end(client.inbox)

    def discard(self, channel: ClientChannel) -> None:
        """DISCARD ALL."""
        client = self._client_of(channel)
        if client is not None:
            self._service.end(client.inbox)
