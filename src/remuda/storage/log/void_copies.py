"""Copies that a log gives up later: their rows need not be replayed.

A member notes when a copy of a partition becomes void: the partition moved away, or a new copy
arrives. A replay that removes the rows at that record searches every map for them, so its time
grows with maps x view changes. ``VoidCopies`` is filled from these few records first. The replay
then leaves out each row that a later record voids, and its time is proportional to the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.limits import PARTITIONS
from remuda.storage.chunks.chunk import Flags
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry

VOIDING: Final = (log.PartitionTaken, log.PartitionLeft)
"""The records that make a copy void."""
NEVER: Final = -1


class VoidCopies:
    """By partition and by replicated map: the sequence of the last record that voids the copy."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._partitions: npt.NDArray[np.int64] = np.full(PARTITIONS, NEVER, dtype=np.int64)
        self._replicated: dict[int, int] = {}
        self._highest = NEVER
        for entry in entries:
            if isinstance(entry.record, VOIDING):
                self._note(entry.sequence, entry.record.partition)

    def _note(self, sequence: int, place: int) -> None:
        self._highest = max(self._highest, sequence)
        if place < PARTITIONS:
            self._partitions[place] = max(self._partitions[place], sequence)
        else:
            map_id = place - PARTITIONS
            self._replicated[map_id] = max(self._replicated.get(map_id, NEVER), sequence)

    def partitions(self, sequence: int) -> frozenset[int]:
        """The partitions whose copies a record after ``sequence`` voids."""
        return frozenset(np.flatnonzero(self._partitions > sequence).tolist())

    def map_is_void(self, schema: MapSchema, sequence: int) -> bool:
        """Whether a record after ``sequence`` voids this copy of a replicated map."""
        return schema.replicated and self._replicated.get(schema.map_id, NEVER) > sequence

    def row_is_void(self, schema: MapSchema, partition: int, sequence: int) -> bool:
        """Whether a record after ``sequence`` voids a row that stands in ``partition``."""
        if sequence >= self._highest:
            return False
        if schema.replicated:
            return self.map_is_void(schema, sequence)
        return bool(partition < PARTITIONS and self._partitions[partition] > sequence)

    def kept(self, schema: MapSchema, batch: pa.RecordBatch, sequence: int) -> Flags | None:
        """Which rows of a batch no record after ``sequence`` voids; None: all of them. The columns
        of ``schema`` stand first in the batch."""
        if sequence >= self._highest:
            return None
        if schema.replicated:
            void = self.map_is_void(schema, sequence)
            return np.zeros(batch.num_rows, dtype=np.bool_) if void else None
        keys = KeyRule(schema)
        kept: Flags = self._partitions[keys.partitions(batch, keys.hashes(batch))] <= sequence
        return None if kept.all() else kept
