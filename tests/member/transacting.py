"""A client by hand that sends the transaction along which it was told, as real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from remuda.errors import RemudaError, TransientError, UniqueViolation


async def unique_outcome(write: Callable[[], Awaitable[object]]) -> str:
    """``written`` or ``refused``. Writes that meet a conflict are tried again, as by clients."""
    while True:
        try:
            await write()
        except UniqueViolation:
            return "refused"
        except TransientError:
            await asyncio.sleep(0)
        else:
            return "written"


class Session:
    """One session over a ``TestClient``."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.transaction = ""
        self.session = b""
        self.tag = ""
        self.state = 0

    async def run(self, text: str, *parameters: object) -> Any:
        result = await self.client.run(
            text, *parameters, transaction=self.transaction, session=self.session
        )
        self.tag = f"{result.tag} {result.affected}" if result.affected else result.tag
        if result.session is not None:
            self.session = result.session
        if result.tx is not None:
            self.transaction, self.state = result.tx.transaction, result.tx.state
        return result

    async def sql(self, text: str, *parameters: object) -> list[tuple[Any, ...]]:
        result = await self.run(text, *parameters)
        if result.error is not None:
            raise result.error
        rows: list[tuple[Any, ...]] = result.rows if result.pages else []
        return rows

    async def told(self, text: str) -> str:
        """The answer in one line: rows, a tag, or an error."""
        try:
            rows = await self.sql(text)
        except RemudaError as error:
            return f"{error.sqlstate} {error.message}"
        if self.tag.startswith(("SELECT", "SHOW")):
            return "; ".join(", ".join(map(str, row)) for row in sorted(rows, key=str)) or "(none)"
        return self.tag
