"""A record batch as value vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import JSON, SqlType
from remuda.rpc.frame import Buffer
from remuda.rpc.messages.vectors_pb2 import SerializedField
from remuda.rpc.value_vectors.json_text import json_values
from remuda.rpc.value_vectors.nested import vector


def encode_batch(
    columns: Sequence[Column], batch: pa.RecordBatch, *, complex_types: bool
) -> tuple[list[SerializedField], list[Buffer]]:
    """Descriptions of the columns and the pieces of the body.

    ``batch`` is in the external Arrow form and may be a slice. ``complex_types``: the client reads
    lists and maps; others get them as JSON text. Raises NotSupported and DataError for values that
    have no form there.
    """
    fields: list[SerializedField] = []
    buffers: list[Buffer] = []
    names = distinct_names(column.name for column in columns)
    for name, column, array in zip(names, columns, batch.columns, strict=True):
        sql_type: SqlType = column.type
        nullable = column.nullable
        if sql_type.is_nested and not complex_types:
            sql_type, array = JSON, _texts(array)  # noqa: PLW2901
        made = vector(name, sql_type, array, nullable=nullable)
        fields.append(made.description)
        buffers += made.buffers
    return fields, buffers


def distinct_names(names: Iterable[str]) -> list[str]:
    """Drill's clients know columns by name, and case means nothing to them: a name that was there
    before gets the first free number behind it, as Drill does."""
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        unique, number = name, 0
        while unique.lower() in taken:
            unique, number = f"{name}{number}", number + 1
        taken.add(unique.lower())
        found.append(unique)
    return found


def _texts(array: pa.Array) -> pa.Array:
    """Value by value: the one place where that is so."""
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False)
        for value in json_values(array)
    ]
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))
