"""Who is alive: heartbeats heard and connections broken. Pure."""

from __future__ import annotations

from collections.abc import Iterable


class Liveness:
    """Silence for ``timeout`` seconds makes a member lost; so does ``lose``. Lost is for good: a
    process that comes back is a new member."""

    def __init__(self, members: Iterable[int], now: float, timeout: float) -> None:
        self.timeout = timeout
        self._heard = dict.fromkeys(members, now)

    def heard(self, member: int, now: float) -> None:
        if member in self._heard:
            self._heard[member] = now

    def lose(self, member: int) -> bool:
        """True if the member was alive until now."""
        return self._heard.pop(member, None) is not None

    def silent(self, now: float) -> list[tuple[int, float]]:
        """Members that have been silent for too long, with the seconds of silence."""
        return [
            (member, now - heard)
            for member, heard in sorted(self._heard.items())
            if now - heard > self.timeout
        ]
