"""HASH indexes: 64-bit hashes of the keys instead of the keys, in the same sorted runs.

They take 16 bytes per row whatever the types, and find whole keys only. Different keys may share a
hash: the caller compares the values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from remuda.datatypes.hashes.wordhash import hash_bytes, hash_words
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.limits import KEY_HASH_SEED
from remuda.storage.indexes.keys import Bound, KeyForm, Keys
from remuda.storage.indexes.sorted import SortedIndex

_SIGN: Final = 2**63
_PACK: Final = struct.Struct("<q").pack
_NULL_HASH: Final = 0
"""Of a NULL in an index of one column; it may be the hash of a value as well."""


class HashForm(KeyForm):
    """Keys are hashes of the keys of ``KeyForm``, as signed words."""

    def __init__(self, positions: Sequence[int], types: Sequence[SqlType]) -> None:
        super().__init__(positions, types, [False] * len(types))
        self._plain = KeyForm(positions, types, [False] * len(types))
        self.words = True

    def key(self, values: Sequence[PhysicalValue]) -> Bound:
        if self._plain.words and values[0] is None:
            return _NULL_HASH
        key = self._plain.key(values)
        data = _PACK(key) if isinstance(key, int) else key
        hashed: int = xxhash.xxh64_intdigest(data, KEY_HASH_SEED)
        return hashed - 2**64 if hashed >= _SIGN else hashed

    def keys_of(self, columns: Sequence[pa.Array]) -> tuple[Keys, npt.NDArray[np.bool_] | None]:
        keys, nulls = self._plain.keys_of(columns)
        if isinstance(keys, np.ndarray):
            hashes = hash_words(keys.view(np.uint64), 8, KEY_HASH_SEED)
        else:
            hashes = hash_bytes(keys, KEY_HASH_SEED)
        words = hashes.view(np.int64)
        return (words if nulls is None else np.where(nulls, _NULL_HASH, words)), None


class HashIndex(SortedIndex):
    """A sorted index of hashes."""
