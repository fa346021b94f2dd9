"""Queries on the grid and on Spark over the same maps, and what ``auto`` picks.

``./run bench offload``. Parts (``--parts``), each with a cluster and a Spark service of its own,
all processes on this machine:

- ``tpch``, ``tpcds``: the 22 and 99 queries with the members' own settings,
- ``memory``: statements beside a budget of memory (``statement_memory``) that some of them exceed,
  with spilling off: there the grid refuses and Spark is right.

Each query runs on both engines in a warm session. Where the first runs differ by more than
``CLEAR`` they decide; else ``--rounds`` more runs of both, in turns, and their medians. What an
engine refuses, or does not end within ``--limit`` seconds, counts for the other. ``auto`` is asked
by EXPLAIN, so its own choice is not measured a third time. Its loss is what the slower engine
took longer where ``auto`` picked that one. With ``--settled``, Spark is given so many times as long
as the grid took, and ``LEAST`` at least: what it does not end by then it is slower at. With
``--budget``, a part ends so many seconds after both engines are warm; its queries come in a random
order then, the same each time.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import remuda
import tpc_data
from remuda.errors import (
    NotOnSpark,
    QueryTimeout,
    RemudaError,
    SparkServiceLost,
    SparkServiceMissing,
)
from remuda.limits import MIB

CLEAR = 3.0
LEAST = 2.0
"""Seconds that Spark may take for a statement, however short it is on the grid."""
WARM_UP_QUERIES = 3
WARM_UP_LIMIT = 30.0
TARGET = 90
SPARK_CORES = 2
STOP = 30.0
"""Seconds that the service may take to end."""
MEMORY_PER_SCALE = 80 * MIB
"""``statement_memory`` of the part ``memory`` at scale 1: on each of two members, less than the
groups of a query that groups by the key of lineitem."""

BESIDE_MEMORY: Mapping[str, str] = {
    "groups by key": "SELECT count(*), max(q) FROM (SELECT l_orderkey, l_linenumber,"
    " sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey, l_linenumber) AS g",
    "distinct rows": "SELECT count(*) FROM (SELECT DISTINCT l_orderkey, l_partkey, l_suppkey,"
    " l_extendedprice FROM lineitem) AS d",
    "window": "SELECT max(n), max(s) FROM (SELECT row_number() OVER w AS n, sum(l_quantity) OVER w"
    " AS s FROM lineitem WINDOW w AS (PARTITION BY l_suppkey ORDER BY l_shipdate, l_orderkey,"
    " l_linenumber)) AS w",
    "join with itself": "SELECT count(*), sum(a.l_tax) FROM lineitem AS a JOIN lineitem AS b"
    " ON a.l_partkey = b.l_partkey AND a.l_suppkey = b.l_suppkey AND a.l_shipdate < b.l_shipdate",
    **{f"tpch {number}, fits": tpc_data.query("tpch", number) for number in (1, 6, 12, 14)},
}
WARM_UP = {
    "tpch": "SELECT sum(length(r_name) % 2.5) FROM region",
    "tpcds": "SELECT sum(length(w_state) % 2.5) FROM warehouse",
}
"""With a function that Spark's Python workers compute."""
Queries = list[tuple[str, str]]


@contextmanager
def service(address: str) -> Iterator[None]:
    """While one is ready."""
    command = [sys.executable, "-m", "remuda.cli.main", "spark-service", "--connect", address]
    command += ["--master", f"local[{SPARK_CORES}]", "--conf", "spark.driver.memory=4g"]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert made.stdout is not None
        line = made.stdout.readline()
        if not line.startswith("ready"):
            raise SystemExit(f"the Spark service does not start: {line}")
        yield
    finally:
        made.terminate()
        try:
            made.wait(STOP)
        except subprocess.TimeoutExpired:  # a statement that was cancelled has not ended yet
            made.kill()
            made.wait()


# --- one query ------------------------------------------------------------------------------------


@dataclass
class Run:
    """``failed``: the name of the error, where it did not end well."""

    seconds: float
    failed: str = ""

    def __str__(self) -> str:
        return self.failed or f"{self.seconds:.2f}"


def once(client: remuda.Client, engine: str, text: str, limit: float) -> Run:
    began = time.perf_counter()
    try:
        with client.sql(f"/*+ ENGINE({engine}) */ {text}", timeout=limit) as cursor:
            cursor.to_arrow()
    except (SparkServiceMissing, SparkServiceLost):
        raise
    except QueryTimeout:
        return Run(limit, f"over {limit:.3g}")
    except RemudaError as error:
        return Run(time.perf_counter() - began, type(error).__name__)
    return Run(time.perf_counter() - began)


def measured(client: remuda.Client, text: str, options: argparse.Namespace) -> dict[str, Run]:
    """By engine."""
    rounds, limit, settled = options.rounds, options.limit, options.settled

    def turn() -> dict[str, Run]:
        grid = once(client, "grid", text, limit)
        if grid.failed or not settled:
            return {"grid": grid, "spark": once(client, "spark", text, limit)}
        enough = min(limit, max(LEAST, settled * grid.seconds))
        return {"grid": grid, "spark": once(client, "spark", text, enough)}

    first = turn()
    times = [run.seconds for run in first.values()]
    if any(run.failed for run in first.values()) or max(times) > CLEAR * min(times):
        return first
    turns = [turn() for _ in range(rounds)] or [first]
    return {engine: middle([found[engine] for found in turns]) for engine in first}


def middle(runs: list[Run]) -> Run:
    """The median, or a run that failed."""
    failed = [run for run in runs if run.failed]
    return failed[0] if failed else Run(statistics.median(run.seconds for run in runs))


def picked(client: remuda.Client, text: str) -> str:
    with client.sql(f"EXPLAIN /*+ ENGINE(auto) */ {text}") as cursor:
        line = cursor.fetchall()[0][0]
    return "spark" if line.startswith("Engine: spark") else "grid"


# --- all of a part --------------------------------------------------------------------------------


@dataclass
class Totals:
    queries: int = 0
    right: int = 0
    lost: list[float] = field(default_factory=list)
    """Seconds, of each wrong choice between two engines that both answer."""
    failed: int = 0
    """Wrong choices of an engine that does not answer."""
    not_on_spark: int = 0
    neither: int = 0
    """Queries that no engine answers; they do not count."""
    ratios: list[float] = field(default_factory=list)
    """Spark's time by the grid's, where both answer."""

    def add(self, runs: dict[str, Run], choice: str) -> str:
        """The engine that is right."""
        grid, spark = runs["grid"], runs["spark"]
        if grid.failed and spark.failed:
            self.neither += 1
            return "neither"
        self.queries += 1
        self.not_on_spark += spark.failed == NotOnSpark.__name__
        if grid.failed or spark.failed:
            best = "spark" if grid.failed else "grid"
        else:
            self.ratios.append(spark.seconds / grid.seconds)
            best = min(runs, key=lambda engine: runs[engine].seconds)
        if choice == best:
            self.right += 1
        elif runs[choice].failed:
            self.failed += 1
        else:
            self.lost.append(runs[choice].seconds - runs[best].seconds)
        return best

    def report(self, name: str) -> bool:
        """Whether the target is reached."""
        share = 100 * self.right / max(self.queries, 1)
        print(
            f"\n{name}: auto picks the right engine for {self.right} of {self.queries} queries"
            f" ({share:.0f} %, target {TARGET} %); it loses {sum(self.lost):.1f} s with"
            f" {len(self.lost)} others, and {self.failed} more do not end on the engine it picks."
            f" {self.not_on_spark} do not run on Spark; {self.neither} on neither, and not counted."
        )
        if self.ratios:
            low, high = min(self.ratios), max(self.ratios)
            middle = statistics.median(self.ratios)
            print(
                f"Spark's time by the grid's, of the {len(self.ratios)} that both ended: median"
                f" {middle:.1f}, {low:.2f} to {high:.1f}"
            )
        return share >= TARGET


def run_part(
    name: str, queries: Queries, settings: Mapping[str, object], options: argparse.Namespace
) -> bool:
    totals = Totals()
    suite = "tpcds" if name == "tpcds" else "tpch"
    with (
        remuda.start(members=options.members, settings=dict(settings)) as cluster,
        cluster.connect() as client,
        service(",".join(cluster.addresses)),
    ):
        tpc_data.load(client, suite, tpc_data.generate(suite, options.scale))
        for _ in range(2):  # the first statements make Spark's Python workers
            once(client, "spark", WARM_UP[suite], 300.0)
        if options.budget:
            random.Random(7).shuffle(queries)
        for _, text in queries[:WARM_UP_QUERIES]:
            once(client, "spark", text, WARM_UP_LIMIT)
        began = time.perf_counter()
        print(f"\n| {name}, scale {options.scale:g} | grid s | spark s | right | auto |")
        print("|---|---|---|---|---|", flush=True)
        for query, text in queries:
            if options.budget and time.perf_counter() - began > options.budget:
                print(f"(the budget is used: {totals.queries} of {len(queries)} queries ran)")
                break
            runs = measured(client, text, options)
            choice = picked(client, text)
            best = totals.add(runs, choice)
            mark = choice if choice == best else f"**{choice}**"
            print(f"| {query} | {runs['grid']} | {runs['spark']} | {best} | {mark} |", flush=True)
    return totals.report(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one run")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of queries; 0 = all")
    parser.add_argument(
        "--settled", type=float, default=0.0, help="times the grid's time for Spark; 0 = --limit"
    )
    parser.add_argument("--parts", default="tpch,tpcds,memory")
    parser.add_argument("--queries", default="", help="numbers with commas; all by default")
    options = parser.parse_args()
    # Told to end, it ends the members and the service, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = {int(number) for number in options.queries.split(",") if number}

    def of_suite(suite: str, last: int) -> Queries:
        return [
            (f"{suite} {number}", tpc_data.query(suite, number))
            for number in range(1, last + 1)
            if not wanted or number in wanted
        ]

    budget = int(MEMORY_PER_SCALE * options.scale)
    parts: dict[str, tuple[Callable[[], Queries], Mapping[str, object]]] = {
        "tpch": (lambda: of_suite("tpch", 22), {}),
        "tpcds": (lambda: of_suite("tpcds", 99), {}),
        "memory": (
            lambda: list(BESIDE_MEMORY.items()),
            {"statement_memory": budget, "spill_limit": 0},
        ),
    }
    reached = True
    for name in options.parts.split(","):
        queries, settings = parts[name]
        reached &= run_part(name, queries(), settings, options)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
