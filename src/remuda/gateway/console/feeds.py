"""Topics for the open pages: asked once for all pages of a user, sent as differences.

A feed asks while a page listens to it, and not otherwise. A page that does not take its events gets
the whole image again when it does, so the events that wait for it are bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from remuda.errors import RemudaError
from remuda.gateway.console.differences import Difference, Image
from remuda.gateway.console.replies import failure
from remuda.gateway.console.topics import MARK, Topic
from remuda.gateway.grids import Credentials, Grids

EVENTS_MAX: Final = 64
"""Events that wait for one page."""
RETRY: Final = 2.0
"""Seconds until a topic is asked again that failed."""

Event = dict[str, Any]


class Listener:
    """One open page. ``await next()`` gives its events in their order."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._there = asyncio.Event()
        self._behind: set[str] = set()

    def put(self, topic: str, event: Event, whole: Event) -> None:
        """``whole`` instead of ``event`` when the page has not taken earlier ones of the topic."""
        if len(self._events) >= EVENTS_MAX:
            self._events = deque(e for e in self._events if e["topic"] != topic)
            event = whole
        self._events.append(event)
        self._there.set()

    async def next(self) -> Event:
        while not self._events:
            self._there.clear()
            await self._there.wait()
        return self._events.popleft()


class Feed:
    """One topic for the pages of one user."""

    def __init__(self, topic: Topic, grids: Grids, credentials: Credentials, feeds: Feeds) -> None:
        self._topic = topic
        self._grids = grids
        self._credentials = credentials
        self._feeds = feeds
        self._image: Image | None = None
        self._problem: Event | None = None
        self._listeners: set[Listener] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self, listener: Listener) -> None:
        self._listeners.add(listener)
        if self._task is None:
            self._task = asyncio.create_task(self._ask())
            return
        for event in (self._whole(), self._problem):
            if event is not None:
                listener.put(self._topic.name, event, event)

    def leave(self, listener: Listener) -> bool:
        """Whether it was the last one: then nothing is asked any more."""
        self._listeners.discard(listener)
        if self._listeners or self._task is None:
            return False
        self._task.cancel()
        return True

    def wake(self) -> None:
        """Ask at once."""
        self._wake.set()

    def _whole(self) -> Event | None:
        image = self._image
        return None if image is None else self._event(image.whole())

    def _event(self, difference: Difference) -> Event:
        return {"topic": self._topic.name, **difference.as_json()}

    def _tell(self, event: Event) -> None:
        whole = self._whole() or event
        for listener in self._listeners:
            listener.put(self._topic.name, event, whole)

    async def _ask(self) -> None:
        pause = self._topic.seconds
        while True:
            self._wake.clear()
            try:
                difference = await self._answer()
            except RemudaError as error:
                pause = max(RETRY, self._topic.seconds)
                problem = {"topic": self._topic.name, "problem": failure(error)}
                if problem != self._problem:
                    self._problem = problem
                    self._tell(problem)
            else:
                if self._problem is not None:
                    self._problem = None
                    self._tell({"topic": self._topic.name, "problem": None})
                if difference is None:
                    pause = min(2 * pause, self._topic.rest)
                else:
                    pause = self._topic.seconds
                    self._tell(self._event(difference))
                    self._wake_others(difference)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _answer(self) -> Difference | None:
        topic = self._topic
        async with self._grids.client(self._credentials) as client:
            cursor = await client.sql(f"{MARK} {topic.sql}", *topic.parameters)
            names = [column.name for column in cursor.columns]
            rows = await cursor.fetchall()
        first = self._image is None
        image = Image(topic.key) if self._image is None else self._image
        difference = image.become(names, rows)
        self._image = image
        return image.whole() if first else difference

    def _wake_others(self, difference: Difference) -> None:
        topic = self._topic
        if topic.wakes and any(topic.on in cells for cells in difference.changed.values()):
            self._feeds.wake(self._credentials, topic.wakes)


class Feeds:
    """``grids`` are clients whose statements leave no profiles."""

    def __init__(self, grids: Grids) -> None:
        self._grids = grids
        self._open: dict[tuple[str, str], Feed] = {}

    def __len__(self) -> int:
        """Topics that are asked now."""
        return len(self._open)

    def join(self, credentials: Credentials, topics: Iterable[Topic], listener: Listener) -> None:
        for topic in topics:
            key = credentials.key, topic.name
            feed = self._open.get(key)
            if feed is None:
                feed = self._open[key] = Feed(topic, self._grids, credentials, self)
            feed.join(listener)

    def leave(self, credentials: Credentials, topics: Iterable[Topic], listener: Listener) -> None:
        for topic in topics:
            key = credentials.key, topic.name
            if self._open[key].leave(listener):
                del self._open[key]

    def wake(self, credentials: Credentials, topics: Iterable[str]) -> None:
        for name in topics:
            feed = self._open.get((credentials.key, name))
            if feed is not None:
                feed.wake()
