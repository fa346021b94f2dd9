"""The connections of clients: their numbers, and their names for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.rpc.client_channel import ClientChannel

PID_SHIFT: Final = 16
"""The high bits of a pid are the number of the member, so everybody knows whom to ask."""
CLIENTS_MAX: Final = (1 << PID_SHIFT) - 1
NAME_MAX: Final = 200
"""Characters of an application's name."""


class Pids:
    """Numbers of connections, as PostgreSQL's clients know them: unique in the cluster while the
    connection lasts, and not given again soon afterwards."""

    def __init__(self, member: Callable[[], int]) -> None:
        self._member = member
        self._used: set[int] = set()
        self._last = 0

    def take(self) -> int:
        """0: so many connections have a number that none is left."""
        if len(self._used) >= CLIENTS_MAX:
            return 0
        while True:
            self._last = self._last % CLIENTS_MAX + 1
            if self._last not in self._used:
                break
        self._used.add(self._last)
        return self._member() << PID_SHIFT | self._last

    def give_back(self, pid: int) -> None:
        self._used.discard(pid & CLIENTS_MAX)


def member_of(pid: int) -> int:
    """The member that gave the number."""
    return pid >> PID_SHIFT


def application_of(channel: ClientChannel) -> str:
    """The name that the client gives itself."""
    return channel.application[:NAME_MAX]


def described(channel: ClientChannel, label: str = "") -> str:
    """A client for the messages that others get: ``label`` is what its transaction is called."""
    name = label[:NAME_MAX] or application_of(channel)
    user = f" (user {channel.user})" if channel.user else ""
    return (f"{name!r} at {channel.peer}" if name else f"a client at {channel.peer}") + user
