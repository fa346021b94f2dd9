"""The user channel's requests and answers as plain values: pure, shared by the client's faces.

A ``Call`` holds what is sent and how the reply is read. A face (blocking sockets today) only moves
the frames: ``call.parse(reply.pbody)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from remuda.client.values.arrow_stream import Found, found_of_batch, found_of_rows, key_batch
from remuda.datatypes.hashes.keyhash import hasher
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.errors import ProtocolError
from remuda.query.ids import QueryId
from remuda.release import __version__
from remuda.rpc import codec, point_encoding, type_codec
from remuda.rpc.frame import varint
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.packing import RowPacker, packer
from remuda.rpc.point_encoding import context_rest, encode_clock, encode_context, field
from remuda.rpc.request import Body

T = TypeVar("T")
Buffers: TypeAlias = Sequence[bytes | memoryview]
PhysicalRow: TypeAlias = tuple[PhysicalValue, ...]
Begun: TypeAlias = Callable[[user_pb2.TransactionStatus], None]


class Call(NamedTuple, Generic[T]):
    """One request and the reader of its answer."""

    rpc_type: int
    body: Body
    parse: Callable[[bytes], T]
    dbody: Buffers = ()


_new_tuple = tuple.__new__
"""Makes the ``Call`` of a single entry: a third of the cost of ``Call(...)``."""


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The state of the cluster, as ``member`` (a number) knows it.

    ``view`` holds the members and the owner of each partition; ``clock`` is the member's hybrid
    timestamp (microseconds since 1970, shifted, with a counter in the low bits);
    ``catalog_version`` grows with every map that is made or dropped.
    """

    view: View
    maps: tuple[MapSchema, ...]
    clock: int
    catalog_version: int
    member: int


@dataclass(frozen=True, slots=True)
class MapDescription:
    """A map, with the live estimates of its rows and its bytes in memory, over all members."""

    schema: MapSchema
    rows: int
    bytes: int
    catalog_version: int = 0
    """In which it was so."""
    no_answer: tuple[int, ...] = ()
    """Members that did not answer within two seconds: ``rows`` and ``bytes`` lack their share."""


@dataclass(frozen=True)
class Route:
    """A statement reads or changes one key of one map: which parameters make up the partition key,
    and the types of its columns."""

    parameters: tuple[int, ...]
    types: tuple[SqlType, ...]

    @cached_property
    def hash(self) -> Callable[[Sequence[PhysicalValue]], int]:
        return hasher(self.types)


@dataclass(frozen=True, slots=True)
class JobTask:
    """A finished task attempt of a job: which members hold rows of it, and how many rows in all."""

    task: str
    members: tuple[int, ...]
    rows: int = 0


_SHORTEST_TIMEOUT = 0.001


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a statement runs; the defaults leave every choice to the member."""

    timeout: float | None = None
    read_timestamp: int | None = None
    partitions: tuple[int, ...] | None = None
    local_only: bool = False
    page_rows: int | None = None
    carries_copy: bool = False
    """The caller sends and takes the data of a COPY."""

    def after(self, seconds: float) -> RunOptions:
        """The rest of the timeout when so much of it has passed: for a statement that runs
        again. Never 0, which would be no timeout."""
        if self.timeout is None:
            return self
        return replace(self, timeout=max(self.timeout - seconds, _SHORTEST_TIMEOUT))


class Condition(Enum):
    """When a put happens."""

    ALWAYS = user_pb2.PutRequest.ALWAYS
    IF_ABSENT = user_pb2.PutRequest.IF_ABSENT
    IF_PRESENT = user_pb2.PutRequest.IF_PRESENT


def _nothing() -> None:
    return None


class Clock:
    """The highest clock the client has seen: sent along, so that it reads its own writes. And the
    newest view: ``on_view`` is called when an answer tells of a newer one."""

    __slots__ = ("on_view", "value", "view")

    def __init__(self) -> None:
        self.value = 0
        self.view = 0
        self.on_view: Callable[[], None] = _nothing

    def observe(self, context: common_pb2.Context) -> None:
        self.value = max(self.value, context.clock)
        if context.view > self.view:
            self.view = context.view
            self.on_view()

    def context(self, view: int) -> bytes:
        """The serialized part that every request carries."""
        return encode_context(self.value, view)

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
    message.client_infos.version = __version__
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


def describe_map(name: str, *, schema_only: bool = False) -> Call[MapDescription]:
    """``schema_only``: without rows and bytes (0), for which all members would be asked."""
    body = user_pb2.MapName(name=name, schema_only=schema_only)
    return Call(user_pb2.DESCRIBE_MAP, body, _parse_description)


def create_map(schema: MapSchema, if_not_exists: bool) -> Call[MapDescription]:
    body = user_pb2.CreateMap(schema=codec.encode_schema(schema), if_not_exists=if_not_exists)
    return Call(user_pb2.CREATE_MAP, body, _parse_description)


def drop_map(name: str, if_exists: bool) -> Call[None]:
    body = user_pb2.MapName(name=name, if_exists=if_exists)
    return Call(user_pb2.DROP_MAP, body, parse_nothing)


def _parse_description(pbody: bytes) -> MapDescription:
    message = user_pb2.MapDescription.FromString(pbody)
    schema = codec.decode_schema(message.schema)
    silent = tuple(message.no_answer)
    return MapDescription(schema, message.rows, message.bytes, message.catalog_version, silent)


def parse_nothing(_pbody: bytes) -> None:
    return None


# --- entries ---


class MapRequests:
    """The requests of one map; the parts that do not change are serialized once."""

    def __init__(self, schema: MapSchema, clock: Clock, view: int) -> None:
        self.schema = schema
        self.clock = clock
        self.view = view
        self._context = context_rest(view)
        types = tuple(column.type for column in schema.columns)
        self._rows = packer(types)
        self._keys = packer(tuple(types[position] for position in schema.key_positions))
        self.pack_row, self.unpack_row = self._rows.pack, self._rows.unpack
        self.pack_key = self._keys.pack
        # KeysRequest and PutRequest begin alike; so does the rest of each kind of put.
        self._map = user_pb2.KeysRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        ).SerializeToString()
        self._puts = {
            (condition, want_old): self._map
            + user_pb2.PutRequest(condition=condition.value, want_old=want_old).SerializeToString()
            for condition in Condition
            for want_old in (False, True)
        }
        self._put = self._puts[Condition.ALWAYS, False]
        self._batch = user_pb2.PutBatchRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        )

    def get_one(self, key: PhysicalRow) -> Call[Any]:
        """MAP_GET of one key: its row, or None."""
        packed, context = self.pack_key(key), encode_clock(self.clock.value) + self._context
        if len(packed) < 128:
            parts = (self._map, len(packed), packed, len(context), context)
            body = b"%b\x22%c%b\x3a%c%b" % parts
        else:
            body = self._keys_request((key,), b"")
        return _new_tuple(Call, (MAP_GET, body, self._row, ()))

    def _row(self, pbody: bytes) -> PhysicalRow | None:
        message = user_pb2.RowsResponse.FromString(pbody)
        self.clock.observe(message.context)
        item = message.rows[0]
        return self._rows.unpack(item.row) if item.HasField("row") else None

    def first_get(self, key: PhysicalRow, begin: bytes, begun: Begun) -> Call[Any]:
        """MAP_GET of one key that begins a transaction: ``begun`` hears of it."""

        def parse(pbody: bytes) -> PhysicalRow | None:
            message = user_pb2.RowsResponse.FromString(pbody)
            if not message.begun.transaction:
                raise ProtocolError(
                    "the member has not begun the transaction that it was asked for"
                )
            begun(message.begun)
            return self._row(pbody)

        rest = field(point_encoding.KEYS_BEGIN, begin)
        return Call(MAP_GET, self._keys_request((key,), rest), parse)

    def newest(self, key: PhysicalRow, at: bytes) -> Call[tuple[bool, Any]]:
        """MAP_GET of one key as it was at a timestamp (packed): whether nothing newer is there, or
        may come, and then its row."""

        def parse(pbody: bytes) -> tuple[bool, PhysicalRow | None]:
            message = user_pb2.RowsResponse.FromString(pbody)
            self.clock.observe(message.context)
            if message.outdated:
                return False, None
            item = message.rows[0]
            return True, self._rows.unpack(item.row) if item.HasField("row") else None

        rest = point_encoding.KEYS_AT + at + point_encoding.KEYS_NEWEST
        return Call(MAP_GET, self._keys_request((key,), rest), parse)

    def packed(self, keys: Iterable[bytes], rest: bytes) -> Call[Any]:
        """MAP_GET of packed keys, whose rows nobody wants."""
        parts = [self._map, *(field(point_encoding.KEYS_ITEM, key) for key in keys), rest]
        parts.append(field(point_encoding.KEYS_CONTEXT, self.clock.context(self.view)))
        return Call(MAP_GET, b"".join(parts), parse_nothing)

    def put_packed(self, rows: Iterable[bytes]) -> Call[list[Any]]:
        """MAP_PUT of packed rows, whatever was there."""
        parts = [self._put]
        parts += [field(point_encoding.KEYS_ITEM, row) for row in rows]
        parts.append(field(point_encoding.KEYS_CONTEXT, self.clock.context(self.view)))
        return Call(MAP_PUT, b"".join(parts), self.rows)

    def get(self, keys: Iterable[PhysicalRow], keys_only: bool = False) -> Call[list[Any]]:
        """MAP_GET: one physical row or None per key (``keys_only``: an empty row when present)."""
        return Call(MAP_GET, self._keys_request(keys, _KEYS_ONLY if keys_only else b""), self.rows)

    def get_columns(self, keys: Sequence[pa.Array]) -> Call[Found]:
        """MAP_GET of many keys, whose columns are given in engine form."""
        context = field(point_encoding.KEYS_CONTEXT, self.clock.context(self.view))
        return Call(MAP_GET, self._map + key_batch(self.schema, keys) + context, self._found)

    def _found(self, pbody: bytes) -> Found:
        message = user_pb2.RowsResponse.FromString(pbody)
        if not message.HasField("batch"):  # a member that had to look at each key by itself
            return found_of_rows(self.schema, self.rows(pbody))
        self.clock.observe(message.context)
        return found_of_batch(message)

    def remove(self, keys: Iterable[PhysicalRow], want_old: bool) -> Call[list[Any]]:
        """MAP_REMOVE -> the removed row (empty unless ``want_old``) or None per key."""
        return Call(MAP_REMOVE, self._keys_request(keys, _WANT_OLD if want_old else b""), self.rows)

    def put(
        self,
        rows: Iterable[PhysicalRow],
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
        ttl: int | None = None,
    ) -> Call[list[Any]]:
        """MAP_PUT -> the row that was there before, or None, per row. ``ttl`` in microseconds."""
        pack = self.pack_row
        parts = [self._puts[condition, want_old]]
        if ttl is not None:
            parts.append(user_pb2.PutRequest(ttl=ttl).SerializeToString())
        parts += [field(point_encoding.KEYS_ITEM, pack(row)) for row in rows]
        parts.append(field(point_encoding.KEYS_CONTEXT, self.clock.context(self.view)))
        return Call(MAP_PUT, b"".join(parts), self.rows)

    def put_one(self, row: PhysicalRow) -> Call[None]:
        """MAP_PUT of one row, whatever was there."""
        packed, context = self.pack_row(row), encode_clock(self.clock.value) + self._context
        size = len(packed)
        length = b"%c" % size if size < 128 else varint(size)
        parts = (self._put, length, packed, len(context), context)
        return _new_tuple(Call, (MAP_PUT, b"%b\x22%b%b\x3a%c%b" % parts, self._stored, ()))

    def _stored(self, pbody: bytes) -> None:
        self.clock.observe(user_pb2.RowsResponse.FromString(pbody).context)

    def put_batch(self, dbody: Buffers, ttl: int | None = None) -> Call[int]:
        """MAP_PUT_BATCH: an Arrow IPC stream of whole rows in the engine's form, keys unique."""
        body = user_pb2.PutBatchRequest()
        body.CopyFrom(self._batch)
        if ttl is not None:
            body.ttl = ttl
        self.clock.stamp(body.context, self.view)
        return Call(user_pb2.MAP_PUT_BATCH, body, self.count, dbody)

    def ttl(self, key: PhysicalRow) -> Call[int | None]:
        """MAP_TTL -> microseconds that the entry has left, 0 for one that does not expire, None for
        none."""

        def parse(pbody: bytes) -> int | None:
            message = user_pb2.RowsResponse.FromString(pbody)
            self.clock.observe(message.context)
            return message.rows[0].ttl if message.rows[0].HasField("row") else None

        return Call(user_pb2.MAP_TTL, self._keys_request((key,), b""), parse)

    def set_ttl(self, key: PhysicalRow, ttl: int) -> Call[list[Any]]:
        """MAP_SET_TTL -> an empty row if the entry existed."""
        rest = user_pb2.KeysRequest(ttl=ttl).SerializeToString()
        return Call(user_pb2.MAP_SET_TTL, self._keys_request((key,), rest), self.rows)

    def size(self) -> Call[int]:
        body = user_pb2.MapName(name=self.schema.name)
        self.clock.stamp(body.context, self.view)
        return Call(user_pb2.MAP_SIZE, body, self.count)

    def count(self, pbody: bytes) -> int:
        message = user_pb2.Count.FromString(pbody)
        self.clock.observe(message.context)
        return message.count

    def _keys_request(self, keys: Iterable[PhysicalRow], rest: bytes) -> bytes:
        pack = self._keys.pack
        parts = [self._map]
        parts += [field(point_encoding.KEYS_ITEM, pack(key)) for key in keys]
        parts.append(rest)
        parts.append(field(point_encoding.KEYS_CONTEXT, self.clock.context(self.view)))
        return b"".join(parts)

    def rows(self, pbody: bytes) -> list[Any]:
        """The rows of a RowsResponse: None where there is none, () where it was not asked for."""
        message = user_pb2.RowsResponse.FromString(pbody)
        self.clock.observe(message.context)
        unpack = self._rows.unpack
        return [
            (unpack(data) if (data := item.row) else ()) if item.HasField("row") else None
            for item in message.rows
        ]


_KEYS_ONLY = user_pb2.KeysRequest(keys_only=True).SerializeToString()
_WANT_OLD = user_pb2.KeysRequest(want_old=True).SerializeToString()
# Read once: an enumeration's attribute is a slow lookup.
MAP_GET, MAP_PUT, MAP_REMOVE = user_pb2.MAP_GET, user_pb2.MAP_PUT, user_pb2.MAP_REMOVE


# --- statements ---


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """The server's half of a prepared statement."""

    handle: bytes
    parameter_types: tuple[SqlType, ...]
    route: Route | None


class Prologue(NamedTuple):
    """The beginning of a RUN_QUERY, and how its parameters are packed (None: it has none)."""

    statement: str | bytes
    types: tuple[SqlType, ...]
    form: int
    """The arguments of ``prologue`` that made it."""
    message: bytes
    parameters: RowPacker | None


NO_OPTIONS = RunOptions()
_PROLOGUES_KEPT = 1024


@lru_cache(maxsize=_PROLOGUES_KEPT)
def prologue(statement: str | bytes, types: tuple[SqlType, ...], form: int) -> Prologue:
    """The part that is the same whenever a statement runs: its text, or its handle (bytes), the
    types of its parameters, and the form of its answers as far as the client knows it (0: it does
    not)."""
    body = user_pb2.RunQuery(results_mode=user_pb2.STREAM_FULL, accept_answer=True, accept_tag=True)
    if isinstance(statement, bytes):
        body.type = user_pb2.PREPARED_STATEMENT_TYPE
        body.prepared_statement_handle.server_info = statement
    else:
        body.type = user_pb2.SQL
        body.plan = statement
    body.parameter_types = type_codec.encode_types(types)
    if form:
        body.known_form = form
    message = body.SerializeToString()
    return Prologue(statement, types, form, message, packer(types) if types else None)


def run_query(
    start: Prologue,
    parameters: Sequence[PhysicalValue],
    options: RunOptions,
    context: bytes,
) -> bytes:
    """RUN_QUERY of a statement with this ``prologue``. The answer is QUERY_ANSWER, or else
    QUERY_HANDLE, then the results."""
    parts = [start.message]
    if start.parameters is not None:
        row = start.parameters.pack(parameters)
        parts.append(field(point_encoding.RUN_PARAMETERS, row))
    parts.append(b"%b%c%b" % (point_encoding.RUN_CONTEXT, len(context), context))  # some 20 bytes
    if options is not NO_OPTIONS:
        body = user_pb2.RunQuery(
            timeout=options.timeout,
            read_timestamp=options.read_timestamp,
            partitions=options.partitions,
            page_rows=options.page_rows,
        )
        if options.local_only:
            body.local_only = True
        if options.carries_copy:
            body.carries_copy = True
        parts.append(body.SerializeToString())
    return b"".join(parts)


def session_part(session: bytes) -> bytes:
    """The rest of a RUN_QUERY of a client that has settings or prepared statements."""
    return user_pb2.RunQuery(session=session).SerializeToString() if session else b""


def transaction_part(name: str) -> bytes:
    """The rest of a RUN_QUERY, a KeysRequest, a PutRequest or a PutBatchRequest that belongs to a
    transaction; of a RUN_QUERY, "" says that the client can have one."""
    return field(point_encoding.TRANSACTION, name.encode())


def cancel_query(query: QueryId) -> Call[None]:
    body = common_pb2.QueryId(part1=query.part1, part2=query.part2)
    return Call(user_pb2.CANCEL_QUERY, body, parse_nothing)


def prepare(text: str) -> Call[PreparedPlan]:
    def parse(pbody: bytes) -> PreparedPlan:
        message = user_pb2.CreatePreparedStatementResp.FromString(pbody)
        if message.status != user_pb2.OK:
            raise codec.decode_error(message.error, text)
        prepared = message.prepared_statement
        types = tuple(type_codec.decode_type(t) for t in prepared.parameter_types)
        positions = tuple(prepared.route_parameters)
        route = Route(positions, tuple(types[i] for i in positions)) if positions else None
        return PreparedPlan(prepared.server_handle.server_info, types, route)

    body = user_pb2.CreatePreparedStatementReq(sql_query=text)
    return Call(user_pb2.CREATE_PREPARED_STATEMENT, body, parse)


# --- staged jobs ---


def job_begin(
    name: str, overwrite: bool, label: str, insert_only: bool = False, job: str | None = None
) -> Call[tuple[str, MapSchema]]:
    """``job``: its id, if the client has made it up."""

    def parse(pbody: bytes) -> tuple[str, MapSchema]:
        message = user_pb2.JobHandle.FromString(pbody)
        return message.job, codec.decode_schema(message.schema)

    body = user_pb2.JobBegin(
        map=name, overwrite=overwrite, label=label, insert_only=insert_only, job=job
    )
    return Call(user_pb2.JOB_BEGIN, body, parse)


def job_write(
    job: str, task: str, sequence: int, dbody: Buffers, *, removal: bool = False
) -> Call[int]:
    body = user_pb2.JobWrite(job=job, task=task, sequence=sequence, removal=removal)
    return Call(user_pb2.JOB_WRITE, body, parse_count, dbody)


def job_task_end(job: str, task: str, rows: int, *, removal: bool = False) -> Call[int]:
    body = user_pb2.JobTaskEnd(job=job, task=task, rows=rows, removal=removal)
    return Call(user_pb2.JOB_TASK_END, body, parse_count)


def job_commit(
    job: str, tasks: Iterable[JobTask], clock: Clock, ttl: int | None = None
) -> Call[int]:
    def parse(pbody: bytes) -> int:
        message = user_pb2.Count.FromString(pbody)
        clock.observe(message.context)
        return message.count

    body = user_pb2.JobCommit(job=job, ttl=ttl)
    for task in tasks:
        body.tasks.add(task=task.task, members=task.members, rows=task.rows)
    return Call(user_pb2.JOB_COMMIT, body, parse)


def job_abort(job: str) -> Call[None]:
    return Call(user_pb2.JOB_ABORT, user_pb2.JobAbort(job=job), parse_nothing)


def read_lease(run: str, at: int | None, seconds: int) -> Call[int | None]:
    def parse(pbody: bytes) -> int | None:
        message = user_pb2.ReadLeased.FromString(pbody)
        return message.at if message.HasField("at") else None

    body = user_pb2.ReadLease(run=run, at=at, seconds=seconds)
    return Call(user_pb2.READ_LEASE, body, parse)


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
