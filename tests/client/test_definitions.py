"""Maps with defaults and constraints, and maps that are altered, as applications use them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import remuda
from remuda.errors import (
    CheckViolation,
    DependentObjects,
    NotNullViolation,
    ObjectMismatch,
    SchemaChanged,
    UndefinedMap,
)

pytestmark = pytest.mark.cluster


@dataclass
class Fare:
    price: int


@pytest.fixture(scope="module")
def cluster(three_members):
    return three_members


@pytest.fixture
def client(cluster):
    with cluster.connect() as found:
        for schema in found.cluster_info().maps:
            found.sql(f'DROP TABLE "{schema.name}" CASCADE')
        yield found


def fares(client):
    client.sql(
        "CREATE TABLE fares (id INTEGER PRIMARY KEY, price INTEGER CHECK (price > 0), "
        "kind TEXT DEFAULT 'single' NOT NULL, at TIMESTAMP WITH TIME ZONE DEFAULT now(), "
        "u UUID DEFAULT gen_random_uuid(), n INTEGER DEFAULT 2 * 3)"
    )
    return client.map("fares")


def test_missing_fields_get_their_defaults(client):
    found = fares(client)
    before = datetime.now(UTC)
    found.put(1, Fare(5))
    found.put_all({2: {"price": 6, "kind": "return"}, 3: {"price": None, "n": None}})
    found.put_all(pa.table({"id": list(range(10, 30)), "price": [7] * 20}))
    assert found.size() == 23
    row = client.sql("SELECT kind, at, n FROM fares WHERE id = 1").fetchone()
    assert (row.kind, row.n) == ("single", 6)
    assert before - timedelta(seconds=1) <= row.at <= datetime.now(UTC) + timedelta(seconds=1)
    rows = client.sql("SELECT id, kind, n FROM fares WHERE id IN (2, 3, 10) ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (2, "return", 6),
        (3, "single", None),
        (10, "single", 6),
    ]
    assert client.sql("SELECT count(DISTINCT u) FROM fares").fetchone() == (23,)


def test_bad_rows_are_refused_and_nothing_is_stored(client):
    found = fares(client)
    many = {key: {"price": key} for key in range(1, 300)}
    for attempt in (
        lambda: found.put(1, Fare(0)),
        lambda: found.put_if_absent(1, Fare(-1)),
        lambda: found.put_all({**many, 0: {"price": 0}}),
        lambda: found.put_all([*many.items(), (500, {"price": -5})]),
        lambda: found.put_all(pa.table({"id": [1, 2, 3], "price": [1, 2, 0]})),
    ):
        with pytest.raises(CheckViolation, match="fares_price_check"):
            attempt()
        assert found.size() == 0
    with pytest.raises((NotNullViolation, ObjectMismatch)):
        found.put(1, {"price": 1, "kind": None})
    assert found.size() == 0
    assert found.put_all(many) == 299
    assert not found.replace(1000, Fare(1))
    with pytest.raises(CheckViolation):
        found.replace(1, Fare(0))
    assert found.get(1).price == 1


def test_handles_follow_the_schema(cluster, client):
    found = fares(client)
    found.put(1, {"price": 5})
    with cluster.connect() as other:
        other.sql("ALTER TABLE fares ADD COLUMN seats INTEGER DEFAULT 9, DROP COLUMN u")
        assert found.get(1).seats == 9
        found.put(2, {"price": 6, "seats": 1})
        other.sql("ALTER TABLE fares RENAME COLUMN seats TO places")
        found.put_all({3: {"price": 7}, 4: {"price": 8, "places": 2}})
        assert [found.get(key).places for key in (1, 2, 3, 4)] == [9, 1, 9, 2]
        other.sql("ALTER TABLE fares ALTER COLUMN price TYPE BIGINT")
        found.put_all(pa.table({"id": [5], "price": [2**40]}))
        assert found.get(5).price == 2**40
        other.sql("ALTER TABLE fares RENAME TO prices")
        with pytest.raises(UndefinedMap):
            found.get(1)
        assert other.map("prices").size() == 5


def test_prepared_statements_are_planned_again(client):
    fares(client).put_all({key: {"price": key} for key in range(1, 20)})
    prepared = client.prepare("SELECT * FROM fares WHERE id = ?")
    assert len(prepared(1).fetchone()) == 6
    client.sql("ALTER TABLE fares DROP COLUMN at")
    assert len(prepared(1).fetchone()) == 5
    insert = client.prepare("INSERT INTO fares (id, price) VALUES (?, ?)")
    insert(100, 1).close()
    client.sql("ALTER TABLE fares ADD COLUMN more TEXT DEFAULT 'x'")
    insert(101, 1).close()
    assert client.sql("SELECT more FROM fares WHERE id = 101").fetchone() == ("x",)


def test_writers_and_readers_on_threads_while_columns_change(cluster, client):
    found = fares(client)
    found.put_all({key: {"price": 1} for key in range(1000)})
    failures: list[BaseException] = []
    done = threading.Event()
    written = [0, 0]

    def guarded(work) -> None:
        try:
            with cluster.connect() as mine:
                while not done.is_set():
                    try:
                        work(mine)
                    except SchemaChanged:
                        continue
        except BaseException as error:  # noqa: BLE001 (told to the test)
            failures.append(error)

    def write(place: int, mine) -> None:
        handle = mine.map("fares")
        key = 10_000 * (place + 1) + written[place]
        handle.put(key, {"price": 1})
        written[place] += 1
        assert handle.get(key).price == 1

    def read(mine) -> None:
        count, low = mine.sql("SELECT count(*), min(price) FROM fares").fetchone()
        assert count >= 1000
        assert low == 1

    threads = [
        threading.Thread(target=guarded, args=(lambda mine, p=place: write(p, mine),))
        for place in range(2)
    ]
    threads += [threading.Thread(target=guarded, args=(read,))]
    for thread in threads:
        thread.start()
    for step in range(8):
        client.sql(f"ALTER TABLE fares ADD COLUMN c{step} INTEGER DEFAULT {step}")
        client.sql(f"ALTER TABLE fares RENAME COLUMN c{step} TO d{step}")
    client.sql("ALTER TABLE fares DROP COLUMN kind, DROP COLUMN d3")
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = 1000 + sum(written)
    assert client.sql("SELECT count(*), sum(d2), sum(d7) FROM fares").fetchone() == (
        rows, 2 * rows, 7 * rows,
    )  # fmt: skip


def test_maps_without_a_key_of_their_own(client):
    client.sql("CREATE TABLE log (what TEXT, n INTEGER)")
    client.sql("INSERT INTO log VALUES ('a', 1), ('a', 1)")
    found = client.map("log")
    assert found.put_all(pa.table({"what": ["b"] * 50, "n": range(50)})) == 50
    assert sorted(value.what for value in found.values()) == ["a", "a"] + ["b"] * 50
    key, value = next(found.entries(remuda.col("n") == 7))
    assert tuple(value) == ("b", 7)
    found.delete(key)
    assert client.sql("SELECT count(*) FROM log WHERE n = 7").fetchone() == (0,)


def test_a_map_that_a_view_reads_stays(client):
    fares(client)
    client.sql("CREATE VIEW cheap AS SELECT id FROM fares WHERE price < 10")
    with pytest.raises(DependentObjects):
        client.drop_map("fares")
    client.map("fares").put(1, {"price": 5})
    assert client.sql("SELECT count(*) FROM cheap").fetchone() == (1,)
