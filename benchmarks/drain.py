"""Requests that fail, and bytes that move, in rolling restarts: ``./run bench drain``.

Clusters of 3 and of 5 member processes with folders, one backup, and the mixed load of
``tests/faults/rolling.py``: entries, statements, transactions, scans, cursors, listeners. Each
member in turn is told to end (SIGTERM) and started again at its address, first without
``return_within``, then with it. Shown: requests, those that failed, the longest one, and for each
restart the seconds and the bytes of the copies that moved. ``--rows`` is what the cluster holds
besides the rows of the load: without ``return_within``, the bytes grow with it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))
from rolling import Fleet, Load, Restart

RETURN_WITHIN = 120.0
WIDE = "x" * 100
BATCH = 5_000


def held(load: Load, rows: int) -> None:
    """Rows that nobody changes."""
    with load.connect() as client:
        client.sql("CREATE TABLE held (__key BIGINT PRIMARY KEY, t VARCHAR)")
        table = client.map("held")
        for first in range(0, rows, BATCH):
            keys = range(first, min(first + BATCH, rows))
            table.put_all({key: {"t": f"{WIDE}{key}"} for key in keys})


def shown(members: int, returns: bool, load: Load, restarts: list[Restart]) -> None:
    kind, slowest = max(load.longest.items(), key=lambda it: it[1])
    mean = statistics.mean
    sizes = [one.size for one in restarts]
    print(
        f"{members} members, {'with' if returns else 'without'} return_within, "
        f"{len(restarts)} restarts: {sum(load.done.values())} requests, "
        f"{len(load.failures)} failed, longest {slowest:.2f} s ({kind})"
    )
    print(
        f"  a restart: left in {mean(one.leaving for one in restarts):.1f} s, served after "
        f"{mean(one.joining for one in restarts):.1f} s, copies in place after "
        f"{mean(one.placing for one in restarts):.1f} s; moved {mean(sizes) / 1e6:.2f} MB "
        f"({min(sizes) / 1e6:.2f} to {max(sizes) / 1e6:.2f})",
        flush=True,
    )
    for failure in load.failures[:10]:
        print(f"  {failure}")


def measured(members: int, returns: bool, restarts: int, rows: int) -> None:
    settings: dict[str, object] = {"leave_timeout": 30, "data_dir": "data"}
    if returns:
        settings["return_within"] = RETURN_WITHIN
    with tempfile.TemporaryDirectory(prefix="drain-") as folder:
        found: list[Restart] = []
        with Fleet(Path(folder), members, settings) as fleet:
            load = Load(fleet.addresses)
            held(load, rows)
            load.begin()
            for place in range(restarts):
                time.sleep(1.0)
                found.append(fleet.restart(place % members))
            load.end()
        shown(members, returns, load, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--members", type=int, nargs="*", default=[3, 5])
    parser.add_argument("--return-within", choices=("off", "on", "both"), default="both")
    given = parser.parse_args()
    kinds = {"off": (False,), "on": (True,), "both": (False, True)}[given.return_within]
    for members in given.members:
        for returns in kinds:
            measured(members, returns, given.restarts, given.rows)


if __name__ == "__main__":
    main()
