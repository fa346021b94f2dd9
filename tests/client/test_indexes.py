"""Secondary indexes through the client: made, used by conditions, dropped, while others work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import remuda
from remuda.errors import (
    DuplicateMap,
    InputError,
    UndefinedColumn,
    UndefinedMap,
    UndefinedObject,
)

pytestmark = pytest.mark.cluster
ROWS = 6000


@dataclass
class Flight:
    carrier: str
    delay: float
    number: int


@pytest.fixture(scope="module")
def cluster(three_members: remuda.Cluster) -> remuda.Cluster:
    return three_members


@pytest.fixture
def client(cluster: remuda.Cluster) -> Iterator[remuda.Client]:
    with cluster.connect() as client:
        yield client
        with client.sql("SHOW TABLES") as cursor:
            names = [row[0] for row in cursor]
        for name in names:
            client.sql(f'DROP TABLE "{name}"').close()


@pytest.fixture
def flights(client: remuda.Client) -> remuda.Map:
    flights = client.map("flights")
    flights.put_all({i: Flight("UA" if i % 100 else "AA", i / 8, i % 300) for i in range(ROWS)})
    return flights


def rows(client: remuda.Client, text: str, *parameters: object) -> list[tuple[object, ...]]:
    with client.sql(text, *parameters) as cursor:
        return [tuple(row) for row in cursor]


def plan(client: remuda.Client, text: str, *parameters: object) -> str:
    return "\n".join(str(row[0]) for row in rows(client, "EXPLAIN " + text, *parameters))


def test_conditions_use_indexes(client: remuda.Client, flights: remuda.Map) -> None:
    delay = remuda.col("delay")
    before = sorted(flights.keys(where=delay > 745))
    assert flights.create_index("carrier", kind="bitmap") == "flights_carrier_idx"
    assert flights.create_index("delay") == "flights_delay_idx"
    assert flights.create_index("number", "delay", descending=["delay"], name="nd") == "nd"
    assert [index.name for index in flights.schema.indexes] == [
        "flights_carrier_idx",
        "flights_delay_idx",
        "nd",
    ]
    assert "flights_delay_idx" in plan(
        client, 'SELECT "__key" FROM flights WHERE ("delay" > ?)', 745.0
    )
    assert sorted(flights.keys(where=delay > 745)) == before
    assert list(flights.values(where=(remuda.col("number") == 5) & (delay < 30))) == [
        Flight("UA", 0.625, 5)
    ]
    assert sum(1 for _ in flights.entries(where=remuda.col("carrier") == "AA")) == ROWS // 100
    flights.put(1, Flight("UA", 9999.0, 1))
    assert list(flights.keys(where=delay == 9999)) == [1]
    flights.remove(1)
    assert list(flights.keys(where=delay == 9999)) == []
    states = rows(client, "SHOW INDEXES FROM flights")
    assert [(name, kind, state) for name, _, kind, _, state, *_ in states] == [
        ("flights_carrier_idx", "BITMAP", "ready"),
        ("flights_delay_idx", "SORTED", "ready"),
        ("nd", "SORTED", "ready"),
    ]
    assert all(isinstance(row[5], int) and row[5] > 0 for row in states)
    flights.drop_index("flights_delay_idx")
    assert "flights_delay_idx" not in plan(client, "SELECT * FROM flights WHERE delay = 1")


def test_bad_input(client: remuda.Client, flights: remuda.Map) -> None:
    flights.create_index("delay", name="one")
    with pytest.raises(InputError, match="names of one or more columns"):
        flights.create_index()
    with pytest.raises(UndefinedColumn):
        flights.create_index("nothing")
    with pytest.raises(UndefinedObject, match="access method"):
        flights.create_index("number", kind="wonder")
    with pytest.raises(InputError, match="descending"):
        flights.create_index("number", descending=["delay"])
    with pytest.raises(DuplicateMap):
        flights.create_index("number", name="one")
    with pytest.raises(UndefinedObject):
        flights.drop_index("two")
    with pytest.raises(UndefinedMap):
        client.map("nowhere").create_index("a")
    flights.drop_index("two", if_exists=True)
    flights.create_index("number", name="one", if_not_exists=True)
    assert [index.names for index in flights.schema.indexes] == [("delay",)]


def test_indexes_come_and_go_while_others_read_and_write(
    cluster: remuda.Cluster, client: remuda.Client, flights: remuda.Map
) -> None:
    """No statement fails, and no answer is wrong."""
    stop = threading.Event()
    problems: list[object] = []

    def read(number: int) -> None:
        with cluster.connect() as mine:
            while not stop.is_set():
                number = (number + 7) % 300
                try:
                    text = "SELECT count(*) FROM flights WHERE number = ?"
                    found = rows(mine, text, number)
                    if found != [(ROWS // 300,)]:
                        problems.append((number, found))
                    text = "SELECT delay FROM flights WHERE number = ? ORDER BY delay DESC LIMIT 2"
                    top = rows(mine, text, number)
                    if top != sorted(top, reverse=True) or len(top) != 2:
                        problems.append((number, top))
                except remuda.errors.RemudaError as error:
                    problems.append(error)

    def write() -> None:
        with cluster.connect() as mine:
            while not stop.is_set():
                try:
                    mine.sql("UPDATE flights SET carrier = 'BB' WHERE \"__key\" % 9 = 4").close()
                except remuda.errors.RemudaError as error:
                    problems.append(error)

    threads = [
        threading.Thread(target=read, args=(0,)),
        threading.Thread(target=read, args=(1,)),
        threading.Thread(target=write),
    ]
    for thread in threads:
        thread.start()
    try:
        for kind in ("sorted", "hash", "bitmap", "sorted"):
            flights.create_index("number", kind=kind, name="first")
            flights.create_index("number", "delay", name="second")
            flights.drop_index("first")
            flights.drop_index("second")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []
