"""Runs benchmarks, each in a process of its own: ``./run bench [NAME ...]``, all by default.

``./run bench short [PART ...]`` runs what the issues of the grid, of durability and of Spark ask
for, at sizes of a few minutes for each part, one after the other, and says how long each took.
``./run bench short > FILE`` keeps the figures; a part that takes longer than ``LIMIT`` is ended.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = (
    "calls",
    "idle",
    "console",
    "point",
    "postgres",
    "copying",
    "tpc",
    "spark",
    "offload",
    "streams",
    "memory",
    "stored_memory",
    "storage",
    "indexes",
    "operators",
    "rpc",
    "planning",
    "recursion",
    "scrape",
    "spill",
    "exchange",
    "failover",
    "drain",
    "upgrade",
    "grid",
    "batches",
    "transactions",
    "foreign_keys",
    "migration",
    "snapshot",
    "cuts",
    "log",
)
SHORT = {
    "offload-tpch": "offload --parts tpch --rounds 1 --settled 10 --budget 120",
    "offload-tpcds": "offload --parts tpcds --rounds 1 --settled 5 --budget 300",
    "offload-memory": "offload --parts memory --rounds 1 --budget 80",
    "spark": "spark --rows 2000000 --rounds 2",
    "spark-tpch": "spark --tpch 1 --rounds 2",
    "streams": "streams --batches 8 --rounds 1",
    "migration": "migration --only migration --seconds 4",
    "entries": "migration --only memory --entries 500000",
    "grid": "grid --quick",
    "grid-batches": "grid --rounds 1 --seconds 3 --only put_all",
    "transactions": "transactions --rounds 2 --seconds 1.5",
    "snapshot": "snapshot --scale 0.8",
    "cuts": "cuts --rounds 2",
    "log": "log",
}
"""The most important first: who has less time stops it at any moment."""
LIMIT = 600.0


def main() -> int:
    words = sys.argv[1:]
    first = next((place for place, word in enumerate(words) if word.startswith("--")), len(words))
    names, options = words[:first] or list(NAMES), words[first:]
    if options and len(words[:first]) != 1:
        print(f"{options[0]} is an option of one benchmark: name it before", file=sys.stderr)
        return 2
    short = names[0] == "short"
    if short:
        names = names[1:] or list(SHORT)
    known = SHORT if short else NAMES
    unknown = [name for name in names if name not in known]
    if unknown:
        there = ", ".join(known)
        print(f"unknown benchmark {unknown[0]!r}; there are: {there}", file=sys.stderr)
        return 2
    status, began = 0, time.monotonic()
    for name in names:
        status |= run(
            name, [*shlex.split(SHORT[name] if short else name), *options], LIMIT if short else None
        )
    if short:
        print(f"\nall of it took {time.monotonic() - began:.0f} s")
    return status


def run(name: str, command: list[str], limit: float | None) -> int:
    print(f"\n## {name}\n", flush=True)
    program, *arguments = command
    began = time.monotonic()
    with subprocess.Popen([sys.executable, str(HERE / f"{program}.py"), *arguments]) as process:
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # it ends the servers that it has started
            status = process.wait()
            print(f"(ended after {limit:g} s: its limit)")
    if limit is not None:
        print(f"\n({name}: {shlex.join(command)}; {time.monotonic() - began:.0f} s)", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
