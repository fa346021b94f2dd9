"""The rows of a COPY that are too many for the write set of their transaction: staged on their
owners, and committed as a bulk write when the transaction commits.

A bulk write and the write set of a transaction are committed by different protocols, so a
transaction has one or the other: it may have written and read nothing that its commit would have to
look at, and can neither write more nor read what is staged.
"""

from __future__ import annotations

import asyncio

from remuda.errors import NotSupported, TransactionTimeout
from remuda.member.base.core import Core, to_its_end
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import StagedWrite


class BulkWrite:
    """``rows``: all of it."""

    def __init__(self, core: Core, commits: Commits, rows: StagedWrite) -> None:
        self._core = core
        self._commits = commits
        self._rows = rows
        self._ends = False

    @property
    def map_id(self) -> int:
        return self._rows.schema.map_id

    @property
    def alone(self) -> NotSupported:
        """Why the transaction cannot do more."""
        return NotSupported(
            f'the transaction has loaded more rows into map "{self._rows.schema.name}" than '
            "transaction_memory holds: it can neither write more nor read them before its commit",
            hint="COMMIT first. Or load fewer rows at a time, or raise transaction_memory of the "
            "members.",
        )

    async def commit(self, limit: float | None) -> int:
        """The commit timestamp; ``limit``: seconds that it may wait for other bulk writes of the
        map. Raises UniqueViolation, TransactionTimeout, OutcomeUnknown and other
        TransientErrors."""
        map_id, job = self.map_id, self._rows.job
        try:
            async with asyncio.timeout(limit):
                await self._commits.turn(map_id, job)
        except TimeoutError as error:
            raise TransactionTimeout(
                f'another bulk write of map "{self._rows.schema.name}" took too long',
                hint="Run the transaction again.",
            ) from error

        async def in_turn() -> None:
            try:
                await self._rows.commit(insert_only=True, in_turn=True)
            finally:
                self._commits.end_turn(map_id, job)

        self._ends = True
        what = f'the commit of a COPY into map "{self._rows.schema.name}"'
        await to_its_end(asyncio.ensure_future(in_turn()), what)
        return self._core.timestamp()

    def close(self) -> None:
        """The transaction is over. Drops rows that it has not committed."""
        if not self._ends:
            self._rows.abort()
