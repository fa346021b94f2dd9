"""Maps come and go everywhere at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.errors import DuplicateMap, InvalidDefinition, SchemaChanged, UndefinedMap
from remuda.rpc import codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

InCluster = Callable[..., None]


def test_concurrent_first_puts_agree_on_one_schema(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(1 + number % 3) for number in range(6)]

        async def create(index: int) -> MapSchema:
            value = BIGINT if index % 2 else VARCHAR
            schema = MapSchema("m", (Column("k", BIGINT), Column("v", value)), ("k",), ("k",))
            message = user_pb2.CreateMap(schema=codec.encode_schema(schema), if_not_exists=True)
            answer = await clients[index].ask(RpcType.CREATE_MAP, message, user_pb2.MapDescription)
            return codec.decode_schema(answer.schema)

        schemas = await asyncio.gather(*(create(index) for index in range(6)))
        assert len(set(schemas)) == 1
        assert {m.core.catalog.get("m") for m in cluster.members} == set(schemas)

    in_cluster(scenario)


def test_a_map_exists_everywhere_when_create_has_answered(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        for index in range(12):
            await clients[index % 3].sql(f"CREATE TABLE t{index} (id INTEGER PRIMARY KEY)")
            for client in clients:
                assert await client.sql(f"SELECT count(*) FROM t{index}") == [(0,)]
        versions = {member.core.catalog.version for member in cluster.members}
        assert versions == {12}

    in_cluster(scenario)


def test_drop_frees_storage_and_old_requests_are_refused(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(1), await cluster.client(3)
        create = "CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT)"
        await client.sql(create)
        schema = await client.schema("m")
        await client.put(schema, (1, 10))
        assert await other.sql("SELECT v FROM m WHERE id = 1") == [(10,)]
        await other.sql("DROP TABLE m")
        assert [len(member.core.stores) for member in cluster.members] == [0, 0, 0]
        with pytest.raises(UndefinedMap):
            await client.get(schema, 1)
        await client.sql(create)
        with pytest.raises(SchemaChanged):
            await client.put(schema, (1, 10))
        assert await other.sql("SELECT v FROM m WHERE id = 1") == []
        with pytest.raises(DuplicateMap):
            await other.sql(create)
        await other.sql(create.replace("TABLE", "TABLE IF NOT EXISTS"))
        await other.sql("DROP TABLE IF EXISTS nothing")
        with pytest.raises(UndefinedMap):
            await other.sql("DROP TABLE nothing")
        await cluster.idle()

    in_cluster(scenario)


def test_dropping_a_map_ends_queries_over_it(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(1), await cluster.client(2)
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT)")
        values = ", ".join(f"({i}, {i})" for i in range(2000))
        await client.sql(f"INSERT INTO m VALUES {values}")
        client.hold = True
        result = await client.start("SELECT a.id FROM m a, m b", page_rows=100)
        await result.first_page.wait()
        await other.sql("DROP TABLE m")
        await result.done.wait()
        assert isinstance(result.error, SchemaChanged)
        await cluster.idle()

    in_cluster(scenario)


def test_wrong_definitions_are_refused(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        wrong = [
            MapSchema("m", (Column("a", BIGINT),), (), ()),
            MapSchema("m", (Column("a", BIGINT),), ("b",), ("b",)),
            MapSchema("m", (Column("a", BIGINT), Column("b", BIGINT)), ("a",), ("b",)),
            MapSchema("", (Column("a", BIGINT),), ("a",), ("a",)),
        ]
        for schema in wrong:
            message = user_pb2.CreateMap(schema=codec.encode_schema(schema))
            with pytest.raises(InvalidDefinition):
                await client.ask(RpcType.CREATE_MAP, message, user_pb2.MapDescription)
        assert cluster.member(1).core.catalog.version == 0

    in_cluster(scenario)
