"""Reads by key that are answered in one message, and when they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remuda.datatypes.values import from_physical, infer_type, to_physical
from remuda.errors import DivisionByZero
from remuda.member.maps.point_reads import ANSWER_SIZE_MAX
from remuda.rpc import type_codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.packing import packer

InCluster = Callable[..., None]


async def filled(cluster: Any, number: int = 1) -> Any:
    client = await cluster.client(number)
    await client.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v DECIMAL(38,2))")
    values = ", ".join(f"({i}, 'n{i}', {i}.25)" for i in range(600))
    assert (await client.run(f"INSERT INTO t VALUES {values}")).affected == 600
    return client


async def ask(client: Any, text: str, *parameters: object, **options: Any) -> tuple[int, Any]:
    """The type of the answer, and the QueryAnswer."""
    message = user_pb2.RunQuery(type=user_pb2.SQL, plan=text, accept_answer=True, **options)
    types = tuple(infer_type(value) for value in parameters)
    if types:
        values = [to_physical(value, t) for value, t in zip(parameters, types, strict=True)]
        message.parameter_types = type_codec.encode_types(types)
        message.parameters = packer(types).pack(values)
    reply = await client.channel.request(RpcType.RUN_QUERY, message)
    if reply.rpc_type != RpcType.QUERY_ANSWER:
        return reply.rpc_type, None
    return reply.rpc_type, user_pb2.QueryAnswer.FromString(reply.pbody)


def rows(about: Any, answer: Any) -> list[tuple[Any, ...]]:
    types = tuple(type_codec.decode_type(column.type) for column in about.columns)
    return [
        tuple(from_physical(value, t) for value, t in zip(row, types, strict=True))
        for row in map(packer(types).unpack, answer.rows)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name, v FROM t WHERE id = ?",
        "SELECT v + 1 AS w, upper(name), NULL AS n FROM t WHERE id = ?",
        "SELECT name FROM t WHERE id = ? AND v < 10",
    ],
)
def test_the_same_rows_in_both_forms(in_cluster: InCluster, text: str) -> None:
    async def scenario(cluster: Any) -> None:
        await filled(cluster)
        for number in (1, 2, 3):  # own keys, and others' by a hop
            client = await cluster.client(number)
            for key in (1, 2, 3, 4, 5, 50, 5000):
                expected = await client.sql(text, key)
                kind, answer = await ask(client, text, key)
                assert kind == RpcType.QUERY_ANSWER
                assert rows(answer.about, answer) == expected
                assert answer.context.clock > 0
                assert answer.query_id.part1 != 0
        await cluster.idle()

    in_cluster(scenario)


def test_what_the_client_knows_is_not_said_again(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        text = "SELECT id, name FROM t WHERE id = ?"
        await client.sql(text, 1)
        _, first = await ask(client, text, 7)
        assert [column.name for column in first.about.columns] == ["id", "name"]
        assert list(first.about.route_parameters) == [0]
        assert [type_codec.decode_type(t).kind.name for t in first.about.route_types] == ["INTEGER"]
        _, again = await ask(client, text, 8, known_form=first.form)
        assert not again.HasField("about")
        assert rows(first.about, again) == [(8, "n8")]
        await client.run("DROP TABLE t")
        await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")
        await client.run("INSERT INTO t VALUES (8, 'new')")
        assert await client.sql(text, 8) == [(8, "new")]
        _, other = await ask(client, text, 8, known_form=first.form)
        assert other.form != first.form
        assert rows(other.about, other) == [(8, "new")]

    in_cluster(scenario)


def test_larger_results_and_other_statements_come_as_pages(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        keys = ", ".join(map(str, range(300)))
        many = f"SELECT name FROM t WHERE id IN ({keys})"
        assert len(await client.sql(many)) == 300
        for text in (many, "SELECT count(*) FROM t", "SELECT id FROM t ORDER BY id LIMIT 1"):
            kind, _ = await ask(client, text)
            assert kind == RpcType.QUERY_HANDLE
        await client.run("CREATE TABLE wide (id INTEGER PRIMARY KEY, name VARCHAR)")
        wide = [(key, "x" * (ANSWER_SIZE_MAX // 2)) for key in range(3)]
        await client.put(await client.schema("wide"), *wide)
        owner = cluster.member(1).core.view.owners
        assert set(owner) == {1}
        text = "SELECT name FROM wide WHERE id IN (0, 1, 2)"
        assert len(await client.sql(text)) == 3
        assert (await ask(client, text))[0] == RpcType.QUERY_HANDLE
        assert (await ask(client, "SELECT name FROM wide WHERE id = 1"))[0] == RpcType.QUERY_HANDLE
        assert (await ask(client, "SELECT name FROM wide WHERE id = 1"))[0] == RpcType.QUERY_ANSWER

    in_cluster(scenario, members=1)


def test_an_error_is_the_answer(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        text = "SELECT 1 / (id - id) FROM t WHERE id = ?"
        with pytest.raises(DivisionByZero):
            await client.sql(text, 3)
        for key in range(5):
            with pytest.raises(DivisionByZero):
                await ask(client, text, key)
        await cluster.idle()

    in_cluster(scenario)
