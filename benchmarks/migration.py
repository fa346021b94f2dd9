"""A member joins while others are served, and what an entry takes: ``./run bench migration``.

A million entries on three members with one backup; clients get single entries all the time. Then a
fourth member joins, and a quarter of everything moves to it. Reported: the time until the table of
partitions is at rest, the latencies of gets meanwhile beside those of before, and afterwards. Then
the resident memory of members per entry, without and with a backup, beside Redis with the same
entries as hashes and as pickled values.
"""

from __future__ import annotations

import argparse
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import closed_loop
import peers
import remuda
from closed_loop import Figures
from entry_subjects import Item, item
from remuda.client.embedded.cluster import Cluster

MEMBERS = 3
SETTLE = 5.0
"""Seconds: members give back what a load has taken, and a table that rests stays as it is."""
TARGET = 5.0


def table(entries: int) -> pa.Table:
    """``item(key)`` for all keys below ``entries``."""
    keys = np.arange(entries, dtype=np.int64)
    return pa.table(
        {
            "id": keys,
            "name": pa.array([f"name{key % 1000}" for key in range(entries)]),
            "category": pa.array([f"c{key % 7}" for key in range(entries)]),
            "price": keys * 1.5,
            "small": (keys % 100).astype(np.int32),
            "stock": keys,
        }
    )


CREATE = (
    "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR, category VARCHAR,"
    " price DOUBLE PRECISION, small INTEGER, stock BIGINT)"
)


def load(client: remuda.Client, rows: pa.Table) -> None:
    client.sql(CREATE).close()
    client.map("items").put_all(rows)
    found = client.map("items", Item).get(77)
    assert found == item(77), found


# --- migration -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reads:
    addresses: tuple[str, ...]
    entries: int
    name: str = "gets"

    def session(self) -> ReadSession:
        return ReadSession(self)


class ReadSession:
    def __init__(self, subject: Reads) -> None:
        self._client = remuda.connect(subject.addresses, retry_reads=10)
        self._items = self._client.map("items", Item)
        self._entries = subject.entries
        self.operations = {"get": self._get}

    def _get(self, chance: random.Random) -> None:
        key = chance.randrange(self._entries)
        found = self._items.get(key)
        if found is None or found.stock != key:
            raise AssertionError(f"entry {key} is {found}")

    def close(self) -> None:
        self._client.close()


@contextmanager
def one_more(cluster: Cluster) -> Iterator[None]:
    command = [sys.executable, "-m", "remuda.member", "--join", cluster.members[0].control]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.terminate()
        child.wait()


PLACES = "SELECT partition, member, backups FROM sys.partitions ORDER BY partition"


def places(client: remuda.Client) -> list[tuple[object, ...]]:
    return [tuple(row) for row in client.sql(PLACES)]


def migration(entries: int, clients: int, seconds: float) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(remuda.start(members=MEMBERS))
        client = stack.enter_context(remuda.connect(cluster.addresses, retry_reads=10))
        load(client, table(entries))
        readers = stack.enter_context(closed_loop.clients(Reads(cluster.addresses, entries)))
        time.sleep(SETTLE)
        idle = readers.run("get", clients, seconds)
        before = places(client)
        began = time.perf_counter()
        stack.enter_context(one_more(cluster))
        during: list[Figures] = []
        seen, changed = before, began
        while seen == before or time.perf_counter() - changed < SETTLE:
            if time.perf_counter() - began > 600:
                raise TimeoutError("nothing was moved, or it does not end")
            during.append(readers.run("get", clients, 1.0))
            if (now := places(client)) != seen:
                seen, changed = now, time.perf_counter()
        after = readers.run("get", clients, seconds)
    moved = sum(a != b for a, b in zip(before, seen, strict=True))
    took = changed - began
    rests = int(SETTLE)  # the last runs came when nothing was moved any more
    times = sorted(
        one for figures in during[: max(1, len(during) - rests)] for one in figures.times
    )
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"\n{entries:,} entries, {clients} clients; {moved} of {len(before)} partitions got")
    print(f"other places within {took:.1f} s of the start of the member\n")
    print("| gets | p50 µs | p99 µs | longest ms | p99 / before | target |")
    print("|---|---|---|---|---|---|")
    show("before", idle.p50, idle.p99, idle.times[-1], idle.p99)
    show("meanwhile", p50, p99, times[-1], idle.p99, f"≤ {TARGET:g}")
    show("afterwards", after.p50, after.p99, after.times[-1], idle.p99)


def show(  # one row of the report
    name: str, p50: float, p99: float, longest: float, idle: float, target: str = ""
) -> None:
    print(
        f"| {name} | {p50 * 1e6:.0f} | {p99 * 1e6:.0f} | {longest * 1e3:.1f} | {p99 / idle:.2f} "
        f"| {target} |",
        flush=True,
    )


# --- memory --------------------------------------------------------------------------------------


def memory(entries: int) -> None:
    rows = table(entries)
    fields = sum(len(f"name{key % 1000}") + 2 + 8 + 4 + 8 + 8 for key in range(1000)) / 1000
    print(f"\n{entries:,} entries of {fields:.0f} bytes of fields and key\n")
    print("| | resident bytes per entry |")
    print("|---|---|")
    for backups in (0, 1):
        with (
            remuda.start(members=MEMBERS, settings={"backups": backups}) as cluster,
            cluster.connect() as client,
        ):
            client.map("warm").put_all({key: item(key) for key in range(1000)})
            time.sleep(SETTLE)
            used = peers.resident(cluster.pids)
            load(client, rows)
            time.sleep(2 * SETTLE)
            used = peers.resident(cluster.pids) - used
        print(f"| Remuda, {backups} backups | {used / entries:.0f} |", flush=True)
    for replica in (False, True):
        for pickled in (False, True):
            redis_memory(entries, replica=replica, pickled=pickled)


def redis_memory(entries: int, *, replica: bool, pickled: bool) -> None:
    with peers.redis(replica=replica) as server:
        if server is None:
            return
        import redis

        client = redis.Redis(port=server.port)
        before = peers.resident(server.pids)
        for start in range(0, entries, 10_000):
            pipeline = client.pipeline(transaction=False)
            for key in range(start, min(start + 10_000, entries)):
                if pickled:
                    pipeline.set(f"item:{key}", pickle.dumps(item(key)))
                else:
                    pipeline.hset(f"item:{key}", mapping=vars(item(key)))
            pipeline.execute()
        if replica:
            client.execute_command("WAIT", 1, 60_000)
        used = peers.resident(server.pids) - before
        client.close()
    how = ("pickled" if pickled else "hash") + (", replica" if replica else "")
    print(f"| Redis, {how} | {used / entries:.0f} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0, help="of gets before and after")
    parser.add_argument("--only", choices=("migration", "memory"))
    options = parser.parse_args()
    if options.only != "memory":
        migration(options.entries, options.clients, options.seconds)
    if options.only != "migration":
        memory(options.entries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
