"""``pg_advisory_lock`` and its family: items of a SELECT that act when its rows are there; and
LOCK TABLE, whose locks are of the same kind (decision 0094).

The locks of a session belong to its connection, so only clients whose sessions their members keep
(``Client.kept``) can have them; locks of a transaction, every client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    LockNotAvailable,
    NoActiveTransaction,
    NotSupported,
    QueryTimeout,
    RemudaError,
)
from remuda.member.advisory.locks import AdvisoryService
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.statement import Client, Statement
from remuda.rpc.client_channel import ClientChannel
from remuda.session.planning import PlannedQuery
from remuda.sql.scope.notices import WARNING, Notice
from remuda.sql.scope.statements import AdvisoryAct, AdvisoryCall, AdvisoryTest, LockStatement
from remuda.sql.trees.syntax import LockMode
from remuda.transaction.advisory import LockKey

_NOT_OWNED: Final = "01000"


class AdvisoryCalls:
    def __init__(
        self,
        locks: AdvisoryService,
        client_of: Callable[[ClientChannel], Client | None],
        transactions: TransactionSessions,
    ) -> None:
        self._transactions = transactions
        self._locks = locks
        self._client_of = client_of

    async def acted(
        self, statement: Statement, found: PlannedQuery, rows: list[list[pa.Array]]
    ) -> None:
        """Lock and unlock what the items say, row by row; the places of the calls get the results.
        Raises NotSupported, DeadlockDetected, LockNotAvailable, QueryTimeout, TransientError."""
        calls = [effect for effect in found.effects if isinstance(effect, AdvisoryCall)]
        if not calls:
            return
        try:
            for batch in rows:
                given = [batch[call.column].to_pylist() for call in calls]
                results: list[list[object]] = [[] for _ in calls]
                for texts in zip(*given, strict=True):
                    for call, text, told in zip(calls, texts, results, strict=True):
                        told.append(
                            None if text is None else await self._one(statement, call, text)
                        )
                for call, told in zip(calls, results, strict=True):
                    tests = isinstance(call, AdvisoryTest)
                    batch[call.column] = pa.array(told, pa.bool_() if tests else pa.string())
        except RemudaError as error:
            # The member holds the lock now: the statement must not run again by itself.
            statement.error = statement.error or error
            raise

    async def _one(self, statement: Statement, call: AdvisoryCall, text: str) -> bool | str:
        statement.check()
        owner = self._owner(statement, of_transaction=call.of_transaction)
        if call.act is AdvisoryAct.UNLOCK_ALL:
            self._locks.unlock_all(owner)
            return ""
        key = _key(text)
        if call.act is AdvisoryAct.UNLOCK:
            held = self._locks.unlock(owner, key, shared=call.shared)
            if not held:
                mode = "ShareLock" if call.shared else "ExclusiveLock"
                message = f"you don't own a lock of type {mode}"
                statement.progress.notice(Notice(message, _NOT_OWNED, WARNING))
            return held
        waits = call.act is AdvisoryAct.LOCK
        of_transaction = call.of_transaction
        granted = await self._timed(statement, owner, key, call.shared, of_transaction, waits)
        if call.of_transaction and granted:
            self._end_with_transaction(statement, owner)
        return "" if waits else granted

    async def lock_tables(self, statement: Statement, found: LockStatement) -> str:
        """The tag of LOCK TABLE. Raises NoActiveTransaction, NotSupported, LockNotAvailable,
        DeadlockDetected, QueryTimeout, TransientError."""
        transaction, mode = statement.transaction, found.mode
        if transaction is None:
            raise NoActiveTransaction("LOCK TABLE can only be used in transaction blocks")
        if mode.excludes_writers and transaction.pessimistic:
            raise NotSupported(
                "a pessimistic transaction locks rows, and cannot exclude writers of a whole map",
                hint="BEGIN an optimistic transaction, the default.",
            )
        schemas = [schema for schema in found.schemas if not schema.temporary]
        try:
            for schema in () if mode.weak else schemas:
                await self._lock_table(statement, schema, found)
            if mode.excludes_writers:
                at = await self._transactions.read_at(transaction)
                for schema in schemas:
                    transaction.note_table(schema, at)
        except RemudaError as error:
            statement.error = statement.error or error
            raise
        return "LOCK TABLE"

    async def _lock_table(
        self, statement: Statement, schema: MapSchema, found: LockStatement
    ) -> None:
        owner, key = self._owner(statement, of_transaction=True), LockKey(False, schema.oid, True)
        shared = found.mode is LockMode.SHARE
        if not await self._timed(statement, owner, key, shared, True, not found.nowait):
            raise LockNotAvailable(f'could not obtain lock on relation "{schema.local}"')
        self._end_with_transaction(statement, owner)

    async def _timed(  # noqa: PLR0917 (a lock)
        self,
        statement: Statement,
        owner: str,
        key: LockKey,
        shared: bool,
        of_transaction: bool,
        waits: bool,
    ) -> bool:
        """Whether the lock was granted. Raises QueryTimeout, LockNotAvailable."""
        locking = self._locks.lock(
            owner, key, shared=shared, of_transaction=of_transaction, waits=waits
        )
        patience = asyncio.timeout(statement.session.lock_timeout)
        try:
            async with asyncio.timeout(statement.timeout), patience:
                return await statement.interruptible(locking)
        except TimeoutError:
            if patience.expired():
                raise LockNotAvailable("canceling statement due to lock timeout") from None
            raise QueryTimeout(
                f"the {key} was not given free within {statement.timeout:g} s"
            ) from None

    def _owner(self, statement: Statement, *, of_transaction: bool) -> str:
        client = self._client_of(statement.channel)
        if client is not None and client.kept:
            return owner_of(client)
        if of_transaction and statement.transaction is not None:
            return f"transaction {statement.transaction.name}"
        raise NotSupported(
            "this client does not keep a session to which an advisory lock could belong",
            hint="Use pg_advisory_xact_lock in a transaction, or connect to the members' port for "
            "PostgreSQL's clients.",
        )

    def _end_with_transaction(self, statement: Statement, owner: str) -> None:
        """Outside of a transaction the statement is one."""
        transaction = statement.transaction
        ends = statement.progress.on_closed if transaction is None else transaction.at_end
        end = self._locks.end_transaction
        ends.append(lambda: end(owner))

    def disconnected(self, client: Client) -> None:
        if client.kept:
            self._locks.end_session(owner_of(client))

    def discard(self, channel: ClientChannel) -> None:
        """DISCARD ALL."""
        client = self._client_of(channel)
        if client is not None and client.kept:
            self._locks.unlock_all(owner_of(client))


def owner_of(client: Client) -> str:
    """The name of a session, for others."""
    return f"process {client.pid}"


def _key(text: str) -> LockKey:
    first, _, second = text.partition(",")
    if not second:
        return LockKey(False, int(first))
    return LockKey(True, (int(first) << 32) | (int(second) & 0xFFFFFFFF))
