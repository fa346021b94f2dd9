"""The client against real member processes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import remuda
from remuda.errors import (
    ConnectionBroken,
    DivisionByZero,
    MemberUnavailable,
    PartitionsUnreachable,
    QueryCanceled,
    QueryTimeout,
    SqlSyntaxError,
    UndefinedMap,
    UniqueViolation,
)

pytestmark = pytest.mark.cluster


@dataclass
class Flight:
    carrier: str
    delay: float | None = None


@pytest.fixture(scope="module")
def cluster(three_members):
    return three_members


@pytest.fixture
def client(cluster):
    with cluster.connect() as found:
        for schema in found.cluster_info().maps:
            found.drop_map(schema.name)
        yield found


def test_maps_and_sql_see_the_same(client):
    flights = client.map("flights")
    flights.put_all({number: Flight("UA", float(number % 50)) for number in range(1000)})
    flights.put(5000, Flight("AA"))
    assert len(flights) == 1001
    assert flights.get(5000) == Flight("AA")
    assert flights.get_all([1, 2, 9999]) == {1: Flight("UA", 1.0), 2: Flight("UA", 2.0)}
    found = client.sql("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n")
    assert found.fetchall() == [("AA", 1), ("UA", 1000)]
    late = dict(flights.entries(where=(remuda.col("delay") > 47) & (remuda.col("__key") < 100)))
    assert late == {k: Flight("UA", float(k % 50)) for k in (48, 49, 98, 99)}
    assert sorted(flights.keys(where=remuda.col("delay").is_null())) == [5000]
    assert list(flights.values(where=remuda.col("carrier").in_("AA"))) == [Flight("AA")]
    assert sum(1 for _ in flights) == 1001
    assert flights.remove(5000) == Flight("AA")
    assert 5000 not in flights
    assert flights.put_if_absent(5000, Flight("B6"))
    assert not flights.put_if_absent(5000, Flight("DL"))
    assert flights.replace(5000, Flight("DL"))
    assert flights.get_and_put(5000, Flight("WN")) == Flight("DL")
    assert flights.delete(5000)
    assert not flights.replace(5000, Flight("DL"))


def test_every_type_goes_in_and_out(client):
    client.sql(
        "CREATE TABLE types (k VARCHAR, n INTEGER, b BOOLEAN, s SMALLINT, r REAL, d DECIMAL(12,2),"
        " l DECIMAL(30,5), t VARCHAR(5), y BYTEA, a DATE, i TIME, p TIMESTAMP, PRIMARY KEY (k, n))"
    )
    types = client.map("types")
    row = {
        "b": True, "s": -5, "r": 1.5, "d": Decimal("12.50"), "l": Decimal("-12345678901.00001"),
        "t": "é木", "y": b"\x00\xff", "a": date(1969, 12, 31), "i": time(1, 2, 3, 4),
        "p": datetime(2020, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
    }  # fmt: skip
    types.put(("x", 1), row)
    types.put(("x", 2), {})
    assert types.get(("x", 1))._asdict() == {"k": "x", "n": 1} | row
    assert types.get(("x", 2)) == ("x", 2, *[None] * 10)
    read = client.sql("SELECT * FROM types ORDER BY n").fetchall()
    assert read == [types.get(("x", 1)), types.get(("x", 2))]
    assert dict(types.entries())[("x", 1)] == read[0]


def test_tables_in_bulk(client):
    table = pa.table({"id": range(50_000), "v": [f"v{i % 100}" for i in range(50_000)]})
    bulk = client.map("bulk")
    assert bulk.put_all(table, key="id") == 50_000
    assert len(bulk) == 50_000
    assert bulk.get(17) == (17, "v17")
    with pytest.raises(UniqueViolation):
        bulk.put_all(pa.table({"id": [60_000, 60_000], "v": ["a", "b"]}))
    assert len(bulk) == 50_000
    small = client.map("small")
    small.put_all(pa.table({"id": [1, 2], "v": ["a", "b"]}), key="id", replicated=True)
    small.put(3, {"v": "c"})
    small.put_all({number: {"v": "x"} for number in range(10, 200)})
    assert (len(small), small.get(3).v) == (193, "c")
    joined = "SELECT count(*) FROM bulk JOIN small ON bulk.id = small.id"
    assert client.sql(joined).scalar() == 193


def test_jobs_replace_a_map_and_can_be_aborted(client):
    client.map("m").put_all(pa.table({"id": [1, 2, 3], "v": [1, 2, 3]}), key="id")
    batch = pa.record_batch({"id": [7, 8], "v": [7, 8]})
    with client.begin_job("m", overwrite=True) as job:
        task = job.write([batch])
        assert len(client.map("m")) == 3
        assert job.commit([task]) == 2
        assert job.commit([task]) == 2
    assert sorted(client.map("m").keys()) == [7, 8]
    with client.begin_job("m") as job:
        job.write([batch.slice(0, 1)])
        job.abort()
    assert len(client.map("m")) == 2


def test_large_results_stream(client):
    table = pa.table({"id": range(200_000), "v": range(200_000)})
    client.map("big").put_all(table, key="id")
    seen = 0
    for batch in client.sql("SELECT id, v FROM big").batches():
        seen += batch.num_rows
    assert seen == 200_000
    for _ in range(5):
        with client.sql("SELECT id, v FROM big") as cursor:
            assert cursor.fetchone() is not None
    assert client.sql("SELECT count(*) FROM big").scalar() == 200_000


def test_cancel_and_timeout(client):
    client.map("big").put_all(pa.table({"id": range(20_000), "v": range(20_000)}), key="id")
    text = "SELECT a.v, b.v FROM big a JOIN big b ON a.v % 10 = b.v % 10"
    cursor = client.sql(text)
    cursor.fetchone()
    thread = threading.Thread(target=cursor.cancel)
    thread.start()
    with pytest.raises(QueryCanceled):
        for _ in cursor.batches():
            pass
    thread.join()
    counted = "SELECT count(*) FROM big a JOIN big b ON a.v % 10 = b.v % 10 WHERE a.v + b.v < 0"
    with pytest.raises(QueryTimeout):
        client.sql(counted, timeout=0.05).fetchall()
    assert client.sql("SELECT count(*) FROM big").scalar() == 20_000


def test_prepared_statements(client):
    client.map("m").put_all(pa.table({"id": range(100), "v": range(100)}), key="id")
    statement = client.prepare("SELECT v FROM m WHERE id = ?")
    assert [statement(number).fetchall() for number in range(100)] == [[(n,)] for n in range(100)]
    assert statement(1000).fetchall() == []
    assert statement(None).fetchall() == []
    total = client.prepare("SELECT count(*) FROM m WHERE v >= ? AND v < ?")
    assert total(10, 20).scalar() == 10


def test_local_reads_cover_the_map_once(client):
    client.map("m").put_all(pa.table({"id": range(1000), "v": range(1000)}), key="id")
    view = client.cluster_info().view
    seen = []
    for member in view.members:
        cursor = client.query("SELECT id FROM m", member=member.number, local=True)
        seen += [row.id for row in cursor]
    assert sorted(seen) == list(range(1000))
    part = view.partitions_of(2)[:10]
    few = client.query("SELECT id FROM m", member=2, partitions=part, local=True).fetchall()
    assert 0 < len(few) < 1000


def test_errors_and_the_next_request(client):
    with pytest.raises(SqlSyntaxError) as caught:
        client.sql("SELECT 1 FORM x y")
    assert "LINE 1: SELECT 1 FORM x y" in str(caught.value)
    with pytest.raises(UndefinedMap):
        client.sql("SELECT * FROM nothing")
    client.map("m").put(1, 0)
    with pytest.raises(DivisionByZero):
        client.sql("SELECT 1 / this FROM m").fetchall()
    assert client.sql("SELECT this FROM m").fetchall() == [(0,)]


def test_a_member_that_is_killed():
    with remuda.start(members=3, settings={"backups": 0}) as cluster, cluster.connect() as client:
        numbers = client.map("numbers")
        numbers.put_all({number: number for number in range(100)})
        victim = cluster.pids[1]
        descriptor = os.pidfd_open(victim)
        os.kill(victim, signal.SIGKILL)
        assert select.select([descriptor], [], [], 20)[0]
        os.close(descriptor)
        lost, served = 0, 0
        for number in range(100):
            try:
                assert numbers.get(number) == number
                served += 1
            except (ConnectionBroken, MemberUnavailable) as error:
                assert "member 2" in str(error) or isinstance(error, PartitionsUnreachable)
                lost += 1
        assert lost > 0
        assert served > 0
        with pytest.raises(PartitionsUnreachable):
            client.query("SELECT count(*) FROM numbers", member=1).fetchall()
        with pytest.raises(MemberUnavailable, match="member 2 failed"):
            cluster.check()


def test_members_die_with_a_killed_parent():
    program = (
        "import os, signal, remuda\n"
        "cluster = remuda.start(members=2)\n"
        "print(*cluster.pids, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.returncode == -signal.SIGKILL, found.stderr
    for pid in map(int, found.stdout.split()):
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            assert select.select([descriptor], [], [], 30)[0], f"member {pid} is still there"
            os.close(descriptor)


class TestSmallResults:
    COLUMNS = ("a BOOLEAN, b TINYINT, c SMALLINT, d INTEGER, e REAL, f DOUBLE, g DECIMAL(10,2),"
               " h DECIMAL(30,3), i VARCHAR, j CHAR(3), k BYTEA, l DATE, m TIME, n TIMESTAMP,"
               " o TIMESTAMP WITH TIME ZONE")  # fmt: skip
    VALUES = (True, 1, -2, 3, 0.5, 1.25, Decimal("-1.50"), Decimal("123456789012345678901.125"),
              "ü", "abc", b"\x00\xff", date(2024, 2, 29), time(1, 2, 3, 4),
              datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
              datetime(1969, 1, 2, tzinfo=UTC))  # fmt: skip

    def test_rows_and_arrow_are_those_of_other_results(self, client):
        client.sql(f"CREATE TABLE wide (id BIGINT PRIMARY KEY, {self.COLUMNS})")
        marks = ", ".join("?" * (1 + len(self.VALUES)))
        client.sql(f"INSERT INTO wide VALUES ({marks})", 1, *self.VALUES)
        client.sql("INSERT INTO wide (id) VALUES (2)")
        scanned = client.sql("SELECT * FROM wide ORDER BY id")
        arrow = scanned.to_arrow()
        rows = client.sql("SELECT * FROM wide ORDER BY id").fetchall()
        assert rows[0][1:] == self.VALUES
        by_key = client.prepare("SELECT * FROM wide WHERE id = ?")
        for _ in range(3):
            for index, key in enumerate((1, 2)):
                found = by_key(key)
                assert found.columns == scanned.columns
                assert (found.rowcount, found.tag) == (1, "SELECT")
                assert found.query_id
                assert found.fetchall() == [rows[index]]
                assert by_key(key).to_arrow().equals(arrow.slice(index, 1))
                assert client.sql(by_key.text, key).fetchone() == rows[index]
            assert by_key(3).fetchall() == []
            assert by_key(3).to_arrow().equals(arrow.slice(0, 0))

    def test_a_map_that_changes_under_a_known_text(self, client):
        text = "SELECT * FROM m WHERE id = ?"
        for made, row in (("id BIGINT, v INTEGER", (1, 2)), ("id INTEGER, v VARCHAR", (1, "x"))):
            client.sql(f"CREATE TABLE m ({made}, PRIMARY KEY (id))")
            client.sql("INSERT INTO m VALUES (?, ?)", *row)
            for _ in range(4):
                assert client.sql(text, 1).fetchall() == [row]
            client.sql("DROP TABLE m")
