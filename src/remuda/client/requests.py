"""The user channel's requests and answers as plain values: pure, shared by the client's faces.

A ``Call`` holds what is sent and how the reply is read. A face (blocking sockets today) only moves
the frames: ``call.parse(reply.pbody)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.query.ids import QueryId
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, user_pb2

T = TypeVar("T")
Buffers: TypeAlias = Sequence[bytes | memoryview]
PhysicalRow: TypeAlias = tuple[PhysicalValue, ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the reader of its answer."""

    rpc_type: int
    body: Message
    parse: Callable[[bytes], T]
    dbody: Buffers = ()


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What a member says about its cluster; ``clock`` is its hybrid timestamp."""

    view: View
    maps: tuple[MapSchema, ...]
    clock: int
    catalog_version: int
    member: int


@dataclass(frozen=True, slots=True)
class MapDescription:
    """A map, with the live estimates of rows and bytes over the whole cluster."""

    schema: MapSchema
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Route:
    """A prepared statement reads one key of one map: which parameters make up the key."""

    map: str
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """The server's half of a prepared statement."""

    handle: bytes
    parameter_types: tuple[SqlType, ...]
    route: Route | None


@dataclass(frozen=True, slots=True)
class JobTask:
    """A finished task attempt of a job: which members hold rows of it, and how many rows in all."""

    task: str
    members: tuple[int, ...]
    rows: int = 0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a statement runs; the defaults leave every choice to the member."""

    timeout: float | None = None
    read_timestamp: int | None = None
    partitions: tuple[int, ...] | None = None
    local_only: bool = False
    page_rows: int | None = None


class Condition(Enum):
    """When a put happens."""

    ALWAYS = user_pb2.PutRequest.ALWAYS
    IF_ABSENT = user_pb2.PutRequest.IF_ABSENT
    IF_PRESENT = user_pb2.PutRequest.IF_PRESENT


class Clock:
    """The highest clock the client has seen: sent along, so that it reads its own writes."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def observe(self, context: common_pb2.Context) -> None:
        self.value = max(self.value, context.clock)

    def stamp(self, context: common_pb2.Context, view: int) -> None:
        context.clock = self.value
        context.view = view


# --- handshake and cluster ---

_ARROW_RESULTS = "remuda.results"


def hello(application: str) -> user_pb2.UserToBitHandshake:
    """The client's handshake: asks for Arrow results."""
    message = user_pb2.UserToBitHandshake(channel=user_pb2.USER, support_listening=True)
    message.properties.properties.add(key=_ARROW_RESULTS, value="arrow")
    message.client_infos.name = "remuda"
    message.client_infos.application = application
    return message


def cluster_info(clock: Clock) -> Call[ClusterInfo]:
    def parse(pbody: bytes) -> ClusterInfo:
        message = user_pb2.ClusterInfo.FromString(pbody)
        clock.observe(message.context)
        return ClusterInfo(
            view=codec.decode_view(message.view),
            maps=tuple(codec.decode_schema(schema) for schema in message.maps),
            clock=message.context.clock,
            catalog_version=message.catalog_version,
            member=message.member,
        )

    return Call(user_pb2.CLUSTER_INFO, user_pb2.Empty(), parse)


# --- catalog ---


def describe_map(name: str) -> Call[MapDescription]:
    return Call(user_pb2.DESCRIBE_MAP, user_pb2.MapName(name=name), _parse_description)


def create_map(schema: MapSchema, if_not_exists: bool) -> Call[MapDescription]:
    body = user_pb2.CreateMap(schema=codec.encode_schema(schema), if_not_exists=if_not_exists)
    return Call(user_pb2.CREATE_MAP, body, _parse_description)


def drop_map(name: str, if_exists: bool) -> Call[None]:
    body = user_pb2.MapName(name=name, if_exists=if_exists)
    return Call(user_pb2.DROP_MAP, body, parse_nothing)


def _parse_description(pbody: bytes) -> MapDescription:
    message = user_pb2.MapDescription.FromString(pbody)
    return MapDescription(codec.decode_schema(message.schema), message.rows, message.bytes)


def parse_nothing(_pbody: bytes) -> None:
    return None


# --- entries ---


class MapRequests:
    """The requests of one map: what does not change from one to the next is precomputed."""

    def __init__(self, schema: MapSchema, clock: Clock, view: int) -> None:
        self.schema = schema
        self.clock = clock
        self.view = view
        self._keys = user_pb2.KeysRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        )
        self._put = user_pb2.PutRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        )
        self._batch = user_pb2.PutBatchRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        )

    def get(self, keys: Iterable[PhysicalRow], keys_only: bool = False) -> Call[list[Any]]:
        """MAP_GET: one physical row or None per key (``keys_only``: an empty row when present)."""
        return Call(user_pb2.MAP_GET, self._keys_request(keys, keys_only=keys_only), self._rows)

    def remove(self, keys: Iterable[PhysicalRow], want_old: bool) -> Call[list[Any]]:
        """MAP_REMOVE -> the removed row (empty unless ``want_old``) or None per key."""
        return Call(user_pb2.MAP_REMOVE, self._keys_request(keys, want_old=want_old), self._rows)

    def put(
        self,
        rows: Iterable[PhysicalRow],
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
    ) -> Call[list[Any]]:
        """MAP_PUT -> the row that was there before, or None, per row."""
        body = user_pb2.PutRequest()
        body.CopyFrom(self._put)
        body.condition = condition.value
        body.want_old = want_old
        self.clock.stamp(body.context, self.view)
        for row in rows:
            codec.fill_row(body.rows.add(), row)
        return Call(user_pb2.MAP_PUT, body, self._rows)

    def put_batch(self, dbody: Buffers) -> Call[int]:
        """MAP_PUT_BATCH: an Arrow IPC stream of whole rows in the engine's form, keys unique."""
        body = user_pb2.PutBatchRequest()
        body.CopyFrom(self._batch)
        self.clock.stamp(body.context, self.view)
        return Call(user_pb2.MAP_PUT_BATCH, body, self.count, dbody)

    def size(self) -> Call[int]:
        body = user_pb2.MapName(name=self.schema.name)
        self.clock.stamp(body.context, self.view)
        return Call(user_pb2.MAP_SIZE, body, self.count)

    def count(self, pbody: bytes) -> int:
        message = user_pb2.Count.FromString(pbody)
        self.clock.observe(message.context)
        return message.count

    def _keys_request(
        self, keys: Iterable[PhysicalRow], want_old: bool = False, keys_only: bool = False
    ) -> user_pb2.KeysRequest:
        body = user_pb2.KeysRequest()
        body.CopyFrom(self._keys)
        for key in keys:
            codec.fill_row(body.keys.add(), key)
        if want_old:
            body.want_old = True
        if keys_only:
            body.keys_only = True
        self.clock.stamp(body.context, self.view)
        return body

    def _rows(self, pbody: bytes) -> list[Any]:
        message = user_pb2.RowsResponse.FromString(pbody)
        self.clock.observe(message.context)
        return [
            codec.decode_row(item.row) if item.HasField("row") else None for item in message.rows
        ]


# --- statements ---


def run_query(
    statement: str | PreparedPlan,
    parameters: Sequence[PhysicalValue],
    parameter_types: Sequence[SqlType],
    options: RunOptions,
    clock: Clock,
    *,
    view: int,
) -> user_pb2.RunQuery:
    """RUN_QUERY of a text or a prepared statement; the answer is QUERY_HANDLE, then the results."""
    body = user_pb2.RunQuery(results_mode=user_pb2.STREAM_FULL)
    if isinstance(statement, PreparedPlan):
        body.type = user_pb2.PREPARED_STATEMENT_TYPE
        body.prepared_statement_handle.server_info = statement.handle
    else:
        body.type = user_pb2.SQL
        body.plan = statement
    body.parameters.extend(codec.encode_values(parameters))
    body.parameter_types.extend(codec.encode_type(t) for t in parameter_types)
    clock.stamp(body.context, view)
    if options.timeout is not None:
        body.timeout = options.timeout
    if options.read_timestamp is not None:
        body.read_timestamp = options.read_timestamp
    if options.partitions is not None:
        body.partitions.extend(options.partitions)
    if options.local_only:
        body.local_only = True
    if options.page_rows is not None:
        body.page_rows = options.page_rows
    return body


def cancel_query(query: QueryId) -> Call[None]:
    body = common_pb2.QueryId(part1=query.part1, part2=query.part2)
    return Call(user_pb2.CANCEL_QUERY, body, parse_nothing)


def prepare(text: str) -> Call[PreparedPlan]:
    def parse(pbody: bytes) -> PreparedPlan:
        message = user_pb2.CreatePreparedStatementResp.FromString(pbody)
        if message.status != user_pb2.OK:
            raise codec.decode_error(message.error, text)
        prepared = message.prepared_statement
        route = None
        if prepared.HasField("route_map"):
            route = Route(prepared.route_map, tuple(prepared.route_parameters))
        types = tuple(codec.decode_type(t) for t in prepared.parameter_types)
        return PreparedPlan(prepared.server_handle.server_info, types, route)

    body = user_pb2.CreatePreparedStatementReq(sql_query=text)
    return Call(user_pb2.CREATE_PREPARED_STATEMENT, body, parse)


# --- staged jobs ---


def job_begin(name: str, overwrite: bool, label: str) -> Call[tuple[str, MapSchema]]:
    def parse(pbody: bytes) -> tuple[str, MapSchema]:
        message = user_pb2.JobHandle.FromString(pbody)
        return message.job, codec.decode_schema(message.schema)

    body = user_pb2.JobBegin(map=name, overwrite=overwrite, label=label)
    return Call(user_pb2.JOB_BEGIN, body, parse)


def job_write(job: str, task: str, sequence: int, dbody: Buffers) -> Call[int]:
    body = user_pb2.JobWrite(job=job, task=task, sequence=sequence)
    return Call(user_pb2.JOB_WRITE, body, parse_count, dbody)


def job_task_end(job: str, task: str, rows: int) -> Call[int]:
    return Call(
        user_pb2.JOB_TASK_END, user_pb2.JobTaskEnd(job=job, task=task, rows=rows), parse_count
    )


def job_commit(job: str, tasks: Iterable[JobTask], clock: Clock) -> Call[int]:
    def parse(pbody: bytes) -> int:
        message = user_pb2.Count.FromString(pbody)
        clock.observe(message.context)
        return message.count

    body = user_pb2.JobCommit(job=job)
    for task in tasks:
        body.tasks.add(task=task.task, members=task.members)
    return Call(user_pb2.JOB_COMMIT, body, parse)


def job_abort(job: str) -> Call[None]:
    return Call(user_pb2.JOB_ABORT, user_pb2.JobAbort(job=job), parse_nothing)


def job_coordinator(job: str) -> int | None:
    """The member that coordinates a job: the number its name begins with (None: any may answer)."""
    digits = ""
    for character in job:
        if not character.isdigit():
            break
        digits += character
    return int(digits) if digits else None


def parse_count(pbody: bytes) -> int:
    return user_pb2.Count.FromString(pbody).count
