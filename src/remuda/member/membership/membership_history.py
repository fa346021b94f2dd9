"""The last events of the membership as one member saw them: views, losses, returns; for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from remuda.cluster.membership import LEFT
from remuda.datatypes.view import View
from remuda.member.base.core import Core
from remuda.rpc.messages import control_pb2

EVENTS_MAX: Final = 128
"""So many events are kept."""


class MembershipHistory:
    """Notes changes of the view and members that are heard again by itself."""

    def __init__(self, core: Core) -> None:
        self._core = core
        core.listeners.view.add(self._changed)
        core.listeners.heard.add(self._heard)
        self._events: deque[control_pb2.MembershipEvent] = deque(maxlen=EVENTS_MAX)

    def note(self, kind: str, view: int, *, subject: int = 0, cause: str = "") -> None:
        """``kind``: ``view``, ``joined``, ``left``, ``dropped``, ``suspected`` or ``heard``;
        ``subject``: the member that it is about."""
        event = control_pb2.MembershipEvent(
            at=self._core.world.clock.wall_micros(), kind=kind, view=view
        )
        if subject:
            event.subject = subject
        if cause:
            event.cause = cause
        self._events.append(event)

    def begun(self, view: View) -> None:
        """``view`` begins."""
        self.note("view", view.number, cause=f"members {', '.join(map(str, view.by_number))}")

    def _heard(self, number: int) -> None:
        self.note("heard", self._core.view.number, subject=number)

    def _changed(self, before: View, view: View) -> None:
        """A view that only moves partitions is no event."""
        numbers = view.by_number
        if numbers.keys() == before.by_number.keys():
            return
        self.begun(view)
        for number, member in numbers.items():
            if number not in before.by_number:
                self.note("joined", view.number, subject=number, cause=member.host)
        for number in before.by_number:
            if number not in numbers:
                cause = self._core.cause_of_loss(number)
                kind = "left" if cause in ("", LEFT) else "dropped"
                self.note(kind, view.number, subject=number, cause=cause)

    def events(self) -> Iterable[control_pb2.MembershipEvent]:
        """The oldest first."""
        return tuple(self._events)
