"""Notifications on their way to a client of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from remuda.member.notifications.inbox import Inbox
from remuda.postgres.messages import notification_response
from remuda.postgres.session import IDLE
from remuda.rpc.client_channel import ClientChannel


class Outlet(ClientChannel, Protocol):
    def write(self, data: bytes | memoryview) -> None: ...


class ToldNotifications:
    """They leave at once, unless a statement runs, a transaction is open, or the client does not
    read: then with the next ReadyForQuery, or when the client has read enough."""

    def __init__(self, inbox: Inbox, outlet: Outlet, rests: Callable[[], bool]) -> None:
        """``rests``: whether no statement runs and no transaction is open."""
        self._inbox = inbox
        self._outlet = outlet
        self._rests = rests
        inbox.serve(self._tell, outlet.close)
        outlet.on_writable.append(self._tell)

    def _tell(self) -> None:
        if self._inbox and self._outlet.writable and self._rests():
            self._outlet.write(self._taken())

    def before_ready(self, status: bytes) -> bytes:
        return self._taken() if self._inbox and status == IDLE else b""

    def _taken(self) -> bytes:
        return b"".join([notification_response(*news) for news in self._inbox.take()])
