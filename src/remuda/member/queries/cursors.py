"""Results on their way to a client: pages out, acknowledgements in, the final state last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from remuda.errors import ConnectionBroken, QueryCanceled, RemudaError
from remuda.execution.root_sink import RootSink
from remuda.limits import FRAME_SIZE_MAX, PAGES_IN_FLIGHT
from remuda.member.base.core import Core
from remuda.member.queries.page_forms import page_form
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.connection import Reply
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Channel
from remuda.session.shape import ResultShape

State = user_pb2.QueryResult.QueryState
# Read once: an enumeration's attribute is a slow lookup.
QUERY_DATA = RpcType.QUERY_DATA
QUERY_RESULT = RpcType.QUERY_RESULT
COMPLETED = State.COMPLETED


START_WAIT = 1.0
"""Seconds that a first page waits until all members have said that they run their parts."""
PAGE_SIZE_MAX = FRAME_SIZE_MAX // 4
"""Larger pages (in Arrow's bytes) are sent in halves."""

Acknowledged = Callable[[RemudaError | None], None]
"""Called when the client has taken a page, or with what kept the page from it."""


@dataclass(frozen=True, slots=True)
class End:
    """How a statement has ended. ``rows`` were sent; ``affected_rows`` is None for a statement that
    counts none. ``session`` is the client's session from now on, encoded."""

    error: RemudaError | None
    tag: str
    rows: int
    affected_rows: int | None
    session: bytes | None
    transaction: user_pb2.TransactionStatus | None


class Wire(Protocol):
    """How one result travels to its client: pages, then the end, once."""

    def page(self, columns: Sequence[pa.Array], rows: int, on_acknowledged: Acknowledged) -> None:
        """Send rows in engine form."""

    def external_page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        """Send rows in external form."""

    def finish(self, end: End) -> None: ...


class RpcWire:
    """QUERY_DATA at least once, the first with the columns, then QUERY_RESULT once."""

    def __init__(
        self,
        core: Core,
        channel: Channel,
        query: QueryId,
        shape: ResultShape,
        copy: user_pb2.CopyWay | None = None,
    ) -> None:
        """``copy``: the way of a COPY whose data the pages carry, or ask for."""
        self._core = core
        self._copy = copy
        self._channel = channel
        self._query = query
        self._id = encode_query_id(query)
        self._shape = shape
        self._form = page_form(channel, shape)
        self._first = True

    def page(self, columns: Sequence[pa.Array], rows: int, on_acknowledged: Acknowledged) -> None:
        del rows
        self.external_page(self._shape.external(columns), on_acknowledged)

    def external_page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        message = user_pb2.QueryData(query_id=self._id, row_count=batch.num_rows)
        getattr(message, "def").record_count = batch.num_rows  # "def" is a keyword
        if self._copy is not None and self._first:
            message.copy = self._copy
        body = self._form.fill(message, batch)
        self._first = False

        def acknowledged(reply: Reply | RemudaError) -> None:
            on_acknowledged(reply if isinstance(reply, RemudaError) else None)

        self._channel.request_nowait(QUERY_DATA, message, body, acknowledged)

    def finish(self, end: End) -> None:
        """A success without any page sends an empty one first."""
        if self._channel.closed:
            return
        if end.error is None and self._first:
            self.external_page(self._form.nothing(end.tag, end.affected_rows), lambda _: None)
        message = user_pb2.QueryResult(
            query_state=_state(end.error),
            query_id=self._id,
            context=self._core.context(),
            tag=end.tag,
        )
        if end.error is not None:
            message.error.append(self._form.error(end.error, str(self._query)))
        if end.affected_rows is not None:
            message.affected_rows = end.affected_rows
        if end.session is not None:
            message.session = end.session
        if end.transaction is not None:
            message.transaction.CopyFrom(end.transaction)
        self._channel.request_nowait(QUERY_RESULT, message, (), lambda _: None)


class Results:
    """Counts the pages of one result and tells its end. ``limit``: no more rows are sent. ``told``
    gives the error that the client is told for one that has ended the statement."""

    def __init__(
        self,
        wire: Wire,
        limit: int | None = None,
        told: Callable[[RemudaError], RemudaError] = lambda error: error,
    ) -> None:
        self._wire = wire
        self._told = told
        self._limit = limit
        self._first = True
        self.in_flight = 0
        self.finished = False
        self.rows = 0
        self.bytes = 0
        """The batches that were sent so far."""
        self.on_finish: Callable[[RemudaError | None, int, int], None] = lambda *_: None
        """Told of the end: the error, and the rows and bytes of the result."""
        self.transaction: Callable[[], user_pb2.TransactionStatus | None] = lambda: None
        """The word to the client about its transaction, when the end has come."""
        self.session: Callable[[], bytes | None] = lambda: None
        """The session of a statement that does not set it, if the statement has changed it."""

    @property
    def enough(self) -> bool:
        """Whether all rows that the client wants are on their way."""
        return self._limit is not None and self.rows >= self._limit

    @property
    def untold(self) -> bool:
        """Whether the client knows nothing of the result yet."""
        return self._first and not self.finished

    def page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        """Send rows in engine form."""
        self._send(batch, on_acknowledged, external=False)

    def external_page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        """Send rows in external form."""
        self._send(batch, on_acknowledged, external=True)

    def _send(
        self, batch: pa.RecordBatch, on_acknowledged: Acknowledged, *, external: bool
    ) -> None:
        if batch.nbytes > PAGE_SIZE_MAX and batch.num_rows > 1:
            half = batch.num_rows // 2
            self._send(batch.slice(0, half), on_acknowledged, external=external)
            self._send(batch.slice(half), on_acknowledged, external=external)
            return
        if self._limit is not None and batch.num_rows > self._limit - self.rows:
            batch = batch.slice(0, self._limit - self.rows)
            if not batch.num_rows and not self._first:
                return

        def acknowledged(error: RemudaError | None) -> None:
            self.in_flight -= 1
            on_acknowledged(error)

        # Counted first: a wire may acknowledge at once.
        self.in_flight += 1
        try:
            if external:
                self._wire.external_page(batch, acknowledged)
            else:
                self._wire.page(batch.columns, batch.num_rows, acknowledged)
        except RemudaError:
            self.in_flight -= 1
            raise
        self._first = False
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def pages(self, pages: Iterable[Sequence[pa.Array]], rows: int) -> None:
        """Send all at once: columns in engine form, so many rows in a page."""
        for columns in pages:
            page = pa.record_batch(list(columns), names=[str(i) for i in range(len(columns))])
            for first in range(0, page.num_rows, rows):
                self.page(page.slice(first, rows), lambda _: None)

    def give_up(self) -> None:
        """The statement runs again: nobody is told the end of this run."""
        self.finished = True

    def finish(
        self,
        error: RemudaError | None = None,
        *,
        tag: str = "SELECT",
        affected_rows: int | None = None,
        session: bytes | None = None,
    ) -> None:
        """The final state. ``session``: the client sends it along from now on."""
        if self.finished:
            return
        self.finished = True
        error = None if error is None else self._told(error)
        rows = self.rows if affected_rows is None else affected_rows
        self.on_finish(error, rows, self.bytes)
        transaction = self.transaction()
        if session is None:
            session = self.session()
        self._wire.finish(End(error, tag, self.rows, affected_rows, session, transaction))


def _state(error: RemudaError | None) -> user_pb2.QueryResult.QueryState:
    if error is None:
        return COMPLETED
    return State.CANCELED if isinstance(error, QueryCanceled) else State.FAILED


class Cursor:
    """Moves the pages of a running query to its client as fast as the client takes them."""

    def __init__(
        self,
        results: Results,
        channel: ClientChannel,
        sink: RootSink,
        *,
        on_finished: Callable[[], None],
        on_broken: Callable[[RemudaError], None],
        again: Callable[[RemudaError], bool] = lambda _: False,
        started: Callable[[], bool] = lambda: True,
    ) -> None:
        """``again`` is asked when the query fails before the client was told anything: whether it
        is run anew, by another cursor. ``started`` says whether all members run their part: until
        then, or for ``START_WAIT`` seconds, the client is told nothing, as one of them may refuse
        it."""
        self.results = self._results = results
        self._channel = channel
        self._sink = sink
        self._on_finished = on_finished
        self._on_broken = on_broken
        self._again = again
        self._started = started
        self._waits: asyncio.TimerHandle | None = None
        self._waited = False
        self._complete = False
        self._pumping = False
        self.held = False
        """By a test pause: nothing is sent."""
        channel.on_writable.append(self.pump)

    def pump(self) -> None:
        """Send what may be sent now; on the loop.

        Taking a page may run the root fragment at once, in this thread, which then has news for
        this cursor (a page, the end) before the page in hand is sent: the loop below sees to them.
        """
        if self._pumping or self.held or not self._may_begin():
            return
        self._pumping = True
        try:
            self._send_pages()
        finally:
            self._pumping = False
        results, sink = self._results, self._sink
        if self._complete and not results.finished and sink.exhausted:
            self._finish(None)

    def _may_begin(self) -> bool:
        """Whether the client may be told something."""
        if self._waited or self._complete or not self._results.untold or self._started():
            return True
        if self._waits is None:
            loop = asyncio.get_running_loop()
            self._waits = loop.call_later(START_WAIT, self._begin_anyway)
        return False

    def _begin_anyway(self) -> None:
        """An answer is late, or lost: the query must not hang for it."""
        self._waited = True
        self._waits = None  # a handle knows its callback, and so this cursor
        self.pump()

    def _send_pages(self) -> None:
        results, sink = self._results, self._sink
        while (
            not results.finished
            and results.in_flight < PAGES_IN_FLIGHT
            and self._channel.writable
            and (page := sink.take()) is not None
        ):
            if results.finished:  # by what happened while the page was taken
                return
            try:
                results.page(page, self._acknowledged)
            except RemudaError as error:
                self._break(error)
            else:
                if results.enough:
                    self._stop()

    def _stop(self) -> None:
        """The client wants no more rows than it has got: the query ends well."""
        if not self._results.finished:
            self._sink.clear()
            self._finish(None)
            self._on_broken(QueryCanceled("no more rows are wanted"))

    def _acknowledged(self, error: RemudaError | None) -> None:
        if error is None or self._channel.closed:
            self.pump()
        else:
            self._break(error)

    def _break(self, error: RemudaError) -> None:
        """A page cannot be sent: the query ends with that."""
        if not self._results.finished:
            self._on_broken(error)
            self.ended(error)

    def ended(self, error: RemudaError | None) -> None:
        """The query has ended on the members; pages may still wait here."""
        if self._results.finished:
            return
        if error is None:
            self._complete = True
            self.pump()
        else:
            self._sink.clear()
            if self._results.untold and self._again(error):
                self._results.give_up()
                self._leave()
                return
            self._finish(error)

    async def go_on_after(self, pause: Awaitable[None]) -> None:
        """Until ``pause`` is over the cursor is ``held``; its error ends the query."""
        problem: RemudaError | None = None
        try:
            await pause
        except RemudaError as error:
            problem = error
        self.held = False
        if problem is None:
            self.pump()
        else:
            self._break(problem)

    def drop(self) -> None:
        """The client is gone."""
        self._sink.clear()
        if not self._results.finished:
            self._results.finish(ConnectionBroken("the client is gone"))
        self._finish(None)

    def _finish(self, error: RemudaError | None) -> None:
        self._results.finish(error)
        self._leave()
        self._on_finished()

    def _leave(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
        self._sink.detach()
        if self.pump in self._channel.on_writable:
            self._channel.on_writable.remove(self.pump)
