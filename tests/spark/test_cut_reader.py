"""A map as a cut of a snapshot has it, read from the store when its cluster is gone."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from remuda.client.embedded.cluster import start
from remuda.errors import InputError, UndefinedColumn, UndefinedMap, UndefinedObject
from remuda.spark import read
from remuda.spark.transfer.cut_reader import CutReader
from remuda.spark.transfer.options import Options

pytestmark = [pytest.mark.cluster]
ONE = "00000000-0000-0000-0000-0000000000ab"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Cut 1 is a base, cut 2 an increment; the cluster has ended."""
    folder: Path = tmp_path_factory.mktemp("cuts")
    place = str(folder / "snapshots")
    settings = {"data_dir": str(folder / "data"), "snapshot_store": place}
    with start(members=2, settings=settings) as cluster, cluster.connect() as client:
        client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, d DECIMAL(9,2), t VARCHAR)")
        client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY, u UUID) WITH (replicated = true)")
        client.sql("CREATE TABLE nothing (k BIGINT PRIMARY KEY)")
        client.sql(
            "INSERT INTO m SELECT i, i / 4.0, 'a' || i FROM generate_series(1, 1000) AS g(i)"
        )
        client.sql(f"INSERT INTO r VALUES (1, '{uuid.UUID(ONE)}')")
        client.sql("CREATE SNAPSHOT nightly").fetchall()
        client.sql("DELETE FROM m WHERE k <= 300")
        client.sql("UPDATE m SET t = 'x' WHERE k > 900")
        client.sql("INSERT INTO r VALUES (2, NULL)")
        made = client.sql("CREATE SNAPSHOT nightly INCREMENT").fetchone()
        assert made is not None
        assert made["kind"] == "increment"
        client.sql("DELETE FROM m")
    yield place


def opened(store: str, **options: Any) -> CutReader:
    given = {"store": store, **{name: str(value) for name, value in options.items()}}
    return CutReader.open(Options.parse(given).reads())


def rows(store: str, **options: Any) -> list[dict[str, Any]]:
    made = pickle.loads(pickle.dumps(opened(store, **options)))
    return [
        row for part in made.partitions() for batch in made.read(part) for row in batch.to_pylist()
    ]


def test_a_base_and_an_increment(store: str) -> None:
    first = {row["k"]: row for row in rows(store, map="m", snapshot="nightly", cut=1)}
    assert first == {k: {"k": k, "d": Decimal(k) / 4, "t": f"a{k}"} for k in range(1, 1001)}
    last = rows(store, map="m", snapshot="nightly")
    assert {row["k"]: row["t"] for row in last} == {
        k: "x" if k > 900 else f"a{k}" for k in range(301, 1001)
    }
    assert len(last) == 700, "each row once"
    assert rows(store, map="m", cut=2, columns="t") == [{"t": row["t"]} for row in last]


def test_replicated_and_empty_maps(store: str) -> None:
    assert rows(store, map="r", cut=1) == [{"k": 1, "u": ONE}]
    assert sorted(rows(store, map="r", cut=2), key=lambda row: row["k"]) == [
        {"k": 1, "u": ONE},
        {"k": 2, "u": None},
    ]
    assert rows(store, map="nothing", cut=1) == rows(store, map="nothing", cut=2) == []


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"map": "zz", "cut": 1}, UndefinedMap, 'has no map "zz"'),
        ({"map": "m", "cut": 9}, InputError, "has no cut 9"),
        ({"map": "m", "snapshot": "other"}, UndefinedObject, "no snapshot other"),
        ({"map": "m", "cut": 1, "where": "k > 1"}, InputError, "needs a running cluster"),
        ({"map": "m", "cut": 1, "at": 5}, InputError, "needs a running cluster"),
        ({"query": "SELECT 1", "cut": 1}, InputError, "map by map"),
        ({"map": "m", "cut": 1, "columns": "zz"}, UndefinedColumn, "no column zz"),
        ({"map": "m", "cut": 1, "store": "/nowhere"}, InputError, "must say which snapshot"),
        ({"map": "m", "cut": "one"}, InputError, "must be a number"),
    ],
)
def test_what_is_no_cut(
    store: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        opened(**{"store": store, **options})


def test_a_store_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMUDA_SNAPSHOT_STORE", raising=False)
    with pytest.raises(InputError, match="none is named"):
        opened("", map="m", cut=1)


@pytest.mark.spark
@pytest.mark.soak  # what Spark adds to the reader above is slow: 20 s
def test_through_spark(spark: Any, store: str) -> None:
    frame = read(spark, map="m", snapshot="nightly", cut=2, store=store)
    found = frame.where("k < 400").selectExpr("count(*)", "min(k)").collect()
    assert tuple(found[0]) == (99, 301)
    assert read(spark, map="nothing", cut=1, store=store).count() == 0
