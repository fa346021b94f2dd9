"""Maps come and go everywhere at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.errors import (
    DuplicateMap,
    InvalidDefinition,
    MemberUnavailable,
    ProtocolError,
    SchemaChanged,
    UndefinedMap,
)
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
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


def test_who_asks_how_large_a_map_is_waits_for_no_statistics(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await client.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR)")
        await client.sql("INSERT INTO t SELECT i, 'some text' FROM generate_series(1, 300) AS g(i)")
        found = await client.ask(
            RpcType.DESCRIBE_MAP, user_pb2.MapName(name="t"), user_pb2.MapDescription
        )
        stores = [store for member in cluster.members for store in member.core.stores.values()]
        assert (found.rows, found.bytes) == (300, sum(store.bytes for store in stores))
        # Whoever asks whether they are good is given work: none have been taken.
        assert all(store.statistics_work() is not None for store in stores)

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


def refusing(member: Any, kind: int, times: int) -> None:
    """The member fails to serve the next messages of this kind."""
    routes = member._member_routes.control
    serve = routes[kind]
    left = [times]

    def refuse(request: Any) -> None:
        left[0] -= 1
        if not left[0]:
            routes[kind] = serve
        raise MemberUnavailable("the connection broke")

    routes[kind] = refuse


def catalogs(cluster: Any) -> list[tuple[int, list[str]]]:
    found = [member.core.catalog for member in cluster.members]
    return [(catalog.version, [s.name for s in catalog.maps]) for catalog in found]


def test_a_decided_change_reaches_a_member_that_failed_to_install_it(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        refusing(cluster.member(3), ControlType.CATALOG_INSTALL, 1)
        await client.sql("CREATE TABLE x (id INTEGER PRIMARY KEY)")
        assert catalogs(cluster) == [(1, ["x"])] * 3

    in_cluster(scenario)


def test_a_majority_decides_without_a_member_that_does_not_vote(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        refusing(cluster.member(3), ControlType.CATALOG_VOTE, 2)
        await client.sql("CREATE TABLE x (id INTEGER PRIMARY KEY)")
        await client.sql("CREATE TABLE y (id INTEGER PRIMARY KEY)")
        assert catalogs(cluster) == [(2, ["x", "y"])] * 3

    in_cluster(scenario)


def test_a_change_that_no_majority_accepts_shares_its_version_with_no_other(
    in_cluster: InCluster,
) -> None:
    """CREATE x reaches no other member, and no member uses it: the next change finds the vote of
    the coordinator and completes it."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE base (id INTEGER PRIMARY KEY)")
        for number in (2, 3):
            refusing(cluster.member(number), ControlType.CATALOG_VOTE, 1)
        with pytest.raises(MemberUnavailable, match="no majority") as failed:
            await client.sql("CREATE TABLE x (id INTEGER PRIMARY KEY)")
        assert failed.value.may_have_run
        assert catalogs(cluster) == [(1, ["base"])] * 3
        await client.sql("CREATE TABLE y (id INTEGER PRIMARY KEY, w BIGINT)")
        assert catalogs(cluster) == [(3, ["base", "x", "y"])] * 3

    in_cluster(scenario)


def test_a_coordinator_without_a_majority_has_done_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for number in (2, 3):
            refusing(cluster.member(number), ControlType.CATALOG_VOTE, 1)
        with pytest.raises(MemberUnavailable, match="no majority") as failed:
            await client.sql("CREATE TABLE x (id INTEGER PRIMARY KEY)")
        assert not failed.value.may_have_run
        await client.sql("CREATE TABLE x (id INTEGER PRIMARY KEY)")
        assert catalogs(cluster) == [(1, ["x"])] * 3

    in_cluster(scenario)


def test_a_change_that_a_former_coordinator_left_undecided_is_completed(
    in_cluster: InCluster,
) -> None:
    """It has reached member 2 only; the next change is made on top of it."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        second = cluster.member(2)
        left, _ = second.core.catalog.with_map(
            MapSchema("x", (Column("k", BIGINT),), ("k",), ("k",)), if_not_exists=False
        )
        asked = control_pb2.CatalogVote(
            kind=control_pb2.CatalogVote.ACCEPT, value=second.catalog._state(left)
        )
        asked.ballot.round, asked.ballot.proposer = 1, 3
        assert second.catalog.votes._answer(asked).agreed
        assert second.core.catalog.version == 0
        await client.sql("CREATE TABLE y (id INTEGER PRIMARY KEY)")
        assert catalogs(cluster) == [(2, ["x", "y"])] * 3

    in_cluster(scenario)


def test_a_type_that_cannot_be_stored_is_refused_and_leaves_no_trace(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        schema = MapSchema("m", (Column("k", BIGINT), Column("v", VARCHAR)), ("k",), ("k",))
        message = user_pb2.CreateMap(schema=codec.encode_schema(schema))
        message.schema.columns[1].type.CopyFrom(
            common_pb2.SqlType(kind="DECIMAL", precision=39, scale=0)
        )
        with pytest.raises(ProtocolError, match=r"DECIMAL\(39,0\)"):
            await client.ask(RpcType.CREATE_MAP, message, user_pb2.MapDescription)
        assert {member.core.catalog.version for member in cluster.members} == {0}
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY)")

    in_cluster(scenario)
