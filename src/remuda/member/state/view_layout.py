"""Who keeps which partition in a view, as the machines of transactions see it."""

from __future__ import annotations

from collections.abc import Callable

from remuda.datatypes.view import View
from remuda.limits import PARTITIONS

Receivers = Callable[[int], tuple[int, ...]]


class ViewLayout:
    """``transaction.states.Layout`` of a view. ``receivers``: members that are being given a copy
    of a partition and already get its writes. From ``PARTITIONS`` on, partition ``PARTITIONS + m``
    is member m's copy of REPLICATED maps: every member takes part in writing them."""

    def __init__(self, view: View, receivers: Receivers) -> None:
        self._view = view
        self._receivers = receivers
        self.number = view.number

    def receive_with(self, receivers: Receivers) -> None:
        """From now on, ``receivers`` tells who is being given a copy."""
        self._receivers = receivers

    def primary(self, partition: int) -> int | None:
        if partition >= PARTITIONS:
            member = partition - PARTITIONS
            return member if member in self._view.by_number else None
        return next(iter(self._view.replicas[partition]), None)

    def unreachable(self, partition: int) -> bool:
        return partition in self._view.unreachable

    def backups(self, partition: int) -> tuple[int, ...]:
        if partition >= PARTITIONS:
            return ()
        backups = self._view.replicas[partition][1:]
        more = self._receivers(partition)
        return (*backups, *(m for m in more if m not in backups)) if more else backups

    def alive(self, member: int) -> bool:
        return member in self._view.by_number
