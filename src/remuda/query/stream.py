"""The accounting of one stream of batches: ordinals, credits, end (design rules 2 and 6 to 9).

Pure: no clock, no bytes. A sender side and a receiver side, each fed by its owner::

    sender                                  receiver
    may_send(size)? -> send(size, last)     receive(ordinal, size, last, payload, now) -> payloads
                                            consumed(size)           an operator has taken one
    on_flow_control(...)   <----------      grant(now) -> Grant|None after each consumed batch

Credit is counted in real bytes of the encoded batch and granted cumulatively: "you may have sent
up to X bytes in all". An old or repeated grant is therefore harmless, and a lost one is healed by
the next. ``Grant`` is the content of one ``FlowControl`` message.

Why nothing blocks for ever: the receiver grants once a quarter of a window is consumed, so when
everything is consumed the sender has credit for more than three quarters of it. A batch is at most
half a window; the exception, one row that is larger, may pass when more than half a window is free,
and makes the credit negative until it is consumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, TypeVar

from remuda.errors import ProtocolError
from remuda.limits import QUERY_SUSPECT_AFTER, STREAM_GAP_TIMEOUT

BATCHES_PER_GRANT = 3
"""A grant is sent at the latest after so many consumed batches (Drill's window)."""
WINDOW_PARTS_PER_GRANT = 4
"""And as soon as this part of the window is free. With half a window the sender of large batches
stood still while the grant was on its way (decision 0014)."""

T = TypeVar("T")


class FlowChange(Enum):
    """The changes that a flow control message brought to the sender."""

    NOTHING = auto()
    GRANTED = auto()
    """There is more credit: schedule the sending fragment."""
    FINISHED = auto()
    """The receiver needs no more rows: stop, free, answer with an empty last batch."""
    FAILED = auto()
    """Data not accepted downstream: stop and ask for cancel."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One flow control message, receiver to sender."""

    granted_bytes: int
    ordinal: int
    ok: bool = True
    receiver_finished: bool = False


class SenderStream:
    """The sender's side. ``window`` (bytes) is the initial grant; both sides must agree on it."""

    __slots__ = ("ended", "failed", "granted_bytes", "next_ordinal", "receiver_finished",
                 "sent_bytes", "window")  # fmt: skip

    def __init__(self, window: int) -> None:
        if window < 2:
            raise ValueError(f"a window of {window} bytes cannot carry a batch")
        self.window = window
        self.granted_bytes = window
        self.sent_bytes = 0
        self.next_ordinal = 0
        self.ended = False
        """The batch marked last was sent."""
        self.receiver_finished = False
        self.failed = False

    @property
    def credit(self) -> int:
        """Bytes that may be sent now; negative after a row larger than half a window."""
        return self.granted_bytes - self.sent_bytes

    @property
    def batch_size_max(self) -> int:
        """The size to encode batches to: half the window (design rule 7)."""
        return self.window // 2

    def may_send(self, size: int) -> bool:
        """Whether a batch of ``size`` encoded bytes may go now; one of size 0 always may."""
        if self.ended or self.failed:
            return False
        credit = self.granted_bytes - self.sent_bytes
        half = self.window // 2
        return size <= credit or size == 0 or (size > half and credit > self.window - half)

    def send(self, size: int, last: bool = False) -> int:
        """Charge a batch and return its ordinal. The caller has asked ``may_send``."""
        assert not self.ended, "a batch after the last one"
        ordinal = self.next_ordinal
        self.next_ordinal = ordinal + 1
        self.sent_bytes += size
        self.ended = last
        return ordinal

    def on_flow_control(
        self, granted_bytes: int, ok: bool = True, receiver_finished: bool = False
    ) -> FlowChange:
        """Take a message in, in any order and any number of times."""
        if self.ended or self.failed:
            return FlowChange.NOTHING
        if not ok:
            self.failed = True
            return FlowChange.FAILED
        if receiver_finished:
            if self.receiver_finished:
                return FlowChange.NOTHING
            self.receiver_finished = True
            return FlowChange.FINISHED
        if granted_bytes <= self.granted_bytes:
            return FlowChange.NOTHING
        self.granted_bytes = granted_bytes
        return FlowChange.GRANTED

    def __str__(self) -> str:
        marks = [
            name
            for name, on in (
                ("ended", self.ended),
                ("receiver finished", self.receiver_finished),
                ("failed", self.failed),
            )
            if on
        ]
        text = f"next {self.next_ordinal}, sent {self.sent_bytes} of {self.granted_bytes} granted"
        return ", ".join([text, *marks])


class ReceiverStream(Generic[T]):
    """The receiver's side; ``T`` is whatever stands for a received batch.

    An ordered stream hands batches out in the order of their ordinals, an unordered one as they
    come. In both, ordinals already seen are dropped and not counted, and the stream has ``ended``
    when the batch marked last has ordinal n and n + 1 batches were handed out.
    """

    __slots__ = ("_above", "_early", "_end_expected", "_gap_since", "_grant_ordinal", "_grant_time",
                 "_last_ordinal", "_next", "_since_grant", "buffered_bytes", "consumed_bytes",
                 "failed", "finished", "gap_timeout", "granted_bytes", "largest", "ordered",
                 "received_bytes", "window")  # fmt: skip

    def __init__(
        self, window: int, ordered: bool, now: float, gap_timeout: float = STREAM_GAP_TIMEOUT
    ) -> None:
        self.window = window
        self.ordered = ordered
        self.gap_timeout = gap_timeout
        self.granted_bytes = window
        self.received_bytes = 0
        self.consumed_bytes = 0
        self.largest = 0
        """The size of the largest batch so far."""
        self.buffered_bytes = 0
        """Bytes of batches held back because an earlier ordinal is missing (ordered only)."""
        self.finished = False
        """``finish`` was called: this side needs no more rows."""
        self.failed = False
        self._next = 0  # every ordinal below it was seen
        self._above: set[int] = set()  # seen ordinals above a gap
        self._early: dict[int, tuple[int, T]] = {}  # ordered: (size, batch) above a gap
        self._last_ordinal: int | None = None
        self._end_expected = False
        self._gap_since: float | None = None
        self._since_grant = 0  # batches consumed since the last grant
        self._grant_ordinal = 0
        self._grant_time = now

    @property
    def ended(self) -> bool:
        """All batches were handed out."""
        return self._last_ordinal is not None and self._next == self._last_ordinal + 1

    @property
    def missing(self) -> int | None:
        """The lowest ordinal that has been overtaken or must still come before the end, or None."""
        if self._above or (self._last_ordinal is not None and self._next <= self._last_ordinal):
            return self._next
        return self._next if self._end_expected and not self.ended else None

    def receive(self, ordinal: int, size: int, last: bool, payload: T, now: float) -> list[T]:
        """Take a batch in; the batches that may be processed now, in order.

        After ``finish`` batches are counted and swallowed. Raises ProtocolError on two different
        last batches, a batch beyond the last, or more bytes than were granted: the sender is
        broken. So the bytes held back or waiting to be consumed are less than a window and one
        batch.
        """
        if ordinal < self._next or ordinal in self._above:
            return []
        self._check_end(ordinal, last)
        self._check_credit(size)
        if last:
            self._last_ordinal = ordinal
        self.received_bytes += size
        swallow = self.finished or self.failed
        before = self._next
        if ordinal != before:
            self._above.add(ordinal)
            out = [] if swallow or self.ordered else [payload]
            if self.ordered and not swallow:
                self._early[ordinal] = (size, payload)
                self.buffered_bytes += size
        else:
            self._next = before + 1
            out = [] if swallow else [payload]
            while self._next in self._above:
                self._above.remove(self._next)
                if self.ordered and not swallow:
                    held, early = self._early.pop(self._next)
                    self.buffered_bytes -= held
                    out.append(early)
                self._next += 1
        self._watch_gap(before, now)
        return out

    def _check_end(self, ordinal: int, last: bool) -> None:
        known = self._last_ordinal
        highest = max(self._above, default=self._next - 1) if last else -1
        if (known is not None and (last or ordinal > known)) or (last and highest > ordinal):
            raise ProtocolError(
                f"batch {ordinal} contradicts the end of its stream",
                detail=f"last ordinal {known}, highest ordinal {max(highest, ordinal)}",
            )

    def _check_credit(self, size: int) -> None:
        """The sender had credit left when it sent its last batch, which may be any of those that
        came, and batches that it sent before may still be on their way."""
        self.largest = max(self.largest, size)
        if self.received_bytes + size - self.largest > self.granted_bytes:
            raise ProtocolError(
                f"a sender exceeds its credit of {self.granted_bytes} bytes",
                detail=f"{self.received_bytes} bytes were received, {size} more came",
            )

    def _watch_gap(self, before: int, now: float) -> None:
        if self.missing is None:
            self._gap_since = None
        elif self._gap_since is None or self._next != before:
            self._gap_since = now

    @property
    def gap_deadline(self) -> float | None:
        """When the missing ordinal counts as lost and the query must fail (design rule 5)."""
        return None if self._gap_since is None else self._gap_since + self.gap_timeout

    def expect_end(self, now: float) -> None:
        """The sender is known to have sent everything: each missing batch is now a gap."""
        self._end_expected = True
        if not self.ended and self._gap_since is None:
            self._gap_since = now

    def lost(self, now: float) -> bool:
        """Whether an ordinal has been missing for too long."""
        return self._gap_since is not None and now >= self._gap_since + self.gap_timeout

    # ---- credit ----

    def consumed(self, size: int) -> None:
        """An operator has processed a batch of ``size`` bytes; its memory is free."""
        self.consumed_bytes += size
        self._since_grant += 1

    def grant(self, now: float) -> Grant | None:
        """The flow control message that is due now, or None.

        Due after every third consumed batch or a quarter of a window, and, because a lost grant
        must not hang the sender, again when nothing has been granted for a while. Call it after
        ``consumed`` and on a slow timer.
        """
        if self._last_ordinal is not None or self.finished or self.failed:
            return None  # the sender has no use for credit
        freed = self.consumed_bytes + self.window - self.granted_bytes
        enough = self.window // WINDOW_PARTS_PER_GRANT
        due = freed > 0 and (self._since_grant >= BATCHES_PER_GRANT or freed >= enough)
        if not due and now < self._grant_time + QUERY_SUSPECT_AFTER:
            return None
        self.granted_bytes += freed
        return self._message(now)

    def finish(self, now: float) -> Grant | None:
        """This side needs no more rows (LIMIT): the message to send, or None when it is no news.

        Batches that still arrive are swallowed; held batches are freed.
        """
        if self.finished or self.failed or self.ended:
            self.finished = True
            return None
        self.finished = True
        self._release()
        return self._message(now)

    def fail(self, now: float) -> Grant | None:
        """Data is not accepted: the message to send at once, or None when it was sent before."""
        if self.failed:
            return None
        self.failed = True
        self._release()
        return self._message(now)

    def _release(self) -> None:
        self._early.clear()
        self.buffered_bytes = 0

    def _message(self, now: float) -> Grant:
        self._since_grant = 0
        self._grant_time = now
        ordinal = self._grant_ordinal
        self._grant_ordinal += 1
        return Grant(self.granted_bytes, ordinal, not self.failed, self.finished)

    def __str__(self) -> str:
        text = f"next {self._next}, consumed {self.consumed_bytes} of {self.received_bytes}"
        if self._above:
            text += f", above the gap {sorted(self._above)}"
        return text + (", ended" if self.ended else "")
