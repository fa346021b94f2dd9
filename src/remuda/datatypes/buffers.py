"""The buffers of Arrow arrays as NumPy sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def values_of(array: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The value buffer of a fixed-width array as NumPy, honouring its slice; NULLs hold
    anything.
    """
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=array.offset + len(array))[array.offset :]


def validity_of(array: pa.Array) -> pa.Buffer | None:
    """A validity bitmap that starts at bit 0, or None when nothing is NULL."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    flags = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def list_over(like: pa.Array, values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """A list array of ``arrow_type`` with the lengths and NULLs of ``like`` over other values."""
    offsets = np.ascontiguousarray(like.offsets.to_numpy(zero_copy_only=False), np.int32)
    buffers = [validity_of(like), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(arrow_type, len(like), buffers, children=[values])
