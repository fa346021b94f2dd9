"""PostgreSQL's clients at the door of three members, beside PostgreSQL itself, in one run.

A key SELECT, prepared and in binary, by psycopg and by asyncpg: through the member that owns the
key, and through one that does not. Rounds alternate between the servers, so each pair of rounds
meets the same machine; the ratio is the median of the pairs' ratios of their p50. Then a million
rows go out as binary, by psycopg, and the ratio is one of rows per second.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import psycopg

import remuda
from peers import postgres
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.sql import BIGINT
from remuda.member.state.clients import PID_SHIFT

KEYS = 20_000
WARM_UP = 200
SELECT = "SELECT id, name, price FROM items WHERE id = "
TARGETS = {("psycopg", True): 1.5, ("asyncpg", True): 2.0}
FORWARDED = 3.0
ROWS_TARGET = 0.8

Read = Callable[[int], Awaitable[Any]]


def fill(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR, price DOUBLE PRECISION)"
    )
    connection.execute(
        f"INSERT INTO items SELECT x, 'name' || x, x * 1.5 FROM generate_series(1, {KEYS}) t(x)"
    )


def keys_by_owner(connection: psycopg.Connection[Any]) -> dict[int, list[int]]:
    rows = connection.execute("SELECT partition, member FROM sys.partitions").fetchall()
    owners, hashed = dict(rows), hasher((BIGINT,))
    found: dict[int, list[int]] = {}
    for key in range(1, KEYS + 1):
        found.setdefault(owners[partition_of(hashed((key,)))], []).append(key)
    return found


# --- reads by key --------------------------------------------------------------------------------


async def by_psycopg(address: dict[str, Any]) -> Read:
    connection = await psycopg.AsyncConnection.connect(**address, autocommit=True)
    connection.prepare_threshold = 0
    cursor = connection.cursor(binary=True)

    async def read(key: int) -> Any:
        await cursor.execute(SELECT + "%b", (key,))
        return await cursor.fetchone()

    return read


async def by_asyncpg(address: dict[str, Any]) -> Read:
    named = {"database" if name == "dbname" else name: value for name, value in address.items()}
    connection = await importlib.import_module("asyncpg").connect(**named, ssl=False)
    statement = await connection.prepare(SELECT + "$1")

    async def read(key: int) -> Any:
        return tuple(await statement.fetchrow(key))

    return read


async def p50(read: Read, keys: Iterable[int]) -> float:
    """Seconds."""
    times = []
    for key in keys:
        began = time.perf_counter()
        row = await read(key)
        times.append(time.perf_counter() - began)
        assert row[:2] == (key, f"name{key}"), row
    return statistics.median(times)


async def reads(
    driver: str,
    connect: Callable[[dict[str, Any]], Awaitable[Read]],
    doors: tuple[dict[str, Any], dict[str, Any]],
    own: dict[int, list[int]],
    options: argparse.Namespace,
) -> None:
    """``doors``: of the member with the least number, and of PostgreSQL."""
    ours, theirs = await connect(doors[0]), await connect(doors[1])
    chance = random.Random(1)
    mine = min(own)
    others = [key for member, keys in own.items() if member != mine for key in keys]
    for owned, keys in ((True, own[mine]), (False, others)):
        for read in (ours, theirs):
            await p50(read, chance.choices(keys, k=WARM_UP))
        pairs = []
        for index in range(options.rounds):
            chosen = chance.choices(keys, k=options.reads)
            taken = {}
            for name in ("ours", "theirs") if index % 2 else ("theirs", "ours"):
                taken[name] = await p50(ours if name == "ours" else theirs, chosen)
            pairs.append((taken["ours"], taken["theirs"]))
        ratio = statistics.median(a / b for a, b in pairs)
        a, b = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
        target = TARGETS.get((driver, owned), FORWARDED)
        where = "the member owns the key" if owned else "another member owns it"
        print(
            f"{driver:8} {where:24} p50 {a:7.0f} us, PostgreSQL {b:7.0f} us: "
            f"{ratio:.2f} x (target <= {target:g})",
            flush=True,
        )


# --- rows ----------------------------------------------------------------------------------------


def out(address: dict[str, Any], rows: int) -> float:
    """Rows per second of a large result, as libpq receives them: without Python's objects."""
    text = f"SELECT x, 'name' || x, x * 1.5::float8 FROM generate_series(1, {rows}) t(x)"
    with psycopg.connect(**address, autocommit=True) as connection:
        began = time.perf_counter()
        found = connection.pgconn.exec_params(text.encode(), None, result_format=1)
        taken = time.perf_counter() - began
    assert found.ntuples == rows, found.error_message
    return rows / taken


def rows_out(doors: tuple[dict[str, Any], dict[str, Any]], options: argparse.Namespace) -> None:
    pairs = [(out(doors[0], options.rows), out(doors[1], options.rows)) for _ in range(3)]
    ratio = statistics.median(a / b for a, b in pairs)
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{options.rows:,} rows out: {a:,.0f} rows/s, PostgreSQL {b:,.0f} rows/s: "
        f"{ratio:.2f} x (target >= {ROWS_TARGET:g})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="pairs of rounds of each kind")
    parser.add_argument("--reads", type=int, default=1500, help="reads of a round")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with postgres() as peer, remuda.start(members=3) as cluster:
        if peer is None:
            return
        theirs = dict(psycopg.conninfo.conninfo_to_dict(peer))
        own: dict[int, list[int]] = {}
        ours: dict[str, Any] = {}
        for member in cluster.members:
            host, _, port = member.postgres.partition(":")
            address = {"host": host, "port": int(port), "user": "bench", "dbname": "bench"}
            with psycopg.connect(**address, autocommit=True) as connection:
                if not own:
                    fill(connection)
                    own = keys_by_owner(connection)
                if connection.info.backend_pid >> PID_SHIFT == min(own):
                    ours = address
        with psycopg.connect(**theirs, autocommit=True) as connection:
            fill(connection)
        doors = ours, {**theirs, "port": int(theirs["port"])}
        for driver, connect in (("psycopg", by_psycopg), ("asyncpg", by_asyncpg)):
            if importlib.util.find_spec(driver) is None:
                print(f"({driver} is not installed: not measured)")
                continue
            asyncio.run(reads(driver, connect, doors, own, options))
        rows_out(doors, options)


if __name__ == "__main__":
    main()
