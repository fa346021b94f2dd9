"""Which member owns a key or a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.hashes.keyhash import hash_arrays, partitioner, partitions_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View


@dataclass(frozen=True, slots=True)
class Share:
    """Rows for one member, which is the primary of all of them (``level`` 0) or keeps a backup."""

    member: int
    batch: pa.RecordBatch
    level: int = 0

    @property
    def backup(self) -> bool:
        return self.level > 0


class Router:
    """The partitions of one map."""

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self._types = [schema.columns[position].type for position in schema.partition_positions]
        self.partition: Callable[[Sequence[PhysicalValue]], int] = partitioner(self._types)
        """The partition of the values of the partition columns."""
        keys = {position: index for index, position in enumerate(schema.key_positions)}
        self._in_key = [keys[position] for position in schema.partition_positions]
        whole = self._in_key == list(range(len(schema.key)))
        self.key_partition = self.partition if whole else self._partition_of_key
        """The partition of a key (values in key column order)."""

    def _partition_of_key(self, key: Sequence[PhysicalValue]) -> int:
        return self.partition([key[index] for index in self._in_key])

    def partitions(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint16]:
        """The partition of each row of a batch."""
        arrays = [batch.column(position) for position in self.schema.partition_positions]
        return partitions_of(hash_arrays(arrays, self._types))

    def key_partitions(self, keys: Sequence[pa.Array]) -> npt.NDArray[np.uint16]:
        """The partition of each key; the columns of the keys are given."""
        return partitions_of(hash_arrays([keys[index] for index in self._in_key], self._types))

    def shares(
        self, batch: pa.RecordBatch, view: View, members: Sequence[int]
    ) -> tuple[list[Share], frozenset[int]]:
        """The rows of a batch for every member that keeps a copy of them, and the partitions that
        they are of; a replicated map's rows go to all ``members``."""
        if self.schema.replicated:
            return [Share(member, batch) for member in members], frozenset()
        partitions = self.partitions(batch)
        there = np.flatnonzero(np.bincount(partitions))  # np.unique takes six times as long
        found: list[Share] = []
        for level in range(max(map(len, view.replicas))):
            copies = np.array([row[level] if level < len(row) else -1 for row in view.replicas])
            holders = copies[partitions]
            for holder in np.unique(copies[there]):
                if holder < 0:
                    continue
                mask = holders == holder
                part = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
                found.append(Share(int(holder), part, level))
        return found, frozenset(there.tolist())

    def split(
        self, batch: pa.RecordBatch, view: View, members: Sequence[int]
    ) -> dict[int, pa.RecordBatch]:
        """The rows of a batch by member; a replicated map's rows go to all ``members``."""
        if self.schema.replicated:
            return dict.fromkeys(members, batch)
        if len(view.members) == 1:
            return {view.members[0].number: batch}
        arrays = [batch.column(position) for position in self.schema.partition_positions]
        partitions = partitions_of(hash_arrays(arrays, self._types))
        owners = np.asarray(view.owners, dtype=np.int32)[partitions]
        found: dict[int, pa.RecordBatch] = {}
        for owner in np.unique(owners):
            mask = owners == owner
            found[int(owner)] = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
        return found
