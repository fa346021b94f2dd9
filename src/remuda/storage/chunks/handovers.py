"""Rows of partitions that were given away and came back.

Where a member gives a partition away, its rows end at the handover: readers below it may be in the
midst of them. When the partition comes back, a version that lived through this is two rows: the
earlier one that ends at the handover, and one that begins there and knows the version's *origin*,
the begin that all copies have. Readers see each moment once. Everything that tells others of
versions, or asks whether one has changed, must take the two for one.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from remuda.datatypes.timestamp import EXPIRY_MARK, HANDOVER_MARK
from remuda.storage.chunks.chunk import Flags, Times


def goes_on(returned: Times, partitions: npt.NDArray[Any] | int, ends: Times | int) -> Flags | bool:
    """Whether versions that show these ends go on in other rows. ``returned``: by partition, the
    handover before it came back last; one that is away has later ends, which are true ones."""
    found: Flags | bool = (ends & EXPIRY_MARK == HANDOVER_MARK) & (ends <= returned[partitions])
    return found
