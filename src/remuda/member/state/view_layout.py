"""The copies of each partition in a view, as the machines of transactions see them."""

from __future__ import annotations

from collections.abc import Callable

from remuda.datatypes.view import View
from remuda.limits import PARTITIONS
from remuda.transaction.states import CATALOG

Receivers = Callable[[int], tuple[int, ...]]


class ViewLayout:
    """``transaction.states.Layout`` of a view. ``receivers``: members that are being given a copy
    of a partition and already get its writes. From ``PARTITIONS`` on, partition ``PARTITIONS + m``
    is member m's copy of REPLICATED maps: every member takes part in writing them. The coordinator
    is the primary of ``CATALOG``.

    Each step of a transaction asks several times, so the questions are look-ups in tables."""

    def __init__(self, view: View, receivers: Receivers) -> None:
        self.number = view.number
        self._backups = _Backups(view, receivers)
        primaries = {p: copies[0] for p, copies in enumerate(view.replicas) if copies}
        primaries.update({PARTITIONS + member: member for member in view.by_number})
        if view.by_number:
            primaries[CATALOG] = min(view.by_number)
        self.primary: Callable[[int], int | None] = primaries.get
        self.unreachable: Callable[[int], bool] = view.unreachable.__contains__
        self.backups: Callable[[int], tuple[int, ...]] = self._backups.__getitem__
        self.alive: Callable[[int], bool] = view.by_number.__contains__

    def receive_with(self, receivers: Receivers) -> None:
        """From now on, ``receivers`` tells who is being given a copy."""
        self._backups.receive_with(receivers)

    def receivers_changed(self) -> None:
        """They tell something else from now on."""
        self._backups.clear()


class _Backups(dict[int, tuple[int, ...]]):
    """By partition, as far as somebody has asked."""

    def __init__(self, view: View, receivers: Receivers) -> None:
        super().__init__()
        self._view = view
        self._receivers = receivers

    def receive_with(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self.clear()

    def __missing__(self, partition: int) -> tuple[int, ...]:
        if partition >= PARTITIONS:
            return ()
        backups = self._view.replicas[partition][1:]
        more = self._receivers(partition)
        if more:
            backups = (*backups, *(m for m in more if m not in backups))
        self[partition] = backups
        return backups
