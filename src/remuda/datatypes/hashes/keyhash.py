"""Key hashes: xxHash64 exactly as Spark SQL's ``xxhash64(...)`` computes it, seed 42.

A Spark job can therefore lay rows out by partition before it writes them (design D2). The rules per
type are those of Spark's ``XxHash64`` expression: booleans and integers of up to 32 bits and dates
hash 4 bytes, 64-bit integers, timestamps (microseconds), times (nanoseconds) and decimals of up to
18 digits (unscaled) hash 8 bytes, floats hash their IEEE bits with -0.0 as 0.0 and one NaN, text
and binary hash their bytes, longer decimals the big-endian two's complement of the unscaled value
in as few bytes as possible. A UUID hashes its text in lower case with hyphens, because Spark has
UUIDs as text only. A NULL leaves the running hash unchanged; each column's hash is the
seed of the next. The algorithm is the public xxHash specification (Yann Collet, XXH64).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from remuda.datatypes.arrow import values_of
from remuda.datatypes.hashes.orderkeys import order_keys
from remuda.datatypes.hashes.wordhash import hash_bytes, hash_words
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.uuids import uuid_text, uuid_texts
from remuda.datatypes.values import PhysicalValue
from remuda.limits import KEY_HASH_SEED, PARTITIONS

Hashes: TypeAlias = npt.NDArray[np.uint64]

_MASK: Final = 2**64 - 1
_SIGN: Final = 2**63
_WRAP: Final = 2**64 % PARTITIONS

_FOUR_BYTES: Final = (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.DATE)
_EIGHT_BYTES: Final = (Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_FIXED: Final = (*_FOUR_BYTES, *_EIGHT_BYTES, Kind.TIME, Kind.REAL, Kind.DOUBLE)

_digest: Final = xxhash.xxh64_intdigest
_pack_int: Final = struct.Struct("<i").pack
_pack_long: Final = struct.Struct("<q").pack
_pack_float: Final = struct.Struct("<f").pack
_pack_double: Final = struct.Struct("<d").pack
_FLOAT_NAN: Final = bytes.fromhex("0000c07f")
_DOUBLE_NAN: Final = bytes.fromhex("000000000000f87f")


# --- one key ---------------------------------------------------------------------------------


def hasher(types: Sequence[SqlType]) -> Callable[[Sequence[PhysicalValue]], int]:
    """A function that returns the unsigned 64-bit hash of a key of these types, given as physical
    values."""
    encoders = [key_bytes(sql_type) for sql_type in types]
    if len(encoders) == 1:
        encode = encoders[0]

        def hash_one(values: Sequence[PhysicalValue]) -> int:
            value = values[0]
            return KEY_HASH_SEED if value is None else _digest(encode(value), KEY_HASH_SEED)

        return hash_one

    def hash_many(values: Sequence[PhysicalValue]) -> int:
        result = KEY_HASH_SEED
        for value, encode in zip(values, encoders, strict=True):
            if value is not None:
                result = _digest(encode(value), result)
        return result

    return hash_many


def partitioner(types: Sequence[SqlType]) -> Callable[[Sequence[PhysicalValue]], int]:
    """The partition of one key, by the values of its partition columns; prepared for many calls."""
    hash_of = hasher(types)
    if len(types) > 1:
        return lambda values: partition_of(hash_of(values))
    encode = key_bytes(types[0])

    def partition_by_one(values: Sequence[PhysicalValue]) -> int:  # of nearly every map
        value = values[0]
        found = KEY_HASH_SEED if value is None else _digest(encode(value), KEY_HASH_SEED)
        return (found if found < _SIGN else found - _MASK - 1) % PARTITIONS

    return partition_by_one


def key_bytes(sql_type: SqlType) -> Callable[[Any], bytes]:
    """The function that gives the bytes which Spark hashes for a non-NULL value of this type."""
    kind = sql_type.kind
    if kind in _FOUR_BYTES:
        return _pack_int
    if kind in _EIGHT_BYTES or sql_type.is_short_decimal:
        return _pack_long
    if kind is Kind.TIME:
        return _time_bytes
    if kind is Kind.DECIMAL:
        return _long_decimal_bytes
    if kind is Kind.REAL:
        return _float_bytes
    if kind is Kind.DOUBLE:
        return _double_bytes
    if sql_type.is_text or kind is Kind.ENUM:
        return str.encode
    if kind is Kind.BYTEA:
        return bytes
    if kind is Kind.UUID:
        return _uuid_bytes
    raise ValueError(f"a key cannot be of type {sql_type}")


def is_key_type(sql_type: SqlType) -> bool:
    """Whether a column of this type may be part of a key."""
    return sql_type.kind is Kind.ENUM or not (sql_type.ordered_by_key or sql_type.kind is Kind.NULL)


def _uuid_bytes(value: bytes) -> bytes:
    return uuid_text(value).encode()


def _time_bytes(micros: int) -> bytes:
    return _pack_long(micros * 1000)


def _long_decimal_bytes(unscaled: int) -> bytes:
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _float_bytes(value: float) -> bytes:
    return _FLOAT_NAN if value != value else _pack_float(value + 0.0)  # noqa: PLR0124 (NaN)


def _double_bytes(value: float) -> bytes:
    return _DOUBLE_NAN if value != value else _pack_double(value + 0.0)  # noqa: PLR0124 (NaN)


def is_injective(types: Sequence[SqlType]) -> bool:
    """Whether different keys of these types always have different hashes.

    True for one column of at most 8 bytes: every step of xxHash64 over one word is a bijection. Two
    equal hashes then mean equal keys (with -0.0 = 0.0 and NaN = NaN) and need no comparison.
    """
    return len(types) == 1 and (types[0].kind in _FIXED or types[0].is_short_decimal)


# --- many keys -------------------------------------------------------------------------------


def hash_arrays(arrays: Sequence[pa.Array], types: Sequence[SqlType]) -> Hashes:
    """The hashes of many keys, given as engine-form Arrow arrays (one per key column). Types that
    no key has are hashed as well: equal values have equal hashes.
    """
    if not arrays:
        raise ValueError("a key has at least one column")
    seed: Hashes | int = KEY_HASH_SEED
    for array, sql_type in zip(arrays, types, strict=True):
        seed = _hash_array(array, sql_type, seed)
    assert isinstance(seed, np.ndarray)
    return seed


def _hash_array(array: pa.Array, sql_type: SqlType, seed: Hashes | int) -> Hashes:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = sql_type.kind
    if sql_type.is_text or kind in (Kind.BYTEA, Kind.ENUM):
        hashes = hash_bytes(array, seed)
    elif kind is Kind.UUID:
        hashes = hash_bytes(uuid_texts(array), seed)
    elif sql_type.ordered_by_key:
        # No key of a map, but rows are sent to where their group or join partner is.
        hashes = hash_bytes(order_keys(array, sql_type), seed)
    elif kind is Kind.DECIMAL and not sql_type.is_short_decimal:
        hashes = _hash_long_decimals(array, seed)
    else:
        words, size = _words(array, kind)
        hashes = hash_words(words, size, seed)
    if array.null_count:
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        hashes = np.where(valid, hashes, np.uint64(seed) if isinstance(seed, int) else seed)
    return hashes


_LAYOUT: Final = {
    Kind.TINYINT: ("<i1", 4),
    Kind.SMALLINT: ("<i2", 4),
    Kind.INTEGER: ("<i4", 4),
    Kind.DATE: ("<i4", 4),
    Kind.BIGINT: ("<i8", 8),
    Kind.DECIMAL: ("<i8", 8),
    Kind.TIME: ("<i8", 8),
    Kind.TIMESTAMP: ("<i8", 8),
    Kind.TIMESTAMPTZ: ("<i8", 8),
    Kind.REAL: ("<f4", 4),
    Kind.DOUBLE: ("<f8", 8),
}


def _words(array: pa.Array, kind: Kind) -> tuple[Hashes, int]:
    """The bits of each value that Spark hashes, as unsigned 64-bit words, and the number of
    bytes."""
    if kind is Kind.BOOLEAN:
        flags = array.fill_null(False) if array.null_count else array
        return flags.to_numpy(zero_copy_only=False).astype(np.uint64), 4
    layout = _LAYOUT.get(kind)
    if layout is None:
        raise ValueError(f"a key cannot be of type {kind.value}")
    dtype, size = layout
    values = values_of(array, dtype)
    if kind is Kind.TIME:
        values = values * 1000
    elif kind is Kind.REAL:
        values = np.where(np.isnan(values), np.float32(np.nan), values + np.float32(0)).view("<i4")
    elif kind is Kind.DOUBLE:
        values = np.where(np.isnan(values), np.nan, values + 0.0).view("<i8")
    if size == 4:
        return values.astype(np.int32, copy=False).view(np.uint32).astype(np.uint64), 4
    return values.view(np.uint64), 8


def _hash_long_decimals(array: pa.Array, seed: Hashes | int) -> Hashes:
    size = len(array)
    words = values_of(array, "<V16").view("<u8") if size else np.zeros(0, "<u8")
    low, high = words[0::2].tolist(), words[1::2].view("<i8").tolist()
    seeds = [seed] * size if isinstance(seed, int) else seed.tolist()
    hashes = (
        _digest(_long_decimal_bytes(h << 64 | b), s)
        for b, h, s in zip(low, high, seeds, strict=True)
    )
    return np.fromiter(hashes, dtype=np.uint64, count=size)


# --- partitions ------------------------------------------------------------------------------


def partition_of(key_hash: int) -> int:
    """``pmod(signed hash, 271)`` of an unsigned hash."""
    if key_hash >= _SIGN:
        return (key_hash - _MASK - 1) % PARTITIONS
    return key_hash % PARTITIONS


def partitions_of(hashes: Hashes) -> npt.NDArray[np.uint16]:
    """``partition_of`` for many: unsigned remainders, with 2**64 taken off where the sign bit is
    set.
    """
    remainder = (hashes % np.uint64(PARTITIONS)).astype(np.int16)
    remainder -= (hashes >> np.uint64(63)).astype(np.int16) * np.int16(_WRAP)
    remainder += (remainder < 0).astype(np.int16) * np.int16(PARTITIONS)
    return remainder.view(np.uint16)
