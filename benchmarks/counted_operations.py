"""The operations whose Python calls ``calls.py`` counts, on members and a client in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import remuda.aio
from counted_loop import CountingLoop, counted_world
from remuda.config import MemberConfig
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.sql import BIGINT
from remuda.member.member import Member
from remuda.rpc.connection import ChannelKind

MEMBERS = 3
ROWS = 3000
KEYS = 50
TOGETHER = 16
BATCH = 1000
"""Entries of a batch; their keys belong to all members."""
SETTLED = 3.0
"""Seconds for the members between filling a map and asking: statistics, backups."""

NUMBERED = """
    CREATE TABLE IF NOT EXISTS numbered (
        id BIGSERIAL PRIMARY KEY, name VARCHAR, made TIMESTAMPTZ DEFAULT now())
"""

Operation = Callable[[int], Awaitable[Any]]
"""Takes the number of the repetition: each has keys of its own."""


@dataclass
class Item:
    name: str
    category: str
    price: float
    stock: int


def item(key: int) -> Item:
    return Item(f"name{key}", f"c{key // 3}", key * 1.5, key)


class Grid:
    """A cluster, a client that is connected to all of its members, and a map ``items``."""

    def __init__(
        self, loop: CountingLoop, members: list[Member], client: remuda.aio.Client
    ) -> None:
        self.loop, self.members, self.client = loop, members, client
        self._hash = hasher((BIGINT,))

    def keys_of(self, primary: int, backup: int, first: int = 0) -> list[int]:
        """From ``first`` on, keys with this primary, and this backup if there is any."""
        replicas = self.members[0].core.view.replicas
        wanted = (primary, backup)
        owned = (
            key
            for key in range(first, first + ROWS)
            if (row := replicas[partition_of(self._hash((key,)))]) == wanted[: len(row)]
        )
        return list(islice(owned, KEYS))


@contextmanager
def grid(folder: Path | None = None, **settings: Any) -> Iterator[Grid]:
    """Three members with the default settings, and those given. ``folder`` is for their logs."""
    loop = CountingLoop()

    def member(place: int, **more: Any) -> Member:
        if folder is not None:
            more["data_dir"] = str(folder / f"member-{place}")
        config = MemberConfig(cluster_size=MEMBERS, workers=0, metrics_port=-1, **settings, **more)
        return Member(config, counted_world(loop, place))

    async def form() -> Grid:
        first = member(1)
        starts = [loop.create_task(first.start())]
        while ChannelKind.DATA not in first._servers:  # noqa: SLF001 (as a test does)
            await asyncio.sleep(0.001)
        seed = first.addresses()["control"]
        others = [member(place, join=seed) for place in range(2, MEMBERS + 1)]
        starts += [loop.create_task(other.start()) for other in others]
        for start in starts:
            await start
        members = sorted([first, *others], key=lambda found: found.info.number)
        client = await remuda.aio.connect([(m.info.host, m.info.user_port) for m in members])
        await client.map("items", Item).put_all({key: item(key) for key in range(ROWS)})
        return Grid(loop, members, client)

    formed = loop.complete(form())
    try:
        loop.rest(SETTLED)
        yield formed
    finally:
        loop.complete(formed.client.close())
        for each in reversed(formed.members):
            loop.complete(each.stop())


async def by_key(grid: Grid) -> dict[str, Operation]:
    """Gets, writes and statements of one entry."""
    items = grid.client.map("items", Item)
    keys, absent = grid.keys_of(2, 3), grid.keys_of(2, 3, ROWS)
    select = await grid.client.prepare(
        "SELECT name, category, price, stock FROM items WHERE __key = ?"
    )
    update = await grid.client.prepare("UPDATE items SET stock = stock + ? WHERE __key = ?")
    insert = await grid.client.prepare(
        "INSERT INTO items (__key, name, category, price, stock) VALUES (?, ?, ?, ?, ?)"
    )
    delete = await grid.client.prepare("DELETE FROM items WHERE __key = ?")

    async def rows(number: int) -> None:
        assert len(await (await select(keys[number])).fetchall()) == 1

    async def changed(cursor: Awaitable[Any]) -> None:
        assert (await cursor).rowcount == 1

    def inserted(number: int) -> Awaitable[None]:
        key = absent[number]
        return changed(insert(key, f"name{key}", f"c{key}", 1.5, key))

    async def at_once(number: int) -> None:
        """They share an owner and a backup."""
        await asyncio.gather(*(items.put(key, item(number)) for key in keys[:TOGETHER]))

    return {
        "get": lambda number: items.get(keys[number]),
        "put": lambda number: items.put(keys[number], item(number)),
        "16 puts at once": at_once,
        "compute": lambda number: items.compute(keys[number], "stock = stock + ?", 1),
        "SELECT by key": rows,
        "UPDATE by key": lambda number: changed(update(1, keys[number])),
        "INSERT by key": inserted,
        "DELETE by key": lambda number: changed(delete(absent[number])),
    }


async def with_numbers(grid: Grid) -> dict[str, Operation]:
    """Of a client whose session has numbers of sequences from then on."""
    await grid.client.sql(NUMBERED)
    insert = await grid.client.prepare("INSERT INTO numbered (name) VALUES (?)")

    async def inserted(number: int) -> None:
        assert (await insert(f"name{number}")).rowcount == 1

    return {"INSERT that takes a number": inserted}


async def children(grid: Grid) -> dict[str, Operation]:
    """Rows that name a row of another map, whose primary is another member."""
    (parent,) = grid.keys_of(1, 2)[:1]
    keys = grid.keys_of(2, 3, ROWS)
    for text in (
        "CREATE TABLE parents (id BIGINT PRIMARY KEY)",
        "CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT REFERENCES parents)",
    ):
        await grid.client.sql(text)
    await grid.client.sql("INSERT INTO parents VALUES (?)", parent)
    insert = await grid.client.prepare("INSERT INTO children VALUES (?, ?)")

    async def inserted(number: int) -> None:
        assert (await insert(keys[number], parent)).rowcount == 1

    return {"INSERT by key of a child": inserted}


async def batches(grid: Grid) -> dict[str, Operation]:
    """Reads and writes of ``BATCH`` entries in one call."""
    items = grid.client.map("items", Item)

    entries = [{key: item(key) for key in range(first, first + BATCH)} for first in (0, BATCH)]

    async def got(number: int) -> None:
        assert len(await items.get_all(entries[number % 2])) == BATCH

    return {
        "put_all of 1000": lambda number: items.put_all(entries[number % 2]),
        "get_all of 1000": got,
    }


async def transactions(grid: Grid) -> dict[str, Operation]:
    """Of two keys with different primaries and backups."""
    client = grid.client
    pairs = list(zip(grid.keys_of(1, 2), grid.keys_of(2, 3), strict=True))

    async def puts(number: int, **options: Any) -> None:
        async with client.transaction(**options) as transaction:
            items = transaction.map("items", Item)
            for key in pairs[number]:
                await items.put(key, item(key))

    async def modified(number: int, **options: Any) -> None:
        async with client.transaction(**options) as transaction:
            items = transaction.map("items", Item)
            found = [await items.get(key) for key in pairs[number]]
            for key, each in zip(pairs[number], found, strict=True):
                each.stock += 1
                await items.put(key, each)

    return {
        "transaction of two puts": puts,
        "read-modify-write of two keys": partial(modified, isolation="serializable"),
        "two puts with locks": partial(puts, concurrency="pessimistic"),
        "read-modify-write with locks": partial(modified, concurrency="pessimistic"),
    }


async def queries(grid: Grid) -> dict[str, Operation]:
    """Statements with cached plans that read more than one key, or none."""
    client = grid.client
    await client.sql("CREATE INDEX items_category ON items (category)")
    for name in ("carriers", "flights"):
        entries = {key: item(key) for key in range(30)}
        await client.map(name, Item).put_all(entries)
    indexed = await client.prepare("SELECT __key, stock FROM items WHERE category = ?")
    join = await client.prepare(
        "SELECT f.name, c.price FROM flights f JOIN carriers c ON f.stock = c.stock"
    )

    async def few(number: int) -> None:
        assert len(await (await indexed(f"c{number + 500}")).fetchall()) == 3

    async def one(number: int) -> None:
        assert await (await client.sql("SELECT 1 + 1")).scalar() == 2

    async def joined(number: int) -> None:
        assert len(await (await join()).fetchall()) == 30

    return {"SELECT by secondary index": few, "SELECT 1 + 1": one, "join of two maps": joined}
