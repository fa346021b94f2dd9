"""Spark and a real cluster of three members: write, read, fail, retry."""

from __future__ import annotations

# ruff: noqa: DTZ001 (TIMESTAMP has no zone)
import datetime as dt
import os
import signal
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812

from remuda.errors import RemudaError, UndefinedMap
from remuda.spark import read

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

NOON = dt.datetime(2024, 2, 29, 12, 30, 1, 123456)


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest, client: Any) -> Iterator[str]:
    """A map name of this test alone; the map is dropped afterwards."""
    made = "m_" + "".join(c if c.isalnum() else "_" for c in request.node.name)[-40:].lower()
    yield made
    client.drop_map(made, if_exists=True)


def write(frame: Any, address: str, name: str, mode: str = "append", **options: str) -> None:
    frame.write.format("remuda").options(address=address, map=name, **options).mode(mode).save()


def rows_of(client: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in client.sql(f'SELECT * FROM "{name}"'))


ALL_TYPES = """
    k BIGINT PRIMARY KEY, bo BOOLEAN, ti TINYINT, si SMALLINT, i INTEGER, re REAL,
    dp DOUBLE PRECISION, de DECIMAL(7,2), ld DECIMAL(38,10), te VARCHAR, vc VARCHAR(5),
    by BYTEA, da DATE, tm TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE
"""
ALL_VALUES = [
    (
        1, True, -128, 32767, -(2**31), 1.5, -0.1,
        Decimal("-99999.99"), Decimal("1234567890123456789012345678.0123456789"),
        "Zürich 🚲", "abcde", b"\x00\xff", NOON.date(), NOON.time(), NOON,
        NOON.replace(tzinfo=dt.UTC),
    ),
    (2, *[None] * 15),
    (
        3, False, 127, 0, 2**31 - 1, float("inf"), 1e300,
        Decimal("0.00"), Decimal("-0.0000000001"),
        "", "", b"", dt.date(1969, 12, 31), dt.time(0), dt.datetime(1900, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ),
]  # fmt: skip


def test_every_type_goes_there_and_back(spark: Any, client: Any, address: str, name: str) -> None:
    client.sql(f"CREATE TABLE {name} ({ALL_TYPES})")
    frame = read(spark, address, map=name)
    assert frame.count() == 0
    source = spark.createDataFrame(ALL_VALUES, schema=frame.schema)
    write(source, address, name)
    assert rows_of(client, name) == ALL_VALUES
    again = read(spark, address, map=name).orderBy("k").toArrow()
    assert again.equals(source.orderBy("k").toArrow())


def test_found_without_registration(spark: Any, client: Any, address: str, name: str) -> None:
    """A plain session: no registration, no setting; Spark filters by itself then."""
    client.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v VARCHAR)")
    client.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    plain = spark.newSession()
    plain.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    frame = plain.read.format("remuda").option("address", address).option("map", name).load()
    assert [tuple(row) for row in frame.where("k > 1").collect()] == [(2, "b")]


def test_append_is_put_by_key_and_overwrite_replaces(
    spark: Any, client: Any, address: str, name: str
) -> None:
    first = spark.range(0, 100, 1, 3).selectExpr("id AS k", "'old' AS v")
    write(first, address, name, key="k")
    assert client.describe(name).key == ("k",)
    write(spark.range(50, 150, 1, 2).selectExpr("'new' AS v", "id AS k"), address, name)
    rows = rows_of(client, name)
    assert rows == [(k, "old" if k < 50 else "new") for k in range(150)]
    write(spark.range(3).selectExpr("id AS k", "'last' AS v"), address, name, mode="overwrite")
    assert rows_of(client, name) == [(k, "last") for k in range(3)]


def test_replicated_map_is_read_once(spark: Any, client: Any, address: str, name: str) -> None:
    write(spark.range(1000), address, name, key="id", replicated="true")
    assert client.describe(name).replicated
    found = read(spark, address, map=name)
    assert found.selectExpr("count(*)", "sum(id)").collect()[0] == (1000, 499500)


def test_slices_cover_every_row_once(spark: Any, client: Any, address: str, name: str) -> None:
    write(spark.range(20_000), address, name, key="id")
    for share in (1, 4):
        found = read(spark, address, map=name, partitions_per_member=share)
        assert found.rdd.getNumPartitions() == 3 * share
        assert found.selectExpr("count(*)", "count(distinct id)").collect()[0] == (20_000, 20_000)


FILTERS = [
    "k = 77",
    "k IN (1, 5, 9000)",
    "k > 990 AND x IS NOT NULL",
    "s LIKE 'a1%'",
    "s LIKE '%_9'",
    "NOT s LIKE '%1%' AND k <= 60",
    "x IS NULL AND k < 100",
    "x >= 0.5 OR k = 3",
    "x > 0.9",
    "d = DATE'2024-01-05'",
    "m < 1.25",
    "t BETWEEN TIMESTAMP_NTZ'2024-01-01 00:00:10' AND TIMESTAMP_NTZ'2024-01-01 00:00:20'",
    "z > TIMESTAMP'2024-01-01 00:16:00Z'",
    "b",
    "NOT b AND k < 20",
    "s <=> NULL",
]


@pytest.fixture(scope="module")
def wide(spark: Any, grid: Any) -> Iterator[tuple[Any, str]]:
    """A thousand rows with a NULL in every seventh, as Spark made them, and the map they are in."""
    frame = spark.range(0, 1000, 1, 2).selectExpr(
        "id AS k",
        "if(id % 7 = 0, NULL, concat('a', id % 20, '_', id % 10)) AS s",
        "if(id % 7 = 1, NULL, (id % 100) / 100D) AS x",
        "date_add(DATE'2024-01-01', CAST(id % 30 AS INT)) AS d",
        "CAST(id / 100 AS DECIMAL(7,2)) AS m",
        "CAST(timestamp_seconds(1704067200 + id) AS TIMESTAMP_NTZ) AS t",
        "timestamp_seconds(1704067200 + id) AS z",
        "id % 2 = 0 AS b",
    )
    address = ",".join(grid.addresses)
    write(frame, address, "wide", key="k")
    yield frame, address
    with grid.connect() as client:
        client.drop_map("wide")


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_give_what_spark_gives(spark: Any, wide: tuple[Any, str], condition: str) -> None:
    frame, address = wide
    found = read(spark, address, map="wide").where(condition).orderBy("k").collect()
    assert found == frame.where(condition).orderBy("k").collect()


def test_columns_where_and_query(spark: Any, wide: tuple[Any, str]) -> None:
    frame, address = wide
    some = read(spark, address, map="wide", columns=["s", "k"], where="k % 10 = 3 AND x > 0.5")
    assert some.columns == ["s", "k"]
    expected = frame.where("k % 10 = 3 AND x > 0.5").select("s", "k").orderBy("k")
    assert some.orderBy("k").collect() == expected.collect()
    given = (
        spark.read.format("remuda").options(address=address, map="wide").schema("b boolean").load()
    )
    assert given.groupBy("b").count().orderBy("b").collect() == [(False, 500), (True, 500)]
    answer = read(spark, address, query="SELECT d, count(*) AS n FROM wide WHERE k < 90 GROUP BY d")
    assert answer.agg(F.sum("n"), F.count("*")).collect()[0] == (90, 30)


def test_options_and_names_that_are_wrong(spark: Any, address: str, wide: Any) -> None:
    with pytest.raises(Exception, match="no option mapp"):
        spark.read.format("remuda").options(address=address, mapp="wide").load()
    with pytest.raises(Exception, match="nowhere"):
        read(spark, address, map="nowhere")
    with pytest.raises(Exception, match="map wide has no column nix"):
        read(spark, address, map="wide", columns=["nix"])


def test_rows_that_do_not_fit_store_nothing(
    spark: Any, client: Any, address: str, name: str
) -> None:
    client.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v VARCHAR(3))")
    with pytest.raises(
        Exception, match=f"column v of map {name}: expected VARCHAR.3., found bigint"
    ):
        write(spark.range(5).selectExpr("id AS k", "id AS v"), address, name)
    long = spark.range(0, 50, 1, 2).selectExpr("id AS k", "if(id = 49, 'long', 'ok') AS v")
    with pytest.raises(Exception, match=f"column v of map {name}: a value of 4 characters"):
        write(long, address, name)
    assert client.map(name).size() == 0
    write(spark.range(5).selectExpr("id AS k", "'ok' AS v"), address, name)
    assert client.map(name).size() == 5


def test_duplicate_keys_store_nothing(spark: Any, client: Any, address: str, name: str) -> None:
    client.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY)")
    with pytest.raises(Exception, match="UniqueViolation"):
        write(spark.range(0, 100, 1, 2).selectExpr("id % 60 AS k"), address, name)
    assert client.map(name).size() == 0


def test_a_task_that_always_fails_leaves_nothing(
    spark: Any, client: Any, address: str, name: str
) -> None:
    def fail_in_one(batches: Any) -> Any:
        yield from batches
        if TaskContext.get().partitionId() == 1:
            raise ValueError("this task has a problem")

    frame = spark.range(0, 1000, 1, 3).mapInArrow(fail_in_one, "id long")
    with pytest.raises(Exception, match="this task has a problem"):
        write(frame, address, name, key="id")
    with pytest.raises(UndefinedMap):
        client.describe(name)


@pytest.mark.parametrize("how", [pytest.param("raises", marks=pytest.mark.soak), "is killed"])
def test_a_retried_task_counts_once(
    spark: Any, client: Any, address: str, name: str, how: str
) -> None:
    def fail_at_first(batches: Any) -> Any:
        for batch in batches:
            # Small batches: some rows are on their way when the attempt ends.
            for start in range(0, batch.num_rows, 100):
                yield batch.slice(start, 100)
        if TaskContext.get().attemptNumber() < 1:
            if how == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("only the first attempt")

    frame = spark.range(0, 3000, 1, 2).mapInArrow(fail_at_first, "id long")
    write(frame, address, name, key="id")
    assert rows_of(client, name) == [(k,) for k in range(3000)]


def test_a_dead_address_is_an_error(spark: Any) -> None:
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1\b"):
        read(spark, "127.0.0.1:1", map="m")


def test_arrow_table_through_spark(spark: Any, client: Any, address: str, name: str) -> None:
    table = pa.table({"k": pa.array(range(10)), "v": pa.array([None, "x"] * 5)})
    write(spark.createDataFrame(table), address, name, key="k")
    assert read(spark, address, map=name).orderBy("k").toArrow().to_pylist() == table.to_pylist()
    assert issubclass(UndefinedMap, RemudaError)
