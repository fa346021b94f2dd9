"""``ChangeRanges``: the changes of a map between two places in their order, for a blocking
program. Spark reads streams with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from remuda.client.asynchronous import change_ranges as asynchronous
from remuda.client.core.core import Core
from remuda.client.network.driving import finish, items
from remuda.client.requests.feeds import Place
from remuda.limits import CHANGES_STREAM_ROWS


class ChangeRanges:
    """Of one map; errors as ``asynchronous.change_ranges.ChangeRanges``. A place is a timestamp, a
    partition or None (all of them), and a hash."""

    def __init__(self, core: Core, name: str, map_id: int = 0) -> None:
        self._ranges = asynchronous.ChangeRanges(core, name, map_id)

    @property
    def map_id(self) -> int:
        """0 until something was read."""
        return self._ranges.map_id

    def now(self) -> int:
        """A timestamp above all commits that have been acknowledged."""
        return finish(self._ranges.now())

    def earliest(self) -> int:
        """All changes after this timestamp are kept, for now."""
        return finish(self._ranges.earliest())

    def changed(self, start: Place) -> bool:
        """Whether there is any change after a place; waits for one, a moment."""
        return finish(self._ranges.changed(start))

    def place_after(self, start: Place, limit: int) -> tuple[Place, int]:
        """The place of the ``limit``-th change after ``start``, or, when there are not so many, one
        at or above all of them; and how many changes lie between."""
        return finish(self._ranges.place_after(start, limit))

    def read(
        self, start: Place, end: Place, partitions: Sequence[int], rows: int = CHANGES_STREAM_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The changes of some partitions after ``start``, up to and with ``end``."""
        return items(self._ranges.read(start, end, partitions, rows))
