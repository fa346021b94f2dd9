"""What a member does with what it cannot understand, and with strangers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.member.conftest import TestClient

from remuda.config import MemberConfig
from remuda.datatypes import sql
from remuda.errors import (
    ConnectionBroken,
    InvalidDefinition,
    MemberUnavailable,
    NotSupported,
    ObjectMismatch,
    ProtocolError,
    RemudaError,
)
from remuda.member.member import Member
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.packing import packer
from remuda.world import system_world

InCluster = Callable[..., None]


def test_unknown_requests_and_broken_bodies_get_typed_failures(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        empty = user_pb2.Empty()
        for rpc_type in (RpcType.GOODBYE, RpcType.REQUEST_RESULTS, 999):
            with pytest.raises(NotSupported):
                await client.channel.request(rpc_type, empty)
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT)")
        schema = await client.schema("m")
        put = user_pb2.PutBatchRequest(map="m")
        with pytest.raises(ProtocolError):
            await client.channel.request(RpcType.MAP_PUT_BATCH, put, [b"not arrow"])
        get = client.keys_request(schema, 1)
        get.keys.append(packer((sql.VARCHAR,)).pack(("abcd",)))
        with pytest.raises(ProtocolError, match="no row of"):
            await client.channel.request(RpcType.MAP_GET, get)
        null = client.keys_request(schema)
        null.keys.append(packer((sql.INTEGER,)).pack((None,)))
        with pytest.raises(ObjectMismatch):
            await client.channel.request(RpcType.MAP_GET, null)
        plan = user_pb2.RunQuery(type=user_pb2.PHYSICAL, plan="{}")
        with pytest.raises(NotSupported):
            await client.channel.request(RpcType.RUN_QUERY, plan)
        assert await client.sql("SELECT count(*) FROM m") == [(0,)]
        await cluster.idle()

    in_cluster(scenario)


def test_malformed_frames_end_one_connection_only(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for garbage in (b"\xff" * 64, b"\x00", b"GET / HTTP/1.1\r\n\r\n"):
            for port in (
                cluster.member(1).info.user_port,
                cluster.member(1).info.control_port,
                cluster.member(1).info.data_port,
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(garbage)
                await reader.read()
                writer.close()
        assert await client.sql("SELECT 1 + 1") == [(2,)]
        await cluster.idle()

    in_cluster(scenario)


def test_members_of_another_cluster_cannot_join(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        seed = cluster.member(1).addresses()["control"]
        config = MemberConfig(cluster="other", cluster_size=2, join=seed, join_timeout=0.5)
        stranger = Member(config, system_world())
        with pytest.raises(InvalidDefinition):
            await stranger.start()
        await stranger.stop()
        client = await cluster.client(2)
        assert await client.sql("SELECT 1") == [(1,)]

    in_cluster(scenario, members=2)


def test_requests_before_the_cluster_is_complete_are_refused() -> None:
    async def main() -> None:
        member = Member(MemberConfig(cluster_size=2, join_timeout=20.0), system_world())
        starting = asyncio.ensure_future(member.start())
        while len(member._servers) < 3:
            await asyncio.sleep(0.001)
        client = await TestClient.open(member)
        with pytest.raises(RemudaError):
            await client.channel.request(RpcType.CLUSTER_INFO, user_pb2.Empty())
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        client.channel.close()
        await member.stop()

    asyncio.run(main())


def test_a_stopping_member_tells_its_clients(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        ended: list[RemudaError] = []
        client.channel.on_closed.append(ended.append)
        await cluster.member(1).stop("the test is over")
        while not ended:
            await asyncio.sleep(0.001)
        assert isinstance(ended[0], ConnectionBroken | MemberUnavailable)

    in_cluster(scenario, members=1)
