"""HyperLogLog sketches: how many distinct values a column has, mergeable over chunks and members.

Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality
estimation algorithm" (2007), over 64-bit hashes, so that the correction for large ranges is not
needed; small counts by linear counting. The standard error is 1.04 / sqrt(2048) = 2.3 %.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

INDEX_BITS: Final = 11
REGISTERS: Final = 1 << INDEX_BITS
_RANKS: Final = 64
_ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTERS)
_LINEAR_BELOW: Final = 2.5 * REGISTERS

Sketch: TypeAlias = npt.NDArray[np.uint8]
"""One byte per register: the highest rank seen; ranks count from 1, 0 = nothing seen."""


def sketch_of(hashes: npt.NDArray[np.uint64]) -> Sketch:
    """The sketch of the values with these 64-bit hashes."""
    places = (hashes & np.uint64(REGISTERS - 1)).astype(np.uint32)
    # The bits above the place fit a double exactly: its exponent counts their leading zeros.
    _, exponents = np.frexp((hashes >> np.uint64(INDEX_BITS)).astype(np.float64))
    ranks = (64 - INDEX_BITS + 1 - exponents).astype(np.uint32)
    seen = np.zeros(REGISTERS * _RANKS, dtype=np.bool_)
    seen[places * np.uint32(_RANKS) + ranks] = True
    by_register = seen.reshape(REGISTERS, _RANKS)
    highest = _RANKS - 1 - by_register[:, ::-1].argmax(axis=1)
    return np.where(by_register.any(axis=1), highest, 0).astype(np.uint8)


def merged(sketches: Iterable[Sketch]) -> Sketch:
    """The sketch of all values that any of ``sketches`` has seen."""
    result = np.zeros(REGISTERS, dtype=np.uint8)
    for sketch in sketches:
        np.maximum(result, sketch, out=result)
    return result


def distinct(sketch: Sketch) -> float:
    """The estimated number of distinct values."""
    raw = _ALPHA * REGISTERS * REGISTERS / float(np.exp2(-sketch.astype(np.float64)).sum())
    empty = int(np.count_nonzero(sketch == 0))
    if raw <= _LINEAR_BELOW and empty:
        return REGISTERS * log(REGISTERS / empty)
    return raw


def decoded(data: bytes) -> Sketch | None:
    """A sketch from its bytes; None if they are none."""
    return np.frombuffer(data, dtype=np.uint8) if len(data) == REGISTERS else None
