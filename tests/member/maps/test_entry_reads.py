"""Reads of entries of other members by PostgreSQL's clients: in one message, and when it is lost,
refused or late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from remuda.errors import NotSupported, RemudaError, ViewChanged
from remuda.member.maps import entry_reads
from remuda.member.maps.entry_reads import DECLINED, ENTRY_READ, EntryReads
from remuda.member.maps.maps import Maps
from remuda.storage.maps.map_store import MapStore

InCluster = Callable[..., None]
KEYS = range(40)
SELECT = "SELECT id, name, born FROM entries WHERE id = %b"


async def filled(cluster: Any) -> Any:
    """A session at the first member's door."""
    client = await cluster.client(1)
    await client.run("CREATE TABLE entries (id BIGINT PRIMARY KEY, name VARCHAR, born TIMESTAMPTZ)")
    await client.run(
        "INSERT INTO entries SELECT i, CASE WHEN i % 9 > 0 THEN 'n' || i END, "
        "TIMESTAMPTZ '2024-01-31 12:00:00+00' FROM generate_series(0, 38) AS s(i)"
    )
    host, port = cluster.member(1).postgres.address.split(":")
    connection = await psycopg.AsyncConnection.connect(
        host=host, port=int(port), user="bob", dbname="shop", autocommit=True
    )
    connection.prepare_threshold = 0
    return connection


async def read(connection: Any, key: int, *, binary: bool = True) -> Any:
    cursor = await connection.cursor(binary=binary).execute(SELECT, (key,))
    return await cursor.fetchone()


def expected(key: int) -> Any:
    return (key, f"n{key}" if key % 9 else None) if key != 39 else None


async def check(connection: Any) -> None:
    for key in KEYS:
        found = await read(connection, key)
        assert (found[:2] if found else None) == expected(key)


def test_one_message_for_an_entry_of_another_member(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[int] = []
    gets: list[int] = []
    original, get = EntryReads.on_read, Maps.on_get

    def on_read(self: EntryReads, request: Any) -> None:
        served.append(self._core.number)
        original(self, request)

    def on_get(self: Maps, call: Any) -> None:
        gets.append(self._core.number)
        get(self, call)

    monkeypatch.setattr(EntryReads, "on_read", on_read)
    monkeypatch.setattr(Maps, "on_get", on_get)

    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        await check(connection)  # members open the map
        served.clear()
        gets.clear()
        await check(connection)
        assert gets == []
        assert set(served) == {2, 3}
        await connection.execute("SET TIME ZONE 'Asia/Tokyo'")
        for key in KEYS:
            found = await read(connection, key, binary=False)
            assert found is None or found[2].utcoffset().total_seconds() == 9 * 3600
        await connection.close()
        for number in (1, 2, 3):
            counted = cluster.member(number).maps.open("entries").store.counters
            assert counted.gets == 0  # queries are no use of an entry
        await cluster.idle()

    in_cluster(scenario)


def refused(_reads: EntryReads, _request: Any) -> None:
    raise NotSupported("a member of an older release does not know the message")


def in_another_view(_reads: EntryReads, _request: Any) -> None:
    raise ViewChanged("the owner is in another view")


def declined(_reads: EntryReads, request: Any) -> None:
    request.reply(ENTRY_READ, DECLINED)


def malformed(_reads: EntryReads, request: Any) -> None:
    request.reply(ENTRY_READ, b"\xff")


def silent(_reads: EntryReads, request: Any) -> None:
    asyncio.get_running_loop().call_later(0.2, request.reply, ENTRY_READ, DECLINED)


@pytest.mark.parametrize("how", [refused, in_another_view, declined, silent])
def test_a_read_goes_the_way_of_a_get(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, how: Callable[..., None]
) -> None:
    monkeypatch.setattr(entry_reads, "PATIENCE", 0.01)
    monkeypatch.setattr(EntryReads, "on_read", how)

    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        await check(connection)
        await connection.close()
        assert cluster.member(1).statements.reads.entries._asked == {}
        await cluster.idle()

    in_cluster(scenario)


def test_a_malformed_answer_is_an_error_of_the_statement(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EntryReads, "on_read", malformed)

    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        states = set()
        for key in KEYS:
            try:
                await read(connection, key)
            except psycopg.Error as error:
                states.add(error.sqlstate)
        assert states == {"08P01"}
        await connection.close()

    in_cluster(scenario)


def test_what_is_undecided_is_waited_for(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes] = []
    original = EntryReads.on_read

    def on_read(self: EntryReads, request: Any) -> None:
        reply = request.reply
        with monkeypatch.context() as patch:
            patch.setattr(MapStore, "pending_at_or_below", lambda *_: True)
            patch.setattr(type(request), "reply", lambda _, *told: answers.append(told[1]))
            original(self, request)
        reply(ENTRY_READ, answers[-1])

    monkeypatch.setattr(EntryReads, "on_read", on_read)

    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        await check(connection)
        assert set(answers) == {DECLINED}
        await connection.close()

    in_cluster(scenario)


def test_the_error_of_a_get_reaches_the_client(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise RemudaError("no copy is left")

    monkeypatch.setattr(EntryReads, "on_read", declined)
    monkeypatch.setattr(Maps, "read", fails)

    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        with pytest.raises(psycopg.Error, match="no copy is left"):
            await check(connection)
        await connection.close()

    in_cluster(scenario)
