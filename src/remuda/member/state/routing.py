"""Which member owns a key or a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.hashes.keyhash import hash_arrays, partitioner, partitions_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import NOBODY, Replicas, View


@dataclass(frozen=True, slots=True)
class Share:
    """Rows for one member: it is the primary of the first ``primaries``, and keeps backups of the
    others."""

    member: int
    batch: pa.RecordBatch
    primaries: int


@lru_cache(maxsize=2)
def copies_of(replicas: Replicas) -> npt.NDArray[np.int32]:
    """By level and partition, the member with the copy: level 0 has the primaries."""
    levels = range(max(map(len, replicas)))
    copies = [[row[level] if level < len(row) else NOBODY for row in replicas] for level in levels]
    return np.array(copies, dtype=np.int32)


def backed_up(replicas: Replicas, member: int) -> npt.NDArray[np.bool_]:
    """By partition, whether the member keeps a backup of it."""
    found: npt.NDArray[np.bool_] = (copies_of(replicas)[1:] == member).any(axis=0)
    return found


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
            return [Share(member, batch, batch.num_rows) for member in members], frozenset()
        partitions = self.partitions(batch)
        there = np.flatnonzero(np.bincount(partitions))  # np.unique takes six times as long
        copies = copies_of(view.replicas)
        holders = copies[:, partitions]
        found: list[Share] = []
        for member in sorted(set(copies[:, there].ravel().tolist()) - {NOBODY}):
            mine, *kept = [np.flatnonzero(level == member) for level in holders]
            whole = len(mine) == batch.num_rows
            rows = batch if whole else batch.take(pa.array(np.concatenate([mine, *kept])))
            found.append(Share(member, rows, len(mine)))
        return found, frozenset(there.tolist())

    def owners(self, batch: pa.RecordBatch, view: View, members: Sequence[int]) -> frozenset[int]:
        """The primaries of the rows; of a replicated map's, all ``members``."""
        if self.schema.replicated:
            return frozenset(members) if batch.num_rows else frozenset()
        owners = copies_of(view.replicas)[0][self.partitions(batch)]
        return frozenset(np.flatnonzero(np.bincount(owners)).tolist())
