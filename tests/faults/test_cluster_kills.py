"""All members of a cluster killed at once, under load: started again from their folders, they have
everything that was acknowledged."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

import remuda
from remuda.client.embedded.cluster import Cluster
from remuda.errors import RemudaError, SerializationFailure

pytestmark = pytest.mark.cluster

KEYS = 20
CLIENTS = 3
OPERATIONS_MAX = 120
START = 150.0
"""Seconds: also on a machine that does much else."""


@dataclass
class Load:
    """One client with its own keys: what it was told, and what was under way when the end came."""

    base: int
    random: Random
    told: dict[int, int] = field(default_factory=dict)
    under_way: dict[int, int] | None = None
    done: int = 0
    ended: str = ""
    """The error that it ended with."""

    def work(self, cluster: Cluster, enough: threading.Semaphore, over: threading.Event) -> None:
        """Until the members are gone, or (a busy machine may be slower than heartbeats) a write has
        an outcome that nobody knows: what was told then is judged at the next start."""
        try:
            with cluster.connect() as client:
                while not over.is_set():
                    if self._one(client):
                        self.done += 1
                        enough.release()
        except RemudaError as error:
            self.ended = repr(error)
        finally:
            enough.release(OPERATIONS_MAX)  # nobody waits for this one

    def _one(self, client: remuda.Client) -> bool:
        """Whether something was done."""
        key = self.base + self.random.randrange(KEYS)
        value = self.random.randrange(2**40)
        what = self.random.choice(["put", "put", "pair", "transaction"])
        after = self.told | {key: value}
        if what != "put":
            after |= {self.base + KEYS: value}
        self.under_way = after
        try:
            if what == "put":
                client.map("t").put(key, {"id": key, "x": value})
            elif what == "pair":
                client.sql(
                    f"INSERT INTO t VALUES ({key}, {value}), ({self.base + KEYS}, {value})"
                    " ON CONFLICT (id) DO UPDATE SET x = excluded.x"
                )
            else:
                with client.transaction() as transaction:
                    for place in (key, self.base + KEYS):
                        transaction.map("t").put(place, {"id": place, "x": value})
        except RemudaError as error:
            if error.may_have_run and not isinstance(error, SerializationFailure):
                raise
            self.under_way = None
            return False
        self.told, self.under_way = after, None
        return True

    def settle(self, found: dict[int, int]) -> None:
        mine = {key: x for key, x in found.items() if self.base <= key <= self.base + KEYS}
        told, under_way = self.told, self.under_way
        assert mine in (told, under_way), (
            f"found {mine}, told {told}, under way {under_way}, ended by {self.ended}"
        )
        self.told, self.under_way = mine, None


def killed(cluster: Cluster, loads: list[Load], operations: int) -> None:
    enough, over = threading.Semaphore(0), threading.Event()
    threads = [threading.Thread(target=load.work, args=(cluster, enough, over)) for load in loads]
    for thread in threads:
        thread.start()
    for _ in range(operations):
        enough.acquire()
    for pid in cluster.pids:
        os.kill(pid, signal.SIGKILL)
    over.set()
    for thread in threads:
        thread.join()


def rounds(folder: Path, count: int, seed: int, **settings: object) -> None:
    random = Random(seed)
    loads = [Load(1000 * n, Random(random.random())) for n in range(1, CLIENTS + 1)]
    settings = {"data_dir": str(folder), "backups": seed % 2, "join_timeout": START, **settings}
    for number in range(count + 1):
        cluster = remuda.start(members=3, settings=settings, timeout=START)
        try:
            with cluster.connect(retry_reads=5) as client:
                if not number:
                    client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT)")
                found = dict(client.sql("SELECT id, x FROM t").fetchall())
            for load in loads:
                load.settle(found)
            if number < count:
                killed(cluster, loads, random.randrange(20, OPERATIONS_MAX))
        finally:
            cluster.stop()


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    rounds(tmp_path, 1, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2))
def test_many_rounds(tmp_path: Path, seed: int) -> None:
    rounds(tmp_path, 50, seed, checkpoint_size=100_000)
