"""VARDECIMAL: unscaled numbers as big-endian two's complement, without needless bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_WIDTH: Final = 16


def shortest_bytes(array: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(n + 1 offsets, bytes) of a decimal128 array, as Java's ``BigInteger.toByteArray`` makes
    them. NULLs hold anything."""
    count = len(array)
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    raw = raw[array.offset * _WIDTH : (array.offset + count) * _WIDTH].reshape(count, _WIDTH)
    big = raw[:, ::-1]
    negative = big[:, 0] >> 7
    fill = np.where(negative == 1, 0xFF, 0).astype(np.uint8)
    # Leading bytes that only repeat the sign may go, as long as the sign stays visible.
    repeated = np.logical_and.accumulate(big == fill[:, None], axis=1).sum(axis=1)
    start = np.minimum(repeated, _WIDTH - 1)
    shows_sign = (big[np.arange(count), start] >> 7) == negative
    start = np.where(shows_sign, start, start - 1)
    ends = np.concatenate([[0], np.cumsum(_WIDTH - start)])
    return ends, big[np.arange(_WIDTH)[None, :] >= start[:, None]]
