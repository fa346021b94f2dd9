"""Rows of a job as they were staged, one request's together: which of them still belong to the
store that holds them, when partitions change hands (design rule 22).

Sets of partitions are integers: bit p stands for partition p. To give rows of a partition away
changes a bit and copies nothing; rows that the bits hide are left out when the job is prepared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.limits import PARTITIONS
from remuda.storage.chunks.keys import Hashes, KeyRule
from remuda.storage.staging.row_ends import without_ends

NONE: Final = 0

Counts: TypeAlias = npt.NDArray[np.int64]
"""Rows by partition."""
NO_ROWS: Final = np.zeros(PARTITIONS, dtype=np.int64)
NO_ROWS.flags.writeable = False


def bits(partitions: Iterable[int]) -> int:
    flags = np.zeros(PARTITIONS, dtype=np.bool_)
    flags[list(partitions)] = True
    return _packed(flags)


def present(partitions: npt.NDArray[np.uint16]) -> int:
    """The partitions that rows are of, as bits."""
    return _packed(np.bincount(partitions, minlength=PARTITIONS) > 0)


def by_partition(partitions: Iterable[npt.NDArray[np.uint16]]) -> Counts:
    """How many rows there are of each partition, from the partitions of all rows."""
    counts = [np.bincount(each, minlength=PARTITIONS) for each in partitions]
    total: Counts = np.add.reduce([NO_ROWS, *counts])
    return total


def among(partitions: npt.NDArray[np.uint16], wanted: int) -> npt.NDArray[np.intp]:
    """Which rows are of the partitions ``wanted`` (bits), by the partition of each row."""
    packed = np.frombuffer(wanted.to_bytes((PARTITIONS + 7) // 8, "little"), dtype=np.uint8)
    flags = np.unpackbits(packed, bitorder="little").view(np.bool_)
    return np.flatnonzero(flags[partitions])


def _packed(flags: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


@dataclass(slots=True)
class Piece:
    batch: pa.RecordBatch
    hashes: Hashes
    has: int | None = None
    """The partitions of the rows; None: this is a write that does not move with its partitions."""
    valid: int = NONE
    """Those of ``has`` whose rows count here."""

    @property
    def nbytes(self) -> int:
        size: int = self.batch.nbytes
        return size + self.hashes.nbytes

    def limited(self, keys: KeyRule) -> Piece:
        """With the rows that count here only. Any thread."""
        if self.has is None or self.valid == self.has:
            return self
        rows = self.batch
        plain = without_ends(rows, len(keys.schema.columns))
        chosen = among(keys.partitions(plain, self.hashes), self.valid)
        return Piece(rows.take(pa.array(chosen)), self.hashes[chosen], self.valid, self.valid)

    def part(self, partitions: int) -> Piece:
        """The same rows, of which only those of ``partitions`` count."""
        return replace(self, valid=self.valid & partitions)

    def emptied(self) -> Piece:
        """Without its rows."""
        schema = self.batch.schema
        none = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
        return Piece(none, self.hashes[:0].copy(), NONE, NONE)


def shown(pieces: Iterable[Piece], keys: KeyRule) -> list[Piece]:
    """The rows that count, where there are any. Any thread."""
    limited = [piece.limited(keys) for piece in pieces]
    return [piece for piece in limited if piece.batch.num_rows]
