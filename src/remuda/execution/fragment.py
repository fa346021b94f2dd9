"""One instance of a fragment: the state machine between its messages and its operators.

Scheduling. ``_queued`` is true while the instance stands in the pool's queue or runs there; only
the caller that turns it from false to true submits the instance, so one thread at a time runs it.
``_wanted`` records that something happened. A slice clears ``_wanted`` before it looks at its
mailbox; after it found nothing to do it clears ``_queued`` only if ``_wanted`` is still false, both
under one lock. The deliverer puts the message into the mailbox first and sets ``_wanted``
afterwards under that same lock: so either the slice sees the message, or it sees ``_wanted`` and
runs again, or the deliverer sees ``_queued`` false and submits. No wake-up is lost.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from remuda.errors import InternalError, OutOfMemory, QueryCanceled, RemudaError
from remuda.execution.checkpoint import RUNNING
from remuda.execution.context import (
    FragmentContext,
    FragmentListener,
    FragmentProfile,
)
from remuda.execution.contract import Operator, Progress
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.pool import Scheduler
from remuda.execution.profile import OperatorProfile
from remuda.limits import ADVANCE_TIME_SLICE
from remuda.query.ids import Endpoint
from remuda.query.stream import Grant

_log = logging.getLogger(__name__)


class FragmentInstance:
    """An instance of a fragment. Every public method may be called from any thread.

    ``receives`` and ``sends`` are the edges whose batches and flow controls are to be delivered
    here. The listener hears exactly once how the instance ended, after everything was freed:
    ``on_done`` or ``on_failed`` (the latter also after ``cancel``, with the error given there).
    """

    def __init__(
        self,
        *,
        fragment: int,
        instance: int = 0,
        root: Operator,
        inboxes: Mapping[int, Inbox],
        outbox: Outbox | None,
        profiles: Callable[[], Sequence[OperatorProfile]],
        context: FragmentContext,
        pool: Scheduler,
        listener: FragmentListener,
        inline: bool,
    ) -> None:
        self.fragment = fragment
        self.instance = instance
        self.query = context.query
        """Whose turn it takes in the pool."""
        self.receives = frozenset(inboxes)
        self.sends = frozenset() if outbox is None else frozenset((outbox.edge,))
        self._root = root
        self._inboxes = inboxes
        self._outbox = outbox
        self._profiles = profiles
        self._context = context
        self._pool = pool
        self._listener = listener
        self._inline = inline
        self._mailbox: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._queued = False
        self._wanted = False
        self._ended = False
        self._cancelled: RemudaError | None = None
        self._seconds = 0.0
        for inbox in inboxes.values():
            inbox.attach(self.post)
        if outbox is not None:
            outbox.attach(self.post)

    @property
    def ended(self) -> bool:
        return self._ended

    def schedule(self) -> None:
        """Run soon: something this instance may be waiting for has happened."""
        with self._lock:
            self._wanted = True
            if self._queued or self._ended:
                return
            self._queued = True
        self._pool.submit(self, self._inline)

    def post(self, message: Callable[[], None]) -> None:
        """Have ``message`` called in the thread that runs this instance."""
        if not self._ended:
            self._mailbox.append(message)
            self.schedule()

    def on_batch(
        self,
        edge: int,
        sender: Endpoint,
        ordinal: int,
        last: bool,
        body: pa.Buffer | bytes | memoryview,
    ) -> None:
        """A batch of an incoming stream; ``body`` is the dbody and is held until it is consumed."""
        inbox = self._inboxes[edge]
        self.post(lambda: inbox.on_encoded(sender, ordinal, last, body))

    def on_flow_control(self, edge: int, receiver: Endpoint, grant: Grant) -> None:
        """Credit for an outgoing stream, or its receiver's wish for no more rows."""
        outbox = self._outbox
        assert outbox is not None
        assert outbox.edge == edge
        self.post(lambda: outbox.on_flow_control(receiver, grant))

    @property
    def seconds(self) -> float:
        """Time that it has run so far."""
        return self._seconds

    @property
    def memory(self) -> int:
        """Bytes that its query holds on this member now."""
        return self._context.memory.held

    @property
    def state(self) -> str:
        """``running``, ``waiting`` (for batches, credit or a client) or ``ended``."""
        if self._ended:
            return "ended"
        return "running" if self._queued else "waiting"

    def operators(self) -> Sequence[OperatorProfile]:
        """The profile of its operators so far."""
        return self._profiles()

    def profile(self) -> FragmentProfile:
        """Its profile so far."""
        return FragmentProfile(
            fragment=self.fragment,
            instance=self.instance,
            member=self._context.member,
            operators=tuple(self._profiles()),
            seconds=self._seconds,
            peak_memory=self._context.memory.peak,
        )

    @property
    def receivers(self) -> tuple[int, ...]:
        """The members that this instance sends to."""
        if self._outbox is None:
            return ()
        return tuple(sorted({receiver.member for receiver in self._outbox.receivers}))

    def needs(self, member: int) -> bool:
        """Whether a batch to or from ``member`` may be lost with the connection to it: one that was
        sent may not have been received."""
        return member in self.receivers or any(i.open(member) for i in self._inboxes.values())

    def sender_ended(self, edge: int, sender: Endpoint) -> None:
        """The other end of an incoming stream is known to have sent everything."""
        inbox = self._inboxes[edge]
        self.post(lambda: inbox.expect_end(sender))

    def check_streams(self) -> None:
        """Call about once a second: grants that got lost are repeated, and a stream that has missed
        a batch for long fails the instance (design rule 5)."""
        for inbox in self._inboxes.values():
            self.post(inbox.check)
        if self._outbox is not None:
            self.post(self._outbox.check)

    def cancel(self, error: RemudaError | None = None) -> None:
        """End with ``error``; its memory is freed in the thread that runs this instance."""
        self._cancelled = error or QueryCanceled("query was cancelled")
        self.schedule()

    # --- in the pool's thread ---------------------------------------------------------------

    def run_slice(self) -> None:
        """One slice: the messages that wait, then ``advance`` until WAIT, the end or the time."""
        with self._lock:
            self._wanted = False
        start = self._context.clock()
        try:
            again = self._work(start + ADVANCE_TIME_SLICE)
        except RemudaError as error:
            self._end(error)
            return
        except MemoryError as error:
            self._end(OutOfMemory("member is out of memory", detail=str(error)))
            return
        except Exception as error:  # noqa: BLE001 - a bug ends this query, not the thread
            _log.exception("fragment %d of query %s", self.fragment, self._context.query)
            self._end(InternalError(f"{type(error).__name__}: {error}"))
            return
        self._seconds += self._context.clock() - start
        if again is None:
            self._end(None)
            return
        if again or self._seconds >= ADVANCE_TIME_SLICE:
            # It was taken for a short one: whoever's thread this is has other things to do.
            self._inline = False
        with self._lock:
            if not (again or self._wanted):
                self._queued = False
                return
        self._pool.submit(self, self._inline)

    def _work(self, deadline: float) -> bool | None:
        """True: more to do at once; False: waits; None: done."""
        for _ in range(len(self._mailbox)):
            self._mailbox.popleft()()
        RUNNING.task = self
        try:
            while self._cancelled is None:
                progress = self._root.advance()
                if progress is Progress.FETCHED_DONE:
                    return None
                if progress is Progress.WAIT:
                    self._flush()
                    return False
                if self._context.clock() >= deadline:
                    self._flush()
                    return True
        finally:
            RUNNING.task = None
        raise self._cancelled

    def still_wanted(self) -> None:
        """Raises the error with which it was cancelled: see ``checkpoint``."""
        if self._cancelled is not None:
            raise self._cancelled

    def _flush(self) -> None:
        for inbox in self._inboxes.values():
            inbox.flush_grants()

    def _end(self, error: RemudaError | None) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._queued = True
        if error is not None:
            error.__traceback__ = None  # its frames know this instance, which may know the error
        try:
            self._root.close()
        except Exception as failure:  # noqa: BLE001 - the end must be reported all the same
            _log.exception("close of fragment %d, query %s", self.fragment, self._context.query)
            error = error or InternalError(f"{type(failure).__name__}: {failure}")
        for inbox in self._inboxes.values():
            inbox.close(finished=error is None, refused=error is not self._cancelled)
            inbox.detach()
        if self._outbox is not None:
            self._outbox.close()
            self._outbox.detach()
        self._mailbox.clear()
        profile = None
        if error is None:
            try:
                profile = self.profile()
            except Exception as failure:  # noqa: BLE001 - as above
                _log.exception("profile of fragment %d", self.fragment)
                error = InternalError(f"{type(failure).__name__}: {failure}")
        if profile is not None:
            self._listener.on_done(profile)
        elif error is not None:
            self._listener.on_failed(self.fragment, error)
