"""A client as Apache Drill's C++ client behaves on the wire: bytes, varints and protobuf messages.

Shares no framing code with Remuda. Modes: REQUEST 0, RESPONSE 1, RESPONSE_FAILURE 2, PING 3,
PONG 4.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from value_vector_reader import read_batch

from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

REQUEST, RESPONSE, RESPONSE_FAILURE, PING, PONG = range(5)
ACK_BODY = b"\x08\x01"


def varint(number: int) -> bytes:
    found = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        found.append(low | (0x80 if number else 0))
        if not number:
            return bytes(found)


def frame(mode: int, coordination: int, rpc_type: int, pbody: bytes, dbody: bytes = b"") -> bytes:
    header = b"\x08" + varint(mode) + b"\x10" + varint(coordination) + b"\x18" + varint(rpc_type)
    found = b"\x0a" + varint(len(header)) + header + b"\x12" + varint(len(pbody)) + pbody
    if dbody:
        found += b"\x1a" + varint(len(dbody)) + dbody
    return varint(len(found)) + found


@dataclass
class Message:
    mode: int
    coordination: int
    rpc_type: int
    pbody: bytes
    dbody: bytes


def parse(data: bytes) -> Message:
    """A frame without its length."""
    fields: dict[int, bytes] = {}
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        assert key & 7 == 2
        size, place = read_varint(data, place)
        fields[key >> 3] = data[place : place + size]
        place += size
    assert place == len(data)
    numbers, place = {}, 0
    header = fields[1]
    while place < len(header):
        key, place = read_varint(header, place)
        numbers[key >> 3], place = read_varint(header, place)
    return Message(numbers[1], numbers[2], numbers[3], fields[2], fields.get(3, b""))


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[place]
        place += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return found, place


@dataclass
class Result:
    """``columns`` by name; ``batches`` the definition of each; ``state`` of the end."""

    query: Any = None
    batches: list[Any] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    state: int = -1
    errors: list[Any] = field(default_factory=list)
    affected: int | None = None
    first_page: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.columns.values(), strict=True))


class StockClient:
    """``strict`` as go-drill: a result of a query whose handle has not been filed is an error, and
    filing takes a moment."""

    def __init__(self) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.welcome: Any = None
        self.next_id = 1
        self.waiting: dict[int, asyncio.Future[Message]] = {}
        self.results: dict[tuple[int, int], Result] = {}
        self.pongs: asyncio.Queue[Message] = asyncio.Queue()
        self.broken: list[str] = []
        self.hold = False
        self.held: list[Message] = []
        self.task: asyncio.Task[None]
        self.closed = asyncio.Event()

    @classmethod
    async def open(cls, host: str, port: int, **hello: Any) -> StockClient:
        client = cls()
        client.reader, client.writer = await asyncio.open_connection(host, port)
        fields = {"support_timeout": True, "support_complex_types": False, **hello}
        message = user_pb2.UserToBitHandshake(
            channel=user_pb2.USER,
            support_listening=True,
            rpc_version=5,
            credentials=user_pb2.UserCredentials(user_name="tester"),
            client_infos=user_pb2.RpcEndpointInfos(
                name="Apache Drill C++ client", version="1.21.0", majorVersion=1, minorVersion=21
            ),
            **fields,
        )
        message.properties.properties.add(key="schema", value="public")
        client.send(frame(REQUEST, client.new_id(), 0, message.SerializeToString()))
        answer = await client.receive()
        assert (answer.mode, answer.coordination, answer.rpc_type) == (RESPONSE, 1, 0)
        client.welcome = user_pb2.BitToUserHandshake.FromString(answer.pbody)
        client.task = asyncio.create_task(client.listen())
        return client

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def receive(self) -> Message:
        size = shift = 0
        while True:
            (byte,) = await self.reader.readexactly(1)
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return parse(await self.reader.readexactly(size))

    async def listen(self) -> None:
        try:
            while True:
                self.take(await self.receive())
        except (asyncio.IncompleteReadError, ConnectionError):
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(ConnectionError("closed by the server"))
        finally:
            self.closed.set()

    def take(self, message: Message) -> None:
        if message.mode == PONG:
            self.pongs.put_nowait(message)
        elif message.mode in (RESPONSE, RESPONSE_FAILURE):
            self.waiting.pop(message.coordination).set_result(message)
        elif message.rpc_type == RpcType.QUERY_DATA:
            data = user_pb2.QueryData.FromString(message.pbody)
            self.on_data(data, message)
        else:
            assert message.rpc_type == RpcType.QUERY_RESULT
            self.on_result(user_pb2.QueryResult.FromString(message.pbody))
            self.acknowledge(message)

    def acknowledge(self, message: Message) -> None:
        self.send(frame(RESPONSE, message.coordination, RpcType.ACK, ACK_BODY))

    def result(self, query: Any) -> Result | None:
        found = self.results.get((query.part1, query.part2))
        if found is None:
            self.broken.append("a result before its handle")
        return found

    def on_data(self, data: Any, message: Message) -> None:
        result = self.result(data.query_id)
        if result is None:
            return
        definition = getattr(data, "def")
        columns = read_batch(definition.field, message.dbody)
        assert data.row_count == definition.record_count
        assert all(len(values) == data.row_count for values in columns.values())
        if not result.batches:
            result.columns = columns
        else:
            assert list(columns) == list(result.columns)
            for name, values in columns.items():
                result.columns[name] += values
        result.batches.append(definition)
        if data.HasField("affected_rows_count"):
            result.affected = data.affected_rows_count
        result.first_page.set()
        if self.hold:
            self.held.append(message)
        else:
            self.acknowledge(message)

    def on_result(self, data: Any) -> None:
        result = self.result(data.query_id)
        if result is None:
            return
        assert result.state == -1, "two final states"
        result.state = data.query_state
        result.errors = list(data.error)
        result.first_page.set()
        result.done.set()

    async def request(self, rpc_type: int, body: Any) -> Message:
        identifier = self.new_id()
        future = self.waiting[identifier] = asyncio.get_running_loop().create_future()
        pbody = body if isinstance(body, bytes) else body.SerializeToString()
        self.send(frame(REQUEST, identifier, rpc_type, pbody))
        return await future

    async def ask(self, rpc_type: int, body: Any, answer_type: int, answer: Any) -> Any:
        reply = await self.request(rpc_type, body)
        assert (reply.mode, reply.rpc_type) == (RESPONSE, answer_type), reply
        return answer.FromString(reply.pbody)

    async def submit(self, text: str = "", **fields: Any) -> Result:
        options = {"results_mode": user_pb2.STREAM_FULL, "type": user_pb2.SQL, **fields}
        if text:
            options["plan"] = text
        message = user_pb2.RunQuery(**options)
        query = await self.ask(RpcType.RUN_QUERY, message, RpcType.QUERY_HANDLE, common_pb2.QueryId)
        await asyncio.sleep(0)  # filing the handle takes other threads a moment
        result = self.results[(query.part1, query.part2)] = Result(query)
        return result

    async def run(self, text: str = "", **fields: Any) -> Result:
        result = await self.submit(text, **fields)
        await result.done.wait()
        return result

    async def rows(self, text: str) -> list[tuple[Any, ...]]:
        result = await self.run(text)
        assert result.state == user_pb2.QueryResult.COMPLETED, result.errors
        return result.rows

    async def error(self, text: str, **fields: Any) -> Any:
        result = await self.run(text, **fields)
        assert result.state == user_pb2.QueryResult.FAILED
        (error,) = result.errors
        return error

    async def close(self) -> None:
        self.writer.close()
        await self.task
