"""Autocommitted statements that write to maps with unique indexes or foreign keys: each in a
transaction of its own, whose commit sees what others write at the same time
(``member.statements.checks``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from remuda.errors import RemudaError, SerializationFailure, SnapshotTooOld, ViewChanged
from remuda.member.base.core import Core
from remuda.member.queries.queries import Queries
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.statement import Statement
from remuda.transaction.isolation import Isolation, Modes

T = TypeVar("T")

ATTEMPTS: Final = 50
PAUSE: Final = 0.002
PAUSE_MAX: Final = 0.1


class ImplicitTransactions:
    def __init__(self, core: Core, queries: Queries, sessions: TransactionSessions) -> None:
        self._core = core
        self._queries = queries
        self._sessions = sessions

    async def run(self, statement: Statement, write: Callable[[Statement], Awaitable[T]]) -> T:
        """``write(statement)`` in a transaction, which is committed; again while others change what
        it has read. Raises what ``write`` and the commit raise."""
        pause = PAUSE
        for attempt in range(ATTEMPTS):
            statement.check()
            try:
                return await self._attempt(statement, attempt, write)
            except (SerializationFailure, SnapshotTooOld, ViewChanged) as error:
                if attempt == ATTEMPTS - 1 or error.may_have_run:
                    raise
            await asyncio.sleep(pause * (0.5 + self._core.world.chance.fraction()))
            pause = min(2 * pause, PAUSE_MAX)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(
        self, statement: Statement, attempt: int, write: Callable[[Statement], Awaitable[T]]
    ) -> T:
        sessions = self._sessions
        transaction = sessions.begin(
            statement.channel,
            statement.user,
            modes=Modes(Isolation.REPEATABLE_READ, False),
            session=statement.session,
            timeout=statement.timeout,
        )
        transaction.implicit = True
        statement.progress.begins()
        # A query id serves once; the first one is what the client may cancel.
        query = self._queries.new_id() if attempt else statement.query
        try:
            at = await sessions.read_at(transaction)
            run = replace(statement, query=query, transaction=transaction, read_timestamp=at)
            statement.attempt = query
            result = await write(run)
            statement.commits_rows()
        except BaseException as error:
            sessions.roll_back(transaction, error if isinstance(error, RemudaError) else None)
            raise
        await sessions.commit(transaction)
        return result
