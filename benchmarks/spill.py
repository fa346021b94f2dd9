"""Statements of ten times their memory: how much slower they are than with enough of it, what they
held at most on a member, and what they put on disk.

Two clusters of two members, one after the other, over the same rows; medians of ``--rounds`` runs.
Memory and disk are those of the members' own profiles (``sys.query_history``).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import remuda

STATEMENTS = {
    "sort": "SELECT id, a, s FROM t ORDER BY s DESC",
    "join": "SELECT count(*), sum(t.a), max(u.s) FROM t JOIN u ON t.a = u.a",
    "aggregate": "SELECT a, count(*), max(s) FROM t GROUP BY a",
    "window": "SELECT id, row_number() OVER (PARTITION BY a % 1000 ORDER BY s) FROM t",
    "running window": "SELECT id, row_number() OVER (ORDER BY s), sum(a) OVER (ORDER BY s) FROM t",
    "not in": "SELECT count(*) FROM t WHERE s NOT IN (SELECT s || '.' FROM u)",
    "distinct": "SELECT a % 7, count(DISTINCT s) FROM t GROUP BY 1",
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


@dataclass
class Run:
    seconds: float
    memory: int
    spilled: int


def measure(table: pa.Table, memory: int, rounds: int, names: list[str]) -> dict[str, Run]:
    os.environ["REMUDA_STATEMENT_MEMORY"] = str(memory)
    with remuda.start(members=MEMBERS) as cluster, cluster.connect() as client:
        for name in ("t", "u"):
            with client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, a BIGINT, s VARCHAR)"):
                pass
            client.map(name).put_all(table)
        times = {
            name: statistics.median(seconds(client, STATEMENTS[name]) for _ in range(rounds))
            for name in names
        }
        found = client.sql(
            "SELECT text, max(memory), max(spilled) FROM sys.query_history GROUP BY text"
        ).fetchall()
        held = {text: (most, disk) for text, most, disk in found}
        return {name: Run(times[name], *held[STATEMENTS[name]]) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of statements, with commas")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(STATEMENTS)
    table = rows(options.rows)
    little = table.nbytes // MEMBERS // LITTLE_SHARE
    enough = measure(table, 16 << 30, options.rounds, names)
    spilled = measure(table, little, options.rounds, names)
    print(
        f"{options.rows:,} rows of {table.nbytes // options.rows} bytes in each map; "
        f"statement_memory {little >> 20} MiB on each of {MEMBERS} members\n"
    )
    print(
        "| statement | in memory s | spilled s | ratio | held MiB, in memory | spilling | on disk |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in names:
        full, little_ = enough[name], spilled[name]
        print(
            f"| {name} | {full.seconds:.2f} | {little_.seconds:.2f} "
            f"| {little_.seconds / full.seconds:.2f} | {full.memory / 2**20:.0f} "
            f"| {little_.memory / 2**20:.0f} | {little_.spilled / 2**20:.0f} |"
        )


if __name__ == "__main__":
    main()
