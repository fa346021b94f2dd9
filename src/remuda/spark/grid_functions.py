"""Expressions of the grid as functions of Spark: the same evaluator, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import compute as pc
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from remuda.datatypes.arrow import to_engine, to_external
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.uuids import parse_uuid
from remuda.errors import InternalError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.decimals import canonical
from remuda.plan.codec import decode
from remuda.plan.expression import Expression
from remuda.spark.transfer.arrow_rows import without_extensions
from remuda.spark.transfer.types import spark_type

EXPRESSIONS_KEPT = 256


def grid_function(expression: bytes, arguments: Sequence[SqlType], result: SqlType) -> Any:
    """A function to register with Spark. Its errors are the grid's, inside Spark's."""
    types = tuple(arguments)

    def compute(*columns: pa.Array) -> pa.Array:
        return evaluated(expression, types, result, columns)

    made: Any = arrow_udf  # its annotations know no function of several columns
    return made(compute, returnType=spark_type(result))


def evaluated(
    expression: bytes,
    arguments: tuple[SqlType, ...],
    result: SqlType,
    columns: Sequence[pa.Array],
) -> pa.Array:
    """``columns`` and the result are in Spark's Arrow types."""
    rows = len(columns[0])
    batch = Batch([engine_column(c, t) for c, t in zip(columns, arguments, strict=True)], rows)
    # Long decimals may come as 64-bit integers out of the evaluator.
    found = canonical(_evaluator(expression, len(arguments))(batch), result)
    return spark_column(found, result)


@lru_cache(EXPRESSIONS_KEPT)
def _evaluator(expression: bytes, arguments: int) -> Callable[[Batch], pa.Array]:
    found = decode(expression)
    if not isinstance(found, Expression):
        raise InternalError("a function of Spark stands for no expression")
    return Compiler({place: place for place in range(arguments)}).column(found)


def engine_column(column: pa.Array | pa.ChunkedArray, sql_type: SqlType) -> pa.Array:
    """A column of Spark in the engine's form. Raises DataError."""
    if sql_type.kind is Kind.UUID:
        texts = column.to_pylist()
        column = pa.array([None if t is None else parse_uuid(t) for t in texts], pa.binary())
    return to_engine(column, sql_type)


def spark_column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """A column in the engine's form as Spark has it."""
    target = to_arrow_type(spark_type(sql_type), timezone="UTC")
    plain = without_extensions(to_external(column, sql_type))
    if pa.types.is_null(plain.type):
        return pa.nulls(len(plain), target)
    return plain if plain.type == target else pc.cast(plain, target)
