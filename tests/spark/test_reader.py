"""Planning and reading, against a client that records what it is asked."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from fake_grid import VIEW, FakeClient
from pyspark.sql import datasource as ds
from pyspark.sql import types as T  # noqa: N812

from remuda.client.network.address import parse_addresses
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.view import MemberInfo
from remuda.errors import InputError, MemberUnavailable, TypeMismatch, UndefinedColumn
from remuda.spark.transfer import slice_reading
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.read_time import agree
from remuda.spark.transfer.reader import RemudaReader, arrow_schema, exact, slices
from remuda.spark.transfer.types import spark_schema

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
WHOLE_BATCH = pa.RecordBatch.from_pydict(
    {"id": [1], "item": ["a"], "price": [0.5], "opens": pa.array([5], pa.time64("us"))}
)


def reader(client: FakeClient, wanted: T.StructType = WHOLE, **options: str) -> RemudaReader:
    parsed = Options.parse({"address": "host:101", "map": "sales", **options}).reads()
    return RemudaReader(parsed, wanted, SCHEMA, client.connect)


def test_one_slice_per_member_at_one_timestamp() -> None:
    client = FakeClient(SCHEMA, batches=[WHOLE_BATCH])
    planned = reader(client)
    slices: Any = planned.partitions()
    assert [s.address for s in slices] == [
        "host:101,host:102,host:103",
        "host:102,host:103,host:101",
        "host:103,host:101,host:102",
    ]
    assert sorted(p for s in slices for p in s.partitions) == list(range(271))
    for part in slices:
        assert len(list(planned.read(part))) == 1
    assert {asked[3]["at"] for asked in client.asked} == {1014}, "the largest clock of all members"
    assert [asked[3]["member"] for asked in client.asked] == [1, 2, 3]
    assert {member for member, _ in client.leases} == {1, 2}, "two members know it"


def test_tasks_agree_on_a_timestamp_when_its_keeper_is_lost() -> None:
    client = FakeClient(SCHEMA)
    first = agree(client, "run", None, 60)  # type: ignore[arg-type]
    client.gone = {1}
    assert agree(client, "run", 7777, 60) == first  # type: ignore[arg-type]
    client.gone = {1, 2}
    with pytest.raises(MemberUnavailable):
        agree(client, "run", 7777, 60)  # type: ignore[arg-type]


def test_the_last_keeper_decides() -> None:
    client = FakeClient(SCHEMA)
    client.leases[1, "run"], client.leases[2, "run"] = 5, 6
    assert agree(client, "run", None, 60) == 6  # type: ignore[arg-type]


def test_a_piece_that_is_lost_is_read_again_from_its_new_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slice_reading, "_PAUSE", 0.0)
    batch = pa.RecordBatch.from_pydict({"id": [1]})
    client = FakeClient(SCHEMA, batches=[batch, batch])
    client.size = 3 * 3 * slice_reading.PIECE_SIZE
    planned = reader(client, T.StructType([T.StructField("id", T.LongType())]))
    part: Any = planned.partitions()[0]
    assert part.pieces == 4
    client.lost.append(MemberUnavailable("member 1 is lost"))
    moved = replace(VIEW, replicas=tuple((2 + p // 12 % 2,) for p in range(271)))

    def query(*arguments: Any, **choices: Any) -> Any:
        found = FakeClient.query(client, *arguments, **choices)
        if len(client.asked) == 1:
            client.view = moved
        return found

    monkeypatch.setattr(client, "query", query)
    assert len(list(planned.read(part))) == 2 * 2 * part.pieces, "two owners for each piece"
    asked = [choices for *_, choices in client.asked]
    assert asked[0]["member"] == 1
    again = [*asked[1]["partitions"], *asked[2]["partitions"]]
    assert sorted(asked[0]["partitions"]) == sorted(again)
    read = [p for choices in asked[1:] for p in choices["partitions"]]
    assert sorted(read) == sorted(part.partitions), "each partition once"
    assert all(moved.owners[choices["partitions"][0]] == choices["member"] for choices in asked[1:])


def test_what_was_handed_on_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_reading, "HELD_SIZE", 0)
    batch = pa.RecordBatch.from_pydict({"id": [1]})
    client = FakeClient(SCHEMA, batches=[batch, batch])
    planned = reader(client, T.StructType([T.StructField("id", T.LongType())]))
    client.lost.append(MemberUnavailable("member 1 is lost"))
    with pytest.raises(MemberUnavailable, match="member 1 is lost"):
        list(planned.read(planned.partitions()[0]))
    assert len(client.asked) == 1


def test_several_slices_per_member() -> None:
    slices: Any = reader(FakeClient(SCHEMA), partitions_per_member="4", at="77").partitions()
    assert len(slices) == 12
    assert sorted(p for s in slices for p in s.partitions) == list(range(271))


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
    assert address == "host:102,host:103,host:101"
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


def test_addresses_of_slices_can_be_read_again_with_hosts_of_ipv6() -> None:
    members = tuple(MemberInfo(n, f"uuid{n}", "::1", 100 + n, 200 + n, 300 + n) for n in (1, 2, 3))
    [(first, _), *_] = slices(replace(VIEW, members=members), 1)
    assert parse_addresses(first) == (("::1", 101), ("::1", 102), ("::1", 103))
