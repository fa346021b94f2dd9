"""What the features are for: an application that asks for single entries and decides."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import remuda


@dataclass(frozen=True)
class Answers:
    """``median`` is in seconds, for one read of one entry."""

    reads: int
    median: float


def read_by_key(client: remuda.Client, keys: Sequence[tuple[str, str]], reads: int) -> Answers:
    """Ask for the features of routes, one after the other, as requests would."""
    features = client.map("route_features")
    times = []
    for number in range(reads):
        key = keys[number % len(keys)]
        started = time.perf_counter()
        found = features.get(key)
        times.append(time.perf_counter() - started)
        assert found is not None
        assert (found.carrier, found.origin) == key
    return Answers(reads, statistics.median(times))


def make_hangar(client: remuda.Client, places: int) -> None:
    client.sql("CREATE TABLE hangar (place INTEGER PRIMARY KEY, tailnum VARCHAR)")
    client.map("hangar").put_all({place: {"tailnum": None} for place in range(1, places + 1)})


def book(client: remuda.Client, tailnum: str, at_least: int) -> bool:
    """Give a plane a place in the hangar if it has flown ``at_least`` minutes and one is free.

    What is read and what is written belong together: two applications that book at the same time
    never get the same place, one of them decides again.
    """

    def decide(transaction: remuda.Transaction) -> bool:
        plane = transaction.map("planes").get(tailnum)
        if plane is None or (plane.minutes_in_air or 0) < at_least:
            return False
        taken = transaction.sql("SELECT 1 FROM hangar WHERE tailnum = ?", tailnum).fetchall()
        free = transaction.sql("SELECT min(place) FROM hangar WHERE tailnum IS NULL").fetchall()
        if taken or free[0][0] is None:
            return False
        transaction.map("hangar").put(free[0][0], {"tailnum": tailnum})
        return True

    return client.run_transaction(decide)
