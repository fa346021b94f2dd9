"""NumPy views of Arrow arrays and back, without copies; the floor that kernels stand on."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Data: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_LARGE_TAKE = 1024

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    pa.int8(): np.dtype(np.int8),
    pa.int16(): np.dtype(np.int16),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
    pa.date32(): np.dtype(np.int32),
    pa.time64("us"): np.dtype(np.int64),
    pa.timestamp("us"): np.dtype(np.int64),
    pa.timestamp("us", tz="UTC"): np.dtype(np.int64),
}


def dtype_of(type_: pa.DataType) -> np.dtype[Any] | None:
    """The NumPy form of a fixed-width type (dates and times as integers); None for others."""
    return _DTYPES.get(type_)


def data_of(array: pa.Array) -> Data:
    """A read-only view of the values of a fixed-width array; values under a NULL are undefined."""
    dtype = _DTYPES[array.type]
    length = len(array)
    buffer = array.buffers()[1]
    if buffer is None or length == 0:
        return np.empty(length, dtype)
    return np.frombuffer(buffer, dtype, length, array.offset * dtype.itemsize)


def size_of(array: pa.Array) -> int:
    """Bytes of the values. ``array.nbytes`` takes several times as long, and tells the bits of
    validity, too, where none is NULL."""
    dtype = _DTYPES.get(array.type)
    if dtype is None or array.null_count:
        return int(array.nbytes)
    return len(array) * dtype.itemsize


def validity_mask(array: pa.Array) -> Mask | None:
    """True where a value is; None when there is no NULL."""
    if array.null_count == 0:
        return None
    buffer = array.buffers()[0]
    if buffer is None:  # type null
        return np.zeros(len(array), np.bool_)
    return unpack_bits(buffer, array.offset, len(array))


def unpack_bits(buffer: pa.Buffer, offset: int, length: int) -> Mask:
    first = offset >> 3
    count = ((offset + length + 7) >> 3) - first
    bits = np.unpackbits(
        np.frombuffer(buffer, np.uint8, count, first),
        count=(offset & 7) + length,
        bitorder="little",
    )
    return bits[offset & 7 :].view(np.bool_)


def pack_bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def mask_of(array: pa.Array) -> Mask:
    """The truth of a boolean array: NULL is false."""
    length = len(array)
    if length == 0:
        return np.zeros(0, np.bool_)
    mask = unpack_bits(array.buffers()[1], array.offset, length)
    valid = validity_mask(array)
    return mask if valid is None else mask & valid


def boolean_array(mask: Mask, validity: pa.Buffer | None = None) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(mask), [validity, pack_bits(mask)])


def array_from(data: Data, type_: pa.DataType, validity: pa.Buffer | None = None) -> pa.Array:
    """An Arrow array over ``data`` (no copy when contiguous); ``validity`` has offset 0."""
    data = np.ascontiguousarray(data, _DTYPES[type_])
    return pa.Array.from_buffers(type_, len(data), [validity, pa.py_buffer(data)])


def array_with_mask(data: Data, type_: pa.DataType, valid: Mask | None) -> pa.Array:
    return array_from(data, type_, None if valid is None else pack_bits(valid))


def shared_validity(*arrays: pa.Array) -> pa.Buffer | None:
    """The bitmap (offset 0) of the rows where every array has a value; None when all have."""
    masks = [array for array in arrays if array.null_count]
    if not masks:
        return None
    first = masks[0]
    if len(masks) == 1 and first.offset == 0 and first.buffers()[0] is not None:
        return first.buffers()[0]
    valid = validity_mask(first)
    assert valid is not None
    for other in masks[1:]:
        more = validity_mask(other)
        valid = valid if more is None else valid & more
    return pack_bits(valid)


def nulls(length: int, type_: pa.DataType) -> pa.Array:
    return pa.nulls(length, type_)


def take(array: pa.Array, indices: Indices) -> pa.Array:
    """``array`` at ``indices`` (all within bounds)."""
    if array.null_count == 0:
        if array.type in _DTYPES:
            return array_from(data_of(array).take(indices, mode="clip"), array.type)
        if len(indices) >= _LARGE_TAKE and (same := _take_same_length(array, indices)) is not None:
            return same
    return pc.take(array, pa.array(indices), boundscheck=False)


def _take_same_length(array: pa.Array, indices: Indices) -> pa.Array | None:
    """Strings that all have one small length (flags, codes) are taken as fixed-width items."""
    if array.type != pa.string():
        return None
    rows = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, rows + 1, 4 * array.offset)
    first, length = int(offsets[0]), int(offsets[1] - offsets[0])
    if not 1 <= length <= 8 or offsets[-1] - first != rows * length:
        return None
    if not (offsets[1:] - offsets[:-1] == length).all():
        return None
    items = np.frombuffer(data_buffer, f"V{length}", rows, first)
    if length in (1, 2, 4, 8):
        items = items.view(f"u{length}")
    taken = items.take(indices, mode="clip")
    ends = np.arange(0, (len(indices) + 1) * length, length, dtype=np.int32)
    return pa.Array.from_buffers(
        array.type, len(indices), [None, pa.py_buffer(ends), pa.py_buffer(taken)]
    )


def take_or_null(array: pa.Array, indices: Indices) -> pa.Array:
    """Like ``take``; a negative index gives NULL."""
    missing = indices < 0
    if not missing.any():
        return take(array, indices)
    if len(array) == 0:
        return pa.nulls(len(indices), array.type)
    if array.null_count == 0 and array.type in _DTYPES:
        values = data_of(array).take(indices, mode="clip")
        return array_with_mask(values, array.type, ~missing)
    return pc.take(array, pa.array(indices, mask=missing), boundscheck=False)


def concat(arrays: list[pa.Array], type_: pa.DataType) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays(arrays) if arrays else pa.array([], type_)
