"""``Listener``: the events of an entry listener or a continuous query, as an async iterator."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Generic, Self, TypeVar

from remuda.client.asynchronous.feed import Ends, Feed
from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.requests.feed_events import KINDS, EventKind, RowEvent
from remuda.client.requests.feeds import FeedPage, FeedQuery
from remuda.client.requests.requests import RunOptions
from remuda.client.values.row import row_class
from remuda.client.values.values import one_sequence, parameters_of, statement_text
from remuda.errors import InputError, RemudaError, from_report

E = TypeVar("E")


class Listener(Generic[E]):
    """Changes as they are committed, those of one key in their order. Made by ``Map.listen`` and
    ``Client.watch``.

        async with await flights.listen() as changes:
            async for event in changes:
                print(event.kind, event.key, event.value)

    It goes on when members are lost and partitions move: each change comes exactly once. A listener
    that reads too slowly, or cannot reach the cluster, for longer than members keep changes (ten
    seconds) gets an event GAP in place of those that it missed. It ends with an error when that is
    for good: the map was dropped, the right to read it was taken away, an expression of its
    condition failed.
    """

    def __init__(
        self, buffer: int, build: Callable[[FeedPage], Sequence[E]], gap: Callable[[int], E]
    ) -> None:
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 1:
            raise InputError(f"buffer is a number of events, 1 or more, found {buffer!r}")
        self._capacity = buffer
        self._build = build
        self._gap = gap
        self._events: deque[E] = deque()
        self._initial: AsyncIterator[E] | None = None
        self._reader: Reader | None = None
        self._feed: Feed
        self._error: RemudaError | None = None
        self._stopped = False
        self._arrived = asyncio.Event()

    # --- for the application ------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        return (await self.take(1))[0]

    async def take(self, limit: int) -> list[E]:
        """The next events: at least one, at most ``limit``. Raises what has ended the listener, and
        StopAsyncIteration when it was stopped."""
        if self._initial is not None and not self._stopped:
            found = await self._some_initial(limit)
            if found:
                return found
        while not self._events:
            if self._stopped:
                raise StopAsyncIteration
            if self._error is not None:
                raise from_report(self._error.to_report()) from self._error
            self._arrived.clear()
            await self._arrived.wait()
        count = min(limit, len(self._events))
        events = [self._events.popleft() for _ in range(count)]
        if len(self._events) < self._capacity:
            self._feed.wake()
        return events

    async def stop(self) -> None:
        """End it; events that were not taken are dropped. Stopping twice does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._events.clear()
        self._arrived.set()
        if self._reader is not None:
            await self._reader.close()
        await self._feed.close()

    @property
    def position(self) -> int:
        """A hybrid timestamp: every change that was committed at or below it has arrived here."""
        return self._feed.position

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- inside -------------------------------------------------------------------------------

    async def begin(
        self,
        feed: Callable[[Callable[[FeedPage], None], Callable[[], bool], Ends], Feed],
        initial: Callable[[int], Coroutine[Any, Any, tuple[Reader, AsyncIterator[E]]]] | None,
    ) -> Self:
        """``initial`` reads what there is at a timestamp."""
        ends = Ends(gap=self._on_gap, failed=self._on_failed)
        self._feed = feed(self._on_page, self._room, ends)
        try:
            at = await self._feed.open()
            if initial is not None:
                self._reader, self._initial = await initial(at)
        except BaseException:
            await self._feed.close()
            raise
        self._feed.start()
        return self

    async def _some_initial(self, limit: int) -> list[E]:
        """[]: that was all."""
        assert self._initial is not None
        found: list[E] = []
        async for event in self._initial:
            found.append(event)
            if len(found) >= limit:
                return found
        self._initial = self._reader = None
        return found

    def _room(self) -> bool:
        return len(self._events) < self._capacity and not self._stopped

    def _on_page(self, page: FeedPage) -> None:
        if page.changes:
            self._events.extend(self._build(page))
            self._arrived.set()

    def _on_gap(self, timestamp: int) -> None:
        self._events.append(self._gap(timestamp))
        self._arrived.set()

    def _on_failed(self, error: RemudaError) -> None:
        self._error = error
        self._arrived.set()


# --- continuous queries -----------------------------------------------------------------------


async def watch(
    core: Core, text: str, params: tuple[Any, ...], initial: bool, buffer: int
) -> Listener[RowEvent]:
    """The work of ``Client.watch``."""
    listener = Listener(buffer, _row_events, _row_gap)
    text = statement_text(text)
    physical, types = parameters_of(one_sequence(params))
    query = FeedQuery(subscription_name(), "query", text, physical, types)

    async def there(at: int) -> tuple[Reader, AsyncIterator[RowEvent]]:
        reader = await core.execute(text, physical, types, RunOptions(read_timestamp=at))
        return reader, _initial_rows(reader, at)

    return await listener.begin(
        lambda page, room, ends: Feed(core, query, None, page, room, ends, rows=buffer),
        there if initial else None,
    )


def _row_events(page: FeedPage) -> list[RowEvent]:
    if not page.changes:
        return []
    keys = len(page.columns) - len(page.changes[0].new or page.changes[0].old or ())
    names = tuple(column.name for column in page.columns)
    make_key, make = row_class(names[:keys])._make, row_class(names[keys:])._make
    return [
        RowEvent(
            KINDS[change.kind],
            make_key(change.key),
            None if change.new is None else make(change.new),
            None if change.old is None else make(change.old),
            change.timestamp,
        )
        for change in page.changes
        if change.new != change.old  # the entry has changed, its row in the result has not
    ]


async def _initial_rows(reader: Reader, at: int) -> AsyncIterator[RowEvent]:
    while await reader.next_rows():
        for row in reader.rows:
            yield RowEvent(EventKind.INITIAL, None, row, None, at)


def _row_gap(timestamp: int) -> RowEvent:
    return RowEvent(EventKind.GAP, None, None, None, timestamp)


def subscription_name() -> str:
    return uuid.uuid4().hex
