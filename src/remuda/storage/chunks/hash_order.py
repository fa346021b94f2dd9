"""The order of hashes, without an indirect sort."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

DIRECT_ROWS: Final = 4096
"""Below this, what is gained is less than what the extra steps cost."""


def hash_order(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The positions of the hashes from the lowest to the highest; equal ones stay in their order.

    The positions take the place of the lowest bits, and plain words are sorted: half the time of
    ``argsort``. The bits that are left hardly ever fail to tell two hashes apart (of a million,
    with a chance of 3 %; of ten million, some fifty times): such rows, which are neighbours then,
    are sorted as usual.
    """
    count = len(hashes)
    if count < DIRECT_ROWS:
        return np.argsort(hashes, kind="stable")
    bits = (count - 1).bit_length()
    low = np.uint64((1 << bits) - 1)
    words = hashes & ~low
    words |= np.arange(count, dtype=np.uint64)
    words.sort()
    order = (words & low).view(np.int64)
    words >>= np.uint64(bits)
    alike = np.flatnonzero(words[1:] == words[:-1])
    places = np.union1d(alike, alike + 1)
    rows = order[places]
    order[places] = rows[np.argsort(hashes[rows], kind="stable")]
    return order
