"""Rows as Arrow batches in the form that Spark expects of a data source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from remuda.datatypes.buffers import list_over
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.uuids import uuid_texts
from remuda.errors import TypeMismatch, UndefinedColumn
from remuda.spark.transfer.types import spark_type


def check_wanted(wanted: StructType, schema: MapSchema) -> None:
    """The schema that the user gave to Spark must name columns of the map, with their types."""
    for field in wanted.fields:
        if field.name not in schema.position:
            raise UndefinedColumn(
                f"map {schema.name} has no column {field.name}",
                detail=f"it has {', '.join(column.name for column in schema.shown)}",
            )
        expected = spark_type(schema.column(field.name).type)
        if field.dataType != expected:
            raise TypeMismatch(
                f"column {field.name} of map {schema.name}: expected {expected.simpleString()}, "
                f"found {field.dataType.simpleString()} in the schema given to Spark"
            )


def arrow_schema(wanted: StructType) -> pa.Schema:
    """The schema that Spark compares the first batch with."""
    return to_arrow_schema(wanted, timezone="UTC")


def without_extensions(array: pa.Array) -> pa.Array:
    """UUIDs and JSON as text, also inside arrays: Spark has no types for them."""
    if array.type == pa.uuid():
        return uuid_texts(array.storage)
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_list(array.type) and isinstance(array.type.value_type, pa.BaseExtensionType):
        values = without_extensions(array.values)
        return list_over(array, values, pa.list_(values.type))
    return array


def exact(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The columns that ``target`` names, in its order and types; any other column is left out."""
    arrays: list[Any] = []
    for field in target:
        array = batch.column(field.name)
        array = without_extensions(array)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=target)
