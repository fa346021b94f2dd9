"""Key operations over the wire, from any member."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

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
