"""Rows as JSON text, as Drill's REST interface writes them.

Numbers are numbers (DECIMALs with all their digits, NaN and infinities as texts), dates and times
are integers: milliseconds since 1970 or since midnight. Bytes are Base64, intervals ISO 8601, UUIDs
and JSON texts, arrays and rows JSON arrays and objects.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.buffers import values_of
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.rpc.messages.vectors_pb2 import MinorType
from remuda.rpc.value_vectors.json_text import iso_interval
from remuda.rpc.value_vectors.vector import minor_type

NULL: Final = "null"
_DAY_MILLIS: Final = 24 * 60 * 60 * 1000
_MICROS: Final = 1000


def type_text(sql_type: SqlType) -> str:
    """Drill's name of the type, with its size: ``VARDECIMAL(5, 2)``, ``VARCHAR(20)``."""
    name = MinorType.Name(minor_type(sql_type))
    if sql_type.kind is Kind.DECIMAL:
        return f"{name}({sql_type.precision}, {sql_type.scale})"
    return name if sql_type.length is None else f"{name}({sql_type.length})"


def row_texts(names: Sequence[str], columns: Sequence[Column], batch: pa.RecordBatch) -> list[str]:
    """A JSON object for each row of ``batch`` (external Arrow form)."""
    if not columns:
        return ["{}"] * batch.num_rows
    heads = [f"{json.dumps(name, ensure_ascii=False)}: " for name in names]
    texts = [
        [head + text for text in value_texts(array, column.type)]
        for head, column, array in zip(heads, columns, batch.columns, strict=True)
    ]
    return ["{" + ", ".join(row) + "}" for row in zip(*texts, strict=True)]


def value_texts(array: pa.Array, sql_type: SqlType) -> list[str]:
    """A JSON text for each value."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return _list_texts(array, sql_type.element)
    if sql_type.kind is Kind.ROW:
        return _object_texts(array, sql_type)
    millis = _MILLIS.get(sql_type.kind)
    if millis is not None:
        texts = list(map(str, millis(array)))
    else:
        write = _WRITERS.get(sql_type.kind, _text)
        if isinstance(array.type, pa.BaseExtensionType) and sql_type.kind is Kind.JSON:
            array = array.storage
        return [NULL if value is None else write(value) for value in array.to_pylist()]
    if array.null_count:
        valid = pc.is_valid(array).to_pylist()
        return [text if there else NULL for text, there in zip(texts, valid, strict=True)]
    return texts


def _list_texts(array: pa.Array, element: SqlType) -> list[str]:
    values = value_texts(array.flatten(), element)
    found: list[str] = []
    place = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            found.append(NULL)
        else:
            found.append("[" + ", ".join(values[place : place + length]) + "]")
            place += length
    return found


def _object_texts(array: pa.Array, sql_type: SqlType) -> list[str]:
    fields = [
        [f"{json.dumps(name, ensure_ascii=False)}: {text}" for text in value_texts(values, t)]
        for (name, t), values in zip(sql_type.fields, array.flatten(), strict=True)
    ]
    objects = ["{" + ", ".join(row) + "}" for row in zip(*fields, strict=True)]
    valid = pc.is_valid(array).to_pylist()
    return [text if there else NULL for text, there in zip(objects, valid, strict=True)]


def _dates(array: pa.Array) -> list[int]:
    found: list[int] = (values_of(array, "<i4").astype("<i8") * _DAY_MILLIS).tolist()
    return found


def _times(array: pa.Array) -> list[int]:
    found: list[int] = (values_of(array, "<i8") // _MICROS).tolist()
    return found


_MILLIS: Final[dict[Kind, Callable[[pa.Array], list[int]]]] = {
    Kind.DATE: _dates,
    Kind.TIME: _times,
    Kind.TIMESTAMP: _times,
    Kind.TIMESTAMPTZ: _times,
}


def _text(value: Any) -> str:
    return json.dumps(str(value), ensure_ascii=False)


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _interval(value: Any) -> str:
    return f'"{iso_interval(value.months, value.days, value.nanoseconds // 1000)}"'


_WRITERS: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.TINYINT: str,
    Kind.SMALLINT: str,
    Kind.INTEGER: str,
    Kind.BIGINT: str,
    Kind.REAL: _number,
    Kind.DOUBLE: _number,
    Kind.DECIMAL: lambda value: format(value, "f"),
    Kind.BYTEA: lambda value: f'"{base64.b64encode(value).decode()}"',
    Kind.INTERVAL: _interval,
}
"""All others are texts."""
