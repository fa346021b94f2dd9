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
        self._backups: dict[int, tuple[int, ...]] = {}
        """By partition, as far as somebody has asked."""
        self.number = view.number

    def receive_with(self, receivers: Receivers) -> None:
        """From now on, ``receivers`` tells who is being given a copy."""
        self._receivers = receivers
        self._backups.clear()

    def receivers_changed(self) -> None:
        """They tell something else from now on."""
        self._backups.clear()

    def primary(self, partition: int) -> int | None:
        if partition >= PARTITIONS:
            member = partition - PARTITIONS
            return member if member in self._view.by_number else None
        copies = self._view.replicas[partition]
        return copies[0] if copies else None

    def unreachable(self, partition: int) -> bool:
        return partition in self._view.unreachable

    def backups(self, partition: int) -> tuple[int, ...]:
        known = self._backups.get(partition)
        if known is not None:
            return known
        if partition >= PARTITIONS:
            return ()
        backups = self._view.replicas[partition][1:]
        more = self._receivers(partition)
        backups = (*backups, *(m for m in more if m not in backups))
        self._backups[partition] = backups
        return backups

    def alive(self, member: int) -> bool:
        return member in self._view.by_number
