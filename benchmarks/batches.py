"""A thousand entries in one call, and an Arrow table: processor time of members and client.

``./run bench batches``. Three members with one synchronous backup, in memory. Each figure is the
median over rounds of ``CALLS`` calls of the processor time of one call: of the client's process,
and of the three members together, without what they take while nobody asks. Processor time depends
less on other work of the machine than time on the wall does; the rate of ``put_all`` of an Arrow
table needs a quiet one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import remuda
from entry_subjects import BATCH, Item, item

CALLS = 40
IDLE = 5.0
"""Seconds in which nobody asks, before and after."""
MAP_ENTRIES = 100_000


class Processors:
    """Processor seconds of members, by the kernel's own counters in nanoseconds."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        time.sleep(IDLE)  # statistics of the map, the copies of the last entries
        before = self.seconds()
        time.sleep(IDLE)
        self.idle = (self.seconds() - before) / IDLE
        """Of a second in which nobody asks."""

    def seconds(self) -> float:
        threads = [task for pid in self._pids for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in threads) / 1e9


def measured(
    processors: Processors, operation: Callable[[int], object], calls: int, rounds: int
) -> tuple[float, float, float]:
    """Milliseconds of one call, medians over the rounds: client, members, on the wall."""
    for number in range(calls):
        operation(number)
    found = []
    for _ in range(rounds):
        members, client, began = processors.seconds(), time.process_time(), time.monotonic()
        for number in range(calls):
            operation(number)
        wall = time.monotonic() - began
        client = time.process_time() - client
        members = processors.seconds() - members - processors.idle * wall
        found.append([each / calls * 1e3 for each in (client, members, wall)])
    client, members, wall = (statistics.median(column) for column in zip(*found, strict=True))
    return client, members, wall


def table(rows: int) -> pa.Table:
    keys = range(rows)
    items = [item(key) for key in keys]
    columns = {name: [getattr(each, name) for each in items] for name in Item.__annotations__}
    return pa.table({"__key": pa.array(keys, pa.int64()), **columns})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=500_000, help="of the Arrow table")
    options = parser.parse_args()
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        items = client.map("items", Item)
        for start in range(0, MAP_ENTRIES, 10_000):
            items.put_all({key: item(key) for key in range(start, start + 10_000)})
        batches = [
            {key: item(key) for key in range(first, MAP_ENTRIES, MAP_ENTRIES // BATCH)}
            for first in range(CALLS)
        ]
        processors = Processors(cluster.pids)
        print(f"three idle members: {processors.idle * 1e3:.1f} ms of processor a second\n")
        print("| call | client, ms | members, ms | on the wall, ms |\n|---|---|---|---|")
        operations: dict[str, Callable[[int], object]] = {
            "put": lambda number: items.put(number, item(number)),
            "get": items.get,
            f"put_all of {BATCH}": lambda number: items.put_all(batches[number]),
            f"get_all of {BATCH}": lambda number: items.get_all(batches[number].keys()),
        }
        for name, operation in operations.items():
            calls = CALLS if "all" in name else MAP_ENTRIES // 50
            times = measured(processors, operation, calls, options.rounds)
            print(f"| {name} |" + "|".join(f" {each:.3f} " for each in times) + "|", flush=True)
        content = table(options.rows)
        loaded = client.map("loaded", Item)
        loaded.put_all(content, key="__key")
        times = measured(processors, lambda _: loaded.put_all(content), 1, options.rounds)
        name = f"put_all of an Arrow table of {options.rows:,}"
        print(f"| {name} |" + "|".join(f" {each:,.0f} " for each in times) + "|")
        print(f"\n{options.rows / times[2] / 1e3:.2f} million entries a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
