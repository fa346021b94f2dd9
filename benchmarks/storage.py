"""Storage and key hashes in one process: rates, memory, pauses. Prints one figure per line.

Times are CPU seconds of this process: what other processes do does not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.hashes.keyhash import hash_arrays, partitions_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.storage.maps.map_store import MapStore

SCHEMA = MapSchema(
    "bench",
    (
        Column("id", sql.BIGINT, nullable=False),
        Column("name", sql.VARCHAR),
        Column("category", sql.VARCHAR),
        Column("price", sql.DOUBLE),
        Column("small", sql.INTEGER),
        Column("amount", sql.decimal(15, 2)),
    ),
    key=("id",),
    partition_by=("id",),
)
OPERATIONS = 200_000


def make_batch(ids: np.ndarray, shift: int = 0) -> pa.RecordBatch:
    names = np.char.add("name", (ids % 1000).astype(str))
    categories = np.char.add("c", (ids % 7).astype(str))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids),
            pa.array(names).cast(pa.string()),
            pa.array(categories).cast(pa.string()),
            pa.array(ids * 1.5),
            pa.array((ids % 100).astype(np.int32)),
            pa.array(ids + shift),
        ],
        schema=engine_schema(SCHEMA),
    )


def rate(work: Callable[[], object], count: int, repeats: int = 3) -> float:
    """The median rate per second of ``repeats`` calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return count / sorted(seconds)[repeats // 2]


def show(name: str, figure: float, unit: str) -> None:
    print(f"{name:<46} {figure:>12,.2f} {unit}", flush=True)


def hashing(rows: int) -> None:
    longs = pa.array(np.arange(rows))
    texts = pa.array([f"key-{number:08}" for number in range(rows)])
    uuids = pa.array([f"{number:036}" for number in range(rows)])
    for name, array, sql_type in (
        ("bigint", longs, sql.BIGINT),
        ("12 characters", texts, sql.VARCHAR),
        ("36 characters", uuids, sql.VARCHAR),
    ):
        per_second = rate(lambda a=array, t=sql_type: partitions_of(hash_arrays([a], [t])), rows)
        show(f"key hash and partition, {name}", per_second / 1e6, "M rows/s")


def bulk(rows: int, random: np.random.Generator) -> MapStore:
    batch = make_batch(random.permutation(rows))
    stores: list[MapStore] = []

    def load() -> None:
        stores.append(MapStore(SCHEMA))
        stores[-1].upsert_batch(batch, 10)

    show("upsert_batch into an empty map", rate(load, rows) / 1e6, "M rows/s")
    store = stores.pop()
    stores.clear()
    show("memory beyond Arrow, bulk-loaded", store.bytes / rows - batch.nbytes / rows, "B/key")
    show("full scan, unchanged", rate(lambda: scan(store, 10), rows) / 1e6, "M rows/s")
    return store


def scan(store: MapStore, at: int) -> int:
    cursor = store.scan(at, range(len(SCHEMA.columns)))
    rows = 0
    while (batch := cursor.next()) is not None:
        rows += batch.num_rows
    return rows


def maintain(store: MapStore, horizon: int) -> tuple[float, float]:
    """Upkeep to the end: seconds in all, seconds of the longest slice."""
    total = longest = 0.0
    more = True
    while more:
        start = time.process_time()
        more = store.maintain(horizon)
        taken = time.process_time() - start
        total += taken
        longest = max(longest, taken)
    return total, longest


def single(store: MapStore, rows: int, random: np.random.Generator) -> None:
    keys = [(int(key),) for key in random.integers(0, rows, OPERATIONS)]
    clock = 1000

    def get_all() -> None:
        get = store.get
        for key in keys:
            get(key, clock)

    def put_all(name: str, first: int) -> None:
        nonlocal clock
        upkeep = 0.0
        rows = [(key + first, "name", "category", 1.0, 3, 4) for (key,) in keys]
        start = time.process_time()
        for row in rows:
            clock += 1
            store.put(row, clock)
            if not clock % 1024:
                before = time.process_time()
                store.maintain(clock)
                upkeep += time.process_time() - before
        taken = time.process_time() - start
        show(f"put {name}", OPERATIONS / (taken - upkeep) / 1e3, "k/s")
        show(f"put {name}, upkeep included", OPERATIONS / taken / 1e3, "k/s")

    show("get", rate(get_all, OPERATIONS) / 1e3, "k/s")
    put_all("over loaded keys", 0)
    put_all("of new keys", rows)
    show("get with a fresh delta", rate(get_all, OPERATIONS) / 1e3, "k/s")
    total, longest = maintain(store, clock)
    show("upkeep afterwards: in all", total * 1e3, "ms")
    show("upkeep afterwards: longest slice", longest * 1e3, "ms")
    cursor = store.scan(clock, range(len(SCHEMA.columns)))
    arrow = 0
    while (batch := cursor.next()) is not None:
        arrow += batch.nbytes
    show("memory beyond Arrow, after puts", (store.bytes - arrow) / store.rows, "B/key")


def updates(rows: int, random: np.random.Generator) -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(make_batch(np.arange(rows)), 10)
    shuffled = make_batch(random.permutation(rows), 5)
    start = time.process_time()
    store.upsert_batch(shuffled, 20)
    show("upsert_batch over all rows", rows / (time.process_time() - start) / 1e6, "M rows/s")
    total, longest = maintain(store, 20)
    show("upkeep afterwards: in all", total * 1e3, "ms")
    show("upkeep afterwards: longest slice", longest * 1e3, "ms")
    tenth = make_batch(random.permutation(rows)[: rows // 10], 7)
    start = time.process_time()
    store.upsert_batch(tenth, 30)
    show("upsert_batch over a tenth", rows / 10 / (time.process_time() - start) / 1e6, "M rows/s")
    show("full scan after 10% updates", rate(lambda: scan(store, 30), rows, 5) / 1e6, "M rows/s")
    batches = [make_batch(random.integers(0, rows, 1000), 9) for _ in range(200)]
    start = time.process_time()
    for number, batch in enumerate(batches):
        store.upsert_batch(batch, 40 + number)
        store.maintain(40)
    taken = time.process_time() - start
    show("upsert_batch of 1,000 rows, upkeep included", 200_000 / taken / 1e6, "M rows/s")
    start = time.process_time()
    store.statistics()
    show("statistics", (time.process_time() - start) * 1e3, "ms")


def main(rows: int = 1_000_000) -> None:
    random = np.random.default_rng(42)
    hashing(rows)
    single(bulk(rows, random), rows, random)
    updates(rows, random)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
