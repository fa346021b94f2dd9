"""The notifications of one transaction, and the channels that its session chooses with it."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.member.notifications.inbox import Inbox
from remuda.member.notifications.service import Notifications
from remuda.member.state.transaction_sets import Write
from remuda.transaction.notifications import OwnNotifications


class PendingNotifications:
    def __init__(self, service: Notifications, inbox: Inbox, pid: int) -> None:
        """``pid``: of the session."""
        self.own = OwnNotifications()
        self._service = service
        self._inbox = inbox
        self._pid = pid
        self._since = 0

    async def prepared(self) -> Sequence[Write]:
        """The further entries of the commit. Raises TransientError: then nothing is committed."""
        self._since = await self._service.since(self.own)
        return await self._service.entries(self.own, self._pid)

    async def committed(self, timestamp: int) -> None:
        if self.own.choices:
            self._service.choose(self._inbox, self.own.choices, self._since)
        if self.own.sent:
            await self._service.heard(self._inbox, self.own, timestamp)
