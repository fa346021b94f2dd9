"""``sampled``: whether a row belongs to a sample, decided by its key and a seed alone.

The key's hash, mixed with the seed, is a number that is uniform in 64 bits; a row is in a sample of
p percent if that number is below p percent of 2^64. So every member decides for itself, a seed
gives the same rows on any number of members, and a smaller sample is part of a larger one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.hashes.keyhash import Hashes, hash_arrays
from remuda.errors import InvalidSampleArgument
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def sampled(call: Call) -> Kernel:
    types = [argument.type for argument in call.arguments]

    def kernel(values: list[Value], rows: int) -> Value:
        share, seed, *key = [column(value, rows) for value in values]
        percent = share.to_numpy(zero_copy_only=False)
        if rows and not bool(np.all((percent >= 0) & (percent <= 100))):
            raise InvalidSampleArgument("sample percentage must be between 0 and 100")
        key = [canonical(part, type_) for part, type_ in zip(key, types[2:], strict=True)]
        mixed = _mixed(hash_arrays(key, types[2:]) ^ _mixed(hash_arrays([seed], types[1:2])))
        # 53 bits of the number as a fraction of 100, so that 100 percent are all rows.
        number = (mixed >> np.uint64(11)).astype(np.float64) * (100.0 / 2**53)
        return pa.array(number < percent)

    return kernel


def _mixed(hashes: Hashes) -> Hashes:
    """The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
    Generators", 2014): every bit of the input changes half of the bits of the output."""
    with np.errstate(over="ignore"):
        mixed = hashes + _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
        return mixed ^ (mixed >> np.uint64(31))
