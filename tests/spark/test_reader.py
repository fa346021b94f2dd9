"""Planning and reading, against a client that records what it is asked."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from fake_grid import FakeClient
from pyspark.sql import datasource as ds
from pyspark.sql import types as T  # noqa: N812

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import InputError, TypeMismatch, UndefinedColumn
from remuda.spark.options import Options
from remuda.spark.reader import RemudaReader, arrow_schema, exact
from remuda.spark.types import spark_schema

SCHEMA = MapSchema(
    "sales",
    (
        Column("id", sql.BIGINT, nullable=False),
        Column("item", sql.VARCHAR),
        Column("price", sql.DOUBLE),
        Column("opens", sql.TIME),
    ),
    ("id",),
    ("id",),
)
WHOLE = spark_schema(SCHEMA.columns)


def reader(client: FakeClient, wanted: T.StructType = WHOLE, **options: str) -> RemudaReader:
    parsed = Options.parse({"address": "host:101", "map": "sales", **options}).reads()
    return RemudaReader(parsed, wanted, SCHEMA, client.connect)


def test_one_slice_per_member_at_one_timestamp() -> None:
    slices: Any = reader(FakeClient(SCHEMA)).partitions()
    assert [(s.address, s.member) for s in slices] == [
        ("host:101", 1),
        ("host:102", 2),
        ("host:103", 3),
    ]
    assert sorted(p for s in slices for p in s.partitions) == list(range(271))
    assert {s.at for s in slices} == {1014}, "the largest clock of all members"


def test_several_slices_per_member() -> None:
    slices: Any = reader(FakeClient(SCHEMA), partitions_per_member="4", at="77").partitions()
    assert len(slices) == 12
    assert sorted(p for s in slices for p in s.partitions) == list(range(271))
    assert {s.at for s in slices} == {77}


def test_columns_filters_and_parameters_reach_the_member() -> None:
    wanted = T.StructType([T.StructField("item", T.StringType())])
    batch = pa.RecordBatch.from_pydict({"item": ["a", None]})
    client = FakeClient(SCHEMA, batches=[batch])
    planned = reader(client, wanted, where="id % 2 = 0")
    unsupported = ds.GreaterThan(("price",), 1.0)
    left = planned.pushFilters([ds.EqualTo(("id",), 5), unsupported, ds.IsNotNull(("item",))])
    assert list(left) == [unsupported]
    slices: Any = planned.partitions()
    assert [b.to_pydict() for b in planned.read(slices[1])] == [{"item": ["a", None]}]
    address, text, parameters, choices = client.asked[0]
    assert address == "host:102"
    assert text == (
        'SELECT "item" FROM "sales" WHERE (id % 2 = 0) AND ("id" = ?) AND ("item" IS NOT NULL)'
    )
    assert parameters == (5,)
    assert choices["member"] == 2
    assert choices["local"] is True
    assert choices["at"] == 1014


def test_spark_takes_push_filters_for_the_default() -> None:
    made = reader(FakeClient(SCHEMA))
    assert getattr(made.pushFilters, "__func__", None) is ds.DataSourceReader.pushFilters


def test_reader_travels() -> None:
    made = RemudaReader(Options.parse({"address": "a:1", "map": "sales"}), WHOLE, SCHEMA)
    made.pushFilters([ds.EqualTo(("id",), 5)])
    again = pickle.loads(pickle.dumps(made))
    assert again.conditions == made.conditions
    again.pushFilters([ds.IsNull(("item",))])
    assert len(again.conditions) == 2


def test_batches_become_exactly_what_spark_compares() -> None:
    target = arrow_schema(WHOLE)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1], pa.int64()),
            pa.array(["x"]).dictionary_encode(),
            pa.array([1.5]),
            pa.array([3_600_000_000], pa.time64("us")),
        ],
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("item", pa.dictionary(pa.int32(), pa.string())),
                pa.field("price", pa.float64()),
                pa.field("opens", pa.time64("us")),
            ]
        ),
    )
    result = exact(batch, target)
    assert result.schema.equals(target)
    assert result.to_pylist()[0]["item"] == "x"


def test_counting_needs_no_column() -> None:
    empty = T.StructType([])
    batch = pa.RecordBatch.from_pydict({"1": [1, 1, 1]})
    client = FakeClient(SCHEMA, batches=[batch])
    planned = reader(client, empty)
    assert planned.statement("") == 'SELECT 1 FROM "sales"'
    result = next(planned.read(planned.partitions()[0]))
    assert (result.num_rows, result.num_columns) == (3, 0)


def test_a_schema_that_the_map_does_not_have() -> None:
    with pytest.raises(UndefinedColumn, match="map sales has no column color"):
        reader(FakeClient(SCHEMA), T.StructType([T.StructField("color", T.StringType())]))
    with pytest.raises(TypeMismatch, match="column id of map sales: expected bigint, found int"):
        reader(FakeClient(SCHEMA), T.StructType([T.StructField("id", T.IntegerType())]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "m"}, "needs option"),
        ({"address": "a:1", "mapp": "m"}, "no option mapp"),
        ({"address": "a:1"}, 'either option "map" or option "query"'),
        ({"address": "a:1", "map": "m", "query": "q"}, 'either option "map" or option "query"'),
        ({"address": "a:1", "query": "q", "where": "x"}, "put the condition into the query"),
        ({"address": "a:1", "map": "m", "at": "now"}, 'option "at" must be a number'),
        ({"address": "a:1", "map": "m", "replicated": "yes"}, "must be true or false"),
        ({"address": "a:1", "map": "m", "partitions_per_member": "-1"}, "at least 1"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options.parse(options).reads()


def test_option_names_in_any_case() -> None:
    options = Options.parse({"ADDRESS": "a:1", "partitions_Per_Member": "2", "columns": "a, b"})
    assert (options.partitions_per_member, options.columns) == (2, ("a", "b"))
