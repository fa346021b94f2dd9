"""Notifications of channels: those of a transaction, and the order in which they are told.
Pure (decision 0089).

The notifications of one commit have its timestamp, and one tag. Listeners on every member hear the
commits by timestamp and tag, and those of one commit in the order in which they were asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from remuda.errors import InvalidParameterValue, LimitExceeded

CHANNEL_SIZE_MAX: Final = 63
PAYLOAD_SIZE_MAX: Final = 7_999
"""Bytes, as in PostgreSQL."""
SENT_SIZE_MAX: Final = 8 * 1024 * 1024
"""Bytes that one transaction may send."""
_OVERHEAD: Final = 16


class Notification(NamedTuple):
    channel: str
    payload: str

    @property
    def size(self) -> int:
        return len(self.channel.encode()) + len(self.payload.encode()) + _OVERHEAD


def checked(channel: str, payload: str = "") -> Notification:
    """Raises InvalidParameterValue in PostgreSQL's words."""
    check_channel(channel)
    if len(payload.encode()) > PAYLOAD_SIZE_MAX:
        raise InvalidParameterValue(
            "payload string too long",
            hint=f"A payload has at most {PAYLOAD_SIZE_MAX} bytes: send the key of a row instead.",
        )
    return Notification(channel, payload)


def check_channel(channel: str) -> None:
    """Raises InvalidParameterValue."""
    if not channel:
        raise InvalidParameterValue("channel name cannot be empty")
    if len(channel.encode()) > CHANNEL_SIZE_MAX:
        raise InvalidParameterValue(
            "channel name too long",
            hint=f"The name of a channel has at most {CHANNEL_SIZE_MAX} bytes.",
        )


@dataclass(frozen=True, slots=True)
class Listen:
    channel: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """``channel`` None: all."""

    channel: str | None


class OwnNotifications:
    """The wishes of a transaction until now: they count with the commit."""

    def __init__(self) -> None:
        self._sent: list[tuple[int, Notification]] = []
        """With the number of savepoints that were open."""
        self._known: set[Notification] = set()
        self._choices: list[tuple[int, Listen | Unlisten]] = []
        self._size = 0

    @property
    def sent(self) -> Sequence[Notification]:
        return [notification for _, notification in self._sent]

    @property
    def choices(self) -> Sequence[Listen | Unlisten]:
        return [choice for _, choice in self._choices]

    def notify(self, notification: Notification, savepoints: int = 0) -> None:
        """The same one is sent once. Raises LimitExceeded."""
        if notification in self._known:
            return
        if self._size + notification.size > SENT_SIZE_MAX:
            raise LimitExceeded(
                "too many notifications in the NOTIFY queue",
                detail=f"A transaction sends at most {SENT_SIZE_MAX} bytes.",
                hint="Commit in smaller parts.",
            )
        self._size += notification.size
        self._known.add(notification)
        self._sent.append((savepoints, notification))

    def choose(self, choice: Listen | Unlisten, savepoints: int = 0) -> None:
        self._choices.append((savepoints, choice))

    def rolled_back_to(self, savepoints: int) -> None:
        """So many savepoints are left, the last of which was gone back to."""
        self._sent = [each for each in self._sent if each[0] < savepoints]
        self._known = {notification for _, notification in self._sent}
        self._choices = [each for each in self._choices if each[0] < savepoints]
        self._size = sum(notification.size for _, notification in self._sent)

    def released(self, savepoints: int) -> None:
        """So many savepoints are left."""
        self._sent = [(min(place, savepoints), each) for place, each in self._sent]
        self._choices = [(min(place, savepoints), each) for place, each in self._choices]


@dataclass(frozen=True, slots=True)
class Sent:
    """A part of the notifications of one commit. ``timestamp``: of the commit; ``tag`` tells
    commits of one timestamp apart; ``place``: of the part."""

    timestamp: int
    tag: int
    place: int
    pid: int
    notifications: tuple[Notification, ...]

    @property
    def order(self) -> tuple[int, int, int]:
        return self.timestamp, self.tag, self.place


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer of the queue to one who asked for what came after ``asked``: everything up to
    ``until``, which is closed."""

    asked: int
    until: int
    sent: tuple[Sent, ...]


class Follower:
    """How far a member has read the queue. An answer that comes twice, or late, tells nothing."""

    def __init__(self, position: int) -> None:
        self.position = position

    def step(self, heard: Heard) -> list[Sent]:
        """The parts that are told now, in order."""
        if heard.asked > self.position or heard.until <= self.position:
            return []
        told = in_order(each for each in heard.sent if each.timestamp > self.position)
        self.position = heard.until
        return told


def in_order(sent: Iterable[Sent]) -> list[Sent]:
    return sorted(sent, key=lambda each: each.order)
