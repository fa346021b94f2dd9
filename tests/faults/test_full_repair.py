"""A member is lost, and the others have no room for the copies that are missing then: the cluster
says so everywhere, refuses writes, keeps every row, and heals when there is room again."""

from __future__ import annotations

import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from processes import Processes

import remuda
from remuda.cli.status_command import describe
from remuda.client.blocking.client import Client
from remuda.errors import RemudaError, StorageFull

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

LIMIT = 16_000_000
BEFORE = 0.8
"""Of the limit: so much does each of three members hold in the end. Two would need 1.2."""
ROWS = 500
TEXT = "x" * 500
PATIENCE = 240.0
"""Seconds: also on a machine that does much else."""
SHORT = 'remuda_cluster_partitions{state="short_of_backups"}'


def rows(first: int) -> pa.Table:
    return pa.table({"id": list(range(first, first + ROWS)), "v": [TEXT] * ROWS})


def until(condition: Callable[[], bool], what: str) -> None:
    """A view may change while somebody asks."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if condition():
                return
        except RemudaError as error:
            if not error.retryable:
                raise
        assert time.monotonic() < deadline, f"not in {PATIENCE:g} s: {what}"
        time.sleep(0.2)


def held(client: Client) -> float:
    """The mean of what members hold, as a share of the limit."""
    [(mean,)] = client.sql("SELECT avg(storage_held) FROM sys.members").fetchall()
    return float(mean) / LIMIT


def fill(client: Client) -> int:
    """Rows until the members hold what they are to hold, without what commits need meanwhile."""
    client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)").close()
    count = 0
    while held(client) < BEFORE:
        try:
            client.map("t").put_all(rows(count))
        except StorageFull:  # a commit copies its rows for a moment
            time.sleep(0.2)
        else:
            count += ROWS
    return count


def states(client: Client) -> tuple[Counter[str], set[str]]:
    """How many partitions there are of each state, and the causes."""
    found = client.sql("SELECT state, cause FROM sys.partitions").fetchall()
    return Counter(state for state, _ in found), {cause for _, cause in found if cause}


def short_of_backups(cluster: Processes) -> set[float]:
    """As the pages for Prometheus say."""
    found = set()
    for member in cluster.live:
        assert member.ready is not None
        with urllib.request.urlopen(f"http://{member.ready.metrics}/metrics", timeout=30) as page:
            lines = page.read().decode().splitlines()
        found |= {float(line.split()[-1]) for line in lines if line.startswith(SHORT)}
    return found


@pytest.mark.parametrize("room", ["rows are removed", "a member joins"])
def test_copies_that_do_not_fit_are_waited_for_and_said(tmp_path: Path, room: str) -> None:
    settings = {"backups": 1, "storage_memory": LIMIT, "heartbeat_timeout": 5.0}
    with Processes(tmp_path, 3, settings) as cluster:
        first, _, last = cluster.members
        assert first.ready is not None
        with remuda.connect(first.ready.user) as client:
            count = fill(client)
            cluster.kill(last)
            until(
                lambda: any("has no room" in cause for cause in states(client)[1]),
                "a cause of partitions that are short of backups",
            )
            found, causes = states(client)
            assert set(found) == {"complete", "short of backups"}
            assert all("has no room" in cause and "may store" in cause for cause in causes)
            assert "partitions are short of backups" in describe(client)
            assert min(short_of_backups(cluster)) > 0
            with pytest.raises(StorageFull) as refused:
                for more in range(count, 100 * count, ROWS):
                    client.map("t").put_all(rows(more))
                    count += ROWS
            assert refused.value.sqlstate == "53200"
            assert refused.value.retryable
            [(there,)] = client.sql("SELECT count(*) FROM t").fetchall()
            assert there == count
            if room == "a member joins":
                cluster.add()
            else:
                count -= remove(client, count // 2)
            until(
                lambda: set(states(client)[0]) == {"complete"} and not states(client)[1],
                "all partitions are complete",
            )
            until(lambda: short_of_backups(cluster) == {0.0}, "the pages say so")
            assert "short of backups" not in describe(client)
            [(there,)] = client.sql("SELECT count(*) FROM t").fetchall()
            assert there == count
            if room == "a member joins":  # the copies fit, and fill the members
                remove(client, count // 4)
            until(lambda: client.map("t").put_all(rows(0)) == ROWS, "there is room for rows")


def remove(client: Client, count: int) -> int:
    """Remove rows though the members are full: as many at a time as the reserve has room for."""
    gone, step = 0, 2000
    while gone < count:
        try:
            with client.sql(f"DELETE FROM t WHERE id >= {gone} AND id < {gone + step}") as cursor:
                removed = cursor.rowcount
        except StorageFull:
            step = max(1, step // 2)
            time.sleep(0.2)
        else:
            assert removed == step
            gone += step
    return gone
