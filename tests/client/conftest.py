"""Fake members: the user channel's requests over real sockets, answered from dictionaries.

They run on an asyncio loop in a thread, three by default, and refuse keys that they do not own: a
routing mistake of the client is a failure here, where a real member would forward the request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda.aio
from remuda.client.blocking.client import Client, connect
from remuda.client.network import backoff
from remuda.cluster.assignment import first_view
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.values import array_to_values, arrays_to_rows
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import (
    InternalError,
    QueryCanceled,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
    ViewChanged,
)
from remuda.rpc import codec, transport, type_codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.packing import RowPacker, packer
from remuda.rpc.server import Server, listen

Rows = dict[tuple[Any, ...], tuple[Any, ...]]

# Modules that tests share lie beside them: pytest imports in importlib mode, which adds no path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost member is tried again soon."""
    monkeypatch.setattr(backoff, "_FIRST", 0.001)


@dataclasses.dataclass
class Script:
    """What a statement answers: pages of engine-form or external batches, then an end."""

    columns: tuple[Column, ...] = ()
    pages: tuple[pa.RecordBatch, ...] = ()
    error: RemudaError | None = None
    affected: int | None = None
    tag: str = "SELECT"
    endless: bool = False
    result_first: bool = False  # the end overtakes the answer to RUN_QUERY


class Running:
    """One statement: at most ``window`` unacknowledged pages, as a member does it."""

    def __init__(self, member: FakeMember, request: transport.Request, script: Script) -> None:
        self.member = member
        self.channel = request.channel
        self.script = script
        member.running.append(self)
        self.part2 = len(member.running)
        self.sent = self.acknowledged = 0
        self.over = False
        handle = self.handle = common_pb2.QueryId(part1=1, part2=self.part2)
        if script.result_first:
            self.end(script.error)
        request.reply(user_pb2.QUERY_HANDLE, handle)
        if not self.over:
            self.more()

    def more(self) -> None:
        pages = self.script.pages
        while not self.over and self.sent - self.acknowledged < self.member.window:
            if self.sent >= len(pages) and not self.script.endless:
                self.end(self.script.error)
                return
            body = user_pb2.QueryData(row_count=pages[self.sent % len(pages)].num_rows)
            body.query_id.CopyFrom(self.handle)
            if self.sent == 0:
                body.columns.extend(codec.encode_column(c) for c in self.script.columns)
            batch = pages[self.sent % len(pages)]
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            self.sent += 1
            dbody = [memoryview(sink.getvalue())]
            self.channel.request_nowait(user_pb2.QUERY_DATA, body, dbody, self.on_ack)

    def on_ack(self, reply: object) -> None:
        if isinstance(reply, RemudaError):
            self.over = True
            self.member.gone.set()
            return
        self.acknowledged += 1
        self.more()

    def end(self, error: RemudaError | None) -> None:
        if self.over:
            return
        self.over = True
        if self.sent == 0 and error is None:  # as members do it
            dbody = self.member.grid.empty_page
            page = user_pb2.QueryData(query_id=self.handle)
            self.channel.request_nowait(user_pb2.QUERY_DATA, page, dbody, lambda _: None)
        result = user_pb2.QueryResult(tag=self.script.tag, query_id=self.handle)
        result.query_state = (
            user_pb2.QueryResult.FAILED if error else user_pb2.QueryResult.COMPLETED
        )
        if error:
            result.error.append(codec.encode_error(error))
        if self.script.affected is not None:
            result.affected_rows = self.script.affected
        result.context.clock = self.member.grid.tick()
        self.channel.request_nowait(user_pb2.QUERY_RESULT, result, (), lambda _: None)


class FakeMember:
    window = 3

    def __init__(self, grid: FakeGrid, number: int, sock: socket.socket) -> None:
        self.grid = grid
        self.number = number
        self.sock = sock
        self.rows: dict[str, Rows] = {}
        self.staged: dict[str, dict[str, dict[int, pa.RecordBatch]]] = {}
        self.requests: list[int] = []
        self.running: list[Running] = []
        self.gone = threading.Event()
        self.server: Server | None = None

    def handle(self, request: transport.Request) -> None:
        self.requests.append(request.rpc_type)
        name = user_pb2.RpcType.Name(request.rpc_type).lower()
        if name in self.grid.silent:
            return
        try:
            getattr(self, "on_" + name)(request)
        except RemudaError as error:
            request.fail(error)
        except Exception as error:  # noqa: BLE001  (the client must hear of it)
            request.fail(InternalError(repr(error)))

    def on_cluster_info(self, request: transport.Request) -> None:
        info = user_pb2.ClusterInfo(view=codec.encode_view(self.grid.view), member=self.number)
        info.maps.extend(codec.encode_schema(schema) for schema in self.grid.maps.values())
        info.context.clock = self.grid.tick()
        request.reply(user_pb2.CLUSTER_INFO, info)

    def describe(self, request: transport.Request, schema: MapSchema) -> None:
        rows = sum(len(member.rows.get(schema.name, {})) for member in self.grid.members)
        body = user_pb2.MapDescription(schema=codec.encode_schema(schema), rows=rows, bytes=0)
        request.reply(request.rpc_type, body)

    def on_describe_map(self, request: transport.Request) -> None:
        self.describe(request, self.grid.find(user_pb2.MapName.FromString(request.pbody).name))

    def on_create_map(self, request: transport.Request) -> None:
        message = user_pb2.CreateMap.FromString(request.pbody)
        schema = codec.decode_schema(message.schema)
        self.describe(request, self.grid.create(schema))

    def on_drop_map(self, request: transport.Request) -> None:
        del self.grid.maps[user_pb2.MapName.FromString(request.pbody).name]
        request.reply(user_pb2.DROP_MAP, common_pb2.Ack(ok=True))

    def on_map_size(self, request: transport.Request) -> None:
        name = self.grid.find(user_pb2.MapName.FromString(request.pbody).name).name
        count = sum(len(member.rows.get(name, {})) for member in self.grid.members)
        request.reply(user_pb2.MAP_SIZE, user_pb2.Count(count=count))

    def on_map_get(self, request: transport.Request) -> None:
        message = user_pb2.KeysRequest.FromString(request.pbody)
        rows = self.table(message)
        found = [rows.get(self.owned(message.map, key)) for key in self.keys(message)]
        if message.keys_only:
            found = [() if row is not None else None for row in found]
        self.answer(request, message, found)

    def on_map_remove(self, request: transport.Request) -> None:
        message = user_pb2.KeysRequest.FromString(request.pbody)
        rows = self.table(message)
        old = [rows.pop(key, None) for key in self.keys(message)]
        self.answer(request, message, [() if row and not message.want_old else row for row in old])

    def on_map_put(self, request: transport.Request) -> None:
        message = user_pb2.PutRequest.FromString(request.pbody)
        rows = self.table(message)
        schema = self.grid.maps[message.map]
        answers = []
        for row in map(rows_of(schema).unpack, message.rows):
            key = tuple(row[i] for i in schema.key_positions)
            if len(message.rows) == 1:
                self.owned(message.map, key)
            else:
                rows = self.home(message.map, key)
            old = rows.get(key)
            condition = user_pb2.PutRequest.Condition.Name(message.condition)
            if condition == "ALWAYS" or (condition == "IF_ABSENT") == (old is None):
                rows[key] = row
            answers.append(old if message.want_old else None)
        self.answer(request, message, answers)

    def on_map_put_batch(self, request: transport.Request) -> None:
        message = user_pb2.PutBatchRequest.FromString(request.pbody)
        self.table(message)
        with pa.ipc.open_stream(pa.py_buffer(request.dbody)) as reader:
            count = self.store(message.map, list(reader))
        request.reply(user_pb2.MAP_PUT_BATCH, user_pb2.Count(count=count))

    def on_job_begin(self, request: transport.Request) -> None:
        schema = self.grid.find(user_pb2.JobBegin.FromString(request.pbody).map)
        self.grid.jobs += 1
        handle = user_pb2.JobHandle(job=f"{self.number}-{self.grid.jobs}:{schema.name}")
        handle.schema.CopyFrom(codec.encode_schema(schema))
        request.reply(user_pb2.JOB_BEGIN, handle)

    def on_job_write(self, request: transport.Request) -> None:
        message = user_pb2.JobWrite.FromString(request.pbody)
        task = self.staged.setdefault(message.job, {}).setdefault(message.task, {})
        with pa.ipc.open_stream(pa.py_buffer(request.dbody)) as reader:
            task[message.sequence] = reader.read_all().combine_chunks().to_batches()[0]
        request.reply(user_pb2.JOB_WRITE, user_pb2.Count(count=task[message.sequence].num_rows))

    def on_job_task_end(self, request: transport.Request) -> None:
        message = user_pb2.JobTaskEnd.FromString(request.pbody)
        task = self.staged.get(message.job, {}).get(message.task, {})
        assert sum(batch.num_rows for batch in task.values()) == message.rows
        assert sorted(task) == list(range(len(task)))
        request.reply(user_pb2.JOB_TASK_END, user_pb2.Count(count=message.rows))

    def on_job_commit(self, request: transport.Request) -> None:
        message = user_pb2.JobCommit.FromString(request.pbody)
        assert message.job.startswith(f"{self.number}-")
        name = message.job.split(":")[1]
        count = 0
        for task in message.tasks:
            for number in task.members:
                member = self.grid.members[number - 1]
                batches = list(member.staged[message.job][task.task].values())
                count += self.store(name, batches)
        request.reply(user_pb2.JOB_COMMIT, user_pb2.Count(count=count))

    def on_job_abort(self, request: transport.Request) -> None:
        job = user_pb2.JobAbort.FromString(request.pbody).job
        for member in self.grid.members:
            member.staged.pop(job, None)
        request.reply(user_pb2.JOB_ABORT, common_pb2.Ack(ok=True))

    def on_create_prepared_statement(self, request: transport.Request) -> None:
        text = user_pb2.CreatePreparedStatementReq.FromString(request.pbody).sql_query
        body = user_pb2.CreatePreparedStatementResp(status=user_pb2.OK)
        prepared = body.prepared_statement
        prepared.server_handle.server_info = f"{self.number}:{text}".encode()
        types, route = self.grid.prepared.get(text, ((), None))
        prepared.parameter_types.extend(type_codec.encode_type(t) for t in types)
        if route:
            prepared.route_parameters.extend(route)
        request.reply(user_pb2.PREPARED_STATEMENT, body)

    def on_run_query(self, request: transport.Request) -> None:
        message = user_pb2.RunQuery.FromString(request.pbody)
        text = message.plan
        if message.type == user_pb2.PREPARED_STATEMENT_TYPE:
            number, text = message.prepared_statement_handle.server_info.decode().split(":", 1)
            assert int(number) == self.number, "a handle of another member"
        self.grid.statements.append((self.number, message))
        script = self.grid.scripts.get(text) or self.grid.answer(text, message)
        Running(self, request, script)

    def on_cancel_query(self, request: transport.Request) -> None:
        query = common_pb2.QueryId.FromString(request.pbody)
        self.running[query.part2 - 1].end(QueryCanceled("canceled by the user"))
        request.reply(user_pb2.ACK, common_pb2.Ack(ok=True))

    # ---

    def table(self, message: Any) -> Rows:
        schema = self.grid.find(message.map)
        if (schema.map_id, schema.version) != (message.map_id, message.schema_version):
            raise SchemaChanged(f'map "{message.map}" has changed')
        self.grid.clocks.append(message.context.clock)
        return self.rows.setdefault(message.map, {})

    def owner(self, name: str, key: tuple[Any, ...]) -> int:
        schema = self.grid.maps[name]
        types = [schema.columns[i].type for i in schema.key_positions]
        return self.grid.view.owners[partition_of(hasher(types)(key))]

    def home(self, name: str, key: tuple[Any, ...]) -> Rows:
        """Where a row of a write of many goes: whoever gets it commits it on all owners."""
        owner = self.owner(name, key)
        member = next(member for member in self.grid.members if member.number == owner)
        return member.rows.setdefault(name, {})

    def owned(self, name: str, key: tuple[Any, ...]) -> tuple[Any, ...]:
        owner = self.owner(name, key)
        if owner != self.number and self.grid.view.number > 1:
            raise ViewChanged(f"member {self.number} does not own the keys of the request")
        assert owner == self.number, f"key {key} of member {owner} came to member {self.number}"
        return key

    def store(self, name: str, batches: list[pa.RecordBatch]) -> int:
        schema = self.grid.maps[name]
        count = 0
        for batch in batches:
            assert batch.schema.equals(engine_schema(schema)), (batch.schema, schema)
            values = [
                array_to_values(array, column.type)
                for array, column in zip(batch.columns, schema.columns, strict=True)
            ]
            for row in zip(*values, strict=True):
                key = tuple(row[i] for i in schema.key_positions)
                self.home(name, key)[key] = row
                count += 1
        return count

    def keys(self, message: Any) -> list[tuple[Any, ...]]:
        schema = self.grid.maps[message.map]
        types = tuple(schema.columns[i].type for i in schema.key_positions)
        if isinstance(message, user_pb2.KeysRequest) and message.HasField("key_batch"):
            with pa.ipc.open_stream(message.key_batch) as reader:
                return arrays_to_rows(reader.read_next_batch().columns, types)
        return [packer(types).unpack(key) for key in message.keys]

    def answer(self, request: transport.Request, message: Any, rows: list[Any]) -> None:
        pack = rows_of(self.grid.maps[message.map]).pack
        body = user_pb2.RowsResponse()
        body.context.clock = self.grid.tick()
        body.context.view = self.grid.view.number
        for row in rows:
            item = body.rows.add()
            if row is not None:
                item.row = pack(row) if row else b""
        request.reply(request.rpc_type, body)


def rows_of(schema: MapSchema) -> RowPacker:
    return packer(tuple(column.type for column in schema.columns))


class FakeGrid:
    def __init__(self, members: int = 3) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.maps: dict[str, MapSchema] = {}
        self.scripts: dict[str, Script] = {}
        self.prepared: dict[str, Any] = {}
        self.statements: list[tuple[int, user_pb2.RunQuery]] = []
        self.silent: set[str] = set()
        self.clock = 1
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([])) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays([], schema=pa.schema([])))
        self.empty_page = [memoryview(sink.getvalue())]
        self.clocks: list[int] = []
        self.jobs = 0
        self.created = 0
        self.members: list[FakeMember] = []
        self.infos: list[MemberInfo] = []
        for _ in range(members):
            self.add_member()
        self.view: View = first_view(tuple(self.infos))

    async def serve(self, member: FakeMember) -> None:
        member.server = await listen(
            member.sock, ChannelKind.USER, partial(self.welcome, member), member.handle
        )

    def welcome(self, member: FakeMember, hello: Any) -> user_pb2.BitToUserHandshake:
        asked = {item.key: item.value for item in hello.properties.properties}
        assert asked["remuda.results"] == "arrow"
        return user_pb2.BitToUserHandshake(arrow_results=True, member=member.number)

    def answer(self, text: str, message: user_pb2.RunQuery) -> Script:
        raise UndefinedMap(f"no script for {text}")

    def find(self, name: str) -> MapSchema:
        if name not in self.maps:
            raise UndefinedMap(f'map "{name}" does not exist')
        return self.maps[name]

    def create(self, schema: MapSchema) -> MapSchema:
        if schema.name not in self.maps:
            self.created += 1
            self.maps[schema.name] = dataclasses.replace(schema, map_id=self.created)
        return self.maps[schema.name]

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def run(self, make: Callable[[], Any]) -> Any:
        async def inside() -> Any:
            found = make()
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(inside(), self.loop).result(10)

    def stop_member(self, number: int) -> None:
        server = self.members[number - 1].server
        assert server is not None
        self.run(server.close)

    def stop(self) -> None:
        for member in self.members:
            self.stop_member(member.number)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def change_view(self, live: list[int], backups: int = 1) -> None:
        """A next view of these members, which takes effect at once: every row is with its owner."""
        infos = tuple(self.infos[number - 1] for number in live)
        fresh = first_view(infos, backups)
        last = max(self.view.last_number, *live)
        self.view = View(self.view.number + 1, infos, fresh.replicas, last)
        for name, schema in self.maps.items():
            everything = [member.rows.pop(name, {}) for member in self.members]
            types = [schema.columns[i].type for i in schema.key_positions]
            for key, row in [item for rows in everything for item in rows.items()]:
                owner = self.view.owners[partition_of(hasher(types)(key))]
                self.members[owner - 1].rows.setdefault(name, {})[key] = row

    def restart_member(self, number: int) -> int:
        """Another process at the address of a member that has stopped, with a number of its own."""
        port = self.infos[number - 1].user_port
        self.stop_member(number)
        return self.add_member(port)

    def add_member(self, port: int = 0) -> int:
        """A member that listens, and is in no view yet."""
        number = len(self.members) + 1
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        port = sock.getsockname()[1]
        self.infos.append(MemberInfo(number, f"u{number}", "127.0.0.1", port, 1, 1))
        member = FakeMember(self, number, sock)
        self.members.append(member)
        self.run(lambda: self.serve(member))
        return number

    @property
    def addresses(self) -> list[str]:
        return [f"{member.host}:{member.user_port}" for member in self.view.members]


@pytest.fixture
def grid() -> Iterator[FakeGrid]:
    found = FakeGrid()
    yield found
    found.stop()


@pytest.fixture
def client(grid: FakeGrid) -> Iterator[Client]:
    with connect(grid.addresses) as found:
        yield found


@pytest.fixture
def script() -> type[Script]:
    return Script


@pytest.fixture(params=["blocking", "asyncio"])
def face(request: pytest.FixtureRequest, grid: FakeGrid) -> Callable[..., None]:
    """Runs a scenario, a coroutine function of a client and a map, over either face."""
    from faces import Blocking  # noqa: PLC0415 (found by the path that is set above)

    def blocking(scenario: Any, **options: Any) -> None:
        with connect(grid.addresses, **options) as client:
            asyncio.run(scenario(Blocking(client)))

    def asynchronous(scenario: Any, **options: Any) -> None:
        async def main() -> None:
            async with remuda.aio.connect(grid.addresses, **options) as client:
                await scenario(client)

        asyncio.run(main())

    return blocking if request.param == "blocking" else asynchronous
