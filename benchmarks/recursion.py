"""WITH RECURSIVE: microseconds for a round, beside DuckDB and PostgreSQL.

``python benchmarks/recursion.py [rounds]``, 20,000 unless told. Each query gives one row in each
round, so the time is that of the rounds themselves. All sides answer from memory over one
connection; the best of three runs counts.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable

import duckdb

import peers
import remuda

ROUNDS = 20_000
RUNS = 3
QUERIES = {
    "UNION ALL": "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {rounds}",
    "UNION": "SELECT 1 UNION SELECT n + 1 FROM t WHERE n < {rounds}",
    "join with VALUES": "SELECT 1 UNION ALL SELECT n + x FROM t "
    "JOIN (VALUES (0, 1), (1, 1)) v(k, x) ON k = n % 2 WHERE n < {rounds}",
    "join with a series": "SELECT 1 UNION ALL SELECT n + g.x FROM t "
    "JOIN generate_series(1, 9) g(x) ON g.x = n / n WHERE n < {rounds}",
    "two references": "SELECT 1 UNION ALL (WITH q AS (SELECT n FROM t) SELECT a.n + 1 FROM q a "
    "JOIN q b ON a.n = b.n WHERE a.n < {rounds})",
}


def _measure(name: str, rounds: int, ask: Callable[[str], object]) -> None:
    for title, form in QUERIES.items():
        text = (
            f"WITH RECURSIVE t(n) AS ({form.format(rounds=rounds)}) SELECT count(*), max(n) FROM t"
        )
        best = float("inf")
        try:
            for _ in range(RUNS):
                began = time.perf_counter()
                ask(text)
                best = min(best, time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001 - what a peer refuses, it does not answer
            print(f"{name:11} {title:20} refused: {str(error).splitlines()[0]}")
            continue
        print(f"{name:11} {title:20} {best / rounds * 1e6:8.1f} µs a round {best:8.2f} s")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with remuda.start(members=1) as cluster, cluster.connect() as client:
        _measure("Remuda", rounds, lambda text: client.sql(text).fetchall())
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        _measure("DuckDB", rounds, lambda text: connection.execute(text).fetchall())
    with peers.postgres() as address:
        if address is None or not peers.have("psycopg", "PostgreSQL"):
            return
        psycopg = importlib.import_module("psycopg")
        with psycopg.connect(address, autocommit=True) as connection:
            _measure("PostgreSQL", rounds, lambda text: connection.execute(text).fetchall())


if __name__ == "__main__":
    main()
