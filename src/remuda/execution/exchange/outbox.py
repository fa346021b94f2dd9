"""The sending end of an edge: one stream per receiver, within its credit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import pyarrow as pa

from remuda.errors import QueryCanceled
from remuda.execution.context import EncodedBatch, ExchangePort
from remuda.execution.exchange.backlog import Backlog, Waiting
from remuda.execution.exchange.encoding import BatchEncoder, BatchForm, pieces
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.window import batch_size_max
from remuda.execution.memory import Reservation
from remuda.query.ids import Endpoint
from remuda.query.stream import FlowChange, Grant, SenderStream

REFUSAL_PATIENCE = 2
"""So many checks after data was refused its sender asks for cancel itself. The receiver, which
knows the cause, has normally done so long before."""


class Outbox:
    """All calls come from the thread that runs the fragment.

    ``put`` queues a batch for one receiver; ``flush`` sends what credit allows. A piece for several
    receivers (``put_all``) waits until all that still listen have credit, so that their streams
    stay in step and one encoded frame serves them all.

    With ``memory`` the receivers merge sorted streams: one that waits for rows of this sender must
    not wait for another one's credit. Then each piece waits for its own receiver alone, in memory
    that is counted there or on disk, and ``starving`` tells that one of them needs rows.
    """

    def __init__(
        self,
        *,
        edge: int,
        sender: Endpoint,
        receivers: tuple[Endpoint, ...],
        window: int,
        form: BatchForm,
        port: ExchangePort,
        memory: Reservation | None = None,
    ) -> None:
        self.edge = edge
        self.receivers = receivers
        self.sent_bytes = 0
        """Encoded bytes that left this member."""
        self._sender = sender
        self._form = form
        self._encoder = BatchEncoder(form.schema)
        self._port = port
        self._apart = memory is not None
        self._size_max = batch_size_max(window)
        self._streams: Mapping[Endpoint, SenderStream] = {
            receiver: SenderStream(window) for receiver in receivers
        }
        self._queues: Mapping[Endpoint, Backlog] = {
            receiver: Backlog(form, self._size_max, memory) for receiver in receivers
        }
        self._shared: deque[Waiting] = deque()
        self._local: Mapping[Endpoint, Inbox] = {}
        self._post: Callable[[Callable[[], None]], None] | None = None
        self._ending = False
        self._refused: Endpoint | None = None
        self._checks_since = 0

    def attach(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post

    def detach(self) -> None:
        """As ``Inbox.detach``."""
        self._post = None
        self._local = {}

    def connect_local(self, inboxes: Mapping[Endpoint, Inbox]) -> None:
        """The receiving instances on this member: batches go there as they are."""
        self._local = inboxes

    def post_grant(self, receiver: Endpoint, grant: Grant) -> None:
        """From a receiver on this member, in its thread."""
        post = self._post
        if post is not None:
            post(lambda: self.on_flow_control(receiver, grant))

    def on_flow_control(self, receiver: Endpoint, grant: Grant) -> None:
        change = self._streams[receiver].on_flow_control(
            grant.granted_bytes, grant.ok, grant.receiver_finished
        )
        if change is FlowChange.FAILED:
            self._refused = receiver
        if change in (FlowChange.FINISHED, FlowChange.FAILED):
            self._queues[receiver].clear()

    def check(self) -> None:
        """Call about once a second. Raises QueryCanceled when a receiver has refused data and
        nobody has cancelled the query since."""
        if self._refused is None:
            return
        self._checks_since += 1
        if self._checks_since > REFUSAL_PATIENCE:
            raise QueryCanceled(f"member {self._refused.member} did not accept data")

    # --- rows ---------------------------------------------------------------------------------

    def put(self, receiver: Endpoint, batch: pa.RecordBatch) -> None:
        if self.listening(receiver) and batch.num_rows:
            self._queues[receiver].put(batch)

    def put_all(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self._apart:
            for receiver in self.receivers:
                self.put(receiver, batch)
        else:
            self._shared.extend(Waiting(*piece) for piece in pieces(batch, self._size_max))

    def listening(self, receiver: Endpoint) -> bool:
        stream = self._streams[receiver]
        return not (stream.receiver_finished or stream.ended or stream.failed)

    @property
    def unwanted(self) -> bool:
        """No receiver needs any more rows."""
        for stream in self._streams.values():  # noqa: SIM110 (a generator is resumed for each)
            if not stream.receiver_finished:
                return False
        return True

    @property
    def starving(self) -> tuple[Endpoint, ...]:
        """Receivers that merge and for which nothing waits here: each may wait for this sender."""
        if not self._apart:
            return ()
        return tuple(r for r in self.receivers if self.listening(r) and not self._queues[r])

    def flush(self) -> bool:
        """Send what may be sent; True when nothing is left waiting."""
        while self._shared:
            open_receivers = [r for r in self.receivers if self.listening(r)]
            waiting = self._shared[0]
            if not all(self._streams[r].may_send(waiting.size) for r in open_receivers):
                break
            self._shared.popleft()
            self._send(tuple(open_receivers), waiting, last=False)
        left = bool(self._shared)
        for receiver, queue in self._queues.items():
            stream = self._streams[receiver]
            while (first := queue.first) is not None and stream.may_send(first.size):
                queue.popleft()
                self._send((receiver,), first, last=self._ending and not queue)
            left = left or first is not None
        return self._flush_ends() if self._ending else not left

    def end(self) -> None:
        """Nothing more will be put: streams end when their queues are empty."""
        self._ending = True

    def stop(self) -> None:
        """Drop what waits and end all streams."""
        self.close()
        self._ending = True

    def _flush_ends(self) -> bool:
        if self._shared:
            return False
        ready = [
            receiver
            for receiver, stream in self._streams.items()
            if not (stream.ended or stream.failed or self._queues[receiver])
        ]
        if ready:
            self._send(tuple(ready), None, last=True)
        return all(stream.ended for stream in self._streams.values())

    def _send(self, receivers: tuple[Endpoint, ...], waiting: Waiting | None, last: bool) -> None:
        remote: dict[tuple[int, int], list[Endpoint]] = {}
        size = 0 if waiting is None else waiting.size
        for receiver in receivers:
            stream = self._streams[receiver]
            inbox = self._local.get(receiver)
            if inbox is not None:
                ordinal = stream.send(size, last)
                batch = None if waiting is None else waiting.batch
                inbox.deliver_local(self._sender, ordinal, last, batch, size)
                continue
            full = size + (
                self._form.schema_message.size if stream.next_ordinal == 0 and size else 0
            )
            ordinal = stream.send(full, last)
            remote.setdefault((ordinal, stream.sent_bytes), []).append(receiver)
        for (ordinal, sent_bytes), group in remote.items():
            body = self._body(waiting, ordinal == 0)
            encoded = EncodedBatch(
                body=body,
                size=sum([part.size for part in body]),
                rows=0 if waiting is None else waiting.batch.num_rows,
                ordinal=ordinal,
                sent_bytes=sent_bytes,
                last=last,
            )
            self.sent_bytes += encoded.size * len({receiver.member for receiver in group})
            self._port.send_batch(self.edge, self._sender.instance, group, encoded)

    def _body(self, waiting: Waiting | None, first: bool) -> tuple[pa.Buffer, ...]:
        if waiting is None:
            return ()
        if waiting.encoded is None:
            waiting.encoded = self._encoder.encode(waiting.batch, waiting.size)
        if first:
            return (self._form.schema_message, *waiting.encoded)
        return waiting.encoded

    @property
    def held(self) -> int:
        """Pieces that wait for credit, those in memory."""
        return len(self._shared) + sum(len(queue) for queue in self._queues.values())

    def close(self) -> None:
        """Drop what waits."""
        self._shared.clear()
        for queue in self._queues.values():
            queue.clear()
