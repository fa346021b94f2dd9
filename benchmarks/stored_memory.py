"""Resident memory of a member for each byte that it counts as stored: ``RESIDENT_FACTOR`` and
``PROCESS_SIZE`` of ``remuda.storage.maps.stored_memory`` must be above what this shows.

Each kind of load fills a cluster of one member until about ``WANTED`` bytes are stored. ``peak`` is
the highest resident memory while it was filled, ``rest`` that of ten seconds later.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

import remuda
from remuda.client.blocking.client import Client

WANTED = 200_000_000
REST = 12.0
ROWS = 100_000


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has ended")


@contextmanager
def watched(pid: int) -> Iterator[list[int]]:
    """The last item of the list is the highest resident memory so far."""
    peaks, done = [resident(pid)], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peaks[-1] = max(peaks[-1], resident(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def stored(client: Client) -> int:
    [(held,)] = client.sql("SELECT storage_held FROM sys.members").fetchall()
    return int(held)


def rows(first: int, width: int) -> pa.Table:
    ids = np.arange(first, first + ROWS, dtype=np.int64)
    return pa.table({"id": ids, "n": ids * 7, "v": [f"{i:0{width}}" for i in ids]})


def put_all(client: Client, part: int, width: int) -> None:
    client.map("t").put_all(rows(part * ROWS, width))


def wide(client: Client, part: int, width: int) -> None:
    client.map("t").put_all(rows(part * ROWS, width).slice(0, 1000))


def put(client: Client, part: int, width: int) -> None:
    """In requests of 50 entries, which are stored row by row."""
    found = rows(part * ROWS, width).slice(0, 20_000)
    for start in range(0, found.num_rows, 50):
        client.map("t").put_all(found.slice(start, 50))


def again(client: Client, part: int, width: int) -> None:
    """The same keys over and over: versions."""
    client.map("t").put_all(rows(part % 2 * ROWS, width))


def insert(client: Client, part: int, width: int) -> None:
    text = f"lpad(CAST(g AS VARCHAR), {width}, '0')"
    series = f"generate_series({part * ROWS}, {part * ROWS + ROWS - 1}) g(g)"
    client.sql(f"INSERT INTO t SELECT g, g * 7, {text} FROM {series}").close()


def scattered(client: Client, part: int, width: int) -> None:
    """A thousand rows into each of many maps."""
    for number in range(20):
        client.map(f"many_{part}_{number}").put_all(rows(0, width).slice(0, 1000), key="id")


def updated(client: Client, part: int, width: int) -> None:
    """Every row gets a new value, in place."""
    if part == 0:
        put_all(client, 0, width)
    client.sql("UPDATE t SET n = n + 1, v = ?", f"{part:0{width}}").close()


LOADS: dict[str, tuple[Callable[[Client, int, int], None], int, str]] = {
    "put_all, 16 bytes": (put_all, 16, ""),
    "put_all, 1,000 bytes": (put_all, 1000, ""),
    "put_all, two indexes": (put_all, 16, "nv"),
    "put_all, 16 bytes, bitmap of many values": (put_all, 16, "b"),
    "put_all, 10,000 bytes, in thousands": (wide, 10_000, ""),
    "many maps of 1,000 rows": (scattered, 16, ""),
    "UPDATE of all rows, 100 bytes": (updated, 100, ""),
    "single writes, 16 bytes": (put, 16, ""),
    "single writes, 1,000 bytes": (put, 1000, ""),
    "the same keys, 100 bytes": (again, 100, ""),
    "INSERT ... SELECT, 100 bytes": (insert, 100, ""),
}


def measure(name: str) -> str:
    load, width, indexed = LOADS[name]
    settings = {"storage_memory": 2**40}
    with remuda.start(members=1, settings=settings) as cluster, cluster.connect() as client:
        [pid] = cluster.pids
        client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, v VARCHAR)").close()
        for column in indexed:
            on = "t USING BITMAP (n)" if column == "b" else f"t ({column})"
            client.sql(f"CREATE INDEX t_{column} ON {on}").close()
        idle, empty, highest = resident(pid), stored(client), 0
        with watched(pid) as peaks:
            part, limit = 0, time.monotonic() + 60
            while stored(client) < WANTED and time.monotonic() < limit:
                load(client, part, width)
                highest = max(highest, stored(client))
                part += 1
        held = stored(client)
        time.sleep(REST)
        left, rest = stored(client) - empty, resident(pid) - idle
    peak = peaks[-1] - idle
    return (
        f"| {name} | {idle / 1e6:.0f} MB | {held / 1e6:.0f} MB | {peak / (highest - empty):.2f} |"
        f" {left / 1e6:.0f} MB | {rest / max(left, 1):.2f} |"
    )


def main() -> int:
    print("| load | idle | stored | peak / stored | stored at rest | resident / stored |")
    print("|---|---|---|---|---|---|")
    for name in sys.argv[1:] or LOADS:
        print(measure(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
