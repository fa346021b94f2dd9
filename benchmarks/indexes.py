"""Points and ranges by secondary index, beside a scan of the same map and beside DuckDB.

One map of a million rows on 3 members is asked without an index first, then with a SORTED index, a
HASH index and a BITMAP index. DuckDB runs inside this process, without any round trip, and has its
own index (ART) on the same columns. Every figure is the median of statements with parameters, run
one after the other; the time of CREATE INDEX and the bytes per row are those of ``SHOW INDEXES``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import remuda

MEMBERS = 3
INDEXES = (
    ("by_a", "CREATE INDEX by_a ON t (a)"),
    ("by_s", "CREATE INDEX by_s ON t USING hash (s)"),
    ("by_c", "CREATE INDEX by_c ON t USING bitmap (c)"),
)
Parameters = Callable[[int], list[object]]


def queries(rows: int) -> list[tuple[str, str, Parameters]]:
    values = rows // 10
    return [
        ("point, integer, 10 rows", "SELECT id, s FROM t WHERE a = ?", lambda i: [i * 37 % values]),
        ("point, text, 5 rows", "SELECT id, x FROM t WHERE s = ?", lambda i: [f"name{i * 37}"]),
        (
            "range, 0.1 % of the rows",
            "SELECT sum(x) FROM t WHERE a BETWEEN ? AND ?",
            lambda i: [i * 50, i * 50 + values // 1000],
        ),
        (
            "range, 20 % of the rows (read as a scan)",
            "SELECT sum(x) FROM t WHERE a BETWEEN ? AND ?",
            lambda i: [i, i + values // 5],
        ),
        (
            "bitmap and range",
            "SELECT count(*) FROM t WHERE c = ? AND a < ?",
            lambda i: [i % 50, values // 100],
        ),
        ("first 10 in order", "SELECT id, a FROM t ORDER BY a DESC LIMIT 10", lambda _: []),
    ]


def table(rows: int) -> pa.Table:
    chance = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(rows),
            "a": chance.integers(0, rows // 10, rows),
            "s": pa.array([f"name{i}" for i in chance.integers(0, rows // 5, rows)]),
            "c": chance.integers(0, 50, rows),
            "x": chance.random(rows),
        }
    )


def median(ask: Callable[[int], None], runs: int) -> float:
    for i in range(3):
        ask(i)
    times = []
    for i in range(runs):
        began = time.perf_counter()
        ask(i + 3)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def by_remuda(client: remuda.Client, text: str, parameters: Parameters) -> Callable[[int], None]:
    def ask(i: int) -> None:
        with client.sql(text, *parameters(i)) as cursor:
            for _ in cursor:
                pass

    return ask


def by_duckdb(
    duck: duckdb.DuckDBPyConnection, text: str, parameters: Parameters
) -> Callable[[int], None]:
    def ask(i: int) -> None:
        duck.execute(text, parameters(i)).fetchall()

    return ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    data = table(options.rows)
    duck = duckdb.connect()
    duck.register("data", data)
    duck.execute("CREATE TABLE t AS SELECT * FROM data")
    for column in "as":
        duck.execute(f"CREATE INDEX duck_{column} ON t ({column})")
    asked = queries(options.rows)
    with remuda.start(members=MEMBERS) as cluster, cluster.connect() as client:
        client.map("t").put_all(data, key="id")
        scans = [
            median(by_remuda(client, text, values), max(5, options.runs // 5))
            for _, text, values in asked
        ]
        for name, text in INDEXES:
            began = time.perf_counter()
            client.sql(text).close()
            print(f"{name}: built in {time.perf_counter() - began:.2f} s")
        with client.sql("SHOW INDEXES") as cursor:
            for row in cursor:
                print(f"{row[0]}: {row[5] / options.rows:.1f} bytes for each row")
        print(f"\n{'':42} {'scan':>10} {'index':>10} {'DuckDB':>10}   scan / index")
        for (label, text, values), scan in zip(asked, scans, strict=True):
            index = median(by_remuda(client, text, values), options.runs)
            other = median(by_duckdb(duck, text, values), options.runs)
            figures = " ".join(f"{seconds * 1e3:7.2f} ms" for seconds in (scan, index, other))
            print(f"{label:42} {figures}   {scan / index:.1f}")


if __name__ == "__main__":
    main()
