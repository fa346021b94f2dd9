"""Sets of rows of one chunk, as sorted offsets where they are few and as bits where they are many
(the containers of a roaring bitmap: Chambi, Lemire, Kaser, Godin, "Better bitmap performance with
Roaring bitmaps", 2016, over the rows of a chunk instead of 2**16 integers).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from remuda.storage.chunks.chunk import Flags, Offsets

Bits: TypeAlias = npt.NDArray[np.uint8]

DENSE_SHARE: Final = 32
"""Above one row in so many, bits take less room than 32-bit offsets."""


class RowSet:
    """Offsets of rows of a chunk with ``length`` rows; exactly one of ``offsets`` and ``bits`` is
    set. Never changed once made.
    """

    __slots__ = ("bits", "length", "offsets")

    def __init__(self, length: int, offsets: Offsets | None, bits: Bits | None = None) -> None:
        self.length = length
        self.offsets = offsets
        self.bits = bits

    @classmethod
    def of_flags(cls, flags: Flags) -> RowSet:
        return cls(len(flags), None, np.packbits(flags, bitorder="little"))

    @classmethod
    def compact(cls, offsets: Offsets, length: int) -> RowSet:
        """The set of sorted, different offsets in the smaller form."""
        if len(offsets) * DENSE_SHARE <= length:
            return cls(length, offsets)
        flags = np.zeros(length, dtype=np.bool_)
        flags[offsets] = True
        return cls.of_flags(flags)

    @property
    def nbytes(self) -> int:
        held = self.bits if self.offsets is None else self.offsets
        return 0 if held is None else held.nbytes

    def flags(self) -> Flags:
        """One flag per row of the chunk."""
        if self.bits is not None:
            unpacked = np.unpackbits(self.bits, count=self.length, bitorder="little")
            return unpacked.view(np.bool_)
        flags = np.zeros(self.length, dtype=np.bool_)
        flags[self.offsets] = True
        return flags

    def sorted_offsets(self) -> Offsets:
        if self.offsets is not None:
            return self.offsets
        return np.flatnonzero(self.flags())

    def __and__(self, other: RowSet) -> RowSet:
        if self.bits is not None and other.bits is not None:
            return RowSet(self.length, None, self.bits & other.bits)
        if self.offsets is None:
            return other & self
        offsets = self.offsets
        if other.offsets is not None:
            common = np.intersect1d(offsets, other.offsets, assume_unique=True)
            return RowSet(self.length, common)
        assert other.bits is not None
        inside = (other.bits[offsets >> 3] >> (offsets & 7).astype(np.uint8)) & 1
        return RowSet(self.length, offsets[inside.view(np.bool_)])

    def __or__(self, other: RowSet) -> RowSet:
        if self.offsets is not None and other.offsets is not None:
            return RowSet(self.length, np.union1d(self.offsets, other.offsets))
        mine = self.bits if self.bits is not None else RowSet.of_flags(self.flags()).bits
        theirs = other.bits if other.bits is not None else RowSet.of_flags(other.flags()).bits
        assert mine is not None
        assert theirs is not None
        return RowSet(self.length, None, mine | theirs)

    def __invert__(self) -> RowSet:
        return RowSet.of_flags(~self.flags())
