"""The same entry in Remuda, Redis and PostgreSQL: a number and five fields, as an object."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import remuda
from closed_loop import Conflict
from remuda.errors import TransientError

KEYS = 100_000
NAMES = 20_000
"""Different names: five entries share one. An index on names finds few rows."""
OPENING = 1000
"""Of each of the ``KEYS`` accounts of transactions."""
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
    return Item(f"name{key % NAMES}", f"c{key % 7}", key * 1.5, key % 100, key)


def batch(chance: random.Random) -> list[int]:
    return chance.sample(range(KEYS), BATCH)


def pair(chance: random.Random) -> tuple[int, int]:
    """Two accounts, the smaller key first: transactions that lock in other orders deadlock."""
    one, other = sorted(chance.sample(range(KEYS), 2))
    return one, other


class EntrySession:
    """One connection; subclasses get and put one entry or many, as ``Item`` objects. They add the
    operations that the database has; transfers move 1 between two accounts or raise Conflict."""

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


@dataclass
class Account:
    balance: int


# --- Remuda --------------------------------------------------------------------------------------


BY_KEY = "SELECT name, category, price, small, stock FROM items WHERE __key = ?"
BY_NAME = "SELECT __key, stock FROM items WHERE name = ?"
UPDATE = "UPDATE items SET stock = stock + 1 WHERE __key = ?"


@dataclass(frozen=True)
class Remuda:
    addresses: tuple[str, ...]
    pids: tuple[int, ...]
    name: str = "Remuda"

    def session(self) -> EntrySession:
        return RemudaSession(self.addresses)


class RemudaSession(EntrySession):
    def __init__(self, addresses: tuple[str, ...]) -> None:
        super().__init__()
        self._client = remuda.connect(addresses)
        self._items = self._client.map("items", Item)
        self._accounts = self._client.map("accounts", Account)
        self.get, self.put = self._items.get, self._items.put  # type: ignore[method-assign]
        self.put_all, self.get_all = self._items.put_all, self._items.get_all  # type: ignore[method-assign,assignment]
        self._prepared: dict[str, Any] = {}
        self.operations |= {
            "compute": lambda chance: self._items.compute(
                chance.randrange(KEYS), "stock = stock + ?", 1
            ),
            "SELECT by key": lambda chance: self.rows(BY_KEY, chance.randrange(KEYS)),
            "SELECT by index": lambda chance: self.rows(BY_NAME, f"name{chance.randrange(NAMES)}"),
            "UPDATE by key": lambda chance: self.statement(UPDATE, chance.randrange(KEYS)),
            "2 keys, serializable": lambda chance: self.transfer(
                pair(chance), "optimistic", "serializable"
            ),
            "2 keys, pessimistic": lambda chance: self.transfer(
                pair(chance), "pessimistic", "repeatable read"
            ),
        }

    def fill(self) -> None:
        super().fill()
        self._client.sql("CREATE INDEX items_name ON items (name)")
        for start in range(0, KEYS, 10_000):
            keys = range(start, start + 10_000)
            self._accounts.put_all({key: Account(OPENING) for key in keys})

    def statement(self, text: str, argument: object) -> Any:
        """Prepared at its first use: a map must have entries by then."""
        if (prepared := self._prepared.get(text)) is None:
            prepared = self._prepared[text] = self._client.prepare(text)
        return prepared(argument)

    def rows(self, text: str, argument: object) -> None:
        assert self.statement(text, argument).fetchall(), argument

    def transfer(self, keys: tuple[int, int], concurrency: Any, isolation: Any) -> None:
        try:
            with self._client.transaction(
                concurrency=concurrency, isolation=isolation
            ) as transaction:
                accounts = transaction.map("accounts", Account)
                here, there = (accounts.get(key).balance for key in keys)
                accounts.put(keys[0], Account(here - 1))
                accounts.put(keys[1], Account(there + 1))
        except TransientError as error:
            raise Conflict from error

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
    pids: tuple[int, ...] = ()

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
        self.waited(pipeline)

    def waited(self, pipeline: Any) -> None:
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
    """An entry is a hash: HSET and HGETALL. Redis has no index and no SQL: the keys with a name are
    a set, and an UPDATE adds to one field."""

    def __init__(self, subject: Redis) -> None:
        super().__init__(subject)
        self.operations |= {
            "compute": self.increment,
            "SELECT by key": self.operations["get"],
            "SELECT by index": lambda chance: self.by_name(chance.randrange(NAMES)),
            "UPDATE by key": self.increment,
            "2 keys, serializable": lambda chance: self.transfer(pair(chance)),
        }

    def fill(self) -> None:
        super().fill()
        pipeline = self._redis.pipeline(transaction=False)
        for key in range(KEYS):
            pipeline.sadd(f"name{key % NAMES}", key)
            pipeline.set(f"account:{key}", OPENING)
        pipeline.execute()

    def increment(self, chance: random.Random) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.hincrby(f"item:{chance.randrange(KEYS)}", "stock", 1)
        self.waited(pipeline)

    def by_name(self, number: int) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for key in self._redis.smembers(f"name{number}"):
            pipeline.hget(f"item:{int(key)}", "stock")
        assert pipeline.execute(), number

    def transfer(self, keys: tuple[int, int]) -> None:
        import redis

        names = [f"account:{key}" for key in keys]
        with self._redis.pipeline() as transaction:
            transaction.watch(*names)
            here, there = map(int, transaction.mget(names))
            transaction.multi()
            transaction.set(names[0], here - 1)
            transaction.set(names[1], there + 1)
            try:
                transaction.execute()
            except redis.WatchError as error:
                raise Conflict from error
        if self._replicas:
            # By the same connection, the only one of the pool: WAIT asks for its own writes.
            found = self._redis.execute_command("WAIT", self._replicas, 10_000)
            assert found >= self._replicas, "a replica does not follow"

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
PG_UPDATE = "UPDATE items SET stock = stock + 1 WHERE id = %s"
PUT_ALL = f"""INSERT INTO items SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[],
    %s::float8[], %s::int[], %s::bigint[]) {ON_CONFLICT}"""


@dataclass(frozen=True)
class Postgres:
    name: str
    address: str
    synchronous_commit: str
    pids: tuple[int, ...] = ()

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
        self._refused = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
        self.operations |= {
            "compute": lambda chance: self._execute(
                f"{PG_UPDATE} RETURNING stock", (chance.randrange(KEYS),)
            ).fetchone(),
            "SELECT by key": lambda chance: self.rows(
                f"SELECT {COLUMNS} FROM items WHERE id = %s", chance.randrange(KEYS)
            ),
            "SELECT by index": lambda chance: self.rows(
                "SELECT id, stock FROM items WHERE name = %s", f"name{chance.randrange(NAMES)}"
            ),
            "UPDATE by key": lambda chance: self._execute(PG_UPDATE, (chance.randrange(KEYS),)),
            "2 keys, serializable": lambda chance: self.transfer(pair(chance), "SERIALIZABLE", ""),
            "2 keys, pessimistic": lambda chance: self.transfer(
                pair(chance), "REPEATABLE READ", " FOR UPDATE"
            ),
        }

    def fill(self) -> None:
        self._execute("DROP TABLE IF EXISTS items, accounts")
        self._execute(CREATE)
        super().fill()
        self._execute("CREATE INDEX items_name ON items (name)")
        self._execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
        self._execute(
            f"INSERT INTO accounts SELECT i, {OPENING} FROM generate_series(0, {KEYS - 1}) i"
        )
        self._execute("VACUUM ANALYZE")

    def rows(self, text: str, argument: object) -> None:
        assert self._execute(text, (argument,)).fetchall(), argument

    def transfer(self, keys: tuple[int, int], level: str, lock: str) -> None:
        read = f"SELECT balance FROM accounts WHERE id = %s{lock}"
        write = "UPDATE accounts SET balance = %s WHERE id = %s"
        try:
            self._execute(f"BEGIN ISOLATION LEVEL {level}")
            here, there = (self._execute(read, (key,)).fetchone()[0] for key in keys)
            self._execute(write, (here - 1, keys[0]))
            self._execute(write, (there + 1, keys[1]))
            self._execute("COMMIT")
        except self._refused as error:
            self._execute("ROLLBACK")
            raise Conflict from error

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
