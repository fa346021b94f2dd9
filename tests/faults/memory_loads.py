"""Loads that fill members until they refuse, or for a while: every way by which stored bytes grow.

``run`` returns what each load did, by name. ``python memory_loads.py GROUP OUTSIDE FOLDER`` starts
members in the control group GROUP, goes back to that of OUTSIDE as their client, and prints what
there was in the end, as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from processes import Processes

import remuda
from remuda.client.blocking.client import Client
from remuda.errors import RemudaError, StorageFull

MEMBERS = 2
ROWS = 20_000
ROUNDS_MAX = 400
SECONDS = 40.0
"""Of the loads of single writes, which need long until they are refused."""
PATIENCE = 240.0


def rows_of(batch: int, width: int, rows: int) -> pa.Table:
    ids = range(batch * rows, (batch + 1) * rows)
    return pa.table({"id": list(ids), "v": [f"{i:0{width}}" for i in ids]})


def until_refused(act: Callable[[int], object]) -> int:
    """How often members took it."""
    for number in range(ROUNDS_MAX):
        try:
            act(number)
        except StorageFull:
            return number
    raise AssertionError("no member has refused anything")


def table(client: Client, name: str) -> None:
    client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v VARCHAR)").close()


def bulk(client: Client) -> int:
    table(client, "filled")
    return until_refused(lambda n: client.map("filled").put_all(rows_of(n, 500, ROWS // 4)))


def wide(client: Client) -> int:
    table(client, "filled")
    return until_refused(lambda n: client.map("filled").put_all(rows_of(n, 20_000, 40)))


def indexes(client: Client) -> int:
    """Indexes of a wide column."""
    table(client, "filled")
    client.map("filled").put_all(rows_of(0, 500, ROWS // 4))
    return until_refused(lambda n: client.sql(f"CREATE INDEX filled_{n} ON filled (v, id)").close())


def updates(client: Client) -> int:
    """New values of the same keys: versions."""
    table(client, "filled")
    client.map("filled").put_all(rows_of(0, 500, ROWS // 4))
    return until_refused(lambda n: client.sql("UPDATE filled SET v = ?", f"{n:0500}").close())


def singles(client: Client) -> int:
    """Single small writes of new and of old keys, into a map with indexes."""
    table(client, "filled")
    client.sql("CREATE INDEX filled_v ON filled (v)").close()
    client.sql("CREATE INDEX filled_b ON filled USING BITMAP (v)").close()
    filled, deadline = client.map("filled"), time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < deadline:
        try:
            filled.put(number % 5000, {"id": number % 5000, "v": f"{number:016}"})
            filled.put_all(rows_of(1000 + number, 16, 50))
        except StorageFull:
            break
        number += 1
    return number


def restores(client: Client) -> int:
    """Copies of a snapshot."""
    table(client, "filled")
    client.map("filled").put_all(rows_of(0, 500, ROWS // 4))
    client.sql("CREATE SNAPSHOT full").close()
    try:
        return until_refused(
            lambda n: client.sql(f"RESTORE SNAPSHOT full MAPS filled AS filled_{n}").close()
        )
    finally:
        for (name,) in client.sql("SELECT name FROM sys.maps").fetchall():
            if name.startswith("filled_"):
                client.sql(f"DROP TABLE {name}").close()


def spark_rows(client: Client) -> int:
    """Frames of Spark."""
    from remuda.spark import write  # noqa: PLC0415 (an optional package)
    from remuda.spark.session import session  # noqa: PLC0415

    table(client, "filled")
    view = client.cluster_info().view
    address = ",".join(f"{each.host}:{each.user_port}" for each in view.members)
    log = Path(tempfile.mkdtemp(prefix="memory-spark-")) / "spark.log"
    spark = session("memory", "local[2]", quick=True, log=log)
    step = ROWS // 2

    def write_frame(number: int) -> None:
        frame = spark.range(number * step, number * step + step, 1, 2)
        write(frame.selectExpr("id", "repeat('x', 500) AS v"), address, "filled")

    return until_refused(write_frame)


def moves(client: Client, cluster: Processes) -> int:
    """A member joins and leaves while the others are more than half full."""
    limits = "SELECT max(storage_held * 1.0 / storage_limit) FROM sys.members"
    while float(client.sql(limits).scalar()) > 0.1:
        time.sleep(0.2)  # what was dropped has not been measured yet
    table(client, "filled")
    number = 0
    while float(client.sql(limits).scalar()) < 0.6:
        client.map("filled").put_all(rows_of(number, 500, ROWS // 20))
        number += 1
    joined = cluster.add()
    until_complete(client, MEMBERS + 1)
    cluster.stop(joined)
    until_complete(client, MEMBERS)
    assert client.sql("SELECT count(*) FROM filled").scalar() == number * (ROWS // 20)
    return number


def until_complete(client: Client, members: int) -> None:
    deadline = time.monotonic() + PATIENCE
    states = "SELECT count(*) FROM sys.partitions WHERE state <> 'complete'"
    while True:
        try:
            view = client.cluster_info().view
            if len(view.members) == members and client.sql(states).scalar() == 0:
                return
        except RemudaError as error:
            if not error.retryable:
                raise
        assert time.monotonic() < deadline, f"not complete with {members} members"
        time.sleep(0.2)


def run(cluster: Processes, *, spark: bool, after: Callable[[str], object] = len) -> dict[str, int]:
    """How often members took something, by load. ``after`` is called with the name of each."""
    [first, *_] = cluster.addresses
    found: dict[str, int] = {}
    with remuda.connect(first) as client:
        loads = [bulk, wide, indexes, updates, singles, restores, *([spark_rows] if spark else [])]
        for load in loads:
            found[load.__name__] = load(client)
            client.sql("DROP TABLE filled").close()
            assert len(cluster.live) == MEMBERS, f"a member has ended: {load.__name__}"
            after(load.__name__)
        found[moves.__name__] = moves(client, cluster)
        assert len(cluster.live) == MEMBERS, "a member has ended: moves"
        members = client.sql("SELECT storage_held, storage_limit, writes_refused FROM sys.members")
        for held, limit, refused in members.fetchall():
            assert held <= limit
            found["refused"] = found.get("refused", 0) + refused
    return found


def move_to(group: str) -> None:
    Path(group, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def main(group: str, outside: str, folder: str) -> None:
    move_to(group)
    settings = {
        "backups": 1,
        "snapshot_store": f"{folder}/snapshots",
        "memory_sharers": MEMBERS + 1,
    }
    with Processes(Path(folder), MEMBERS, settings) as cluster:
        move_to(outside)  # the members stay, and the one that joins later is measured by itself
        print(json.dumps(run(cluster, spark=False)))


if __name__ == "__main__":
    main(*sys.argv[1:])
