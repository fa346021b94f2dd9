"""Maps in SQL schemas by their full names, for both clients: ``client.map("sales.orders")``."""

from __future__ import annotations

import asyncio

import pytest

import remuda
import remuda.aio
from remuda.errors import RemudaError, UndefinedMap


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as client:
        client.sql("CREATE SCHEMA sales")
        client.sql("CREATE TABLE sales.orders (id BIGSERIAL PRIMARY KEY, item VARCHAR)")
        client.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, item VARCHAR)")
        client.sql("CREATE SEQUENCE sales.numbers START 10")
        client.sql("CREATE SEQUENCE numbers START 500")
        yield client
        client.sql("DROP SCHEMA sales CASCADE")
        client.sql("DROP TABLE orders")
        client.sql("DROP SEQUENCE numbers")


def test_a_map_in_a_schema_is_another_one(client):
    sold, plain = client.map("sales.orders"), client.map("orders")
    sold.put(1, {"item": "saw"})
    plain.put(1, {"item": "plain"})
    sold.put_all({2: {"item": "nail"}, 3: {"item": "awl"}})
    assert (sold.get(1).item, plain.get(1).item) == ("saw", "plain")
    assert (sold.size(), plain.size()) == (3, 1)
    rows = client.sql("SELECT id, item FROM sales.orders ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [(1, "saw"), (2, "nail"), (3, "awl")]
    with client.transaction() as tx:
        tx.map("sales.orders").put(4, {"item": "in a transaction"})
    assert sold.get(4).item == "in a transaction"
    sold.remove(4)
    assert sorted(sold.get_all([1, 2, 4])) == [1, 2]


def test_the_search_path_of_the_session_changes_no_full_name(client, three_members):
    with three_members.connect() as other:
        other.sql("SET search_path TO sales, public")
        assert other.map("orders").get(2) is None
        assert other.map("sales.orders").get(2).item == "nail"
        assert next(other.ids("sales.numbers", block=1)) == 10
        assert next(other.ids("numbers", block=1)) == 500


def test_numbers_of_a_column_in_a_schema(client):
    first = next(client.ids("sales.orders", block=2))
    assert first == 1
    rows = client.sql("SELECT nextval('sales.orders_id_seq')").fetchall()
    assert rows[0][0] == 3


def test_names_that_do_not_exist(client):
    for name in ("sales.nothing", "nothing.orders", "sales"):
        with pytest.raises(UndefinedMap, match=f'map "{name}" does not exist'):
            client.map(name).get(1)


def test_a_renamed_schema_renames_its_maps(three_members):
    async def scenario() -> None:
        async with remuda.aio.connect(three_members.addresses) as client:
            await client.sql("CREATE SCHEMA before")
            await client.sql("CREATE TABLE before.m (id BIGINT PRIMARY KEY, v BIGINT)")
            old = client.map("before.m")
            await old.put(1, {"v": 10})
            await client.sql("ALTER SCHEMA before RENAME TO after")
            assert (await client.map("after.m").get(1)).v == 10
            with pytest.raises(RemudaError):
                await client.map("before.m").get(1)
            await client.sql("DROP SCHEMA after CASCADE")

    asyncio.run(scenario())
