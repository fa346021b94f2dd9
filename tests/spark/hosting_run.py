"""A program of its own, run by the tests of hosting: three members in a real Spark cluster, one is
lost, nothing else is. One line of JSON tells what was seen. (A process has one Spark session.)

    hosting_run.py MASTER (member | executor | executor-arriving | executor-joining)

The last two lose an executor while the members find each other: when the first task has come, and
when the first member serves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remuda.spark.hosting import start as hosting
from remuda.spark.hosting.rendezvous import Arrival, Rendezvous
from remuda.spark.hosting.start import HostedCluster, start_cluster
from remuda.spark.session import session

ROWS = 5_000
PATIENCE = 300.0
STARTED = time.monotonic()


def main() -> None:
    master, victim = sys.argv[1:]
    spark = session(
        "hosting",
        master,
        quick=True,
        settings={
            "spark.task.maxFailures": "1000",
            "spark.executor.memory": "512m",
            "spark.cores.max": "3",
        },
    )
    killed = lose_while_it_starts(victim)
    try:
        with start_cluster(
            spark, members=3, spare_slots=0, replacements=999, timeout=PATIENCE
        ) as cluster:
            seen = found_whole(cluster, killed) if killed is not None else lose_one(cluster, victim)
            pids = [member.pid for member in cluster.members]
        seen["left"] = sum(Path(f"/proc/{pid}").exists() for pid in pids)
    finally:
        spark.stop()
    print(json.dumps(seen))


def lose_one(cluster: HostedCluster, victim: str) -> dict[str, Any]:
    with cluster.connect(retry_reads=100) as client:
        client.sql("CREATE TABLE kept (id BIGINT PRIMARY KEY, v BIGINT)")
        client.sql(f"INSERT INTO kept SELECT g, g * g FROM generate_series(0, {ROWS - 1}) AS s(g)")
        await_true(lambda: backed_up(client))
        tell("written, with backups")
        before = {member.seat: member for member in cluster.members}
        pid = before[1].pid if victim == "member" else executor_of(before[1].pid)
        os.kill(pid, signal.SIGKILL)
        await_true(lambda: len(cluster.losses) > 0)
        tell("lost")
        cluster.wait_until_complete(PATIENCE)
        tell("replaced")
        after = {member.seat: member for member in cluster.members}
        await_true(lambda: backed_up(client))
        tell("backups made anew")
        rows = client.sql("SELECT count(*) AS n, sum(v) AS v FROM kept").fetchall()
        client.sql(f"INSERT INTO kept VALUES ({ROWS}, 0)")
        return {
            "lost": sorted({loss.seat for loss in cluster.losses}),
            "kept": sorted(seat for seat in before if before[seat] == after[seat]),
            "rows": [rows[0].n, int(rows[0].v)],
            "logs": sorted(seat for seat, text in cluster.logs().items() if "serving" in text),
        }


def lose_while_it_starts(victim: str) -> list[int] | None:
    """The processes that will have been killed; None when the start shall be quiet."""
    killed: list[int] = []

    def kill(arrival: Arrival) -> None:
        if not killed:
            killed.append(executor_of(arrival.pid))
            os.kill(killed[0], signal.SIGKILL)
            tell("lost")

    class Losing(Rendezvous):
        def arrive(self, arrival: Arrival) -> None:
            super().arrive(arrival)
            if victim == "executor-arriving":
                kill(arrival)

        def ready(self, arrival: Arrival, *rest: Any) -> None:
            if victim == "executor-joining":  # before it counts: the cluster is not complete
                kill(next(each.arrival for each in self._seats.values() if each.member is None))
            super().ready(arrival, *rest)

    if victim not in ("executor-arriving", "executor-joining"):
        return None
    hosting.Rendezvous = Losing  # type: ignore[misc]
    return killed


def found_whole(cluster: HostedCluster, killed: list[int]) -> dict[str, Any]:
    cluster.wait_until_complete(PATIENCE)
    with cluster.connect(retry_reads=100) as client:
        client.sql("CREATE TABLE kept (id BIGINT PRIMARY KEY)")
        client.sql(f"INSERT INTO kept SELECT * FROM generate_series(1, {ROWS})")
        await_true(lambda: backed_up(client))
        rows = client.sql("SELECT count(*) AS n FROM kept").fetchall()
    return {"rows": rows[0].n, "killed": len(killed)}


def tell(what: str) -> None:
    print(f"{time.monotonic() - STARTED:.1f} s: {what}", file=sys.stderr)


def backed_up(client: Any) -> bool:
    """Every partition has its backup, on three members."""
    rows = client.sql("SELECT state, count(*) AS n FROM sys.partitions GROUP BY state").fetchall()
    members = client.sql("SELECT count(*) AS n FROM sys.members").fetchall()
    return [row.state for row in rows] == ["complete"] and members[0].n == 3


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() >= deadline:
            raise TimeoutError("the cluster has not become what it should")
        time.sleep(0.1)


def executor_of(pid: int) -> int:
    """The Java process above a member: the executor."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


if __name__ == "__main__":
    main()
