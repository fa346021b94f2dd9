"""Vectors of arrays (REPEATED) and of rows (MAP)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import NotSupported
from remuda.rpc.messages.vectors_pb2 import MAP, OPTIONAL, REPEATED, REQUIRED, MajorType
from remuda.rpc.value_vectors.scalars import required
from remuda.rpc.value_vectors.vector import (
    DATA,
    Vector,
    bits,
    major_type,
    offsets,
    parent,
)


def vector(name: str, sql_type: SqlType, array: pa.Array, *, nullable: bool) -> Vector:
    """Any type. Drill's lists and maps are never NULL: a NULL array becomes an empty list, a NULL
    row a map of NULLs. Raises NotSupported for an array with a NULL in it."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return _list(name, sql_type.element, array)
    if sql_type.kind is Kind.ROW:
        major = MajorType(minor_type=MAP, mode=REQUIRED)
        return parent(name, major, len(array), _members(sql_type, array))
    # The JDBC driver shows intervals as objects only where there may be NULLs.
    optional = nullable or bool(array.null_count) or sql_type.kind is Kind.INTERVAL
    if not optional:
        return required(name, sql_type, array)
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    major = major_type(sql_type, OPTIONAL)
    values = required(name, sql_type, array)
    values.description.major_type.CopyFrom(major)
    return parent(name, major, len(array), [bits(valid), values])


def _members(sql_type: SqlType, array: pa.Array) -> list[Vector]:
    """``flatten`` gives the fields with the NULLs of the rows above them, cut to the slice."""
    return [
        vector(name, field, values, nullable=True)
        for (name, field), values in zip(sql_type.fields, array.flatten(), strict=True)
    ]


def _list(name: str, element: SqlType, array: pa.Array) -> Vector:
    index = offsets(_ends(array))
    values = array.flatten()  # what NULL arrays hide is left out
    if element.kind is Kind.ROW:
        major = MajorType(minor_type=MAP, mode=REPEATED)
        return parent(name, major, len(array), [index, *_members(element, values)])
    if values.null_count:
        raise NotSupported(
            f'an array in column "{name}" has a NULL element, which Drill\'s lists cannot have',
            hint="Remove it with array_remove(x, NULL), or convert the array to text.",
        )
    parts = [index, required(DATA, element, values)]
    return parent(name, major_type(element, REPEATED), len(array), parts)


def _ends(array: pa.Array) -> npt.NDArray[np.int64]:
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends
