"""The rows that queries of earlier views may still read here of partitions that a view has given to
other members (design rule 20)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from remuda.datatypes.timestamp import FOREVER
from remuda.errors import ViewChanged
from remuda.member.state.transaction_sets import Key

KEPT: Final = 100
"""Views that are remembered."""


class GivenAway:
    """The rows stay, with their history, for those who read below the time of the handover. But a
    write that was prepared here and not decided yet, is decided elsewhere: nobody here would see
    it. So a reader at or above its prepare timestamp must ask again. It may commit below the time
    of the handover, and the rows here do not know it: when the partition comes back, the versions
    of its keys are compared one by one (``storage.maps.late_decisions``). Changes of roles wait for
    pending writes (decision 0049), so there are undecided ones only where a view comes that this
    member has not asked for.

    Any thread calls ``check``, which reads what is replaced as a whole; the loop calls the others.
    """

    def __init__(self) -> None:
        self._lows: tuple[tuple[int, int], ...] = ()
        """By number of the view that came: the lowest prepare timestamp of what was undecided."""
        self._keys: dict[tuple[int, int], set[Key]] = {}
        """The keys of writes that were undecided when their partition was given away, by map id and
        partition."""

    def note(self, view: int, low: int) -> None:
        """``view`` gives partitions to others, in which nothing below ``low`` is undecided."""
        if low != FOREVER:
            self._lows = (*self._lows[1 - KEPT :], (view, low))

    def note_key(self, map_id: int, partition: int, key: Key) -> None:
        """A write of the key is undecided, and another member decides it."""
        self._keys.setdefault((map_id, partition), set()).add(key)

    def take_keys(self, map_id: int, partitions: Iterable[int]) -> set[Key]:
        """The keys that were noted for partitions that come back. They are noted no longer."""
        found = [self._keys.pop((map_id, partition), ()) for partition in partitions]
        return {key for keys in found for key in keys}

    def keep_maps(self, map_ids: Collection[int]) -> None:
        """Forget the keys of all other maps: they were dropped."""
        self._keys = {place: keys for place, keys in self._keys.items() if place[0] in map_ids}

    def check(self, view: int, at: int) -> None:
        """For a query of ``view`` that is about to read at ``at``. Raises ViewChanged."""
        for number, low in self._lows:
            if number > view and low <= at:
                raise ViewChanged(
                    f"view {number} has given partitions to other members, in which a write was "
                    "not decided yet",
                    hint="Ask again: the new view is known within a moment.",
                )
