"""Services with a Spark session that run statements for this member.

A service asks for work (``SPARK_WORK``), and the request waits here until there is some: so it
needs no address, may lie behind anything that lets it out, and shows who it is as every client
does. It acts for every user, hence it must be an administrator: this member has checked what the
user who sent the statement may read before it asks a service.

The rows of a statement go into the sink of its cursor. The answer to a page of rows comes when the
client has taken enough of those before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from remuda.datatypes.arrow import to_engine
from remuda.datatypes.sql import SqlType
from remuda.errors import ProtocolError, RemudaError, SparkServiceLost, SparkServiceMissing
from remuda.execution.root_sink import RootSink
from remuda.member.base.core import Core
from remuda.member.sessions.statement import Client, Statement
from remuda.member.state.log import fields
from remuda.query.ids import QueryId
from remuda.query.wire import decode_query_id, encode_query_id
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Channel, Request
from remuda.sql.spark_sql.relations import SparkQuery

log = logging.getLogger(__name__)

SILENCE_MAX: Final = 60.0
"""Seconds after which a service that has not asked for work again counts as lost."""
POLL_MAX: Final = 10.0
ROOM_WAIT: Final = 5.0
"""Seconds until a service that waits for room is told to ask again."""


@dataclass(eq=False)
class SparkRun:
    """One statement. ``on_end`` hears of its end once; rows wait in ``sink``."""

    statement: Statement
    client: Client
    asked: SparkQuery
    at: int
    sink: RootSink
    on_end: Callable[[RemudaError | None], None] = lambda _: None
    service: str = ""
    ended: bool = False
    held: deque[Request] = field(default_factory=deque)
    """Answers that wait for room."""

    @property
    def query(self) -> QueryId:
        return self.statement.query

    def tell(
        self, on_end: Callable[[RemudaError | None], None], on_page: Callable[[], None]
    ) -> None:
        """Of its end, and of every page."""
        self.on_end = on_end
        self.sink.tell(on_page)


@dataclass(eq=False)
class _Service:
    name: str
    heard: float
    waiting: Request | None = None
    channel: Channel | None = None
    """On which it asked last."""
    free: int = 0
    cores: int = 1
    timer: asyncio.TimerHandle | None = None
    unwanted: set[QueryId] = field(default_factory=set)
    runs: dict[QueryId, SparkRun] = field(default_factory=dict)


class SparkServices:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._services: dict[str, _Service] = {}
        self._queue: deque[SparkRun] = deque()
        self._watch: asyncio.TimerHandle | None = None

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the user channel."""
        return {RpcType.SPARK_WORK: self._on_poll, RpcType.SPARK_ROWS: self._on_rows}

    @property
    def available(self) -> bool:
        self._expire()
        return bool(self._services)

    @property
    def cores(self) -> int:
        """Of the largest service; 1 without any."""
        return max((service.cores for service in self._services.values()), default=1)

    @property
    def count(self) -> int:
        """Statements that run on Spark, or wait for it."""
        return len(self._queue) + sum(len(service.runs) for service in self._services.values())

    def described(self) -> Iterator[control_pb2.SparkService]:
        """The services that ask this member for work."""
        self._expire()
        now = self._core.world.clock.monotonic()
        for service in self._services.values():
            found = control_pb2.SparkService(
                service=service.name,
                cores=service.cores,
                free=service.free,
                running=len(service.runs),
                silent=0.0 if service.waiting is not None else max(0.0, now - service.heard),
            )
            if service.channel is not None:
                found.user, found.address = service.channel.user, service.channel.peer
            yield found

    def oldest_read(self) -> int | None:
        """The lowest timestamp that Spark reads at, on all members."""
        running = [run for service in self._services.values() for run in service.runs.values()]
        return min((run.at for run in (*running, *self._queue)), default=None)

    def require(self) -> None:
        """Raises SparkServiceMissing."""
        if not self.available:
            raise _missing()

    def begin(self, run: SparkRun) -> None:
        """Its end is told even if no service takes it."""
        run.statement.progress.goes_to_spark()
        self._queue.append(run)
        self._hand_out()
        self._watch_services()

    def end(self, run: SparkRun) -> None:
        """Nobody wants its rows any more."""
        if run.ended:
            return
        run.ended = True
        if run in self._queue:
            self._queue.remove(run)
        service = self._services.get(run.service)
        if service is not None and service.runs.pop(run.query, None) is not None:
            service.unwanted.add(run.query)
            self._answer_poll(service)
        self._let_go(run, wanted=False)

    # --- work ---------------------------------------------------------------------------------

    def _on_poll(self, request: Request) -> None:
        message = user_pb2.SparkPoll.FromString(request.pbody)
        if not message.service:
            raise ProtocolError("a Spark service has a name")
        now = self._core.world.clock.monotonic()
        service = self._services.get(message.service)
        if service is None:
            service = self._services[message.service] = _Service(message.service, now)
            log.info("a Spark service has come", extra=fields(service=message.service))
        if service.waiting is not None:  # its connection broke, and it has made another one
            self._reply(service, [])
        service.heard, service.free, service.waiting = now, message.free, request
        service.cores = max(message.cores, 1)
        known = set(service.runs)
        for query in map(decode_query_id, message.running):
            if query not in known:
                service.unwanted.add(query)
        channel = request.channel
        if service.channel is not channel:  # not with every poll: a connection lives for days
            service.channel = channel
            channel.on_closed.append(lambda error: self._closed(service, channel, error))
        wait = min(max(message.wait, 0.0), POLL_MAX)
        service.timer = asyncio.get_running_loop().call_later(wait, self._reply, service, [])
        if service.unwanted:
            self._reply(service, [])
        self._hand_out()

    def _closed(self, service: _Service, channel: Channel, error: RemudaError) -> None:
        """A connection is gone. If its poll waited on it, so is the service."""
        waiting = service.waiting
        if waiting is not None and waiting.channel is channel:
            self._lost(service, error.message)

    def _hand_out(self) -> None:
        for service in list(self._services.values()):
            taken: list[SparkRun] = []
            while service.waiting is not None and self._queue and len(taken) < service.free:
                taken.append(self._queue.popleft())
            if taken:
                for run in taken:
                    run.service = service.name
                    service.runs[run.query] = run
                self._reply(service, taken)

    def _answer_poll(self, service: _Service) -> None:
        if service.waiting is not None:
            self._reply(service, [])

    def _reply(self, service: _Service, taken: list[SparkRun]) -> None:
        request, service.waiting = service.waiting, None
        if service.timer is not None:
            service.timer.cancel()
            service.timer = None
        if request is None:
            return
        news = user_pb2.SparkNews(work=[self._work(run) for run in taken])
        news.unwanted.extend(encode_query_id(query) for query in service.unwanted)
        service.unwanted.clear()
        service.heard = self._core.world.clock.monotonic()
        request.reply(RpcType.SPARK_WORK, news)

    def _work(self, run: SparkRun) -> user_pb2.SparkWork:
        asked = run.asked
        made = user_pb2.SparkWork(
            query=encode_query_id(run.query),
            text=asked.text,
            read_timestamp=run.at,
            types=type_codec.encode_types(asked.types),
            page_rows=run.sink.page_rows,
        )
        for scan in asked.scans:
            types = type_codec.encode_types(scan.types)
            made.scans.add(view=scan.view, map=scan.map, columns=scan.columns, types=types)
        for function in asked.functions:
            types = type_codec.encode_types((*function.arguments, function.result))
            made.functions.add(name=function.name, expression=function.expression, types=types)
        return made

    # --- rows ---------------------------------------------------------------------------------

    def _on_rows(self, request: Request) -> None:
        message = user_pb2.SparkRows.FromString(request.pbody)
        service = self._services.get(message.service)
        run = None if service is None else service.runs.get(decode_query_id(message.query))
        if service is None or run is None:
            request.reply(RpcType.SPARK_ROWS, user_pb2.SparkWanted(wanted=False, room=True))
            return
        service.heard = self._core.world.clock.monotonic()
        try:
            pages = _pages(request, run.asked.types, run.sink.page_rows)
            error = codec.decode_error(message.error) if message.HasField("error") else None
            for page in pages:
                run.sink.put(page, last=False)
        except RemudaError as problem:
            error = problem
        if error is not None or message.last:
            self._finish(service, run, error)
            request.reply(RpcType.SPARK_ROWS, user_pb2.SparkWanted(wanted=False, room=True))
            return
        run.held.append(request)
        asyncio.get_running_loop().call_later(ROOM_WAIT, self._ask_again, run, request)
        self.taken(run)

    def _finish(self, service: _Service, run: SparkRun, error: RemudaError | None) -> None:
        if run.ended:
            return
        run.ended = True
        service.runs.pop(run.query, None)
        self._let_go(run, wanted=False)
        if error is None:
            run.sink.put(None, last=True)
        run.on_end(error)

    def taken(self, run: SparkRun) -> None:
        """The client has taken a page."""
        if run.held and run.sink.wants_rows():
            self._let_go(run, wanted=True)

    def _let_go(self, run: SparkRun, *, wanted: bool) -> None:
        while run.held:
            answer = user_pb2.SparkWanted(wanted=wanted, room=True)
            run.held.popleft().reply(RpcType.SPARK_ROWS, answer)

    def _ask_again(self, run: SparkRun, request: Request) -> None:
        if request in run.held:
            run.held.remove(request)
            request.reply(RpcType.SPARK_ROWS, user_pb2.SparkWanted(wanted=True, room=False))

    # --- loss ---------------------------------------------------------------------------------

    def _watch_services(self) -> None:
        if self._watch is None and self.count:
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(SILENCE_MAX / 4, self._look)

    def _look(self) -> None:
        self._watch = None
        self._expire()
        if not self._services:
            for run in list(self._queue):
                self._queue.remove(run)
                run.ended = True
                run.on_end(_missing())
        self._watch_services()

    def _expire(self) -> None:
        since = self._core.world.clock.monotonic() - SILENCE_MAX
        for service in list(self._services.values()):
            if service.waiting is None and service.heard < since:
                self._lost(service, f"it was silent for {SILENCE_MAX:g} s")

    def _lost(self, service: _Service, cause: str) -> None:
        if self._services.pop(service.name, None) is not service:
            return
        log.info("a Spark service is gone", extra=fields(service=service.name, cause=cause))
        service.waiting = None
        if service.timer is not None:
            service.timer.cancel()
        error = SparkServiceLost(
            f"the Spark service that ran the statement is gone: {cause}",
            hint="Run the statement again; SET engine = grid needs no service.",
        )
        for run in list(service.runs.values()):
            self._finish(service, run, error)

    def close(self) -> None:
        for timer in (self._watch, *(service.timer for service in self._services.values())):
            if timer is not None:
                timer.cancel()


def _missing() -> SparkServiceMissing:
    return SparkServiceMissing(
        "no Spark service serves this cluster",
        hint="Start one with: remuda spark-service --connect HOST:PORT; or SET engine = grid.",
    )


def _pages(request: Request, types: tuple[SqlType, ...], rows: int) -> list[pa.RecordBatch]:
    """Rows in external form, as pages in engine form. Raises ProtocolError, and DataError for
    values that do not fit their types."""
    if not len(request.dbody):
        return []
    try:
        with pa.ipc.open_stream(pa.py_buffer(request.dbody)) as reader:
            batches = list(reader)
    except pa.ArrowInvalid as problem:
        raise ProtocolError(f"rows of a Spark service cannot be read: {problem}") from problem
    pages = []
    for batch in batches:
        if batch.num_columns != len(types):
            raise ProtocolError(
                f"a Spark service sent {batch.num_columns} columns instead of {len(types)}"
            )
        columns = [to_engine(c, t) for c, t in zip(batch.columns, types, strict=True)]
        names = [str(place) for place in range(len(columns))]
        page = pa.RecordBatch.from_arrays(columns, names=names)
        pages += [page.slice(first, rows) for first in range(0, page.num_rows, rows)]
    return pages
