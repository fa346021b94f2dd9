"""Entry listeners and continuous queries over clusters in the loop of the test."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest
from tests.member.conftest import TestCluster
from users_of_cluster import PASSWORD, known_users, prepared, refused

import remuda
import remuda.aio
from remuda import col
from remuda.client.asynchronous.listener import Listener
from remuda.errors import (
    ConnectionBroken,
    DivisionByZero,
    InputError,
    LimitExceeded,
    NotSupported,
    RemudaError,
    UndefinedColumn,
    UndefinedMap,
)


@asynccontextmanager
async def client_of(cluster: TestCluster) -> AsyncIterator[remuda.aio.Client]:
    addresses = [(m.info.host, m.info.user_port) for m in cluster.members]
    async with remuda.aio.connect(addresses) as client:
        yield client


async def some(listener: Listener[Any], count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += await asyncio.wait_for(listener.take(count - len(found)), 100)
    return found


def short(events: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((str(e.kind), e.key, e.value, e.old_value) for e in events)


@pytest.mark.parametrize("settings", [{}, {"backups": 0}])
def test_every_way_to_write_is_heard(in_cluster: Any, settings: dict[str, Any]) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(0, "before")
            listener = await numbers.listen()
            await numbers.put(0, "zero")
            await numbers.put_if_absent(1, "one")
            await numbers.remove(0)
            await numbers.delete(17)  # there is none
            assert short(await some(listener, 3)) == [
                ("inserted", 1, "one", None),
                ("removed", 0, None, "zero"),
                ("updated", 0, "zero", "before"),
            ]
            async with client.transaction() as transaction:
                inside = transaction.map("numbers")
                await inside.put(2, "two")
                await inside.put(1, "uno")
            events = await some(listener, 2)
            assert short(events) == [("inserted", 2, "two", None), ("updated", 1, "uno", "one")]
            assert len({event.timestamp for event in events}) == 1
            await client.sql("UPDATE numbers SET this = upper(this)")
            assert short(await some(listener, 2)) == [
                ("updated", 1, "UNO", "uno"), ("updated", 2, "TWO", "two"),
            ]  # fmt: skip
            table = pa.table({"__key": range(100, 400), "this": ["x"] * 300})
            await numbers.put_all(table)
            assert short(await some(listener, 300)) == [
                ("inserted", key, "x", None) for key in range(100, 400)
            ]
            await client.sql("TRUNCATE numbers")
            events = await some(listener, 302)
            assert {event.kind for event in events} == {"removed"}
            assert len({event.key for event in events}) == 302
            await client.drop_map("numbers")
            with pytest.raises(UndefinedMap):
                await some(listener, 1)
            await listener.stop()

    in_cluster(scenario, members=3, **settings)


def test_entries_whose_time_is_over(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(1, "one")
            listener = await numbers.listen()
            await numbers.put(1, "short", ttl=0.05)
            await numbers.put(2, "long", ttl=100)
            await numbers.put(2, "for ever", ttl=0)
            assert short(await some(listener, 4)) == [
                ("expired", 1, None, "short"),
                ("inserted", 2, "long", None),
                ("updated", 1, "short", "one"),
                ("updated", 2, "for ever", "long"),
            ]
            await listener.stop()

    in_cluster(scenario, members=2)


def test_definitions_change_meanwhile(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT, w VARCHAR) REPLICATED")
            await client.sql("INSERT INTO t VALUES (1, 1, 'a')")
            listener = await client.map("t").listen()
            query = await client.watch("SELECT v + 1 AS more FROM t WHERE v > 0", initial=False)
            await client.sql("UPDATE t SET v = 2")
            await client.sql("ALTER TABLE t DROP COLUMN w")
            await client.sql("ALTER TABLE t ADD COLUMN x BIGINT DEFAULT 7")
            await client.sql("ALTER TABLE t ALTER COLUMN v SET DATA TYPE BIGINT")
            await client.map("t").put(2, {"v": 5_000_000_000, "x": 8})
            events = await some(listener, 2)
            assert [(e.kind, e.key, e.value.v) for e in events] == [
                ("updated", 1, 2), ("inserted", 2, 5_000_000_000),
            ]  # fmt: skip
            assert [e.new.more for e in await some(query, 2)] == [3, 5_000_000_001]
            await client.sql("ALTER TABLE t RENAME COLUMN x TO y")
            await client.sql("ALTER TABLE t RENAME COLUMN k TO id")
            await client.sql("INSERT INTO t VALUES (3, 1, 9)")
            event = (await some(listener, 1))[0]
            assert (event.key, event.value) == (3, (3, 1, 9))
            assert (event.value.id, event.value.y) == (3, 9)
            await client.sql("DROP TABLE t")
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
            await client.sql("INSERT INTO t VALUES (1, 1)")
            assert (await some(query, 1))[0].new == (2,)
            for ended in (listener, query):
                with pytest.raises(UndefinedMap):
                    await some(ended, 1)
            await client.sql("CREATE TABLE bare (v BIGINT)")  # its rows have ids of their own
            bare = await client.map("bare").listen(initial=True)
            await client.sql("INSERT INTO bare VALUES (5)")
            assert (await some(bare, 1))[0].value == (5,)

    in_cluster(scenario, members=2)


def test_conditions_keys_and_initial_entries(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, name VARCHAR)")
            t = client.map("t")
            await client.sql("INSERT INTO t SELECT x, x, 'n' FROM generate_series(1, 20) AS s(x)")
            high = await t.listen(where=col("v") > 15, initial=True)
            one = await t.listen(key=3, values=False)
            first = await some(high, 5)
            assert {(e.kind, e.key, e.value.v) for e in first} == {
                ("initial", k, k) for k in range(16, 21)
            }
            await client.sql("UPDATE t SET v = 100 WHERE k = 3")  # now it meets the condition
            await client.sql("UPDATE t SET v = 0 WHERE k = 16")  # and this does no more
            await client.sql("UPDATE t SET name = 'm' WHERE k IN (1, 17)")
            await client.sql("DELETE FROM t WHERE k = 3")
            events = await some(high, 4)
            assert [(e.kind, e.key) for e in events if e.key == 3] == [
                ("inserted", 3), ("removed", 3),
            ]  # fmt: skip
            assert {(e.kind, e.key) for e in events if e.key != 3} == {
                ("removed", 16), ("updated", 17),
            }  # fmt: skip
            gone = next(e for e in events if e.key == 16)
            assert (gone.value, gone.old_value.v) == (None, 16)
            assert [(e.kind, e.key, e.value) for e in await some(one, 2)] == [
                ("updated", 3, None), ("removed", 3, None),
            ]  # fmt: skip
            rows = await (await client.sql(
                'SELECT kind, map, count(*) FROM sys.subscriptions GROUP BY 1, 2 ORDER BY 1, 2'
            )).fetchall()  # fmt: skip
            assert rows == [("listener", "t", 4)]  # one at one member, the other at three
            await high.stop()
            await one.stop()
            assert all(m.gauges()["subscriptions"] == 0 for m in cluster.members)
            assert all(m.gauges()["change_logs"] == 0 for m in cluster.members)

    in_cluster(scenario, members=3)


def test_a_query_goes_on(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, name VARCHAR)")
            await client.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
            await client.sql("CREATE VIEW big AS SELECT k AS id, v * 2 AS w FROM t WHERE v > 5")
            async with await client.watch("SELECT id, w + 1 AS x FROM big WHERE w > ?", 30) as seen:
                assert {e.new for e in await some(seen, 2)} == {(2, 41), (3, 61)}
                await client.sql("UPDATE t SET name = 'z'")  # not in the result
                await client.sql("UPDATE t SET v = v + 10")
                events = await some(seen, 3)
                assert sorted((str(e.kind), e.key.k, e.new, e.old) for e in events) == [
                    ("inserted", 1, (1, 41), None),
                    ("updated", 2, (2, 61), (2, 41)),
                    ("updated", 3, (3, 81), (3, 61)),
                ]
                assert events[0].new is None or events[0].new.x > 40
            cursor = await client.sql("SELECT count(*) FROM sys.subscriptions")
            assert await cursor.fetchall() == [(0,)]

    in_cluster(scenario, members=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT count(*) FROM t", "an aggregate"),
        ("SELECT DISTINCT v FROM t", "an aggregate, GROUP BY or DISTINCT"),
        ("SELECT a.k FROM t a JOIN t b ON a.k = b.v", "a join"),
        ("SELECT k FROM t ORDER BY k", "ORDER BY"),
        ("SELECT k FROM t LIMIT 3", "LIMIT"),
        ("SELECT k FROM t WHERE v IN (SELECT k FROM t)", "subquery"),
        ("SELECT sum(v) OVER () FROM t", "window"),
        ("SELECT k FROM t UNION ALL SELECT v FROM t", "UNION"),
        ("SELECT k FROM t WHERE v < extract(epoch FROM now())", "current time"),
        ("SELECT random() FROM t", "random"),
        ("SELECT 1", "no map"),
        ("SELECT name FROM sys.maps", "system relation"),
        ("DELETE FROM t", "only a SELECT"),
    ],
)
def test_what_cannot_be_watched(in_cluster: Any, text: str, words: str) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
            with pytest.raises(NotSupported, match=words) as raised:
                await client.watch(text)
            assert raised.value.hint is not None
            assert "over one map" in raised.value.hint

    in_cluster(scenario, members=1)


def test_wrong_requests(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            with pytest.raises(UndefinedMap):
                await client.map("nothing").listen()
            with pytest.raises(UndefinedMap):
                await client.watch("SELECT * FROM nothing")
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
            t = client.map("t")
            with pytest.raises(UndefinedColumn):
                await t.listen(where=col("w") > 1)
            with pytest.raises(InputError, match="buffer"):
                await t.listen(buffer=0)
            with pytest.raises(InputError, match="where="):
                await t.listen(where="v > 1")  # type: ignore[arg-type]
            with pytest.raises(RemudaError):
                await t.listen(key="text")
            listener = await t.listen(where=10 / col("v") > 1)
            await client.sql("INSERT INTO t VALUES (1, 0)")
            with pytest.raises(RemudaError, match="division by zero"):
                await some(listener, 1)
            await listener.stop()
            await listener.stop()
            with pytest.raises(StopAsyncIteration):
                await listener.take(1)
            assert cluster.members[0].gauges()["subscriptions"] == 0

    in_cluster(scenario, members=1)


async def in_thread(cluster: TestCluster, program: Any) -> None:
    """A blocking program beside the cluster."""
    addresses = [(m.info.host, m.info.user_port) for m in cluster.members]

    def run() -> None:
        with remuda.connect(addresses) as client:
            program(client)

    await asyncio.to_thread(run)


def test_blocking_listeners(in_cluster: Any) -> None:
    def program(client: remuda.Client) -> None:
        numbers = client.map("numbers")
        numbers.put(1, "one")
        called: queue.SimpleQueue[remuda.EntryEvent] = queue.SimpleQueue()

        def heard(event: remuda.EntryEvent) -> None:
            called.put(event)
            if event.key == 2:
                raise ValueError("the listener goes on all the same")

        with (
            numbers.listen(initial=True) as changes,
            client.watch("SELECT upper(this) AS t FROM numbers WHERE __key > ?", 1) as rows,
        ):
            listener = numbers.listen(heard, where=col("__key") >= 2)
            with pytest.raises(InputError, match="callback"):
                next(listener)
            numbers.put(2, "two")
            numbers.put(3, "three")
            numbers.remove(2)
            assert next(changes).kind == "initial"
            assert sorted(next(changes).kind for _ in range(3)) == [
                "inserted", "inserted", "removed",
            ]  # fmt: skip
            assert {called.get(timeout=20).key for _ in range(3)} == {2, 3}
            told = [next(rows) for _ in range(3)]
            assert {(row.new or row.old).t for row in told} == {"TWO", "THREE"}
            listener.stop()
            listener.stop()
            assert listener.error is None
        with pytest.raises(StopIteration):
            next(changes)
        with pytest.raises(NotSupported):
            client.watch("SELECT count(*) FROM numbers")
        with pytest.raises(InputError, match="calls a function"):
            numbers.listen(7)  # type: ignore[arg-type]
        with client.transaction() as transaction, pytest.raises(InputError, match="transaction"):
            transaction.map("numbers").listen()
        waiting = numbers.listen()
        threading.Timer(0.05, client.close).start()
        with pytest.raises(ConnectionBroken, match="closed"):
            next(waiting)
        with pytest.raises(ConnectionBroken):
            numbers.listen()

    async def scenario(cluster: TestCluster) -> None:
        await in_thread(cluster, program)
        while any(m.gauges()["subscriptions"] for m in cluster.members):
            await asyncio.sleep(0.01)

    in_cluster(scenario, members=2)


def test_a_slow_listener_takes_no_memory_and_misses_nothing(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(0, "first")
            listener = await numbers.listen(buffer=10)
            query = await client.watch("SELECT this FROM numbers", initial=False, buffer=1)
            await numbers.put_all(pa.table({"__key": range(1, 1001), "this": ["a"] * 1000}))
            for key in range(1001, 1101):
                await numbers.put(key, "b")
            await asyncio.sleep(0.2)
            assert len(listener._events) <= 10 + 2 * 64
            events = await some(listener, 1100)
            assert sorted(event.key for event in events) == list(range(1, 1101))
            assert len(await some(query, 1100)) == 1100
            await listener.stop()
            await query.stop()

    in_cluster(scenario, members=2)


def test_changes_that_are_not_kept_any_more_are_a_gap(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(1, "one")
            listener = await numbers.listen(buffer=1)
            await numbers.put(1, "two")
            while not listener._events:
                await asyncio.sleep(0.001)
            await numbers.put(1, "three")  # it is not asked for: the buffer is full
            await numbers.put(1, "four")
            monkeypatch.setattr("remuda.member.changes.change_logs.KEPT", 0)
            for member in cluster.members:
                for map_id, store in member.core.stores.items():
                    store.raise_floor(member.core.timestamp())
                    member.subscriptions._logs.release(map_id)
            first = await some(listener, 1)
            assert first[0].value == "two"
            gap = (await some(listener, 1))[0]
            assert (gap.kind, gap.key, gap.value) == ("gap", None, None)
            monkeypatch.undo()
            assert await numbers.get(1) == "four"
            await numbers.put(1, "five")
            assert [(e.value, e.old_value) for e in await some(listener, 1)] == [("five", "four")]
            await listener.stop()

    in_cluster(scenario, members=1)


def test_a_reader_that_stops_for_long_hears_of_the_gap_though_its_log_is_there(
    in_cluster: Any,
) -> None:
    """Its subscription keeps the log of the member, which nobody continues while nobody asks."""

    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(1, "one")
            listener = await numbers.listen(buffer=1)
            await numbers.put(1, "two")
            while not listener._events:
                assert await numbers.get(1) == "two"
            (store,) = cluster.members[0].core.stores.values()
            for value in ("three", "four"):
                await numbers.put(1, value)
            store.raise_floor(cluster.members[0].core.timestamp())
            await numbers.put(1, "five")
            assert [event.value for event in await some(listener, 1)] == ["two"]
            gap = (await some(listener, 1))[0]
            assert (gap.kind, gap.key, gap.value) == ("gap", None, None)
            await numbers.put(1, "six")
            while (event := (await some(listener, 1))[0]).value != "six":
                assert event.old_value == "four"
            assert event.old_value == "five"
            await listener.stop()

    in_cluster(scenario, members=1)


def test_nothing_is_left_of_clients_that_are_gone(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.map("numbers").put(1, "one")
            await client.map("numbers").listen()
            await client.watch("SELECT * FROM numbers")
            assert sum(m.gauges()["subscriptions"] for m in cluster.members) == 4
        while any(m.gauges()[n] for m in cluster.members for n in ("subscriptions", "change_logs")):
            await asyncio.sleep(0.005)
        while any(m.subscriptions._waiting or m.subscriptions._ticking for m in cluster.members):
            await asyncio.sleep(0.005)

    in_cluster(scenario, members=2)


def test_nothing_is_left_of_listeners_that_have_ended(in_cluster: Any) -> None:
    """A request that is under way when a listener is stopped does not begin it anew."""

    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            numbers = client.map("numbers")
            await numbers.put(1, 1)
            for turns in range(4):
                listener = await numbers.listen()
                for _ in range(turns):
                    await asyncio.sleep(0)
                await listener.stop()
            failing = await numbers.listen(where=1 / col("this") > 0)
            await numbers.put(2, 0)
            with pytest.raises(DivisionByZero):
                await failing.take(1)
            async with asyncio.timeout(100):
                while any(m.gauges()["subscriptions"] for m in cluster.members):
                    await asyncio.sleep(0.005)

    in_cluster(scenario, members=2)


def test_their_number_is_bounded(in_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.member.changes.subscriptions.SUBSCRIPTIONS_MAX", 2)

    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.map("numbers").put(1, "one")
            listeners = [await client.map("numbers").listen() for _ in range(2)]
            with pytest.raises(LimitExceeded, match="2 subscriptions already"):
                await client.map("numbers").listen()
            await listeners[0].stop()
            await client.map("numbers").listen()

    in_cluster(scenario, members=1)


def test_who_may_not_read_hears_nothing(
    in_cluster: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = known_users(tmp_path, monkeypatch)

    async def scenario(cluster: TestCluster) -> None:
        await prepared(cluster)
        where = [(m.info.host, m.info.user_port) for m in cluster.members]
        async with (
            remuda.aio.connect(where, user="reader", password=PASSWORD) as reader,
            remuda.aio.connect(where, user="writer", password=PASSWORD) as writer,
        ):
            with refused("user"):
                await writer.map("t").listen()
            with refused("user"):
                await writer.watch("SELECT k FROM t")
            with pytest.raises(RemudaError):
                await reader.watch("SELECT k FROM u")
            listener = await reader.map("t").listen()
            await writer.sql("INSERT INTO t VALUES (777, 'x')")
            assert (await some(listener, 1))[0].key == 777
            for member in cluster.members:
                file = member.core.access._file
                assert file is not None
                file.users, file.generation = file.users.removed("reader"), file.generation + 1
            with refused("reader"):
                await some(listener, 1)

    in_cluster(scenario, members=2, **settings)
