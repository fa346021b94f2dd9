"""Generated columns: a member computes them for writers of every kind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from remuda.errors import CheckViolation, GeneratedAlways, NotNullViolation, UniqueViolation

pytestmark = pytest.mark.cluster


@dataclass
class Seat:
    line: int | None
    place: str
    code: str | None = None


@pytest.fixture(scope="module")
def cluster(three_members):
    return three_members


@pytest.fixture
def client(cluster):
    with cluster.connect() as found:
        found.sql("DROP TABLE IF EXISTS seats")
        found.sql(
            "CREATE TABLE seats (id BIGINT PRIMARY KEY, line INT, place TEXT, "
            "code TEXT NOT NULL GENERATED ALWAYS AS (line || place) STORED CHECK (code <> '13X'))"
        )
        yield found


def load(client, columns):
    rows = len(columns["id"])
    columns = {**columns, "code": pa.nulls(rows, pa.string())}
    types = [pa.int64(), pa.int32(), pa.string(), pa.string()]
    arrays = [pa.array(c, t) for c, t in zip(columns.values(), types, strict=True)]
    with client.begin_job("seats") as job:
        with job.writer("0:0") as writer:
            writer.write(pa.record_batch(arrays, names=list(columns)))
            task = writer.finish()
        job.commit([task])


def codes(client):
    return [tuple(row) for row in client.sql("SELECT id, code FROM seats ORDER BY id")]


def test_puts_of_one_and_of_many(client):
    seats = client.map("seats")
    seats.put(1, Seat(4, "B"))
    seats.put_all({2: {"line": 5, "place": "C"}, 3: {"line": 6, "place": "D", "code": "none"}})
    seats.put_all(pa.table({"id": [*range(10, 90)], "line": [1] * 80, "place": ["A"] * 80}))
    assert codes(client)[:4] == [(1, "4B"), (2, "5C"), (3, "6D"), (10, "1A")]
    assert {code for _, code in codes(client)[3:]} == {"1A"}
    assert seats.get(1) == Seat(4, "B", "4B")


def test_an_object_that_was_read_may_be_put_again(client):
    seats = client.map("seats")
    seats.put(1, Seat(4, "B"))
    seats.put(1, replace(seats.get(1), line=9))
    assert seats.get(1).code == "9B"
    assert seats.replace_if(1, seats.get(1), Seat(8, "B"))
    assert seats.put_if_absent(2, Seat(2, "A"))
    assert codes(client) == [(1, "8B"), (2, "2A")]


def test_constraints_see_computed_values(client):
    seats = client.map("seats")
    with pytest.raises(CheckViolation):
        seats.put(1, Seat(13, "X"))
    with pytest.raises(NotNullViolation, match="code"):
        seats.put(1, {"line": None, "place": "A"})
    with pytest.raises(NotNullViolation, match="code"):
        seats.put_all(pa.table({"id": [1], "line": [None], "place": ["A"]}))
    client.sql("CREATE UNIQUE INDEX seat_code ON seats (code)")
    seats.put(1, Seat(1, "A"))
    with pytest.raises(UniqueViolation):
        seats.put(2, Seat(1, "A"))
    with pytest.raises(UniqueViolation):
        load(client, {"id": [3], "line": [1], "place": ["A"]})


def test_compute(client):
    seats = client.map("seats")
    seats.put_all({n: Seat(n, "A") for n in range(5)})
    assert seats.compute(1, "line = line + 10").code == "11A"
    assert seats.compute_all([2, 3], "line = line + ?", 20)[3].code == "23A"
    with pytest.raises(GeneratedAlways):
        seats.compute(1, "code = 'x'")
    with pytest.raises(CheckViolation):
        seats.compute(1, "line = 13, place = 'X'")
    assert dict(codes(client))[1] == "11A"


def test_transactions_read_what_they_wrote(client):
    with client.transaction() as transaction:
        seats = transaction.map("seats")
        seats.put(1, Seat(4, "B"))
        assert seats.get(1).code == "4B"
        transaction.sql("UPDATE seats SET line = 5 WHERE id = 1")
        assert seats.get(1).code == "5B"
    assert codes(client) == [(1, "5B")]


def test_jobs(client):
    load(client, {"id": [1, 2], "line": [4, 5], "place": ["B", "C"]})
    assert codes(client) == [(1, "4B"), (2, "5C")]


def test_statements_by_key_and_long_inserts(client):
    client.sql("INSERT INTO seats VALUES (1, 4, 'B')")
    for line in (5, 6):  # the second time by the cached plan
        client.sql("UPDATE seats SET line = ? WHERE id = ?", line, 1)
        assert codes(client) == [(1, f"{line}B")]
    rows = ", ".join(f"({n}, {n}, 'C')" for n in range(100, 800))
    client.sql(f"INSERT INTO seats VALUES {rows}")
    assert codes(client)[-1] == (799, "799C")
