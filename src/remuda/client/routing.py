"""Who owns a row: key -> hash -> partition -> member (design D2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.keyhash import hash_arrays, hasher, partition_of, partitions_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View


class Router:
    """Routes the keys and rows of one map in one view. Immutable."""

    def __init__(self, schema: MapSchema, view: View) -> None:
        self.schema = schema
        self.view = view
        self._owners = view.owners
        self._owner_array = np.asarray(view.owners, dtype=np.int64)
        self._types = tuple(schema.columns[i].type for i in schema.partition_positions)
        self._hash = hasher(self._types)
        in_key = tuple(schema.key.index(name) for name in schema.partition_by)
        self._in_key = None if in_key == tuple(range(len(schema.key))) else in_key

    def owner(self, key: Sequence[PhysicalValue]) -> int:
        """The member that owns the entry with this key (values in key column order)."""
        parts = key if self._in_key is None else [key[i] for i in self._in_key]
        return self._owners[partition_of(self._hash(parts))]

    def split(self, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """An engine-form batch cut by owner; the rows of an owner keep their order.

        A REPLICATED map has all its rows on every member.
        """
        if batch.num_rows == 0:
            return []
        if self.schema.replicated:
            return [(member.number, batch) for member in self.view.members]
        owners = self.owners(batch)
        first = int(owners[0])
        if bool((owners == first).all()):
            return [(first, batch)]
        order = np.argsort(owners, kind="stable")
        numbers, starts = np.unique(owners[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        return [
            (int(number), batch.take(pa.array(order[start:end])))
            for number, start, end in zip(numbers, starts.tolist(), ends, strict=True)
        ]

    def owners(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The owner of each row of an engine-form batch."""
        arrays = [batch.column(i) for i in self.schema.partition_positions]
        owners: npt.NDArray[np.int64] = self._owner_array[
            partitions_of(hash_arrays(arrays, self._types))
        ]
        return owners
