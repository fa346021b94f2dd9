"""TPC-H and TPC-DS on the grid and on Spark over the same maps, and what ``auto`` picks.

One cluster, one Spark service (a process of its own), every query on both engines: the rounds go
engine by engine within a query. A query that one engine refuses, or that does not end in time,
counts for the other. ``auto`` is asked by EXPLAIN, so its own choice is not measured a third time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import remuda
import tpc_data
from remuda.errors import QueryTimeout, RemudaError
from remuda.spark_errors import NotOnSpark, SparkServiceMissing

SUITES = {"tpch": range(1, 23), "tpcds": range(1, 100)}


def service(address: str) -> subprocess.Popen[str]:
    """A service that is ready."""
    command = [sys.executable, "-m", "remuda.cli.main", "spark-service", "--connect", address]
    made = subprocess.Popen([*command, "--master", "local[2]"], stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    line = made.stdout.readline()
    if not line.startswith("ready"):
        raise SystemExit(f"the Spark service does not start: {line}")
    return made


def seconds(client: remuda.Client, engine: str, text: str, rounds: int, limit: float) -> float:
    """The median; infinite for what is refused or takes too long."""
    found = []
    for _ in range(rounds + 1):  # the first one warms up
        began = time.perf_counter()
        try:
            with client.sql(f"/*+ ENGINE({engine}) */ {text}", timeout=limit) as cursor:
                cursor.to_arrow()
        except (NotOnSpark, QueryTimeout):
            return float("inf")
        found.append(time.perf_counter() - began)
    return statistics.median(found[1:])


def picked(client: remuda.Client, text: str) -> str:
    with client.sql(f"EXPLAIN /*+ ENGINE(auto) */ {text}") as cursor:
        line = cursor.fetchall()[0][0]
    return "spark" if line.startswith("Engine: spark") else "grid"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one run")
    parser.add_argument("--suites", default="tpch,tpcds")
    parser.add_argument("--queries", default="", help="numbers with commas; all by default")
    options = parser.parse_args()
    wanted = {int(number) for number in options.queries.split(",") if number}
    right = total = refused = 0
    with remuda.start(members=options.members) as cluster, cluster.connect() as client:
        made = service(",".join(cluster.addresses))
        try:
            print("| query | grid s | spark s | faster | auto |\n|---|---|---|---|---|")
            for suite in options.suites.split(","):
                tpc_data.load(client, suite, tpc_data.generate(suite, options.scale))
                for number in SUITES[suite]:
                    if wanted and number not in wanted:
                        continue
                    text = tpc_data.query(suite, number)
                    try:
                        times = {
                            engine: seconds(client, engine, text, options.rounds, options.limit)
                            for engine in ("grid", "spark")
                        }
                        choice = picked(client, text)
                    except SparkServiceMissing:
                        raise
                    except RemudaError as error:
                        print(
                            f"| {suite} {number} | {type(error).__name__}: {error.message[:80]} |"
                        )
                        continue
                    faster = min(times, key=lambda engine: times[engine])
                    total += 1
                    right += choice == faster
                    refused += times["spark"] == float("inf")
                    cells = " | ".join(f"{value:.2f}" for value in times.values())
                    print(f"| {suite} {number} | {cells} | {faster} | {choice} |", flush=True)
        finally:
            made.terminate()
            made.wait()
    share = 100 * right / max(total, 1)
    print(
        f"\nauto picks the faster engine for {right} of {total} queries ({share:.0f} %), scale "
        f"{options.scale:g}; {refused} do not run on Spark, or not within {options.limit:g} s"
    )
    return 0 if share >= 90 else 1


if __name__ == "__main__":
    sys.exit(main())
