"""Snapshots: what a cut every second costs transactions, and how fast maps come back:
``./run bench snapshot``.

Two member processes that keep logs. Threads move money between accounts, in blocks of some seconds
that take turns: with a cut (``CREATE SNAPSHOT ... INCREMENT``) every second, and without; the ratio
is that of neighbouring blocks. Then a map is stored and restored under another name, and its
objects are read by Arrow alone, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa

import remuda
from remuda.client.blocking.client import Client
from remuda.errors import RemudaError

ACCOUNTS = 10_000
THREADS = 4
ROUNDS = 10


def moved(cluster: str, seconds: float) -> int:
    """Transactions of all threads."""
    counts = [0] * THREADS
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        with remuda.connect(cluster) as client:
            turn = 0
            while time.perf_counter() < end:
                turn += 1
                a = (turn * 7919 + number * 2503) % ACCOUNTS
                b = (a + 1) % ACCOUNTS
                try:
                    with client.transaction() as tx:
                        accounts = tx.map("accounts")
                        first, second = accounts[a], accounts[b]
                        accounts.put(a, {"v": first.v - 1})
                        accounts.put(b, {"v": second.v + 1})
                except RemudaError:
                    continue
                counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def price_of_cuts(client: Client, address: str, seconds: float) -> None:
    client.map("accounts").put_all({key: {"v": 100} for key in range(ACCOUNTS)})
    client.snapshots.create("cuts")
    ratios, took, kinds = [], [], []
    for turn in range(ROUNDS):
        done = {}
        for cutting in (turn % 2 == 1, turn % 2 == 0):
            over = threading.Event()

            def cut(over: threading.Event = over) -> None:
                while not over.wait(1.0):
                    begin = time.perf_counter()
                    kinds.append(client.snapshots.create("cuts", increment=True).kind)
                    took.append(time.perf_counter() - begin)

            cutter = threading.Thread(target=cut if cutting else over.wait)
            cutter.start()
            done[cutting] = moved(address, seconds)
            over.set()
            cutter.join()
        ratios.append(done[True] / max(done[False], 1))
        without, with_cuts = done[False] / seconds, done[True] / seconds
        print(f"  {without:8.0f} /s without, {with_cuts:8.0f} /s with cuts", flush=True)
    print(
        f"transactions with a cut every second: {statistics.median(ratios):.2f} x of without"
        f" (target 0.95), {len(took)} cuts, {kinds.count('base')} of them bases,"
        f" {statistics.median(took) * 1e3:.0f} ms each"
    )


NARROW = (
    "(k BIGINT PRIMARY KEY, a DOUBLE, b DOUBLE, c BIGINT, d TEXT)",
    "n, random(), random(), n, 'row ' || n",
)
WIDE = (  # as lineitem of TPC-H
    (
        "(l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT,"
        " l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2),"
        " l_tax DECIMAL(15,2), l_returnflag TEXT, l_linestatus TEXT, l_shipdate DATE,"
        " l_commitdate DATE, l_receiptdate DATE, l_shipinstruct TEXT, l_shipmode TEXT,"
        " l_comment TEXT, PRIMARY KEY (l_orderkey, l_linenumber))"
    ),
    (
        "n / 4, n % 200000, n % 10000, n % 4, n % 50, n * 1.01, n % 10 * 0.01, n % 8 * 0.01,"
        " CASE n % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'N' ELSE 'R' END,"
        " CASE n % 2 WHEN 0 THEN 'F' ELSE 'O' END, DATE '1992-01-02' + n % 2500,"
        " DATE '1992-01-31' + n % 2400, DATE '1992-01-04' + n % 2500, 'DELIVER IN PERSON',"
        " CASE n % 3 WHEN 0 THEN 'TRUCK' WHEN 1 THEN 'AIR' ELSE 'REG AIR' END,"
        " 'carefully final deposits ' || n"
    ),
)


def rate_of_restore(
    client: Client, store: Path, rows: int, name: str, what: tuple[str, str]
) -> None:
    columns, values = what
    client.sql(f"CREATE TABLE {name} {columns}")
    client.sql(f"INSERT INTO {name} SELECT {values} FROM generate_series(1, {rows}) AS g (n)")
    begin = time.perf_counter()
    made = client.snapshots.create(name)
    print(f"{rows:,} rows stored in {time.perf_counter() - begin:.2f} s, {made.bytes:,} bytes")
    ratios = []
    for number in range(3):
        files = [
            path
            for path in sorted((store / name).rglob("*.arrow"))
            if pa.ipc.open_file(path).schema.names[3] == columns[1:].split()[0]
        ]
        begin = time.perf_counter()
        found = sum(pa.ipc.open_file(path.read_bytes()).read_all().num_rows for path in files)
        read = time.perf_counter() - begin
        begin = time.perf_counter()
        client.snapshots.restore(name, maps={name: f"{name}_{number}"})
        restored = time.perf_counter() - begin
        client.sql(f"DROP TABLE {name}_{number}")
        ratios.append(read / restored)
        print(f"  {found:,} rows: Arrow reads {read:.3f} s, restore {restored:.2f} s")
    client.sql(f"DROP TABLE {name}")
    print(f"restore, {name}: {statistics.median(ratios):.3f} x of the rate of Arrow (target 0.5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "store"
        settings = {"snapshot_store": str(store), "data_dir": f"{place}/data", "log_sync": "os"}
        with (
            remuda.start(2, settings=settings) as cluster,
            remuda.connect(cluster.addresses, request_timeout=600.0) as client,
        ):
            price_of_cuts(client, cluster.address, max(3.0 * options.scale, 2.5))
            for name, what in (("narrow", NARROW), ("wide", WIDE)):
                rate_of_restore(client, store, int(1_000_000 * options.scale), name, what)


if __name__ == "__main__":
    main()
