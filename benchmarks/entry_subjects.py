"""The same entry in Remuda, Redis and PostgreSQL: a number and five fields, as an object."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import remuda

KEYS = 100_000
BATCH = 1000
MOVED = {"put_all": BATCH, "get_all": BATCH}
"""Entries that an operation moves, where that is not 1."""


@dataclass
class Item:
    name: str
    category: str
    price: float
    small: int
    stock: int


def item(key: int) -> Item:
    return Item(f"name{key % 1000}", f"c{key % 7}", key * 1.5, key % 100, key)


def batch(chance: random.Random) -> list[int]:
    return chance.sample(range(KEYS), BATCH)


class EntrySession:
    """One connection; subclasses get and put one entry or many, as ``Item`` objects."""

    def __init__(self) -> None:
        self.operations: dict[str, Callable[[random.Random], object]] = {
            "get": lambda chance: self.get(chance.randrange(KEYS)),
            "put": lambda chance: self.put(key := chance.randrange(KEYS), item(key)),
            "mixed 80/20": self.mixed,
            "put_all": lambda chance: self.put_all({key: item(key) for key in batch(chance)}),
            "get_all": lambda chance: self.get_all(batch(chance)),
        }

    def mixed(self, chance: random.Random) -> None:
        key = chance.randrange(KEYS)
        if chance.random() < 0.8:
            self.get(key)
        else:
            self.put(key, item(key))

    def fill(self) -> None:
        for start in range(0, KEYS, 10_000):
            self.put_all({key: item(key) for key in range(start, start + 10_000)})
        assert self.get(77) == item(77), self.get(77)
        assert self.get_all([5, 99]) == {5: item(5), 99: item(99)}, self.get_all([5, 99])

    def get(self, key: int) -> Item:
        raise NotImplementedError

    def put(self, key: int, value: Item) -> None:
        raise NotImplementedError

    def put_all(self, entries: dict[int, Item]) -> None:
        raise NotImplementedError

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


# --- Remuda --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remuda:
    addresses: tuple[str, ...]
    name: str = "Remuda"

    def session(self) -> EntrySession:
        return RemudaSession(self.addresses)


class RemudaSession(EntrySession):
    def __init__(self, addresses: tuple[str, ...]) -> None:
        super().__init__()
        self._client = remuda.connect(addresses)
        self._items = self._client.map("items", Item)
        self.get, self.put = self._items.get, self._items.put  # type: ignore[method-assign]
        self.put_all, self.get_all = self._items.put_all, self._items.get_all  # type: ignore[method-assign,assignment]

    def close(self) -> None:
        self._client.close()


# --- Redis ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Redis:
    """``pickled``: an entry is one value of pickled bytes, not a hash of fields. ``replicas``:
    a write waits until so many replicas have it."""

    name: str
    port: int
    pickled: bool
    replicas: int

    def session(self) -> EntrySession:
        return PickleSession(self) if self.pickled else HashSession(self)


class RedisSession(EntrySession):
    def __init__(self, subject: Redis) -> None:
        super().__init__()
        import redis

        self._redis: Any = redis.Redis(port=subject.port)
        self._replicas = subject.replicas

    def write(self, entries: dict[int, Item]) -> None:
        """One round trip, WAIT included."""
        pipeline = self._redis.pipeline(transaction=False)
        for key, value in entries.items():
            self.add(pipeline, key, value)
        if self._replicas:
            pipeline.execute_command("WAIT", self._replicas, 10_000)
        answers = pipeline.execute()
        assert not self._replicas or answers[-1] >= self._replicas, "a replica does not follow"

    put_all = write

    def put(self, key: int, value: Item) -> None:
        if self._replicas:
            self.write({key: value})
        else:
            self.add(self._redis, key, value)

    def add(self, to: Any, key: int, value: Item) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._redis.close()


class HashSession(RedisSession):
    """An entry is a hash: HSET and HGETALL."""

    def add(self, to: Any, key: int, value: Item) -> None:
        to.hset(f"item:{key}", mapping=vars(value))

    def get(self, key: int) -> Item:
        return _from_hash(self._redis.hgetall(f"item:{key}"))

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.hgetall(f"item:{key}")
        return dict(zip(keys, map(_from_hash, pipeline.execute()), strict=True))


def _from_hash(found: dict[bytes, bytes]) -> Item:
    return Item(
        found[b"name"].decode(),
        found[b"category"].decode(),
        float(found[b"price"]),
        int(found[b"small"]),
        int(found[b"stock"]),
    )


class PickleSession(RedisSession):
    """An entry is one value: SET and GET, many of them in a pipeline."""

    def add(self, to: Any, key: int, value: Item) -> None:
        to.set(f"pickled:{key}", pickle.dumps(value))

    def get(self, key: int) -> Item:
        return pickle.loads(self._redis.get(f"pickled:{key}"))

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.get(f"pickled:{key}")
        return dict(zip(keys, map(pickle.loads, pipeline.execute()), strict=True))


# --- PostgreSQL ----------------------------------------------------------------------------------

CREATE = """CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT, category TEXT,
            price DOUBLE PRECISION, small INTEGER, stock BIGINT)"""
COLUMNS = "name, category, price, small, stock"
ON_CONFLICT = f"""ON CONFLICT (id) DO UPDATE SET ({COLUMNS}) =
    ({", ".join(f"excluded.{c.strip()}" for c in COLUMNS.split(","))})"""
PUT = f"INSERT INTO items VALUES (%s, %s, %s, %s, %s, %s) {ON_CONFLICT}"
PUT_ALL = f"""INSERT INTO items SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[],
    %s::float8[], %s::int[], %s::bigint[]) {ON_CONFLICT}"""


@dataclass(frozen=True)
class Postgres:
    name: str
    address: str
    synchronous_commit: str

    def session(self) -> EntrySession:
        return PostgresSession(self)


class PostgresSession(EntrySession):
    def __init__(self, subject: Postgres) -> None:
        super().__init__()
        import psycopg

        options = f"-c synchronous_commit={subject.synchronous_commit}"
        self._connection = psycopg.connect(subject.address, autocommit=True, options=options)
        self._connection.prepare_threshold = 0
        cursor = self._connection.cursor(binary=True)
        self._execute: Callable[..., Any] = cursor.execute

    def fill(self) -> None:
        self._execute("DROP TABLE IF EXISTS items")
        self._execute(CREATE)
        super().fill()

    def get(self, key: int) -> Item:
        found = self._execute(f"SELECT {COLUMNS} FROM items WHERE id = %s", (key,))
        return Item(*found.fetchone())

    def put(self, key: int, value: Item) -> None:
        self._execute(PUT, (key, *astuple(value)))

    def put_all(self, entries: dict[int, Item]) -> None:
        # In the order of keys: statements that lock rows in different orders end in deadlocks.
        columns = zip(
            *[(key, *vars(value).values()) for key, value in sorted(entries.items())], strict=True
        )
        self._execute(PUT_ALL, [list(column) for column in columns])

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        text = f"SELECT id, {COLUMNS} FROM items WHERE id = ANY(%s)"
        return {key: Item(*rest) for key, *rest in self._execute(text, (list(keys),))}

    def close(self) -> None:
        self._connection.close()
