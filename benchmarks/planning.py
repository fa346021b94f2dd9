"""Planning: times of every TPC-H and TPC-DS query, and how good the estimates are.

First table: milliseconds of processor time of one statement from text to encoded plan (parse, bind,
plan, encode), cold, on 3 members with the statistics of the loaded data, and microseconds from the
plan cache.
Second table: the q-error, max(estimate / actual, actual / estimate), of every operator that ran of
every query, from the profiles of EXPLAIN ANALYZE on one member.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import duckdb

import remuda
import tpc_data
from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import ColumnStatistics, FixedStatistics, MapStatistics
from remuda.errors import RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.codec import encode_plan
from remuda.plan.explain.explain import preorder
from remuda.plan.physical import KeyLookup, TableScan
from remuda.planner.context import PlanningContext
from remuda.planner.planner import plan_query
from remuda.session.planning import Environment, PlanCache, bound, planned
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery, CreateMapStatement

MEMBERS = 3
TITLE = re.compile(r"^\s*(\w+(?: \w+)?).*\brows=([0-9.]+)([kMG]?) cost=")
ACTUAL = re.compile(r"^\s*actual: rows=([0-9]+) batches=([0-9]+)")
FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def queries(suite: str) -> list[int]:
    files = (tpc_data.DATA / suite).glob("q*.sql")
    return sorted(int(file.stem[1:]) for file in files if file.stem[1:].isdigit())


def cpu_seconds(run: Callable[[], object], rounds: int, calls: int = 1) -> float:
    """Processor time of one call: the least of several rounds, as others may use the machine."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            run()
        times.append((time.process_time() - start) / calls)
    return min(times)


def schemas(suite: str) -> Catalog:
    catalog = Catalog()
    for _, text in tpc_data.definitions(suite):
        created = bind(parse(text), catalog)
        assert isinstance(created, CreateMapStatement)
        catalog, _ = catalog.with_map(created.schema, if_not_exists=False)
    return catalog


def planning_times(suite: str, known: dict[str, MapStatistics], rounds: int) -> None:
    environment = Environment(schemas(suite), 1, MEMBERS, FixedStatistics(known), {})
    print(f"| {suite} | parse | bind | plan | encode | cold ms | cached µs | relations |")
    print("|---" * 8 + "|")
    colds = []
    for number in queries(suite):
        text = tpc_data.query(suite, number)
        try:
            cold, cells = measured(text, environment, rounds)
        except (RemudaError, AssertionError) as error:
            print(f"| {number} | does not plan: {(str(error) or repr(error)).splitlines()[0]} |")
            continue
        colds.append(cold)
        print(f"| {number} | {cells} |", flush=True)
    if colds:
        print(
            f"\n{suite}: {len(colds)} queries, median {1e3 * statistics.median(colds):.1f} ms, "
            f"slowest {1e3 * max(colds):.1f} ms\n"
        )


def measured(text: str, environment: Environment, rounds: int) -> tuple[float, str]:
    """(seconds of a cold plan, the cells of its row)."""
    catalog = environment.catalog
    context = PlanningContext(environment.statistics, MEMBERS, fold=evaluate_constant)
    statement = bound(text, None, catalog)
    plan = planned(statement, environment)
    parsed = parse(text)
    assert isinstance(statement, BoundQuery)
    physical = plan_query(statement.plan, context)
    parts = [
        cpu_seconds(lambda: parse(text), rounds),
        cpu_seconds(lambda: bind(parsed, catalog), rounds),
        cpu_seconds(lambda: plan_query(statement.plan, context), rounds),
        cpu_seconds(lambda: encode_plan(physical), rounds),
    ]
    cache = PlanCache(lambda _: False)
    key = (text, None, False)
    cache.keep(key, plan, environment)
    cached = cpu_seconds(lambda: cache.find(key, environment), rounds, calls=1000)
    nodes = (node for fragment in physical.fragments for node in preorder(fragment.root))
    relations = sum(1 for node in nodes if isinstance(node, TableScan | KeyLookup))
    cells = " | ".join(f"{1e3 * part:.2f}" for part in (*parts, sum(parts)))
    return sum(parts), f"{cells} | {1e6 * cached:.1f} | {relations}"


def q_errors(lines: Sequence[str]) -> Iterator[tuple[str, float]]:
    """(operator, q-error) of each operator of an EXPLAIN ANALYZE."""
    title: tuple[str, float] | None = None
    for line in lines:
        found = TITLE.match(line)
        if found is not None:
            title = found[1], float(found[2]) * FACTORS[found[3]]
            continue
        actual = ACTUAL.match(line)
        if actual is not None and title is not None:
            operator, estimate = title
            rows = float(actual[1])
            # Nobody reads the other side of a join with nothing: that says nothing of its estimate.
            ran = actual[2] != "0"
            if ran and not operator.startswith(("Root", "Send", "Store")):
                estimate, rows = max(estimate, 1.0), max(rows, 1.0)
                yield operator.split(" ")[0], max(estimate / rows, rows / estimate)
            title = None


def estimates(client: remuda.Client, suite: str) -> None:
    by_operator: dict[str, list[float]] = {}
    worst: list[tuple[float, int]] = []
    for number in queries(suite):
        text = "EXPLAIN ANALYZE " + tpc_data.query(suite, number)
        try:
            with client.sql(text) as cursor:
                lines = [line for row in cursor for line in str(row[0]).splitlines()]
        except RemudaError as error:
            print(f"{suite} {number} does not run: {str(error).splitlines()[0]}")
            continue
        errors = list(q_errors(lines))
        worst.append((max((q for _, q in errors), default=1.0), number))
        for operator, error in errors:
            by_operator.setdefault(operator, []).append(error)
    every = [q for qs in by_operator.values() for q in qs]
    print(f"\n| {suite} q-error | operators | median | 90 % | 99 % | worst |")
    print("|---" * 6 + "|")
    for name, errors_of in [*sorted(by_operator.items()), ("all", every)]:
        if errors_of:
            ordered = sorted(errors_of)
            cells = [
                ordered[min(len(ordered) - 1, int(len(ordered) * p))] for p in (0.5, 0.9, 0.99)
            ]
            numbers = " | ".join(f"{cell:.2f}" for cell in (*cells, ordered[-1]))
            print(f"| {name} | {len(ordered)} | {numbers} |")
    worst.sort(reverse=True)
    print("worst queries: " + ", ".join(f"{number} ({q:.0f})" for q, number in worst[:8]))


def statistics_of(suite: str, scale: float) -> dict[str, MapStatistics]:
    """Rows, distinct values and NULLs of the generated files."""
    folder = tpc_data.generate(suite, scale)
    known = {}
    for table, _ in tpc_data.definitions(suite):
        relation = duckdb.read_parquet(f"{folder}/{table}.parquet")
        counts = ", ".join(f"count(DISTINCT {c}), count({c})" for c in relation.columns)
        rows, *found = relation.aggregate(f"count(*), {counts}").fetchall()[0]
        pairs = zip(relation.columns, found[::2], found[1::2], strict=True)
        columns = {
            name: ColumnStatistics(null_fraction=1 - present / max(rows, 1), distinct=float(values))
            for name, values, present in pairs
        }
        known[table] = MapStatistics(float(rows), columns)
    return known


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--suites", nargs="*", default=["tpch", "tpcds"])
    options = parser.parse_args()
    for suite in options.suites:
        planning_times(suite, statistics_of(suite, options.scale), options.rounds)
        with remuda.start(members=1) as cluster, cluster.connect() as client:
            tpc_data.load(client, suite, tpc_data.generate(suite, options.scale))
            estimates(client, suite)
    return 0


if __name__ == "__main__":
    sys.exit(main())
