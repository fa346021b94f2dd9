"""Hazelcast and Ignite as subjects, by their clients in Python and in Java.

The sessions in Python create the maps, and a client in Java fills them for both. Hazelcast
keeps entries in its Compact form, Ignite as binary objects of a table. Accounts are plain numbers
in both. Hazelcast has transactions with locks only, and its Python client cannot change an entry at
its owner. Ignite's thin clients change one entry in a pessimistic transaction.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import java_peers
from closed_loop import Conflict
from entry_subjects import KEYS, NAMES, EntrySession, Item, pair
from java_peers import JavaCluster


@dataclass(frozen=True)
class ByJava:
    """``program`` is the class of its clients."""

    name: str
    cluster: JavaCluster
    program: str
    options: tuple[str, ...]
    operations: tuple[str, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        return self.cluster.pids

    def clients(self) -> contextlib.AbstractContextManager[java_peers.JavaClients]:
        return java_peers.java_clients(self.cluster, self.program, self.options)


def in_java(cluster: JavaCluster, *, hazelcast: bool) -> ByJava:
    common = ("get", "put", "SELECT by key", "SELECT by index", "UPDATE by key")
    if hazelcast:
        return ByJava(
            "Hazelcast, Java",
            cluster,
            "HazelcastLoad",
            tuple(java_peers.HAZELCAST_OPENS),
            (*common, "2 keys, pessimistic"),
        )
    transactions = ("compute", "2 keys, serializable", "2 keys, pessimistic")
    return ByJava(
        "Ignite, Java",
        cluster,
        "IgniteLoad",
        tuple(java_peers.IGNITE_OPENS),
        (*common, *transactions),
    )


# --- Hazelcast -----------------------------------------------------------------------------------

MAPPINGS = (
    """CREATE OR REPLACE MAPPING items (__key BIGINT, name VARCHAR, category VARCHAR, price DOUBLE,
        small INTEGER, stock BIGINT) TYPE IMap OPTIONS ('keyFormat' = 'bigint',
        'valueFormat' = 'compact', 'valueCompactTypeName' = 'Item')""",
)


@dataclass(frozen=True)
class Hazelcast:
    ports: tuple[int, ...]
    pids: tuple[int, ...]
    name: str = "Hazelcast, Python"

    def session(self) -> EntrySession:
        return HazelcastSession(_hazelcast_client(self.ports))


@functools.cache
def _hazelcast_client(ports: tuple[int, ...]) -> Any:
    """One for all threads of a process, as its manual advises."""
    import hazelcast
    from hazelcast.serialization.api import CompactSerializer

    class Items(CompactSerializer[Item]):
        def read(self, reader: Any) -> Item:
            return Item(
                reader.read_string("name"),
                reader.read_string("category"),
                reader.read_float64("price"),
                reader.read_int32("small"),
                reader.read_int64("stock"),
            )

        def write(self, writer: Any, value: Item) -> None:
            writer.write_string("name", value.name)
            writer.write_string("category", value.category)
            writer.write_float64("price", value.price)
            writer.write_int32("small", value.small)
            writer.write_int64("stock", value.stock)

        def get_type_name(self) -> str:
            return "Item"

        def get_class(self) -> type[Item]:
            return Item

    return hazelcast.HazelcastClient(
        cluster_name="grid",
        cluster_members=[f"127.0.0.1:{port}" for port in ports],
        compact_serializers=[Items()],
        default_int_type=4,  # LONG
    )


class HazelcastSession(EntrySession):
    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client
        self._items = client.get_map("items").blocking()
        self.operations |= {
            "SELECT by key": lambda chance: self.rows(
                "SELECT name, category, price, small, stock FROM items WHERE __key = ?",
                chance.randrange(KEYS),
            ),
            "SELECT by index": lambda chance: self.rows(
                "SELECT __key, stock FROM items WHERE name = ?", f"name{chance.randrange(NAMES)}"
            ),
            "UPDATE by key": lambda chance: self._client.sql.execute(
                "UPDATE items SET stock = stock + 1 WHERE __key = ?", chance.randrange(KEYS)
            ).result(),
            "2 keys, pessimistic": lambda chance: self.transfer(pair(chance)),
        }

    def fill(self) -> None:
        for mapping in MAPPINGS:
            self._client.sql.execute(mapping).result()

    def rows(self, text: str, argument: object) -> None:
        assert list(self._client.sql.execute(text, argument).result()), argument

    def transfer(self, keys: tuple[int, int]) -> None:
        from hazelcast.errors import HazelcastError
        from hazelcast.transaction import TWO_PHASE

        transaction = self._client.new_transaction(timeout=30, durability=1, type=TWO_PHASE)
        transaction.begin()
        try:
            accounts = transaction.get_map("accounts")
            here, there = (accounts.get_for_update(key) for key in keys)
            accounts.set(keys[0], here - 1)
            accounts.set(keys[1], there + 1)
            transaction.commit()
        except HazelcastError as error:
            transaction.rollback()
            raise Conflict from error

    def get(self, key: int) -> Item:
        found: Item = self._items.get(key)
        return found

    def put(self, key: int, value: Item) -> None:
        self._items.set(key, value)

    def put_all(self, entries: dict[int, Item]) -> None:
        self._items.put_all(entries)

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        found: dict[int, Item] = self._items.get_all(keys)
        return found

    def close(self) -> None:
        """The client serves other sessions of its process and ends with it."""


# --- Ignite --------------------------------------------------------------------------------------

TABLE = """CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR, category VARCHAR, price DOUBLE,
    small INT, stock BIGINT) WITH "template=partitioned, backups=1, cache_name=items,
    write_synchronization_mode=full_sync, value_type=Item" """


@dataclass(frozen=True)
class Ignite:
    ports: tuple[int, ...]
    pids: tuple[int, ...]
    name: str = "Ignite, Python"

    def session(self) -> EntrySession:
        return IgniteSession(self)


class IgniteSession(EntrySession):
    def __init__(self, subject: Ignite) -> None:
        super().__init__()
        from pyignite import Client, GenericObjectMeta
        from pyignite.datatypes import DoubleObject, IntObject, LongObject, String
        from pyignite.datatypes.transactions import TransactionConcurrency, TransactionIsolation

        class Entry(
            metaclass=GenericObjectMeta,
            type_name="Item",
            schema={
                "NAME": String,
                "CATEGORY": String,
                "PRICE": DoubleObject,
                "SMALL": IntObject,
                "STOCK": LongObject,
            },
        ):
            pass

        self._entry: Callable[..., Any] = Entry
        self._long = LongObject
        self._client = Client(partition_aware=True)
        self._client.connect([("127.0.0.1", port) for port in subject.ports])
        self._optimistic = (TransactionConcurrency.OPTIMISTIC, TransactionIsolation.SERIALIZABLE)
        self._pessimistic = (
            TransactionConcurrency.PESSIMISTIC,
            TransactionIsolation.REPEATABLE_READ,
        )
        self.operations |= {
            "compute": self.increment,
            "SELECT by key": lambda chance: self.rows(
                "SELECT name, category, price, small, stock FROM items WHERE id = ?",
                chance.randrange(KEYS),
            ),
            "SELECT by index": lambda chance: self.rows(
                "SELECT id, stock FROM items WHERE name = ?", f"name{chance.randrange(NAMES)}"
            ),
            "UPDATE by key": lambda chance: self.rows(
                "UPDATE items SET stock = stock + 1 WHERE id = ?", chance.randrange(KEYS)
            ),
            "2 keys, serializable": lambda chance: self.transfer(pair(chance), self._optimistic),
            "2 keys, pessimistic": lambda chance: self.transfer(pair(chance), self._pessimistic),
        }

    def fill(self) -> None:
        from pyignite.datatypes.cache_config import CacheAtomicityMode, WriteSynchronizationMode
        from pyignite.datatypes.prop_codes import (
            PROP_BACKUPS_NUMBER,
            PROP_CACHE_ATOMICITY_MODE,
            PROP_NAME,
            PROP_WRITE_SYNCHRONIZATION_MODE,
        )

        self._client.sql(TABLE)
        self._client.sql("CREATE INDEX items_name ON items (name)")
        self._client.get_or_create_cache(
            {
                PROP_NAME: "accounts",
                PROP_CACHE_ATOMICITY_MODE: CacheAtomicityMode.TRANSACTIONAL,
                PROP_BACKUPS_NUMBER: 1,
                PROP_WRITE_SYNCHRONIZATION_MODE: WriteSynchronizationMode.FULL_SYNC,
            }
        )

    @functools.cached_property
    def _items(self) -> Any:
        return self._client.get_cache("items")

    @functools.cached_property
    def _accounts(self) -> Any:
        return self._client.get_cache("accounts")

    def rows(self, text: str, argument: object) -> None:
        assert list(self._client.sql(text, query_args=[argument])), argument

    def increment(self, chance: random.Random) -> None:
        key = chance.randrange(KEYS)
        with self._client.tx_start(*self._pessimistic) as transaction:
            found = self._accounts.get(key, key_hint=self._long)
            self._accounts.put(key, found + 1, key_hint=self._long, value_hint=self._long)
            transaction.commit()

    def transfer(self, keys: tuple[int, int], how: tuple[Any, Any]) -> None:
        from pyignite.exceptions import CacheError

        long = self._long
        try:
            with self._client.tx_start(*how) as transaction:
                here, there = (self._accounts.get(key, key_hint=long) for key in keys)
                for key, value in zip(keys, (here - 1, there + 1), strict=True):
                    self._accounts.put(key, value, key_hint=long, value_hint=long)
                transaction.commit()
        except CacheError as error:
            raise Conflict from error

    def get(self, key: int) -> Item:
        return _item(self._items.get(key, key_hint=self._long))

    def put(self, key: int, value: Item) -> None:
        self._items.put(key, self._object(value), key_hint=self._long)

    def put_all(self, entries: dict[int, Item]) -> None:
        self._items.put_all(
            {(key, self._long): self._object(value) for key, value in entries.items()}
        )

    def get_all(self, keys: Sequence[int]) -> dict[int, Item]:
        found = self._items.get_all([(key, self._long) for key in keys])
        return {key: _item(value) for key, value in found.items()}

    def _object(self, value: Item) -> Any:
        return self._entry(
            NAME=value.name,
            CATEGORY=value.category,
            PRICE=value.price,
            SMALL=value.small,
            STOCK=value.stock,
        )

    def close(self) -> None:
        self._client.close()


def _item(found: Any) -> Item:
    return Item(found.NAME, found.CATEGORY, found.PRICE, found.SMALL, found.STOCK)
