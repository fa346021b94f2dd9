"""The client of a service that runs statements on Spark: work out of members, rows into them.

A member gives work to whoever asks for it (``SPARK_WORK``), so the service listens nowhere, and
needs no address. It asks every member all the time; the answer comes when there is work.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from remuda.client.core.core import Core
from remuda.client.network.driving import finish
from remuda.client.requests.requests import Call
from remuda.datatypes.sql import SqlType
from remuda.errors import RemudaError
from remuda.query.ids import QueryId
from remuda.query.wire import decode_query_id, encode_query_id
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import user_pb2


@dataclass(frozen=True, slots=True)
class Scan:
    """``view`` stands for some columns of a map."""

    view: str
    map: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """``expression`` as plans encode them, over arguments that are columns 0, 1, ..."""

    name: str
    expression: bytes
    arguments: tuple[SqlType, ...]
    result: SqlType


@dataclass(frozen=True, slots=True)
class Work:
    """One statement. Its rows go to ``member``, in the external form of ``types``."""

    member: int
    query: QueryId
    text: str
    at: int
    scans: tuple[Scan, ...]
    functions: tuple[Function, ...]
    types: tuple[SqlType, ...]
    page_rows: int


@dataclass(frozen=True, slots=True)
class Service:
    """``cores`` are those that its Spark computes with."""

    name: str
    cores: int


@dataclass(frozen=True, slots=True)
class News:
    work: tuple[Work, ...]
    unwanted: tuple[QueryId, ...]


class SparkWork:
    def __init__(self, core: Core) -> None:
        self._core = core

    def members(self) -> list[int]:
        return [member.number for member in self._core.view.members]

    def refresh(self) -> None:
        """Learn the newest view. Raises MemberUnavailable."""
        finish(self._core.refresh())

    def poll(
        self, member: int, service: Service, wait: float, free: int, running: Iterable[QueryId]
    ) -> News:
        """The work that ``member`` has for this service; waits up to ``wait`` seconds for it.
        Raises InsufficientPrivilege, and the errors of a lost member."""
        body = user_pb2.SparkPoll(service=service.name, wait=wait, free=free, cores=service.cores)
        body.running.extend(encode_query_id(query) for query in running)

        def parse(pbody: bytes) -> News:
            found = user_pb2.SparkNews.FromString(pbody)
            work = tuple(_work(member, each) for each in found.work)
            return News(work, tuple(decode_query_id(query) for query in found.unwanted))

        return finish(self._core.call(member, Call(user_pb2.SPARK_WORK, body, parse)))

    def send(
        self, service: str, work: Work, rows: Sequence[pa.RecordBatch] | None, *, last: bool
    ) -> bool:
        """Rows of a statement; returns when more are wanted, False if never."""
        return self._send(service, work, _stream(rows) if rows else b"", last=last, error=None)

    def fail(self, service: str, work: Work, error: RemudaError) -> None:
        self._send(service, work, b"", last=True, error=error)

    def _send(
        self, service: str, work: Work, data: bytes, *, last: bool, error: RemudaError | None
    ) -> bool:
        body = user_pb2.SparkRows(service=service, query=encode_query_id(work.query), last=last)
        if error is not None:
            body.error.CopyFrom(codec.encode_error(error))

        def parse(pbody: bytes) -> tuple[bool, bool]:
            found = user_pb2.SparkWanted.FromString(pbody)
            return found.wanted, found.room

        buffers = (data,) if data else ()
        call = Call(user_pb2.SPARK_ROWS, body, parse, buffers)
        wanted, room = finish(self._core.call(work.member, call))
        empty = user_pb2.SparkRows(service=service, query=encode_query_id(work.query), last=last)
        while wanted and not room:
            call = Call(user_pb2.SPARK_ROWS, empty, parse)
            wanted, room = finish(self._core.call(work.member, call))
        return wanted


def _stream(rows: Sequence[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows[0].schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return sink.getvalue()


def _work(member: int, found: user_pb2.SparkWork) -> Work:
    functions = []
    scans = tuple(
        Scan(scan.view, scan.map, tuple(scan.columns), type_codec.decode_types(scan.types))
        for scan in found.scans
    )
    for function in found.functions:
        *arguments, result = type_codec.decode_types(function.types)
        functions.append(Function(function.name, function.expression, tuple(arguments), result))
    return Work(
        member=member,
        query=decode_query_id(found.query),
        text=found.text,
        at=found.read_timestamp,
        scans=scans,
        functions=tuple(functions),
        types=type_codec.decode_types(found.types),
        page_rows=found.page_rows,
    )
