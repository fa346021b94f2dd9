"""``client.activity`` on an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from remuda.client.operations.activity import (
    CLIENTS,
    FINISH_UPGRADE,
    LOCK_WAITS,
    LOCKS,
    LOG_LEVELS,
    QUERIES,
    RESET_STATEMENTS,
    TRANSACTIONS,
    Rows,
    cancel_query_text,
    cancel_transaction_text,
    drain_text,
    log_level_text,
    terminate_text,
)


class Activity:
    """``remuda.client.operations.activity.Activity``, to be awaited: the methods are the same."""

    def __init__(self, rows: Callable[[str], Awaitable[Rows]]) -> None:
        self._rows = rows

    async def queries(self) -> Rows:
        return await self._rows(QUERIES)

    async def transactions(self) -> Rows:
        return await self._rows(TRANSACTIONS)

    async def clients(self) -> Rows:
        return await self._rows(CLIENTS)

    async def locks(self) -> Rows:
        return await self._rows(LOCKS)

    async def lock_waits(self) -> Rows:
        return await self._rows(LOCK_WAITS)

    async def cancel_query(self, query: str) -> None:
        await self._rows(cancel_query_text(query))

    async def cancel_transaction(self, transaction: str) -> None:
        await self._rows(cancel_transaction_text(transaction))

    async def terminate(self, pid: int) -> bool:
        return bool((await self._rows(terminate_text(pid)))[0][0])

    async def reset_statement_statistics(self) -> None:
        await self._rows(RESET_STATEMENTS)

    async def log_levels(self) -> Rows:
        return await self._rows(LOG_LEVELS)

    async def set_log_level(self, level: str, part: str = "", member: int | None = None) -> None:
        await self._rows(log_level_text(level, part, member))

    async def drain(self, member: int) -> None:
        await self._rows(drain_text(member))

    async def finish_upgrade(self) -> None:
        await self._rows(FINISH_UPGRADE)
