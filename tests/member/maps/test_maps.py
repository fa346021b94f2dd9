"""Key operations over the wire, from any member."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from remuda.errors import InternalError
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

InCluster = Callable[..., None]
CREATE = "CREATE TABLE m (id INTEGER PRIMARY KEY, name VARCHAR, score DECIMAL(10,2) NOT NULL)"


def test_put_get_remove_through_every_member(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        await clients[1].run(CREATE)
        schema = await clients[2].schema("m")
        for key in range(30):
            put = await clients[key % 3].put(schema, (key, f"n{key}", Decimal("1.50")))
            assert put == [None]
        for client in clients:
            rows = await client.get(schema, *range(31))
            assert [row and row[1] for row in rows] == [f"n{key}" for key in range(30)] + [None]
        assert await clients[0].put(schema, (7, None, 2)) != [None]
        assert (await clients[2].get(schema, 7))[0][1] is None
        assert (await clients[1].remove(schema, 7, 99))[1] is None
        assert await clients[2].get(schema, 7) == [None]
        size = user_pb2.MapName(name="m")
        for client in clients:
            assert (await client.ask(RpcType.MAP_SIZE, size, user_pb2.Count)).count == 29
        await cluster.idle()

    in_cluster(scenario)


def test_one_key_twice_in_a_request_to_its_owner(in_cluster: InCluster) -> None:
    """As in a write of several members (see test_jobs): one after the other."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run("CREATE TABLE m (id INTEGER PRIMARY KEY, v INTEGER)")
        schema = await client.schema("m")
        absent = user_pb2.PutRequest.IF_ABSENT
        assert await client.put(schema, (1, 1), (1, 2), condition=absent) == [None, (1, 1)]
        assert await client.put(schema, (2, 1), (2, 2)) == [None, (2, 1)]
        assert await client.get(schema, 1, 2) == [(1, 1), (2, 2)]

    in_cluster(scenario, members=1)


def test_a_bug_met_after_a_wait_is_answered(
    in_cluster: InCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run("CREATE TABLE m (id INTEGER PRIMARY KEY, v INTEGER)")
        schema = await client.schema("m")
        member = cluster.member(1)
        with monkeypatch.context() as patched:
            # A write is prepared; when it is decided, the map turns out to be broken.
            store = member.core.stores[schema.map_id]
            patched.setattr(store, "pending_at_or_below", lambda _: True)
            patched.setattr(type(store), "job_pending", True)
            asked = asyncio.ensure_future(client.get(schema, 1))
            waiting: asyncio.Future[Callable[[], None]] = asyncio.Future()
            patched.setattr(
                member.commits, "when_settled", lambda _, again: waiting.set_result(again)
            )
            again = await waiting
            patched.setattr(store, "pending_at_or_below", lambda _: 1 / 0)
            again()
            with pytest.raises(InternalError, match="ZeroDivisionError"):
                await asyncio.wait_for(asked, 30)
        assert "Traceback" in caplog.text
        assert await client.get(schema, 1) == [None]

    in_cluster(scenario, members=1)
