"""One vector: its description and its buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from remuda.datatypes.sql import Kind, SqlType
from remuda.rpc.frame import Buffer
from remuda.rpc.messages.vectors_pb2 import (
    BIGINT,
    BIT,
    DATE,
    FLOAT4,
    FLOAT8,
    INT,
    INTERVAL,
    LIST,
    MAP,
    REQUIRED,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TINYINT,
    UINT1,
    UINT4,
    VARBINARY,
    VARCHAR,
    VARDECIMAL,
    DataMode,
    MajorType,
    MinorType,
    NamePart,
    SerializedField,
)

OFFSETS, BITS, DATA = "$offsets$", "$bits$", "$data$"
"""Drill's names of the parts of a vector; its clients check the names. The values of a nullable
vector have the name and the type of the vector itself: the JDBC driver refuses any other."""

_MINOR_TYPES: dict[Kind, MinorType] = {
    Kind.NULL: VARCHAR,
    Kind.BOOLEAN: BIT,
    Kind.TINYINT: TINYINT,
    Kind.SMALLINT: SMALLINT,
    Kind.INTEGER: INT,
    Kind.BIGINT: BIGINT,
    Kind.REAL: FLOAT4,
    Kind.DOUBLE: FLOAT8,
    Kind.DECIMAL: VARDECIMAL,
    Kind.CHAR: VARCHAR,
    Kind.VARCHAR: VARCHAR,
    Kind.ENUM: VARCHAR,
    Kind.BYTEA: VARBINARY,
    Kind.DATE: DATE,
    Kind.TIME: TIME,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMPTZ: TIMESTAMP,
    Kind.INTERVAL: INTERVAL,
    Kind.UUID: VARCHAR,
    Kind.JSON: VARCHAR,
    Kind.ARRAY: LIST,
    Kind.ROW: MAP,
}


@dataclass(frozen=True, slots=True)
class Vector:
    """``description`` tells of ``buffers``, which follow each other in the body."""

    description: SerializedField
    buffers: Sequence[Buffer] = ()


def minor_type(sql_type: SqlType) -> MinorType:
    """Drill's type of the values; an array is a LIST here, whatever its elements are."""
    return _MINOR_TYPES[sql_type.kind]


def major_type(sql_type: SqlType, mode: DataMode) -> MajorType:
    """A VARCHAR's length is its precision, as in Drill."""
    found = MajorType(minor_type=minor_type(sql_type), mode=mode)
    if sql_type.kind is Kind.DECIMAL:
        found.precision = sql_type.precision or 0
        found.scale = sql_type.scale or 0
    elif sql_type.length is not None:
        found.precision = sql_type.length
    return found


def parent(name: str, major: MajorType, values: int, parts: Sequence[Vector]) -> Vector:
    """A vector that consists of others."""
    return Vector(
        SerializedField(
            major_type=major,
            name_part=NamePart(name=name),
            child=[part.description for part in parts],
            value_count=values,
            buffer_length=sum(part.description.buffer_length for part in parts),
        ),
        [buffer for part in parts for buffer in part.buffers],
    )


def leaf(name: str, major: MajorType, values: int, data: npt.NDArray[Any]) -> Vector:
    """A vector of one buffer."""
    described = SerializedField(
        major_type=major,
        name_part=NamePart(name=name),
        value_count=values,
        buffer_length=data.nbytes,
    )
    return Vector(described, [as_bytes(data)] if data.nbytes else [])


def offsets(ends: npt.NDArray[Any]) -> Vector:
    """``$offsets$``: ``ends`` is n + 1 offsets, the first one 0; [0] of an empty vector is left
    out, as Drill does."""
    ends = ends if len(ends) > 1 else ends[:0]
    major = MajorType(minor_type=UINT4, mode=REQUIRED)
    return leaf(OFFSETS, major, len(ends), np.ascontiguousarray(ends, "<u4"))


def bits(valid: npt.NDArray[np.bool_]) -> Vector:
    """``$bits$``: a byte for each value, 1 where there is one."""
    major = MajorType(minor_type=UINT1, mode=REQUIRED)
    return leaf(BITS, major, len(valid), valid.view(np.uint8))


def as_bytes(data: npt.NDArray[Any]) -> memoryview:
    """The memory of an array, without a copy if it lies in one piece."""
    return np.ascontiguousarray(data).data.cast("B")
