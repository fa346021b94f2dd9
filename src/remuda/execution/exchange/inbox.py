"""The receiving end of an edge: one stream per sender, batches in the order they may be used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from remuda.errors import ConnectionBroken
from remuda.execution.exchange.encoding import BatchForm
from remuda.query.ids import Endpoint
from remuda.query.stream import Grant, ReceiverStream

Payload: TypeAlias = pa.RecordBatch | pa.Buffer | bytes | memoryview
SendGrant = Callable[[Endpoint, Grant], None]
"""(sender, grant): to a sender on this member or over the data channel."""


class _Arrived:
    __slots__ = ("first", "payload", "size")

    def __init__(self, payload: Payload, size: int, first: bool) -> None:
        self.payload = payload
        self.size = size
        self.first = first


class Inbox:
    """All calls come from the thread that runs the fragment; ``post`` brings them there.

    Of an ``ordered`` edge, each sender's batches come out in the order of their ordinals, of
    another in that of their arrival. Either way each comes out once.
    """

    def __init__(
        self,
        *,
        edge: int,
        senders: tuple[Endpoint, ...],
        window: int,
        ordered: bool,
        form: BatchForm,
        send_grant: SendGrant,
        clock: Callable[[], float],
    ) -> None:
        self.edge = edge
        self.senders = senders
        self._form = form
        self._send_grant = send_grant
        self._clock = clock
        now = clock()
        self._streams: Mapping[Endpoint, ReceiverStream[_Arrived]] = {
            sender: ReceiverStream(window, ordered=ordered, now=now) for sender in senders
        }
        self._queues: Mapping[Endpoint, deque[_Arrived]] = {sender: deque() for sender in senders}
        self._turn: deque[Endpoint] = deque()
        """A sender for each batch in the queues, in the order of arrival."""
        self._closed = False
        self._post: Callable[[Callable[[], None]], None] | None = None

    def attach(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post

    def detach(self) -> None:
        """The fragment has ended. Nothing refers to it from here any more: the remains of a query
        must not wait for the collector of cycles, which seldom runs."""
        self._post = None
        self._send_grant = _nowhere

    def deliver_local(
        self, sender: Endpoint, ordinal: int, last: bool, batch: pa.RecordBatch | None, size: int
    ) -> None:
        """From the sender on this member, in its thread: the batch itself, not encoded."""
        post = self._post
        if post is not None:
            payload: Payload = b"" if batch is None else batch
            post(lambda: self._receive(sender, ordinal, last, payload, size))

    def on_encoded(
        self, sender: Endpoint, ordinal: int, last: bool, body: pa.Buffer | bytes | memoryview
    ) -> None:
        self._receive(sender, ordinal, last, body, len(body))

    def _receive(
        self, sender: Endpoint, ordinal: int, last: bool, payload: Payload, size: int
    ) -> None:
        if self._closed:
            return
        arrived = _Arrived(payload, size, ordinal == 0)
        for ready in self._streams[sender].receive(ordinal, size, last, arrived, self._clock()):
            if ready.size == 0:
                self._streams[sender].consumed(0)
                continue
            self._queues[sender].append(ready)
            self._turn.append(sender)

    def take(self) -> pa.RecordBatch | None:
        """The next batch of any sender, or None."""
        while self._turn:
            sender = self._turn.popleft()
            if self._queues[sender]:
                return self._take(sender)
        return None

    def take_from(self, sender: Endpoint) -> pa.RecordBatch | None:
        """The next batch of one sender, or None."""
        return self._take(sender) if self._queues[sender] else None

    def _take(self, sender: Endpoint) -> pa.RecordBatch:
        arrived = self._queues[sender].popleft()
        payload = arrived.payload
        if not isinstance(payload, pa.RecordBatch):
            payload = self._form.decode(payload, arrived.first)
        stream = self._streams[sender]
        stream.consumed(arrived.size)
        grant = stream.grant(self._clock())
        if grant is not None:
            self._send_grant(sender, grant)
        return payload

    def ended(self, sender: Endpoint) -> bool:
        """Everything of this sender was taken."""
        return self._streams[sender].ended and not self._queues[sender]

    @property
    def exhausted(self) -> bool:
        queues = self._queues
        for sender, stream in self._streams.items():  # asked for each batch: no call for each
            if queues[sender] or not stream.ended:
                return False
        return True

    def open(self, member: int) -> bool:
        """Batches of this member are still to come. Any thread may ask."""
        if self._closed:
            return False
        return any(s.member == member and not t.ended for s, t in self._streams.items())

    def expect_end(self, sender: Endpoint) -> None:
        """The sender has sent everything: a piece that does not come soon is lost."""
        stream = self._streams.get(sender)
        if stream is not None:
            stream.expect_end(self._clock())

    def flush_grants(self) -> None:
        """Send grants that have become due."""
        if self._closed:
            return
        now = self._clock()
        for sender, stream in self._streams.items():
            grant = stream.grant(now)
            if grant is not None:
                self._send_grant(sender, grant)

    def check(self) -> None:
        """Raises ConnectionBroken when a batch has been missing for too long."""
        if self._closed:
            return
        now = self._clock()
        for sender, stream in self._streams.items():
            if stream.lost(now):
                raise ConnectionBroken(
                    f"a batch from member {sender.member} got lost",
                    detail=f"edge {self.edge}: {stream}",
                )
        self.flush_grants()

    def finish(self) -> None:
        """No more rows are needed: drop what is here and tell the senders that still send."""
        self._drop()
        now = self._clock()
        for sender, stream in self._streams.items():
            grant = stream.finish(now)
            if grant is not None:
                self._send_grant(sender, grant)

    def close(self, finished: bool, refused: bool = False) -> None:
        """The fragment is over. ``finished``: in good order, so open senders are told to stop;
        ``refused``: it failed by itself, so they are told at once that data is not accepted.
        Otherwise whoever cancelled the query tells them."""
        if self._closed:
            return
        if finished:
            self.finish()
        else:
            now = self._clock()
            for sender, stream in self._streams.items():
                failure = stream.fail(now)  # frees what it holds
                if refused and failure is not None and not stream.ended:
                    self._send_grant(sender, failure)
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        self._turn.clear()
        for queue in self._queues.values():
            queue.clear()


def _nowhere(_sender: Endpoint, _grant: Grant) -> None:
    """The senders have been told all that they need."""
