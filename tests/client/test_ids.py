"""Unique numbers for keys, by both clients."""

from __future__ import annotations

import asyncio
import threading
from itertools import islice

import pytest

import remuda
import remuda.aio
from remuda.errors import InputError, SequenceExhausted, UndefinedMap, WrongObjectType


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as client:
        client.sql('CREATE TABLE "Orders" (id BIGSERIAL PRIMARY KEY, item VARCHAR)')
        client.sql("CREATE TABLE plain (id BIGINT PRIMARY KEY, item VARCHAR)")
        client.sql("CREATE SEQUENCE numbers START 10")
        client.sql("CREATE SEQUENCE few MAXVALUE 3")
        yield client
        client.sql('DROP TABLE "Orders"')
        client.sql("DROP TABLE plain")
        client.sql("DROP SEQUENCE numbers")
        client.sql("DROP SEQUENCE few")


def test_numbers_of_a_column_and_of_inserts_differ(client):
    ids = client.ids("Orders", block=3)
    orders = client.map("Orders")
    for number in islice(ids, 5):
        orders.put(number, {"item": "by key"})
    inserted = client.sql("INSERT INTO \"Orders\" (item) VALUES ('by SQL') RETURNING id").fetchall()
    assert inserted[0].id not in {1, 2, 3, 4, 5}
    assert orders.size() == 6
    assert isinstance(ids, remuda.Ids)


def test_a_request_takes_a_block(client):
    ids = client.ids("numbers", block=4)
    assert [ids.next() for _ in range(4)] == [10, 11, 12, 13]
    assert client.sql("SELECT last_value FROM numbers").fetchall() == [(13,)]
    assert client.ids("numbers", block=1).next() == 14
    assert ids.next() == 15


def test_threads_and_tasks_share_one(client, three_members):
    ids = client.ids("numbers", block=10)
    taken: list[int] = []

    def take() -> None:
        taken.extend(islice(ids, 50))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def tasks() -> list[int]:
        async with remuda.aio.connect(three_members.address) as other:
            shared = other.ids("numbers", block=10)
            found = await asyncio.gather(*[shared.next() for _ in range(95)])
            async for number in shared:
                return [*found, number]
        raise AssertionError

    taken += asyncio.run(tasks())
    assert len(set(taken)) == len(taken) == 296


def test_the_end_of_a_sequence(client):
    ids = client.ids("few", block=1)
    assert [next(ids) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(SequenceExhausted):
        ids.next()


@pytest.mark.parametrize("block", [0, -1, 1.5, True, 100_001, "3"])
def test_a_wrong_block_is_refused(client, block):
    with pytest.raises(InputError, match="block is ") as caught:
        client.ids("numbers", block=block)
    assert caught.value.hint == "Give the numbers that one request takes: 1 to 100000."


def test_a_map_without_a_sequence_says_so(client):
    with pytest.raises(
        WrongObjectType, match='map "plain" has no column with a sequence'
    ) as caught:
        client.ids("plain").next()
    assert "CREATE SEQUENCE name makes one" in caught.value.hint
    with pytest.raises(UndefinedMap):
        client.ids("nix").next()
