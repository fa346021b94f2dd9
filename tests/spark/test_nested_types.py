"""UUID, JSON, INTERVAL and ARRAY between Spark and maps; no session is needed."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 (Spark's own convention)

from remuda.datatypes import sql
from remuda.datatypes.arrow import external_schema, to_external
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.values import array_to_values, to_physical, values_to_array
from remuda.errors import InvalidText, NotSupported
from remuda.spark.transfer.arrow_rows import arrow_schema, exact
from remuda.spark.transfer.rows import engine_batch
from remuda.spark.transfer.types import fits, spark_schema, spark_type, sql_type

COLUMNS = (
    Column("u", sql.UUID),
    Column("j", sql.JSON),
    Column("numbers", sql.array(sql.INTEGER)),
    Column("ids", sql.array(sql.UUID)),
    Column("prices", sql.array(sql.decimal(9, 2))),
)
ROW: list[Any] = [uuid.UUID(int=1), {"a": 1}, [1, None], [uuid.UUID(int=2)], [3]]


def test_spark_reads_text_and_arrays() -> None:
    arrays = [
        to_external(
            values_to_array([to_physical(value, column.type), None], column.type), column.type
        )
        for value, column in zip(ROW, COLUMNS, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=external_schema(COLUMNS))
    found = exact(batch, arrow_schema(spark_schema(COLUMNS)))
    first, second = found.to_pylist()
    assert first["u"] == str(ROW[0])
    assert first["j"] == '{"a": 1}'
    assert first["numbers"] == [1, None]
    assert first["ids"] == [str(uuid.UUID(int=2))]
    assert set(second.values()) == {None}


def test_types() -> None:
    assert spark_type(sql.array(sql.BIGINT)) == T.ArrayType(T.LongType())
    assert sql_type(T.ArrayType(T.StringType())) == sql.array(sql.VARCHAR)
    assert sql_type(T.ArrayType(T.ArrayType(T.LongType()))) is None
    assert sql_type(T.MapType(T.StringType(), T.LongType())) is None
    assert sql_type(T.DayTimeIntervalType()) == sql.INTERVAL
    with pytest.raises(NotSupported, match="INTERVAL cannot be read into Spark"):
        spark_type(sql.INTERVAL)


def test_what_fits() -> None:
    assert fits(sql.VARCHAR, sql.UUID)
    assert fits(sql.VARCHAR, sql.JSON)
    assert fits(sql.array(sql.INTEGER), sql.array(sql.BIGINT))
    assert not fits(sql.array(sql.BIGINT), sql.array(sql.INTEGER))
    assert not fits(sql.BIGINT, sql.UUID)
    assert not fits(sql.VARCHAR, sql.array(sql.VARCHAR))


def test_text_from_spark_becomes_uuids_and_json() -> None:
    schema = MapSchema("m", (Column("u", sql.UUID, False), Column("j", sql.JSON)), ("u",), ("u",))
    given = pa.record_batch({"u": [str(uuid.UUID(int=7))], "j": ['{"b":1, "a":2}']})
    batch = engine_batch(schema, [0, 1], given)
    assert array_to_values(batch.column(0), sql.UUID) == [uuid.UUID(int=7).bytes]
    assert batch.column(1).to_pylist() == ['{"a": 2, "b": 1}']
    with pytest.raises(InvalidText, match="invalid input syntax for type uuid"):
        engine_batch(schema, [0, 1], pa.record_batch({"u": ["x"], "j": ["1"]}))
    with pytest.raises(InvalidText, match="invalid input syntax for type json"):
        engine_batch(schema, [0, 1], pa.record_batch({"u": [uuid.UUID(int=1).hex], "j": ["{"]}))


@pytest.mark.spark
def test_a_map_through_spark_and_back(spark: Any, grid: Any, address: str) -> None:
    client = grid.connect()
    columns = "id UUID PRIMARY KEY, numbers INTEGER[], doc JSON"
    for name in ("nested_from", "nested_to"):
        client.sql(f"CREATE TABLE {name} ({columns})")
    for n in range(9):
        client.sql(
            "INSERT INTO nested_from VALUES (?, ?::INTEGER[], ?)", uuid.UUID(int=n), [n], {"n": n}
        )
    options = {"address": address, "map": "nested_from"}
    frame = spark.read.format("remuda").options(**options).load()
    assert frame.where("numbers[0] >= 5").count() == 4
    frame.write.format("remuda").options(**{**options, "map": "nested_to"}).mode("append").save()
    text = "SELECT * FROM {} ORDER BY id"
    assert (
        client.sql(text.format("nested_to")).fetchall()
        == client.sql(text.format("nested_from")).fetchall()
    )
