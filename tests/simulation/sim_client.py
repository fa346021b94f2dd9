"""A client that speaks the user channel by hand, and can be as rude as the run wants."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from remuda.client.network.login import NO_SECURITY, Security
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import from_physical, to_physical
from remuda.errors import RemudaError
from remuda.query.wire import decode_query_id
from remuda.rpc import codec, type_codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.packing import packer
from remuda.rpc.transport import Channel, Request, connect

OK = common_pb2.Ack(ok=True)


@dataclass
class Result:
    """What came back for one RUN_QUERY."""

    handle: Any = None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    error: RemudaError | None = None
    affected: int = 0
    ends: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    first: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, error: RemudaError | None) -> None:
        self.error = error
        self.ends += 1
        self.first.set()
        self.done.set()


class Client:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.channel: Channel
        self.context = common_pb2.Context()
        self.results: dict[Any, Result] = {}
        self.early: list[Request] = []
        self.farewells = 0
        """Members that have said that they answer nothing any more."""
        self.short = False
        """Whether the statement takes its whole result in one message; every second one does."""
        self.patience = 0.0
        """Seconds before a page is acknowledged."""

    @classmethod
    async def open(
        cls,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        user: tuple[str, str] | None = None,
    ) -> Client:
        client = cls(loop)
        hello = user_pb2.UserToBitHandshake(channel=user_pb2.USER, support_listening=True)
        hello.properties.properties.add(key="remuda.results", value="arrow")
        security = NO_SECURITY if user is None else Security(*user)
        hello = security.introduce(hello)
        client.channel = await connect(
            *address, ChannelKind.USER, hello, client.handle, login=security.exchange()
        )
        client.channel.on_closed.append(client._closed)
        return client

    def _closed(self, error: RemudaError) -> None:
        for result in self.results.values():
            if not result.done.is_set():
                result.end(error)

    def handle(self, request: Request) -> None:
        if request.rpc_type == RpcType.GOODBYE:
            self.farewells += 1
            return
        page = request.rpc_type == RpcType.QUERY_DATA
        kind = user_pb2.QueryData if page else user_pb2.QueryResult
        message: Any = kind.FromString(request.pbody)
        result = self.results.get(decode_query_id(message.query_id))
        if result is None:
            self.early.append(request)
        elif page:
            with pa.ipc.open_stream(pa.py_buffer(request.dbody)) as reader:
                table = reader.read_all()
            result.rows += zip(*(column.to_pylist() for column in table.columns), strict=True)
            result.first.set()
            self.loop.call_later(self.patience, request.reply, RpcType.ACK, OK)
        else:
            result.affected = message.affected_rows
            self.seen(message.context)
            request.reply(RpcType.ACK, OK)
            result.end(codec.decode_error(message.error[0]) if message.error else None)

    def seen(self, context: common_pb2.Context) -> None:
        if context.clock > self.context.clock:
            self.context = common_pb2.Context(clock=context.clock)

    async def start(self, text: str, **options: Any) -> Result:
        message = user_pb2.RunQuery(type=user_pb2.SQL, plan=text, context=self.context, **options)
        self.short = not self.short
        message.accept_answer = message.accept_tag = self.short
        reply = await self.channel.request(RpcType.RUN_QUERY, message)
        if reply.rpc_type == RpcType.QUERY_ANSWER:
            return self._answered(user_pb2.QueryAnswer.FromString(reply.pbody))
        result = Result(handle=common_pb2.QueryId.FromString(reply.pbody))
        self.results[decode_query_id(result.handle)] = result
        early, self.early = self.early, []
        for request in early:
            self.handle(request)
        if self.channel.closed and not result.done.is_set():
            self._closed(self.channel._connection.error)
        return result

    def _answered(self, answer: user_pb2.QueryAnswer) -> Result:
        self.seen(answer.context)
        types = tuple(type_codec.decode_type(column.type) for column in answer.about.columns)
        unpack = packer(types).unpack
        result = Result(handle=answer.query_id, affected=answer.affected_rows)
        result.rows = [
            tuple(
                from_physical(value, kind) for value, kind in zip(unpack(row), types, strict=True)
            )
            for row in answer.rows
        ]
        result.end(None)
        return result

    async def run(self, text: str, **options: Any) -> list[tuple[Any, ...]]:
        """The rows. Raises how it ended otherwise."""
        result = await self.start(text, **options)
        await result.done.wait()
        if result.error is not None:
            raise result.error
        return result.rows

    async def cancel(self, result: Result) -> None:
        await self.channel.request(RpcType.CANCEL_QUERY, result.handle)

    async def schema(self, name: str) -> MapSchema:
        reply = await self.channel.request(RpcType.DESCRIBE_MAP, user_pb2.MapName(name=name))
        return codec.decode_schema(user_pb2.MapDescription.FromString(reply.pbody).schema)

    async def put(self, schema: MapSchema, *row: Any) -> None:
        types = tuple(column.type for column in schema.columns)
        values = [to_physical(value, kind) for value, kind in zip(row, types, strict=True)]
        message = user_pb2.PutRequest(
            map=schema.name,
            map_id=schema.map_id,
            schema_version=schema.version,
            rows=[packer(types).pack(values)],
            context=self.context,
        )
        reply = await self.channel.request(RpcType.MAP_PUT, message)
        self.seen(user_pb2.RowsResponse.FromString(reply.pbody).context)
