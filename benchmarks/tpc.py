"""TPC-H and TPC-DS queries: Remuda beside DuckDB (1 and 2 threads) and warm Spark SQL, one run.

Every engine holds the same data in memory (Remuda: 3 member processes; DuckDB: native tables;
Spark: local[2] over cached data frames). The rounds go engine by engine within a query, so that a
slow minute of the machine hits all of them; medians and ratios are printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

import remuda
import tpc_data

CASES = [("tpch", number) for number in tpc_data.TPCH_QUERIES] + [("tpcds", 3)]
TABLES: dict[str, tuple[str, ...]] = {"tpch": (), "tpcds": tpc_data.TPCDS_3_TABLES}


def files(scale: float) -> Iterator[tuple[str, Path]]:
    """(table, Parquet file) of everything that ``CASES`` read."""
    for suite, tables in TABLES.items():
        folder = tpc_data.generate(suite, scale, tables)
        for table, _ in tpc_data.definitions(suite):
            if not tables or table in tables:
                yield table, folder / f"{table}.parquet"


def duckdb_engine(scale: float, threads: int) -> Callable[[str], int]:
    connection = duckdb.connect(config={"threads": threads})
    for table, file in files(scale):
        connection.execute(f"CREATE TABLE {table} AS FROM '{file}'")
    return lambda text: len(connection.execute(text).fetchall())


def spark_engine(scale: float) -> Callable[[str], int]:
    import remuda.spark

    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4"}
    session = remuda.spark.session("remuda-bench", "local[2]", settings=settings)
    for table, file in files(scale):
        frame = session.read.parquet(str(file)).cache()
        frame.count()
        frame.createOrReplaceTempView(table)
    return lambda text: len(session.sql(text).collect())


def remuda_engine(client: remuda.Client) -> Callable[[str], int]:
    def run(text: str) -> int:
        with client.sql(text) as cursor:
            return len(cursor.fetchall())

    return run


def measure(run: Callable[[str], int], text: str) -> float:
    start = time.perf_counter()
    run(text)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    with remuda.start(members=options.members) as cluster, cluster.connect() as client:
        for suite, tables in TABLES.items():
            folder = tpc_data.generate(suite, options.scale, tables)
            tpc_data.load(client, suite, folder, tables)
        engines: dict[str, Callable[[str], int]] = {
            "remuda": remuda_engine(client),
            "duckdb-2": duckdb_engine(options.scale, 2),
            "duckdb-1": duckdb_engine(options.scale, 1),
        }
        if not options.no_spark:
            engines["spark"] = spark_engine(options.scale)
        print("| query | " + " | ".join(f"{name} ms" for name in engines) + " | remuda/duckdb-2 |")
        print("|---" * (len(engines) + 2) + "|")
        totals = dict.fromkeys(engines, 0.0)
        for suite, number in CASES:
            text = tpc_data.query(suite, number)
            times: dict[str, list[float]] = {name: [] for name in engines}
            for run in engines.values():
                run(text)
                run(text)
            for _ in range(options.rounds):
                for name, run in engines.items():
                    times[name].append(measure(run, text))
            medians = {name: statistics.median(values) for name, values in times.items()}
            if suite == "tpch":
                for name, value in medians.items():
                    totals[name] += value
            ratio = medians["remuda"] / medians["duckdb-2"]
            cells = " | ".join(f"{value * 1e3:.1f}" for value in medians.values())
            print(f"| {suite} {number} | {cells} | {ratio:.2f} |", flush=True)
        cells = " | ".join(f"{value * 1e3:.1f}" for value in totals.values())
        print(f"| TPC-H in all | {cells} | {totals['remuda'] / totals['duckdb-2']:.2f} |")
        if "spark" in totals:
            print(
                f"\nSpark / Remuda over the TPC-H queries: {totals['spark'] / totals['remuda']:.1f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
