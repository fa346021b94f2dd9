"""Statements of ten times their memory: how much slower they are than with enough of it.

Two clusters of two members, one after the other, over the same rows; medians of ``--rounds`` runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import pyarrow as pa

import remuda

STATEMENTS = {
    "sort": "SELECT id, a, s FROM t ORDER BY s DESC",
    "join": "SELECT count(*), sum(t.a), max(u.s) FROM t JOIN u ON t.a = u.a",
    "aggregate": "SELECT a, count(*), max(s) FROM t GROUP BY a",
    "window": "SELECT id, row_number() OVER (PARTITION BY a % 1000 ORDER BY s) FROM t",
}
MEMBERS = 2
LITTLE_SHARE = 10


def rows(count: int) -> pa.Table:
    chance = np.random.default_rng(1)
    words = pa.array([f"row number {number} {'.' * 80}" for number in range(count)])
    return pa.table({"id": np.arange(count), "a": chance.integers(0, count, count), "s": words})


def seconds(client: remuda.Client, text: str) -> float:
    start = time.perf_counter()
    with client.sql(text) as cursor:
        for _ in cursor.batches():
            pass
    return time.perf_counter() - start


def measure(table: pa.Table, memory: int, rounds: int) -> dict[str, float]:
    os.environ["REMUDA_STATEMENT_MEMORY"] = str(memory)
    with remuda.start(members=MEMBERS) as cluster, cluster.connect() as client:
        for name in ("t", "u"):
            with client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, a BIGINT, s VARCHAR)"):
                pass
            client.map(name).put_all(table)
        return {
            name: statistics.median(seconds(client, text) for _ in range(rounds))
            for name, text in STATEMENTS.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table = rows(options.rows)
    little = table.nbytes // MEMBERS // LITTLE_SHARE
    enough = measure(table, 16 << 30, options.rounds)
    spilled = measure(table, little, options.rounds)
    print(
        f"{options.rows:,} rows of {table.nbytes // options.rows} bytes in each map; "
        f"statement_memory {little >> 20} MiB on each of {MEMBERS} members\n"
    )
    print("| statement | in memory s | spilled s | ratio |\n|---|---|---|---|")
    for name in STATEMENTS:
        print(
            f"| {name} | {enough[name]:.2f} | {spilled[name]:.2f} "
            f"| {spilled[name] / enough[name]:.2f} |"
        )


if __name__ == "__main__":
    main()
