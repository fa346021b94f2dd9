"""Point reads and writes with 3 members, beside a bare asyncio echo, DuckDB and Redis.

All are measured in one run and by turns, because a loopback round trip differs by a factor of two
from hour to hour. The echo server is an asyncio process of its own that sends back 64 bytes; it is
measured with an asyncio client (the reference) and with a blocking socket, as Remuda's client uses.
DuckDB runs inside this process, without any round trip. Redis is measured when ``redis-server`` is
installed, with redis-py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import multiprocessing
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

import duckdb
import pyarrow as pa

import remuda
from scrape import INTERVAL, cost, page

MESSAGE = bytes(64)
KEYS = 100_000
WARM_UP = 300
TARGETS = {"remuda get": 2.0, "remuda prepared key SELECT": 5.0}
REFERENCE = "asyncio echo"


@dataclass
class Item:
    name: str
    category: str
    price: float
    small: int
    stock: int


def item(key: int) -> Item:
    return Item(f"name{key % 1000}", f"c{key % 7}", key * 1.5, key % 100, key)


# --- the echo ----------------------------------------------------------------------------------


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def serve_echo(pipe: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


class EchoClient(asyncio.Protocol):
    answer: asyncio.Future[bytes]

    def data_received(self, data: bytes) -> None:
        self.answer.set_result(data)


async def async_echo(port: int, count: int) -> list[float]:
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(EchoClient, "127.0.0.1", port)
    times = []
    for _ in range(count + WARM_UP):
        begin = time.perf_counter()
        client.answer = loop.create_future()
        transport.write(MESSAGE)
        await client.answer
        times.append(time.perf_counter() - begin)
    transport.close()
    return times[WARM_UP:]


def blocking_echo(port: int) -> Callable[[], object]:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def once() -> None:
        connection.sendall(MESSAGE)
        connection.recv(4096)

    return once


@contextlib.contextmanager
def echo_server() -> Iterator[int]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve_echo, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


# --- neighbours --------------------------------------------------------------------------------


@contextlib.contextmanager
def redis_client() -> Iterator[object | None]:
    program = shutil.which("redis-server")
    if program is None:
        print("(redis-server is not installed: not measured)")
        yield None
        return
    redis = importlib.import_module("redis")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--port", str(port), "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield client
    finally:
        server.terminate()
        server.wait()


def duckdb_read(table: pa.Table, chance: random.Random) -> Callable[[], object]:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", table)
    connection.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR, category VARCHAR,"
                       " price DOUBLE, small INTEGER, stock BIGINT)")  # fmt: skip
    connection.execute("INSERT INTO items SELECT * FROM source")
    connection.execute("PREPARE read AS SELECT * FROM items WHERE id = $1")
    return lambda: connection.execute(f"EXECUTE read({chance.randrange(KEYS)})").fetchall()


# --- measuring ---------------------------------------------------------------------------------


def timed(operation: Callable[[], object], count: int) -> list[float]:
    for _ in range(WARM_UP):
        operation()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        operation()
        times.append(time.perf_counter() - begin)
    return times


def remuda_operations(
    client: remuda.Client, chance: random.Random
) -> dict[str, Callable[[], object]]:
    items = client.map("items", Item)
    text = "SELECT name, category, price, small, stock FROM items WHERE __key = ?"
    statement = client.prepare(text)
    assert items.get(5) == item(5)
    assert statement(5).fetchone() == client.sql(text, 5).fetchone()
    return {
        "remuda get": lambda: items.get(chance.randrange(KEYS)),
        "remuda put": lambda: items.put(key := chance.randrange(KEYS), item(key)),
        "remuda prepared key SELECT": lambda: statement(chance.randrange(KEYS)).fetchall(),
        "remuda key SELECT": lambda: client.sql(text, chance.randrange(KEYS)).fetchall(),
    }


def redis_operations(client: object, chance: random.Random) -> dict[str, Callable[[], object]]:
    fields = {name: str(value) for name, value in vars(item(1)).items()}
    for key in range(1000):
        client.hset(f"item:{key}", mapping=fields)  # type: ignore[attr-defined]
    return {
        "redis hgetall": lambda: client.hgetall(f"item:{chance.randrange(1000)}"),  # type: ignore[attr-defined]
        "redis hset": lambda: client.hset(  # type: ignore[attr-defined]
            f"item:{chance.randrange(1000)}", mapping=fields
        ),
    }


def bulk(client: remuda.Client, table: pa.Table) -> None:
    """Rates of the two bulk writes."""
    entries = {key: item(key) for key in range(KEYS)}
    begin = time.perf_counter()
    client.map("items", Item).put_all(entries)
    objects = KEYS / (time.perf_counter() - begin)
    begin = time.perf_counter()
    client.map("tables").put_all(table, key="id")
    rows = KEYS / (time.perf_counter() - begin)
    print(f"put_all of objects: {objects:,.0f} entries/s; of an Arrow table: {rows:,.0f} rows/s\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="operations per round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--scrape",
        action="store_true",
        help="rather gets and puts, by turns with and without a scrape of all members each 5 s",
    )
    options = parser.parse_args()
    if options.scrape:
        return beside_scrapes(options.rounds)
    chance = random.Random(1)
    rows = [(key, *vars(item(key)).values()) for key in range(KEYS)]
    names = ("id", *vars(item(0)))
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    rounds: dict[str, list[tuple[float, float]]] = {}
    with (
        echo_server() as port,
        redis_client() as redis,
        remuda.start(members=3) as cluster,
        cluster.connect() as client,
    ):
        bulk(client, table)
        operations = {"blocking socket to asyncio echo": blocking_echo(port)}
        operations |= remuda_operations(client, chance)
        operations["duckdb key SELECT (in process)"] = duckdb_read(table, chance)
        if redis is not None:
            operations |= redis_operations(redis, chance)
        for _ in range(options.rounds):
            note(rounds, REFERENCE, asyncio.run(async_echo(port, options.count)))
            for name, operation in operations.items():
                note(rounds, name, timed(operation, options.count))
    report(rounds)
    return 0


# --- beside a scraper --------------------------------------------------------------------------


def scrape(addresses: list[str], pipe: Connection) -> None:
    """All pages at once, again and again, until something comes from the pipe."""
    while True:
        for address in addresses:
            page(address)
        pipe.send(None)
        if pipe.poll(INTERVAL):
            return


@contextlib.contextmanager
def scraper(addresses: list[str]) -> Iterator[None]:
    """A process of its own, which has scraped once before the time of others begins to count."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=scrape, args=(addresses, theirs))
    process.start()
    ours.recv()
    try:
        yield
    finally:
        ours.send(None)
        process.join()


def lasting(operation: Callable[[], object], seconds: float) -> list[float]:
    """Times of as many operations as fit."""
    times, now = [], time.perf_counter()
    end = now + seconds
    while now < end:
        begin = now
        operation()
        now = time.perf_counter()
        times.append(now - begin)
    return times


def beside_scrapes(rounds: int) -> int:
    """A round is long enough for two scrapes of each operation. The order of the two kinds of
    rounds changes, because a machine warms up."""
    chance = random.Random(1)
    figures: dict[tuple[str, bool], list[tuple[float, float, float]]] = {}
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        client.map("items", Item).put_all({key: item(key) for key in range(KEYS)})
        addresses = [member.metrics for member in cluster.members]
        print(f"{cost(addresses[0])}\n", flush=True)
        operations = remuda_operations(client, chance)
        for number in range(rounds):
            for scraped in (False, True) if number % 2 else (True, False):
                with scraper(addresses) if scraped else contextlib.nullcontext():
                    for name in ("remuda get", "remuda put"):
                        times = sorted(lasting(operations[name], 2 * INTERVAL))
                        p99 = times[int(len(times) * 0.99)]
                        found = (statistics.median(times), p99, 1 / statistics.fmean(times))
                        figures.setdefault((name, scraped), []).append(found)
    print("| operation | p50 µs | p50 µs, scraped | ratio | p99, ratio | operations/s, ratio |")
    print("|---|---|---|---|---|---|")
    for name in ("remuda get", "remuda put"):
        alone, beside = figures[name, False], figures[name, True]
        pairs = list(zip(alone, beside, strict=True))
        ratios = [statistics.median(b[at] / a[at] for a, b in pairs) for at in range(3)]
        p50s = [statistics.median(row[0] for row in rows) * 1e6 for rows in (alone, beside)]
        print(
            f"| {name} | {p50s[0]:.1f} | {p50s[1]:.1f} |" + "".join(f" {r:.3f} |" for r in ratios)
        )
    return 0


def note(rounds: dict[str, list[tuple[float, float]]], name: str, times: list[float]) -> None:
    ordered = sorted(times)
    p99 = ordered[int(len(ordered) * 0.99)]
    rounds.setdefault(name, []).append((statistics.median(ordered), p99))


def report(rounds: dict[str, list[tuple[float, float]]]) -> None:
    """Medians over the rounds; ratios to the echo of the same round."""
    reference = [p50 for p50, _ in rounds[REFERENCE]]
    print(f"| operation | p50 µs | p99 µs | p50 / {REFERENCE} | target |")
    print("|---|---|---|---|---|")
    for name, found in rounds.items():
        p50 = statistics.median(p50 for p50, _ in found) * 1e6
        p99 = statistics.median(p99 for _, p99 in found) * 1e6
        ratio = statistics.median(
            p50 / echo for (p50, _), echo in zip(found, reference, strict=True)
        )
        target = f"≤ {TARGETS[name]:g}" if name in TARGETS else ""
        print(f"| {name} | {p50:.0f} | {p99:.0f} | {ratio:.2f} | {target} |")


if __name__ == "__main__":
    sys.exit(main())
