"""The sending end of an edge: one stream per receiver, within its credit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import pyarrow as pa

from remuda.errors import QueryCanceled
from remuda.execution.context import EncodedBatch, ExchangePort
from remuda.execution.exchange.encoding import BatchForm, pieces
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.window import batch_size_max
from remuda.query.stream import FlowChange, Grant, SenderStream


class _Waiting:
    """A piece on its way to some receivers; encoded at most once."""

    __slots__ = ("batch", "encoded", "size")

    def __init__(self, batch: pa.RecordBatch, size: int) -> None:
        self.batch = batch
        self.size = size
        self.encoded: pa.Buffer | None = None


class Outbox:
    """All calls come from the thread that runs the fragment.

    ``put`` queues a batch for receivers; ``flush`` sends what credit allows. A piece for several
    receivers (``put_all``) waits until all that still listen have credit, so that their streams
    stay in step and one encoded frame serves them all.
    """

    def __init__(
        self,
        *,
        edge: int,
        member: int,
        receivers: tuple[int, ...],
        window: int,
        form: BatchForm,
        port: ExchangePort,
    ) -> None:
        self.edge = edge
        self.receivers = receivers
        self.sent_bytes = 0
        """Encoded bytes that left this member."""
        self._member = member
        self._form = form
        self._port = port
        self._size_max = batch_size_max(window)
        self._streams: Mapping[int, SenderStream] = {
            receiver: SenderStream(window) for receiver in receivers
        }
        self._queues: Mapping[int, deque[_Waiting]] = {receiver: deque() for receiver in receivers}
        self._shared: deque[_Waiting] = deque()
        self._local: Inbox | None = None
        self._post: Callable[[Callable[[], None]], None] | None = None
        self._ending = False

    def attach(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post

    def connect_local(self, inbox: Inbox) -> None:
        """The receiving fragment on this member: batches go there as they are."""
        self._local = inbox

    def post_grant(self, receiver: int, grant: Grant) -> None:
        """From the receiver on this member, in its thread."""
        assert self._post is not None
        self._post(lambda: self.on_flow_control(receiver, grant))

    def on_flow_control(self, receiver: int, grant: Grant) -> None:
        change = self._streams[receiver].on_flow_control(
            grant.granted_bytes, grant.ok, grant.receiver_finished
        )
        if change is FlowChange.FAILED:
            raise QueryCanceled(f"member {receiver} did not accept data")
        if change is FlowChange.FINISHED:
            self._queues[receiver].clear()

    # --- rows ---------------------------------------------------------------------------------

    def put(self, receiver: int, batch: pa.RecordBatch) -> None:
        if not self._streams[receiver].receiver_finished and batch.num_rows:
            queue = self._queues[receiver]
            queue.extend(_Waiting(*piece) for piece in pieces(batch, self._size_max))

    def put_all(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._shared.extend(_Waiting(*piece) for piece in pieces(batch, self._size_max))

    def listening(self, receiver: int) -> bool:
        stream = self._streams[receiver]
        return not (stream.receiver_finished or stream.ended)

    @property
    def unwanted(self) -> bool:
        """No receiver needs any more rows."""
        return all(stream.receiver_finished for stream in self._streams.values())

    def flush(self) -> bool:
        """Send what may be sent; True when nothing is left waiting."""
        while self._shared:
            open_receivers = [r for r in self.receivers if self.listening(r)]
            waiting = self._shared[0]
            if not all(self._streams[r].may_send(waiting.size) for r in open_receivers):
                break
            self._shared.popleft()
            self._send(tuple(open_receivers), waiting, last=False)
        for receiver, queue in self._queues.items():
            stream = self._streams[receiver]
            while queue and stream.may_send(queue[0].size):
                waiting = queue.popleft()
                self._send((receiver,), waiting, last=self._ending and not queue)
        if not self._ending:
            return not self._shared and not any(self._queues.values())
        return self._flush_ends()

    def end(self) -> None:
        """Nothing more will be put: streams end when their queues are empty."""
        self._ending = True

    def stop(self) -> None:
        """Drop what waits and end all streams."""
        self._shared.clear()
        for queue in self._queues.values():
            queue.clear()
        self._ending = True

    def _flush_ends(self) -> bool:
        if self._shared:
            return False
        ready = tuple(
            receiver
            for receiver, stream in self._streams.items()
            if not stream.ended and not self._queues[receiver]
        )
        for receiver in ready:
            self._send((receiver,), None, last=True)
        return all(stream.ended for stream in self._streams.values())

    def _send(self, receivers: tuple[int, ...], waiting: _Waiting | None, last: bool) -> None:
        remote: dict[tuple[int, int], list[int]] = {}
        size = 0 if waiting is None else waiting.size
        for receiver in receivers:
            stream = self._streams[receiver]
            if receiver == self._member and self._local is not None:
                ordinal = stream.send(size, last)
                batch = None if waiting is None else waiting.batch
                self._local.deliver_local(self._member, ordinal, last, batch, size)
                continue
            full = size + (
                self._form.schema_message.size if stream.next_ordinal == 0 and size else 0
            )
            ordinal = stream.send(full, last)
            remote.setdefault((ordinal, stream.sent_bytes), []).append(receiver)
        for (ordinal, sent_bytes), members in remote.items():
            body = self._body(waiting, ordinal == 0)
            encoded = EncodedBatch(
                body=body,
                size=sum(part.size for part in body),
                rows=0 if waiting is None else waiting.batch.num_rows,
                ordinal=ordinal,
                sent_bytes=sent_bytes,
                last=last,
            )
            self.sent_bytes += encoded.size * len(members)
            self._port.send_batch(self.edge, tuple(members), encoded)

    def _body(self, waiting: _Waiting | None, first: bool) -> tuple[pa.Buffer, ...]:
        if waiting is None:
            return ()
        if waiting.encoded is None:
            waiting.encoded = waiting.batch.serialize()
        if first:
            return (self._form.schema_message, waiting.encoded)
        return (waiting.encoded,)

    @property
    def held(self) -> int:
        """Pieces that wait for credit."""
        return len(self._shared) + sum(len(queue) for queue in self._queues.values())

    def close(self) -> None:
        self._shared.clear()
        for queue in self._queues.values():
            queue.clear()
