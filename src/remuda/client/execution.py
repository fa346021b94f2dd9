"""One running statement on one blocking connection."""

from __future__ import annotations

import contextlib
import time

from remuda.client.connections import Pool
from remuda.client.pages import Page
from remuda.client.requests import cancel_query
from remuda.client.result_stream import Outcome, ResultStream
from remuda.errors import ConnectionBroken, QueryTimeout, RemudaError
from remuda.rpc.blocking import BlockingChannel, Incoming
from remuda.rpc.messages import user_pb2

# Read once: an enumeration's attribute is a slow lookup.
RUN_QUERY, QUERY_ANSWER = user_pb2.RUN_QUERY, user_pb2.QUERY_ANSWER
TIMEOUT_GRACE = 5.0
"""Seconds that a member has to report its own timeout before the client gives up on it."""
_GLANCE = 0.001
"""Seconds to look whether the end has arrived already."""
DRAIN_TIMEOUT = 5.0
"""Seconds to wait for the end of a statement that was closed early; then the connection goes."""


class Execution:
    """Runs one statement; holds a connection until the result has been read or given up.

    One thread at a time, except ``cancel``, which any thread may call at any time.
    """

    def __init__(
        self, pool: Pool, stream: ResultStream, body: bytes, timeout: float | None
    ) -> None:
        self.stream = stream
        self._pool = pool
        self._deadline = time.monotonic() + timeout + TIMEOUT_GRACE if timeout else None
        self._timeout = timeout
        self._channel: BlockingChannel | None = pool.take()
        try:
            self._handle = self._channel.send_request(RUN_QUERY, body)
        except BaseException as error:
            self._lose()
            if isinstance(error, ConnectionBroken):
                raise pool.broken(error) from error
            raise

    def next_page(self) -> Page | None:
        """The next page; None at the end. Raises the statement's error.

        A page is acknowledged when the next one is waited for.
        """
        while self._channel is not None:
            try:
                event = self._step(self._remaining())
            except BaseException:
                self._lose()
                raise
            if event is not None and not isinstance(event, Outcome):
                return event
        outcome = self.stream.outcome
        if outcome is not None and outcome.error is not None:
            raise outcome.error
        return None

    def cancel(self) -> None:
        """Ask the member to cancel, over another connection. The reader then gets QueryCanceled."""
        query = self.stream.query_id
        if query is not None and self.stream.outcome is None:
            self._pool.call(cancel_query(query))

    def close(self) -> None:
        """Give up the rest: cancel, read what is under way, and hand the connection back."""
        if self._channel is None or self._finished_already():
            return
        try:
            deadline = time.monotonic() + DRAIN_TIMEOUT
            while self.stream.query_id is None and self._channel is not None:
                self._step(deadline - time.monotonic())
            if self._channel is not None:
                self._drain(self._channel, deadline)
        except RemudaError:
            self._lose()
        except BaseException:
            self._lose()
            raise

    def abandon(self) -> None:
        """Like ``close`` without waiting: a broken connection is a cancel, too."""
        if self._channel is not None and not self._finished_already():
            self._lose()

    # --- steps ---

    def _step(self, timeout: float | None) -> Page | Outcome | None:
        """Take in one frame; acknowledges pages and the outcome."""
        channel = self._channel
        assert channel is not None
        try:
            incoming = channel.receive(timeout)
        except ConnectionBroken as error:
            raise self._pool.broken(error) from error
        except QueryTimeout as error:
            raise QueryTimeout(
                f"{self._pool.name} did not end the statement in time",
                detail=f"timeout: {self._timeout} s",
                member=self._pool.member,
            ) from error
        if incoming.is_reply:
            return self._on_reply(incoming)
        event = self.stream.on_request(incoming.rpc_type, incoming.pbody, incoming.dbody)
        try:
            channel.acknowledge(incoming)
        except ConnectionBroken as error:
            raise self._pool.broken(error) from error
        if isinstance(event, Outcome) and self.stream.query_id is not None:
            self._release()
        return event

    def _on_reply(self, incoming: Incoming) -> Page | Outcome | None:
        if incoming.coordination_id != self._handle:
            return None
        if incoming.error is not None:
            outcome = self.stream.on_refused(incoming.error)
            self._release()
            return outcome
        if incoming.rpc_type == QUERY_ANSWER:
            page = self.stream.on_answer(incoming.pbody)
            self._release()
            return page
        self.stream.on_handle(incoming.pbody)
        if self.stream.outcome is not None:  # the result overtook the handle
            self._release()
        return None

    def _finished_already(self) -> bool:
        """Whether the end of the result has arrived; takes it in."""
        try:
            while self._channel is not None:
                event = self._step(_GLANCE)
                if event is not None and not isinstance(event, Outcome):
                    return False
        except QueryTimeout:
            return False
        except RemudaError:
            self._lose()
        return True

    def _drain(self, channel: BlockingChannel, deadline: float) -> None:
        query = self.stream.query_id
        assert query is not None
        call = cancel_query(query)
        canceled = channel.send_request(call.rpc_type, call.body)
        answered = False
        while self.stream.outcome is None or not answered:
            incoming = channel.receive(max(0.0, deadline - time.monotonic()))
            if incoming.is_reply:
                answered = answered or incoming.coordination_id == canceled
                continue
            if incoming.rpc_type == user_pb2.QUERY_RESULT:
                self.stream.on_request(incoming.rpc_type, incoming.pbody, incoming.dbody)
            channel.acknowledge(incoming)
        self._release()

    def _remaining(self) -> float | None:
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def _release(self) -> None:
        """Hand the connection back; the result is complete, so a break now harms nobody."""
        if self._channel is not None:
            channel, self._channel = self._channel, None
            with contextlib.suppress(ConnectionBroken):
                channel.flush()
            self._pool.give(channel)

    def _lose(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.close()
