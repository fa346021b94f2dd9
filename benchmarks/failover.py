"""What the loss of a member costs, and what backups cost: ``./run bench failover``.

Three member processes. First the price of a synchronous backup: the latency of ``put`` with none
and with one, in turns. Then, with one backup, a member is killed with SIGKILL while threads read:
the time until the first write of a key that it owned is acknowledged, and the latencies of reads.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable

import remuda
from remuda.client.blocking.client import Client
from remuda.client.embedded.cluster import Cluster
from remuda.errors import OutcomeUnknown, RemudaError

MEMBERS = 3
KEYS = 10_000


def filled(cluster: Cluster) -> Client:
    client = remuda.connect(cluster.addresses, retry_reads=10)
    client.map("numbers").put_all({key: {"v": key} for key in range(KEYS)})
    return client


def latencies(act: Callable[[int], object], seconds: float) -> list[float]:
    found: list[float] = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        act(len(found) * 7919 % KEYS)
        found.append(time.perf_counter() - begin)
    return found


def shown(found: list[float]) -> str:
    cuts = statistics.quantiles(found, n=100)
    return f"p50 {cuts[49] * 1e6:7.0f} us   p99 {cuts[98] * 1e6:7.0f} us   ({len(found)})"


def price_of_backups(seconds: float) -> None:
    medians: dict[int, list[float]] = {0: [], 1: []}
    everything: dict[int, list[float]] = {0: [], 1: []}
    clusters = {n: remuda.start(MEMBERS, settings={"backups": n}) for n in (0, 1)}
    try:
        clients = {n: filled(cluster) for n, cluster in clusters.items()}
        for client in clients.values():
            numbers = client.map("numbers")
            latencies(lambda key, numbers=numbers: numbers.put(key, {"v": key}), 0.5)
        for _ in range(3):
            for n, client in clients.items():
                numbers = client.map("numbers")
                found = latencies(
                    lambda key, numbers=numbers: numbers.put(key, {"v": key}),
                    seconds / 6,
                )
                medians[n].append(statistics.median(found))
                everything[n] += found
        for n, found in everything.items():
            print(f"put, backups={n}: {shown(found)}")
        ratio = statistics.median(medians[1]) / statistics.median(medians[0])
        print(f"put with one backup / with none: {ratio:.2f}")
        for n, client in clients.items():
            print(f"two-row UPDATE, backups={n}: {updates(client, seconds / 2):.0f} per second")
            client.close()
    finally:
        for cluster in clusters.values():
            cluster.stop()


def updates(client: Client, seconds: float) -> float:
    """Statements that change two rows of two members at once, one after the other."""
    run = client.prepare("UPDATE numbers SET v = v + ? WHERE __key = ? OR __key = ?")
    count = len(latencies(lambda key: run(1, key, (key + 1) % KEYS).rowcount, seconds))
    return count / seconds


def failover(seconds: float) -> None:
    with remuda.start(MEMBERS, settings={"backups": 1}) as cluster, filled(cluster) as client:
        numbers = client.map("numbers")
        before = latencies(numbers.get, seconds / 2)
        reads: list[tuple[float, float]] = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                begin = time.perf_counter()
                numbers.get(len(reads) * 104_729 % KEYS)
                reads.append((begin, time.perf_counter()))

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        victim = cluster.members[1]
        key = owned_by(client, victim.number)
        numbers.put(key, {"v": -1})
        time.sleep(seconds / 4)
        killed = time.perf_counter()
        os.kill(cluster.pids[1], signal.SIGKILL)
        unknown = first_write(numbers, key)
        written = time.perf_counter()
        time.sleep(seconds / 4)
        done.set()
        for thread in threads:
            thread.join()
    print(f"gets before:                    {shown(before)}")
    during = [end - begin for begin, end in reads if end > killed and begin < written]
    after = [end - begin for begin, end in reads if begin >= written]
    print(f"gets from the kill to the write: {shown(during)}   longest {max(during):.2f} s")
    print(f"gets afterwards:                {shown(after)}")
    print(f"kill -9 to the first write of a key of the lost member: {written - killed:.2f} s")
    print(f"(writes whose outcome was unknown meanwhile: {unknown})")


def owned_by(client: Client, number: int) -> int:
    numbers = client.map("numbers")
    numbers.get(0)
    binding = numbers._map._binding  # noqa: SLF001
    assert binding is not None
    return next(key for key in range(KEYS) if binding.router.owner((key,)) == number)


def first_write(numbers: remuda.client.blocking.map.Map, key: int) -> int:
    """How many tries had an unknown outcome before one was acknowledged."""
    unknown = 0
    while True:
        try:
            numbers.put(key, {"v": -2})
        except RemudaError as error:
            if not isinstance(error, OutcomeUnknown) and not error.retryable:
                raise
            unknown += 1
        else:
            return unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each part")
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    price_of_backups(given.seconds)
    for _ in range(given.kills):
        failover(given.seconds)


if __name__ == "__main__":
    main()
