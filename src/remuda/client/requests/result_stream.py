"""The results of one statement as they arrive: pure, shared by every face of the client.

A face feeds it the frames of the statement's connection, in order of arrival, and acts on what it
gives back: ``Page`` (to be acknowledged when its rows are taken) or ``Outcome`` (the end).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from remuda.client.requests.pages import ArrowPage, Header, Page, RowPage
from remuda.client.requests.requests import Clock
from remuda.client.values.arrow_stream import decode_stream
from remuda.datatypes.arrow import to_external
from remuda.errors import ProtocolError, QueryCanceled, RemudaError
from remuda.query.ids import QueryId
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, user_pb2


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a statement; ``affected_rows`` is None for statements that give rows."""

    error: RemudaError | None
    tag: str
    affected_rows: int | None
    session: bytes | None = None
    """The session that goes along with the client's statements from now on; None: as before."""
    transaction: user_pb2.TransactionStatus | None = None
    """The transaction that they belong to from now on; None: as before."""


class ResultStream:
    """The state of one running statement."""

    def __init__(
        self,
        statement: str,
        clock: Clock,
        expected: Header | None = None,
        keep_session: Callable[[bytes], None] | None = None,
    ) -> None:
        """``expected``: the header of an earlier run of the same statement. ``keep_session`` takes
        the session that a statement with rows (SELECT set_config(...)) has changed."""
        self.query_id: QueryId | None = None
        self.header = expected
        self.copy: int = user_pb2.NO_COPY
        """The way of a COPY, once the member has told it."""
        self._first = True
        self.outcome: Outcome | None = None
        self._statement = statement
        self._clock = clock
        self._keep_session = keep_session

    def on_handle(self, pbody: bytes) -> None:
        """The answer to RUN_QUERY: the statement has been accepted under this id."""
        message = common_pb2.QueryId.FromString(pbody)
        self.query_id = QueryId(message.part1, message.part2)

    def on_answer(self, pbody: bytes) -> Page | Outcome:
        """The whole result at once, in place of everything else."""
        message = user_pb2.QueryAnswer.FromString(pbody)
        header = self.header
        if header is None or header.form != message.form:
            if not message.HasField("about"):
                raise ProtocolError("an answer is of a form that was never announced")
            header = self.header = Header.of_answer(message.form, message.about)
        query = message.query_id
        self.query_id = QueryId(query.part1, query.part2)
        self._clock.observe(message.context)
        if not message.tag:
            self.outcome = _ANSWERED
        else:
            outcome = self.outcome = Outcome(None, message.tag, message.affected_rows)
            if not header.columns:
                return outcome
        return RowPage(header, message.rows)

    def on_refused(self, error: RemudaError) -> Outcome:
        """RUN_QUERY, or the connection, failed."""
        if error.position is not None and error.statement is None:
            error = error.at(error.position, self._statement)
        self.outcome = Outcome(error, "", None)
        return self.outcome

    def on_request(self, rpc_type: int, pbody: bytes, dbody: memoryview | bytes) -> Page | Outcome:
        """A frame that the server sent on its own account."""
        if rpc_type == user_pb2.QUERY_DATA:
            return self._on_data(user_pb2.QueryData.FromString(pbody), dbody)
        if rpc_type == user_pb2.QUERY_RESULT:
            return self._on_result(user_pb2.QueryResult.FromString(pbody))
        raise ProtocolError(f"unexpected message {rpc_type} while reading results")

    def _on_data(self, message: user_pb2.QueryData, dbody: memoryview | bytes) -> Page:
        first, self._first = self._first, False
        if first:
            self.copy = message.copy
        elif self.copy == user_pb2.COPY_IN:  # the end of a statement without rows
            return ArrowPage([], ())
        if not len(dbody):
            if self.header is None:
                self.header = Header.of(message.columns)
            return ArrowPage([], self.header.columns)
        found, batches = decode_stream(dbody)
        if self.header is None or (first and found != self.header.schema):
            self.header = Header.of(message.columns)
        if found != self.header.schema:
            batches = [_external(self.header, batch) for batch in batches]
        return ArrowPage(batches, self.header.columns)

    def _on_result(self, message: user_pb2.QueryResult) -> Outcome:
        self._clock.observe(message.context)
        error = None
        if message.query_state != user_pb2.QueryResult.COMPLETED:
            if message.error:
                error = codec.decode_error(message.error[0], self._statement)
            else:
                error = QueryCanceled("the statement was canceled")
        affected = message.affected_rows if message.HasField("affected_rows") else None
        session = message.session if message.HasField("session") else None
        transaction = message.transaction if message.HasField("transaction") else None
        self.outcome = Outcome(error, message.tag, affected, session, transaction)
        if session is not None and self._keep_session is not None:
            self._keep_session(session)
        return self.outcome


_ANSWERED = Outcome(None, "SELECT", None)


def _external(header: Header, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A page that came in another form, as one with short decimals in the engine's, announced."""
    columns = header.columns
    if batch.num_columns != len(columns):
        raise ProtocolError(
            f"a page has {batch.num_columns} columns, announced were {len(columns)}"
        )
    arrays = [
        to_external(array, column.type)
        for array, column in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=header.schema)
