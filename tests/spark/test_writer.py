"""Writing: what is refused before anything is sent, and what becomes of attempts."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fake_grid import FakeClient
from pyspark.sql import types as T  # noqa: N812

from remuda.client.blocking.jobs import JobTask
from remuda.datatypes import sql
from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.errors import (
    DuplicateColumn,
    InputError,
    InvalidDefinition,
    MemberUnavailable,
    NotNullViolation,
    NotSupported,
    StringTooLong,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
)
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.types import fits
from remuda.spark.transfer.writer import RemudaWriter, Staged

SCHEMA = MapSchema(
    "sales",
    (
        Column("id", sql.BIGINT, nullable=False),
        Column("item", sql.varchar(3)),
        Column("price", sql.decimal(7, 2)),
    ),
    ("id",),
    ("id",),
)


def struct(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


SOURCE = struct(price=T.DecimalType(5, 1), id=T.IntegerType(), item=T.StringType())


def begin(
    client: FakeClient, source: T.StructType = SOURCE, overwrite: bool = False, **options: str
) -> RemudaWriter:
    parsed = Options.parse({"address": "host:101", "map": "sales", **options})
    return RemudaWriter.begin(parsed, source, overwrite, client.connect)


def batch(**columns: Any) -> pa.RecordBatch:
    types = {"id": pa.int32(), "item": pa.string(), "price": pa.decimal128(5, 1)}
    return pa.record_batch({name: pa.array(v, types[name]) for name, v in columns.items()})


def test_rows_are_written_in_the_maps_order_and_types() -> None:
    client = FakeClient(SCHEMA)
    writer = begin(client)
    message: Any = writer.write(
        iter([batch(price=[Decimal("1.5"), None], id=[1, 2], item=["a", "b"])])
    )
    assert message == Staged(("0:0", 2))
    assert client.written[0].to_pydict() == {"id": [1, 2], "item": ["a", "b"], "price": [150, None]}
    writer.commit([message, None])
    assert client.asked == [("begin", "sales", False), ("commit", "1-job", [("0:0", 2)])]


def test_small_batches_are_gathered() -> None:
    client = FakeClient(SCHEMA)
    small = batch(price=[None] * 1000, id=list(range(1000)), item=["a"] * 1000)
    message: Any = begin(client).write(iter([small, small.slice(0, 0), *[small] * 199]))
    assert message.task == ("0:0", 200_000)
    assert [len(b) for b in client.written] == [132_000, 68_000]


def test_abort_needs_no_messages_and_keeps_an_old_map() -> None:
    client = FakeClient(SCHEMA)
    begin(client, overwrite=True).abort([None, Staged(("0:0", 1))])  # type: ignore[arg-type]
    assert client.asked == [("begin", "sales", True), ("abort", "1-job")]


def test_a_commit_reaches_the_grid_without_the_member_that_the_user_named() -> None:
    """It may have left since the job began."""
    client = FakeClient(SCHEMA)
    begin(client).commit([Staged(("0:0", 1))])  # type: ignore[arg-type]
    assert client.address == "host:101,host:102,host:103"
    another = begin(client, address="remuda://proxy:9, host:103/")
    assert another.address == "proxy:9,host:103,host:101,host:102"


def test_an_unknown_map_is_made_and_removed_again() -> None:
    client = FakeClient()
    writer = begin(client, key="id", replicated="true")
    made = client.schemas["sales"]
    assert [str(column) for column in made.columns] == [
        "price DECIMAL(5,1)",
        "id INTEGER NOT NULL",
        "item VARCHAR",
    ]
    assert (made.key, made.replicated) == (("id",), True)
    writer.abort([None])
    assert ("drop", "sales") in client.asked
    assert not client.schemas


def test_an_unknown_map_needs_a_key() -> None:
    with pytest.raises(InvalidDefinition, match="no key is named"):
        begin(FakeClient())
    with pytest.raises(UndefinedColumn, match="key column nr of map sales is not in the source"):
        begin(FakeClient(), key="nr")
    with pytest.raises(NotSupported, match=r"column tags .* map<string,bigint>"):
        tags = T.MapType(T.StringType(), T.LongType())
        begin(FakeClient(), struct(id=T.LongType(), tags=tags), key="id")


def test_an_insert_says_so_and_an_overwrite_is_none() -> None:
    client = FakeClient(SCHEMA)
    begin(client, write="insert")
    assert client.asked == [("begin", "sales", False, "insert")]
    with pytest.raises(InputError, match="goes with mode append"):
        begin(client, overwrite=True, write="insert")


def test_a_delete_sends_keys_alone() -> None:
    client = FakeClient(SCHEMA)
    source = struct(item=T.StringType(), id=T.IntegerType())
    writer = begin(client, source, write="delete")
    writer.write(iter([batch(item=["long text", None], id=[7, 8])]))
    assert [b.to_pydict() for b in client.removed] == [{"id": [7, 8]}]
    assert client.written == []
    with pytest.raises(UndefinedMap):
        begin(FakeClient(), source, write="delete", key="id")
    with pytest.raises(UndefinedColumn, match="key column id of map sales is not in the source"):
        begin(client, struct(item=T.StringType()), write="delete")
    with pytest.raises(UndefinedColumn, match="no column hue"):
        begin(client, struct(id=T.LongType(), hue=T.LongType()), write="delete")
    with pytest.raises(NotNullViolation):
        writer.write(iter([batch(item=["x"], id=[None])]))


CHANGES = struct(
    price=T.DecimalType(5, 1), op=T.StringType(), id=T.IntegerType(), item=T.StringType()
)


def changes(**columns: Any) -> pa.RecordBatch:
    made = batch(**{name: v for name, v in columns.items() if name != "op"})
    return made.add_column(1, "op", pa.array(columns["op"], pa.string()))


def test_changes_are_told_apart_by_a_column() -> None:
    client = FakeClient(SCHEMA)
    writer = begin(client, CHANGES, write="changes", operation="op")
    rows = changes(
        price=[None] * 4, op=["I", "delete", "update", "d"], id=[1, 2, 3, 4], item=["a"] * 4
    )
    assert writer.write(iter([rows])) == Staged(("0:0", 4))  # type: ignore[arg-type]
    assert [b.to_pydict()["id"] for b in client.written] == [[1, 3]]
    assert [b.to_pydict() for b in client.removed] == [{"id": [2, 4]}]


@pytest.mark.parametrize(
    ("said", "message"), [("merge", "'merge' is no operation"), (None, "of 1 rows is NULL")]
)
def test_operations_that_are_none(said: str | None, message: str) -> None:
    writer = begin(FakeClient(SCHEMA), CHANGES, write="changes", operation="op")
    with pytest.raises(InputError, match=message):
        writer.write(iter([changes(price=[None], op=[said], id=[1], item=["a"])]))


def test_operation_columns_that_are_none() -> None:
    client = FakeClient(SCHEMA)
    with pytest.raises(UndefinedColumn, match="operation column what is not in the source"):
        begin(client, CHANGES, write="changes", operation="what")
    with pytest.raises(TypeMismatch, match="operation column price is decimal"):
        begin(client, CHANGES, write="changes", operation="price")
    with pytest.raises(InputError, match="both go"):
        begin(client, CHANGES, write="changes")
    with pytest.raises(InputError, match="one of upsert, insert, delete, changes"):
        begin(client, CHANGES, write="merge")
    assert client.asked == []


def test_a_map_made_for_changes_has_no_operation() -> None:
    client = FakeClient()
    begin(client, CHANGES, write="changes", operation="op", key="id")
    assert [column.name for column in client.schemas["sales"].columns] == ["price", "id", "item"]


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            struct(id=T.StringType(), item=T.StringType(), price=T.DecimalType(7, 2)),
            TypeMismatch,
            "column id of map sales: expected BIGINT, found string",
        ),
        (
            struct(id=T.LongType(), item=T.StringType(), price=T.DecimalType(9, 2)),
            TypeMismatch,
            r"column price of map sales: expected DECIMAL\(7,2\), found decimal\(9,2\)",
        ),
        (
            struct(id=T.LongType(), item=T.StringType()),
            UndefinedColumn,
            r"column price of map sales \(DECIMAL\(7,2\)\) is missing in the source",
        ),
        (
            struct(
                id=T.LongType(), item=T.StringType(), price=T.DecimalType(7, 2), hue=T.LongType()
            ),
            UndefinedColumn,
            "map sales has no column hue",
        ),
        (
            T.StructType([T.StructField("id", T.LongType())] * 2),
            DuplicateColumn,
            "two columns id",
        ),
    ],
)
def test_misfits_are_refused_before_the_job(
    source: T.StructType, error: type[Exception], message: str
) -> None:
    client = FakeClient(SCHEMA)
    with pytest.raises(error, match=message):
        begin(client, source)
    assert client.asked == []


def test_an_existing_map_has_its_own_key() -> None:
    with pytest.raises(InvalidDefinition, match=r"exists with key \(id\), not \(item\)"):
        begin(FakeClient(SCHEMA), key="item")
    with pytest.raises(InvalidDefinition, match="is partitioned"):
        begin(FakeClient(SCHEMA), replicated="true")


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            {"id": [None], "item": ["a"], "price": [None]},
            NotNullViolation,
            'null value in column "id" of relation "sales"',
        ),
        ({"id": [1], "item": ["abcd"], "price": [None]}, StringTooLong, "column item of map sales"),
    ],
)
def test_values_that_do_not_fit_fail_the_task(
    rows: dict[str, Any], error: type[Exception], message: str
) -> None:
    client = FakeClient(SCHEMA)
    source = struct(id=T.IntegerType(), item=T.StringType(), price=T.DecimalType(5, 1))
    with pytest.raises(error, match=message):
        begin(client, source).write(iter([batch(**rows)]))
    assert client.written == []


KEYLESS = MapSchema(
    "log",
    (
        Column("item", sql.VARCHAR),
        Column(ROW_ID, sql.BIGINT, nullable=False),
        Column("n", sql.INTEGER),
    ),
    (ROW_ID,),
    (ROW_ID,),
)
"""A map without a key of its own, to which a column was added."""


def test_rows_of_a_map_without_a_key_get_one_as_they_come() -> None:
    client = FakeClient(KEYLESS)
    writer = begin(client, struct(n=T.IntegerType(), item=T.StringType()), map="log")
    rows = pa.record_batch({"n": pa.array([1, 2], pa.int32()), "item": ["a", None]})
    writer.write(iter([rows]))
    writer.write(iter([rows]))
    assert [batch.drop_columns(ROW_ID).to_pydict() for batch in client.written] == [
        {"item": ["a", None], "n": [1, 2]}
    ] * 2
    keys = [key for batch in client.written for key in batch.column(ROW_ID).to_pylist()]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "item"}, r"exists without a key, not with \(item\)"),
        ({"write": "delete"}, "has no key to delete rows by"),
        ({"write": "changes", "operation": "op"}, "has no key: a change set"),
    ],
)
def test_what_a_map_without_a_key_cannot(options: dict[str, str], message: str) -> None:
    fields = {"n": T.IntegerType(), "item": T.StringType()}
    if "operation" in options:
        fields["op"] = T.StringType()
    with pytest.raises(InvalidDefinition, match=message):
        begin(FakeClient(KEYLESS), struct(**fields), map="log", **options)


def test_an_abort_says_nothing_of_a_grid_that_is_gone() -> None:
    client = FakeClient(SCHEMA)
    writer = begin(client)

    def gone(_: str) -> FakeClient:
        raise MemberUnavailable("no member answers")

    writer.connect = gone  # type: ignore[assignment]
    writer.abort([])
    assert client.asked == [("begin", "sales", False)]


def test_only_lossless_conversions() -> None:
    assert fits(sql.INTEGER, sql.BIGINT)
    assert not fits(sql.BIGINT, sql.INTEGER)
    assert fits(sql.BIGINT, sql.decimal(19, 0))
    assert not fits(sql.BIGINT, sql.decimal(20, 2))
    assert fits(sql.REAL, sql.DOUBLE)
    assert fits(sql.INTEGER, sql.DOUBLE)
    assert not fits(sql.BIGINT, sql.DOUBLE)
    assert not fits(sql.DOUBLE, sql.REAL)
    assert fits(sql.decimal(5, 1), sql.decimal(7, 2))
    assert not fits(sql.decimal(7, 2), sql.decimal(7, 3))
    assert fits(sql.VARCHAR, sql.varchar(3))
    assert not fits(sql.TIMESTAMP, sql.TIMESTAMPTZ)
    assert not fits(sql.DATE, sql.VARCHAR)


def test_messages_travel() -> None:
    message = Staged(JobTask("3:7", (1, 2), 10))
    assert pickle.loads(pickle.dumps(message)) == message
