"""The notifications for one session that it has not been told of yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from remuda.errors import NotificationsLost, RemudaError
from remuda.transaction.notifications import Listen, Sent, Unlisten

INBOX_SIZE_MAX: Final = 16 * 1024 * 1024
"""Bytes that wait for a session which is in a transaction, or whose client does not read."""

News = tuple[int, str, str]
"""Process id of the sender, channel, payload."""


def _nothing() -> None: ...


class Inbox:
    def __init__(self) -> None:
        self.listening = False
        """Whether there are ``channels``."""
        self._channels: dict[str, int] = {}
        """With the timestamp after which commits count."""
        self._waiting: deque[News] = deque()
        self._size = 0
        self._tell: Callable[[], None] = _nothing
        self._end: Callable[[RemudaError], None] = lambda _: None

    def serve(self, tell: Callable[[], None], end: Callable[[RemudaError], None]) -> None:
        """``tell`` is called when there is something to ``take``, ``end`` when the session has
        missed something and must end."""
        self._tell, self._end = tell, end

    # --- channels -----------------------------------------------------------------------------

    @property
    def channels(self) -> Collection[str]:
        return self._channels.keys()

    def choose(self, choices: Iterable[Listen | Unlisten], since: int) -> None:
        """Take the choices of a commit. Commits after ``since`` count for new channels."""
        before = dict(self._channels)
        for choice in choices:
            match choice:
                case Listen(channel):
                    self._channels.setdefault(channel, before.get(channel, since))
                case Unlisten(None):
                    self._channels.clear()
                case Unlisten(str(channel)):
                    self._channels.pop(channel, None)
        self.listening = bool(self._channels)
        if not before.keys() <= self._channels.keys():
            kept = [news for news in self._waiting if news[1] in self._channels]
            self.clear()
            for news in kept:
                self._put(news)

    # --- news ---------------------------------------------------------------------------------

    def hear(self, sent: Sent) -> None:
        """The next commit; the caller keeps their order."""
        found = False
        for channel, payload in sent.notifications:
            since = self._channels.get(channel)
            if since is not None and sent.timestamp > since:
                self._put((sent.pid, channel, payload))
                found = True
        if self._size > INBOX_SIZE_MAX:
            self.lose(
                f"more than {INBOX_SIZE_MAX} bytes of notifications wait for the session",
                "End its transaction sooner, and read from its connection.",
            )
        elif found:
            self._tell()

    def _put(self, news: News) -> None:
        self._waiting.append(news)
        self._size += len(news[1]) + len(news[2]) + 64

    def lose(self, why: str, hint: str) -> None:
        """The session has missed notifications, or may have: it ends, so that its client knows."""
        self.choose([Unlisten(None)], 0)
        self._end(NotificationsLost(f"terminating connection: {why}", hint=hint))

    def take(self) -> Sequence[News]:
        """All that wait."""
        found = list(self._waiting)
        self.clear()
        return found

    def clear(self) -> None:
        self._waiting.clear()
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def usage(self) -> float:
        """The share of its room that is taken."""
        return self._size / INBOX_SIZE_MAX
