"""Clusters of real members on free ports of this machine, in the event loop of the test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from remuda.client.network.login import NO_SECURITY, Security
from remuda.config import MemberConfig
from remuda.datatypes.arrow import external_schema, to_external
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import from_physical, infer_type, to_physical, values_to_array
from remuda.errors import RemudaError
from remuda.member.member import Member
from remuda.query.wire import decode_query_id
from remuda.rpc import codec, type_codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.packing import RowPacker, packer
from remuda.rpc.transport import Channel, Request, connect
from remuda.world import system_world

# Modules that tests share lie beside them: pytest imports in importlib mode, which adds no path.
sys.path.insert(0, str(Path(__file__).parent))

FAST = {"heartbeat_interval": 0.05, "heartbeat_timeout": 5.0, "join_timeout": 20.0}


@dataclass
class Result:
    """What came back for one RUN_QUERY. ``pages`` counts QUERY_DATA messages."""

    handle: Any = None
    pages: list[pa.Table] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    state: int = 0
    error: RemudaError | None = None
    affected: int = 0
    tag: str = ""
    session: bytes | None = None
    tx: Any = None
    """QueryResult.transaction, if it says something."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    first_page: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def table(self) -> pa.Table:
        return pa.concat_tables(self.pages)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        table = self.table
        columns = [column.to_pylist() for column in table.columns]
        return list(zip(*columns, strict=True)) if columns else []


class TestClient:
    """The user channel by hand. ``hold`` keeps QUERY_DATA unacknowledged."""

    __test__ = False

    def __init__(self) -> None:
        self.channel: Channel
        self.results: dict[Any, Result] = {}
        self.early: list[Request] = []
        self.hold = False
        self.held: list[Request] = []
        self.short = False
        """Whether it takes whole results in one message."""
        self.answers = 0
        """How many came so."""

    @classmethod
    async def open(cls, member: Member, security: Security = NO_SECURITY) -> TestClient:
        client = cls()
        hello = user_pb2.UserToBitHandshake(channel=user_pb2.USER, support_listening=True)
        hello.properties.properties.add(key="remuda.results", value="arrow")
        info = member.info
        client.channel = await connect(
            info.host,
            info.user_port,
            ChannelKind.USER,
            security.introduce(hello),
            client.handle,
            tls=security.client_tls(),
            login=security.exchange(),
        )
        return client

    def handle(self, request: Request) -> None:
        if request.rpc_type == RpcType.QUERY_DATA:
            message: Any = user_pb2.QueryData.FromString(request.pbody)
        else:
            assert request.rpc_type == RpcType.QUERY_RESULT
            message = user_pb2.QueryResult.FromString(request.pbody)
        result = self.results.get(decode_query_id(message.query_id))
        if result is None:
            self.early.append(request)
            return
        if isinstance(message, user_pb2.QueryData):
            if message.columns:
                result.columns = [column.name for column in message.columns]
            with pa.ipc.open_stream(pa.py_buffer(request.dbody)) as reader:
                result.pages.append(reader.read_all())
            result.first_page.set()
        else:
            result.state = message.query_state
            result.affected = message.affected_rows
            result.tag = message.tag
            result.session = message.session if message.HasField("session") else None
            result.tx = message.transaction if message.HasField("transaction") else None
            if message.error:
                result.error = codec.decode_error(message.error[0])
            result.first_page.set()
            result.done.set()
        if self.hold and isinstance(message, user_pb2.QueryData):
            self.held.append(request)
        else:
            request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def release(self) -> None:
        self.hold = False
        for request in self.held:
            request.reply(RpcType.ACK, common_pb2.Ack(ok=True))
        self.held.clear()

    async def start(self, text: str, *parameters: object, **options: Any) -> Result:
        message = user_pb2.RunQuery(**{"type": user_pb2.SQL, "plan": text, **options})
        if self.short:
            message.accept_answer = message.accept_tag = True
        if parameters:
            types = tuple(infer_type(value) for value in parameters)
            values = [to_physical(value, t) for value, t in zip(parameters, types, strict=True)]
            message.parameter_types = type_codec.encode_types(types)
            message.parameters = packer(types).pack(values)
        reply = await self.channel.request(RpcType.RUN_QUERY, message)
        if reply.rpc_type == RpcType.QUERY_ANSWER:
            self.answers += 1
            return answered(user_pb2.QueryAnswer.FromString(reply.pbody))
        result = Result(handle=common_pb2.QueryId.FromString(reply.pbody))
        self.results[decode_query_id(result.handle)] = result
        early, self.early = self.early, []
        for request in early:
            self.handle(request)
        return result

    async def run(self, text: str, *parameters: object, **options: Any) -> Result:
        result = await self.start(text, *parameters, **options)
        await result.done.wait()
        return result

    async def sql(self, text: str, *parameters: object, **options: Any) -> list[tuple[Any, ...]]:
        result = await self.run(text, *parameters, **options)
        if result.error is not None:
            raise result.error
        return result.rows if result.pages else []

    async def cancel(self, result: Result) -> None:
        await self.channel.request(RpcType.CANCEL_QUERY, result.handle)

    async def ask(self, rpc_type: int, body: Any, answer: Any, dbody: Any = ()) -> Any:
        reply = await self.channel.request(rpc_type, body, dbody)
        return answer.FromString(reply.pbody)

    async def schema(self, name: str) -> MapSchema:
        message = user_pb2.MapName(name=name)
        answer = await self.ask(RpcType.DESCRIBE_MAP, message, user_pb2.MapDescription)
        return codec.decode_schema(answer.schema)

    def keys_request(self, schema: MapSchema, *keys: Any, **options: Any) -> user_pb2.KeysRequest:
        message = user_pb2.KeysRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version, **options
        )
        types = [schema.column(name).type for name in schema.key]
        for key in keys:
            values = key if isinstance(key, tuple) else (key,)
            physical = [to_physical(value, t) for value, t in zip(values, types, strict=True)]
            message.keys.append(packer(tuple(types)).pack(physical))
        return message

    async def get(self, schema: MapSchema, *keys: Any) -> list[tuple[Any, ...] | None]:
        message = self.keys_request(schema, *keys)
        return self.decoded(schema, await self.ask(RpcType.MAP_GET, message, user_pb2.RowsResponse))

    async def remove(self, schema: MapSchema, *keys: Any) -> list[tuple[Any, ...] | None]:
        message = self.keys_request(schema, *keys, want_old=True)
        return self.decoded(
            schema, await self.ask(RpcType.MAP_REMOVE, message, user_pb2.RowsResponse)
        )

    async def put(
        self, schema: MapSchema, *rows: tuple[Any, ...], **options: Any
    ) -> list[tuple[Any, ...] | None]:
        message = user_pb2.PutRequest(
            map=schema.name,
            map_id=schema.map_id,
            schema_version=schema.version,
            want_old=True,
            **options,
        )
        for row in rows:
            values = [
                to_physical(value, column.type)
                for value, column in zip(row, schema.columns, strict=True)
            ]
            message.rows.append(rows_of(schema).pack(values))
        return self.decoded(schema, await self.ask(RpcType.MAP_PUT, message, user_pb2.RowsResponse))

    def decoded(self, schema: MapSchema, response: Any) -> list[tuple[Any, ...] | None]:
        types = [column.type for column in schema.columns]
        return [
            tuple(
                from_physical(value, t)
                for value, t in zip(rows_of(schema).unpack(entry.row), types, strict=True)
            )
            if entry.HasField("row")
            else None
            for entry in response.rows
        ]


def answered(answer: user_pb2.QueryAnswer) -> Result:
    """The content of a QUERY_ANSWER, which tells its form."""
    columns = [codec.decode_column(column) for column in answer.about.columns]
    unpack = packer(tuple(column.type for column in columns)).unpack
    rows = [unpack(row) for row in answer.rows]
    arrays = [
        to_external(values_to_array([row[place] for row in rows], column.type), column.type)
        for place, column in enumerate(columns)
    ]
    table = pa.Table.from_arrays(arrays, schema=external_schema(columns))
    result = Result(answer.query_id, [table], [column.name for column in columns])
    result.affected, result.tag = answer.affected_rows, answer.tag or "SELECT"
    result.state = user_pb2.QueryResult.COMPLETED
    result.done.set()
    return result


def rows_of(schema: MapSchema) -> RowPacker:
    return packer(tuple(column.type for column in schema.columns))


IDLE = ("queries", "fragments", "jobs", "statements", "cursors", "reads", "commits", "prepared",
        "staging", "turns", "settling", "memory_held", "spilled", "queued",
        "transactions")  # fmt: skip


class TestCluster:
    __test__ = False

    def __init__(self, members: list[Member]) -> None:
        self.members = members
        self.clients: list[TestClient] = []

    async def client(self, number: int = 1, security: Security = NO_SECURITY) -> TestClient:
        client = await TestClient.open(self.member(number), security)
        self.clients.append(client)
        return client

    def member(self, number: int) -> Member:
        return next(member for member in self.members if member.info.number == number)

    def held(self) -> dict[str, int]:
        """What all members still hold for clients; {} when everything was freed."""
        found = {}
        for member in self.members:
            if not member.core.stopping:
                for name, value in member.gauges().items():
                    if name in IDLE and value:
                        found[f"{name} of {member.info.number}"] = value
        return found

    async def idle(self) -> None:
        """Wait until everything is freed (the suite's timeout bounds it)."""
        while self.held():
            await asyncio.sleep(0.005)

    async def settled(self) -> None:
        """Wait until backups that have kept what was committed have heard so, and stored it."""
        while any(len(member.transactions.shell.pending) for member in self.members):
            await asyncio.sleep(0)


STOP_LIMIT = 30.0
"""Seconds that a member may take to stop, and a cluster to form."""
SCENARIO_SHARE = 0.6
"""Of the timeout of a test: the rest is for members that stop."""


async def stopped(members: Iterable[Member]) -> None:
    """Stop them, in order. Raises AssertionError that names members which did not end."""
    stuck = []
    for member in members:
        stopping = asyncio.ensure_future(member.stop())
        done, _ = await asyncio.wait([stopping], timeout=STOP_LIMIT)
        if not done:
            stuck.append(f"member {member.core.number}: {running_tasks(member)}")
    assert not stuck, f"did not stop within {STOP_LIMIT:g} s: {'; '.join(stuck)}"


def running_tasks(member: Member) -> list[str]:
    return sorted(task.get_name() for task in member.core._tasks)


@asynccontextmanager
async def cluster_of(size: int, **settings: Any) -> AsyncIterator[TestCluster]:
    world = system_world()
    first = Member(MemberConfig(cluster_size=size, **{**FAST, **settings}), world)
    starts = [asyncio.ensure_future(first.start())]
    while ChannelKind.DATA not in first._servers and not starts[0].done():
        await asyncio.sleep(0.001)
    if starts[0].done():
        starts[0].result()
    seed = first.addresses()["control"]
    others = [
        Member(MemberConfig(cluster_size=size, join=seed, **{**FAST, **settings}), world)
        for _ in range(size - 1)
    ]
    starts += [asyncio.ensure_future(member.start()) for member in others]
    cluster = TestCluster([first, *others])
    try:
        await asyncio.gather(*starts)
        cluster.members.sort(key=lambda member: member.info.number)
        yield cluster
    finally:
        for client in cluster.clients:
            client.channel.close()
        await stopped(reversed(cluster.members))


Scenario = Callable[[TestCluster], Awaitable[None]]


@pytest.fixture
def in_cluster(request: pytest.FixtureRequest) -> Callable[..., None]:
    """``in_cluster(scenario, members=3)`` runs ``async def scenario(cluster)``. The scenario ends
    with TimeoutError well before the timeout of the test: the alarm of pytest-timeout may fall into
    a task of a member, which keeps it, and comes once only."""
    mark = request.node.get_closest_marker("timeout")
    whole = mark.args[0] if mark is not None else float(request.config.getini("timeout"))

    def run(scenario: Scenario, members: int = 3, **settings: Any) -> None:
        async def main() -> None:
            async with cluster_of(members, **settings) as cluster:
                async with asyncio.timeout(SCENARIO_SHARE * whole):
                    await scenario(cluster)

        asyncio.run(main())

    return run
