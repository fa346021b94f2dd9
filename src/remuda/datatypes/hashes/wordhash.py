"""XXH64 over many values at once, in NumPy: fixed words and variable-length byte strings.

Source of the algorithm: the xxHash specification, section "XXH64". All arithmetic is modulo 2**64,
which is what NumPy's unsigned 64-bit arrays do. Work is cut into blocks that stay in the cache.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

Hashes: TypeAlias = npt.NDArray[np.uint64]

P1: Final = np.uint64(0x9E3779B185EBCA87)
P2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
P3: Final = np.uint64(0x165667B19E3779F9)
P4: Final = np.uint64(0x85EBCA77C2B2AE63)
P5: Final = np.uint64(0x27D4EB2F165667C5)
_MASK: Final = 2**64 - 1

BLOCK: Final = 8 * 1024
BLOCK_SIZE: Final = 4 * 1024 * 1024
"""So many values, of so many bytes, are hashed at once."""
LONG_STRING: Final = 256
"""Strings from this length (bytes) on are hashed one by one: vector rounds would be sparse."""


def hash_words(words: Hashes, size: int, seed: Hashes | int) -> Hashes:
    """XXH64 of inputs of ``size`` (4 or 8) bytes each, given as one unsigned word per value."""
    count = len(words)
    out = np.empty(count, dtype=np.uint64)
    scratch = np.empty(min(count, BLOCK), dtype=np.uint64)
    constant = (int(P5) + size + (seed if isinstance(seed, int) else 0)) & _MASK
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        block = out[start:stop]
        temporary = scratch[: stop - start]
        if size == 8:
            _round_into(words[start:stop], block, temporary)
        else:
            np.multiply(words[start:stop], P1, out=block)
        if isinstance(seed, int):
            block ^= np.uint64(constant)
        else:
            np.add(seed[start:stop], np.uint64(constant), out=temporary)
            block ^= temporary
        if size == 8:
            _rotate(block, 27, temporary)
            block *= P1
            block += P4
        else:
            _rotate(block, 23, temporary)
            block *= P2
            block += P3
        _avalanche(block, temporary)
    return out


def _round_into(words: Hashes, out: Hashes, temporary: Hashes) -> None:
    """``out = rotl(words * P2, 31) * P1``: the round of one lane from an accumulator of zero."""
    np.multiply(words, P2, out=out)
    _rotate(out, 31, temporary)
    out *= P1


def _rotate(values: Hashes, bits: int, temporary: Hashes) -> None:
    np.right_shift(values, np.uint64(64 - bits), out=temporary)
    np.left_shift(values, np.uint64(bits), out=values)
    values |= temporary


def _avalanche(values: Hashes, temporary: Hashes) -> None:
    np.right_shift(values, np.uint64(33), out=temporary)
    values ^= temporary
    values *= P2
    np.right_shift(values, np.uint64(29), out=temporary)
    values ^= temporary
    values *= P3
    np.right_shift(values, np.uint64(32), out=temporary)
    values ^= temporary


# --- byte strings ----------------------------------------------------------------------------


def hash_bytes(array: pa.Array, seed: Hashes | int) -> Hashes:
    """XXH64 of every string of a (sliced) string or binary array; NULLs give any value."""
    count = len(array)
    out = np.empty(count, dtype=np.uint64)
    if count == 0:
        return out
    _, offset_buffer, data_buffer = array.buffers()
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = np.frombuffer(offset_buffer, dtype="<i8" if wide else "<i4")
    offsets = offsets[array.offset : array.offset + count + 1].astype(np.int64)
    has_data = data_buffer is not None and data_buffer.size > 0
    everything = np.frombuffer(data_buffer if has_data else bytes(1), dtype=np.uint8)
    begin = 0
    while begin < count:
        first = int(offsets[begin])
        full = int(np.searchsorted(offsets, first + BLOCK_SIZE))
        stop = min(begin + BLOCK, max(begin + 1, full - 1), count)
        # Eight bytes of padding let every word be loaded whole. Of one block: all at once would be
        # a copy of a whole chunk.
        size = int(offsets[stop]) - first
        data = np.zeros(size + 8, dtype=np.uint8)
        data[:size] = everything[first : first + size]
        block_seed = seed if isinstance(seed, int) else seed[begin:stop]
        bounds = offsets[begin : stop + 1]
        out[begin:stop] = _hash_block(data, bounds[:-1] - first, np.diff(bounds), block_seed)
        begin = stop
    return out


def _load(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], dtype: str) -> npt.NDArray[Any]:
    """Little-endian words at any byte positions: an overlapping view with a stride of one byte."""
    width = np.dtype(dtype).itemsize
    view: npt.NDArray[Any] = np.ndarray(
        shape=(len(data) - width + 1,), dtype=dtype, buffer=data.data, strides=(1,)
    )
    return view[at]


def _rotl(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _hash_block(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    seed: Hashes | int,
) -> Hashes:
    count = len(starts)
    seeds = np.full(count, seed, dtype=np.uint64) if isinstance(seed, int) else seed
    hashes = seeds + P5
    longest = int(lengths.max())
    position = starts.copy()
    remaining = lengths.copy()
    if longest >= 32:
        _stripes(data, position, remaining, seeds, hashes)
    hashes += lengths.astype(np.uint64)
    _finish(data, position, remaining, hashes)
    _avalanche(hashes, np.empty_like(hashes))
    if longest >= LONG_STRING:
        _hash_long_strings(data, starts, lengths, seeds, hashes)
    return hashes


def _stripes(
    data: npt.NDArray[np.uint8],
    position: npt.NDArray[np.int64],
    remaining: npt.NDArray[np.int64],
    seeds: Hashes,
    hashes: Hashes,
) -> None:
    """Consume whole stripes of 32 bytes of the strings below ``LONG_STRING``; updates its
    arguments.
    """
    rows = np.flatnonzero((remaining >= 32) & (remaining < LONG_STRING))
    remaining[remaining >= LONG_STRING] = 0
    if not len(rows):
        return
    seed = seeds[rows]
    lanes = [seed + P1 + P2, seed + P2, seed.copy(), seed - P1]
    active = np.arange(len(rows))
    at, left = position[rows], remaining[rows]
    while len(active):
        for lane in range(4):
            words: Hashes = _load(data, at[active] + 8 * lane, "<u8")
            mixed: Hashes = lanes[lane][active] + words * P2
            lanes[lane][active] = _rotl(mixed, 31) * P1
        at[active] += 32
        left[active] -= 32
        active = active[left[active] >= 32]
    merged = _rotl(lanes[0], 1) + _rotl(lanes[1], 7) + _rotl(lanes[2], 12) + _rotl(lanes[3], 18)
    for accumulator in lanes:
        merged = (merged ^ (_rotl(accumulator * P2, 31) * P1)) * P1 + P4
    hashes[rows] = merged
    position[rows] = at
    remaining[rows] = left


def _finish(
    data: npt.NDArray[np.uint8],
    position: npt.NDArray[np.int64],
    remaining: npt.NDArray[np.int64],
    hashes: Hashes,
) -> None:
    """The last 0 to 31 bytes of every string: words of 8, of 4, then single bytes."""
    while len(rows := _rows_with(remaining, 8)):
        mixed = hashes[rows] ^ (_rotl(_load(data, position[rows], "<u8") * P2, 31) * P1)
        hashes[rows] = _rotl(mixed, 27) * P1 + P4
        position[rows] += 8
        remaining[rows] -= 8
    if len(rows := _rows_with(remaining, 4)):
        mixed = hashes[rows] ^ (_load(data, position[rows], "<u4").astype(np.uint64) * P1)
        hashes[rows] = _rotl(mixed, 23) * P2 + P3
        position[rows] += 4
        remaining[rows] -= 4
    while len(rows := _rows_with(remaining, 1)):
        mixed = hashes[rows] ^ (data[position[rows]].astype(np.uint64) * P5)
        hashes[rows] = _rotl(mixed, 11) * P1
        position[rows] += 1
        remaining[rows] -= 1


def _rows_with(remaining: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return np.flatnonzero(remaining >= size)


def _hash_long_strings(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    seeds: Hashes,
    hashes: Hashes,
) -> None:
    view = data.data
    for row in np.flatnonzero(lengths >= LONG_STRING).tolist():
        start = int(starts[row])
        text = view[start : start + int(lengths[row])]
        hashes[row] = xxhash.xxh64_intdigest(text, int(seeds[row]))
