"""Spark and a real cluster: inserts, deletes, change sets, SQL, and jobs that fail at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from remuda.errors import JobAborted, UniqueViolation
from remuda.spark import Reading, co_partitioned, create_views, maps, read, write

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest, client: Any) -> Iterator[str]:
    """A map name of this test alone; the map is dropped afterwards."""
    made = "w_" + "".join(c if c.isalnum() else "_" for c in request.node.name)[-40:].lower()
    yield made
    client.drop_map(made, if_exists=True)


def held(client: Any, name: str) -> dict[int, Any]:
    return {row[0]: row[1] for row in client.sql(f'SELECT k, v FROM "{name}"')}


def filled(client: Any, name: str, rows: int, value: str = "old") -> dict[int, str]:
    client.map(name).put_all(pa.table({"k": range(rows), "v": [value] * rows}), key=["k"])
    return dict.fromkeys(range(rows), value)


def test_inserts_meet_no_key(spark: Any, client: Any, address: str, name: str) -> None:
    expected = filled(client, name, 100)
    more = spark.range(90, 120, 1, 3).selectExpr("id AS k", "'new' AS v")
    with pytest.raises(UniqueViolation, match="violates unique constraint") as caught:
        write(more, address, name, write="insert")
    assert "Key (k)=(9" in (caught.value.detail or "")
    assert held(client, name) == expected
    write(more.where("k >= 100"), address, name, write="insert")
    assert held(client, name) == expected | dict.fromkeys(range(100, 120), "new")


def test_members_compute_generated_columns(
    spark: Any, client: Any, address: str, name: str
) -> None:
    client.sql(
        f'CREATE TABLE "{name}" (k BIGINT PRIMARY KEY, n BIGINT, '
        "v BIGINT NOT NULL GENERATED ALWAYS AS (n * 2) STORED)"
    )
    rows = spark.range(0, 100, 1, 2).selectExpr("id AS k", "id + 1 AS n")
    write(rows, address, name, write="insert")
    doubled = {row[0]: row[1] for row in client.sql(f'SELECT k, v FROM "{name}"')}
    assert doubled == {k: 2 * (k + 1) for k in range(100)}
    write(rows.selectExpr("k", "n + 1 AS n", "'none' AS v"), address, name, write="upsert")
    assert client.sql(f'SELECT v FROM "{name}" WHERE k = 5').scalar() == 14


def test_deletes(spark: Any, client: Any, address: str, name: str) -> None:
    expected = filled(client, name, 30)
    write(spark.range(10, 40, 1, 2).selectExpr("id AS k"), address, name, write="delete")
    assert held(client, name) == {key: expected[key] for key in range(10)}


def test_change_sets(spark: Any, client: Any, address: str, name: str) -> None:
    expected = filled(client, name, 40)
    changes = spark.range(20, 50, 1, 3).selectExpr(
        "if(id % 3 = 1, NULL, 'changed') AS v",
        "element_at(array('insert', 'D', 'update'), CAST(id % 3 AS INT) + 1) AS op",
        "id AS k",
    )
    write(changes, address, name, write="changes", operation="op")
    expected |= dict.fromkeys(range(20, 50), "changed")
    for key in range(22, 50, 3):
        del expected[key]
    assert held(client, name) == expected


def test_views_and_tables_of_spark(spark: Any, client: Any, address: str, name: str) -> None:
    filled(client, name, 5)
    options = f"OPTIONS (address '{address}', map '{name}')"
    spark.sql(f"CREATE TEMPORARY VIEW v_{name} USING remuda {options}")
    assert spark.sql(f"SELECT count(*), max(v) FROM v_{name}").collect()[0] == (5, "old")
    spark.catalog.dropTempView(f"v_{name}")
    spark.sql(f"CREATE TABLE t_{name} USING remuda {options}")
    try:
        spark.sql(f"INSERT INTO t_{name} VALUES (4, 'more'), (5, 'more')")
        assert held(client, name) == {**dict.fromkeys(range(4), "old"), 4: "more", 5: "more"}
    finally:
        spark.sql(f"DROP TABLE t_{name}")
    assert client.map(name).size() == 6, "the map outlives the table"


def test_insert_overwrite(spark: Any, client: Any, address: str, name: str) -> None:
    filled(client, name, 5)
    spark.sql(f"CREATE TABLE t_{name} USING remuda OPTIONS (address '{address}', map '{name}')")
    try:
        spark.sql(f"INSERT OVERWRITE t_{name} SELECT id, 'whole' FROM range(3)")
        assert held(client, name) == dict.fromkeys(range(3), "whole")
        assert spark.table(f"t_{name}").count() == 3
    finally:
        spark.sql(f"DROP TABLE t_{name}")


def test_the_maps_of_a_grid(spark: Any, client: Any, address: str, name: str) -> None:
    filled(client, name, 7)
    odd = name + "_odd"
    client.sql(f"CREATE TABLE {odd} (k BIGINT PRIMARY KEY, span INTERVAL)")
    try:
        found = {row["map"]: row for row in maps(spark, address).collect()}
        assert found[name]["key"] == ["k"]
        assert [tuple(column) for column in found[name]["columns"]] == [
            ("k", "BIGINT", "bigint", False),
            ("v", "VARCHAR", "string", True),
        ]
        assert found[odd]["columns"][1]["spark_type"] is None
        views = create_views(spark, address, prefix="grid_")
        assert "grid_" + name in views.created
        assert "INTERVAL" in views.skipped[odd]
        assert spark.sql(f"SELECT count(*) FROM grid_{name}").collect()[0][0] == 7
        for view in views.created:
            spark.catalog.dropTempView(view)
    finally:
        client.drop_map(odd)


def test_co_partitioned_rows_go_to_one_member(
    spark: Any, client: Any, address: str, name: str
) -> None:
    client.sql(f"CREATE TABLE {name} (k VARCHAR, n SMALLINT, PRIMARY KEY (k, n))")
    frame = spark.range(0, 3000, 1, 2).selectExpr(
        "concat('k', id) AS k", "CAST(id % 100 AS INT) AS n"
    )
    shuffled = co_partitioned(frame, address, name, tasks_per_member=2)
    tasks = shuffled.selectExpr("spark_partition_id() AS task", "*").toPandas()
    assert tasks.task.nunique() == 6
    write(shuffled.selectExpr("k", "CAST(n AS SMALLINT) AS n"), address, name)
    assert client.map(name).size() == 3000
    where: dict[str, set[int]] = {}
    for member in client.cluster_info().view.members:
        own = client.query(f"SELECT k FROM {name}", member=member.number, local=True)
        for row in own:
            where.setdefault(row[0], set()).add(member.number)
    members = tasks.assign(member=[min(where[k]) for k in tasks.k]).groupby("task").member
    assert set(members.nunique()) == {1}


def test_a_commit_that_fails_leaves_nothing(
    spark: Any, client: Any, grid: Any, address: str, name: str
) -> None:
    """The map becomes another one while its rows are written."""
    filled(client, name, 3)
    first = grid.addresses[0]

    def remade(batches: Any) -> Any:
        from remuda.client.blocking.client import connect  # noqa: PLC0415 (in a worker of Spark)

        yield from batches
        with connect(first) as other:
            other.drop_map(name)
            other.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v VARCHAR)")

    frame = spark.range(0, 50, 1, 1).selectExpr("id AS k", "'x' AS v")
    with pytest.raises(JobAborted):
        write(frame.mapInArrow(remade, "k long, v string"), address, name)
    assert client.map(name).size() == 0
    write(frame, address, name)
    assert client.map(name).size() == 50


def test_jobs_see_one_state_while_money_moves(
    spark: Any, client: Any, grid: Any, address: str, name: str
) -> None:
    """Two maps, transfers within and between them: every job sees the total."""
    other = name + "_2"
    for each in (name, other):
        client.map(each).put_all(pa.table({"k": range(50), "v": [100] * 50}), key=["k"])
    begun, ended = threading.Event(), threading.Event()

    def transfer() -> None:
        moved = 0
        with grid.connect() as mine:
            while not ended.is_set():
                low = moved % 50
                with mine.transaction() as tx:
                    tx.sql(f"UPDATE {name} SET v = v - 1 WHERE k = {low}")
                    target = name if low % 2 else other
                    tx.sql(f"UPDATE {target} SET v = v + 1 WHERE k = {(low + 7) % 50}")
                moved += 1
                begun.set()

    thread = threading.Thread(target=transfer)
    thread.start()
    try:
        assert begun.wait(60), "nothing has moved"
        one = read(spark, address, name, partitions_per_member=2)
        two = read(spark, address, other)
        both = one.selectExpr("v").unionAll(two.selectExpr("v")).selectExpr("sum(v)")
        totals = [both.collect()[0][0] for _ in range(2)]
        with Reading(spark, address) as state:
            parts = [
                state.read(each).selectExpr("sum(v)").collect()[0][0] for each in (name, other)
            ]
    finally:
        ended.set()
        thread.join()
        client.drop_map(other)
    assert totals == [10_000] * 2
    assert sum(parts) == 10_000


def test_an_overwrite_is_seen_whole(
    spark: Any, client: Any, grid: Any, address: str, name: str
) -> None:
    filled(client, name, 2000)
    begun, ended, seen = threading.Event(), threading.Event(), set()

    def look() -> None:
        with grid.connect() as mine:
            while not ended.is_set():
                row = mine.sql(f"SELECT count(*), min(v), max(v) FROM {name}").fetchone()
                seen.add(tuple(row))
                begun.set()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert begun.wait(60), "nobody has looked"
        frame = spark.range(0, 500, 1, 3).selectExpr("id + 1000 AS k", "'new' AS v")
        write(frame, address, name, mode="overwrite")
        assert held(client, name) == dict.fromkeys(range(1000, 1500), "new")
    finally:
        ended.set()
        thread.join()
    assert seen <= {(2000, "old", "old"), (500, "new", "new")}
    assert (2000, "old", "old") in seen
