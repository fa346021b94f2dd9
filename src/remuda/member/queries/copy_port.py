"""How the data of a COPY travels between a statement and its client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from remuda.copying.options import CopyOptions
from remuda.datatypes.schema import Column
from remuda.errors import RemudaError
from remuda.limits import MIB
from remuda.member.queries.cursors import Wire
from remuda.session.shape import ResultShape

WAITING_MAX: Final = 4 * MIB
"""Bytes of input that wait for their statement; the client sends no more before some are taken."""


class CopyPort(Protocol):
    """The connection, as a COPY sees it."""

    def outgoing(
        self, options: CopyOptions, names: Sequence[str], zone: str
    ) -> Callable[[ResultShape], Wire]:
        """Makes the wire that takes rows of these columns away."""

    def begin(self, options: CopyOptions, columns: Sequence[Column]) -> CopyInput:
        """Ask the client for the rows of a COPY FROM."""


class CopyInput:
    """The bytes that a client sends for one COPY FROM, in order and bounded."""

    def __init__(self, on_taken: Callable[[], None] = lambda: None) -> None:
        """``on_taken`` is called when there is room again."""
        self._on_taken = on_taken
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._end: RemudaError | None = None
        self._ended = False
        self._news: asyncio.Future[None] | None = None

    @property
    def full(self) -> bool:
        return self._size >= WAITING_MAX

    @property
    def ended(self) -> bool:
        """The client has said that nothing follows."""
        return self._ended

    def put(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._tell()

    def end(self, error: RemudaError | None = None) -> None:
        """There are no more bytes; ``error``: the client gives up, or has made a mistake."""
        if not self._ended:
            self._ended, self._end = True, error
            self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def read(self) -> bytes:
        """All bytes that wait, at least one; b"" at the end. Raises the error of ``end`` as soon as
        it is known."""
        while not self._pieces and not self._ended:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self._end is not None:
            raise self._end
        data = b"".join(self._pieces)
        was_full = self.full
        self._pieces.clear()
        self._size = 0
        if was_full:
            self._on_taken()
        return data
