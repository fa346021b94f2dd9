"""Group commit: records go to the disk in a thread, many at a time, and callers that wait for them
go on when they are there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from remuda.errors import DiskFull, RemudaError
from remuda.member.base.core import attempt
from remuda.member.base.log_room import TRY_EVERY, LogRoom
from remuda.member.base.offload import Offload
from remuda.member.metrics.families import Histogram
from remuda.storage.format.records import Closed, Record
from remuda.storage.log.files import LogFiles
from remuda.storage.log.writer import Flush, LogWriter, SyncMode
from remuda.world import Clock


class GroupCommit:
    """Appends to one log. ``failed`` is told once when the disk fails: callers that wait then wait
    for ever, so that nobody is told of a record that may not be there."""

    def __init__(
        self,
        files: LogFiles,
        writer: LogWriter,
        offload: Offload,
        failed: Callable[[RemudaError], None],
        *,
        clock: Clock,
        durations: Histogram,
    ) -> None:
        """``durations`` gets the seconds that each group took to be written and synced."""
        self.writer = writer
        self.bytes = 0
        """Of all that was flushed."""
        self.groups = 0
        self._files = files
        self._offload = offload
        self._failed = failed
        self._clock = clock
        self._durations = durations
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()
        self._scheduled = False
        self._saves: list[Callable[[], None]] = []
        self.room = LogRoom(files.disk, files.folder)
        self.waits_for_room = False
        """A flush is to be carried out, and the disk is full."""
        self._zeros_wanted = False
        """More zeros are to be written ahead, and the disk has room for them."""
        self._trying: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None
        """Set when the member ends: all is written, or is given up."""

    def append(self, record: Record, *, sync: bool = False) -> int:
        """The record's sequence. Raises LimitExceeded; when the disk has failed, nothing happens:
        the member is about to end."""
        if self.writer.failure is not None:
            return self.writer.last
        sequence = self.writer.append(record, sync=sync)
        if not self._scheduled:
            self._soon()
        return sequence

    def after(self, action: Callable[[], object]) -> None:
        """Call ``action`` when all that was appended so far is acknowledged."""
        writer = self.writer  # ``is_safe`` written out: each message to another member comes here
        if not self._waiting and writer.acknowledged >= writer.last and not writer.failure:
            action()
        else:
            self._waiting.append((writer.last, action))

    @property
    def is_safe(self) -> bool:
        """Whether all is acknowledged (and nobody is ahead of who asks)."""
        writer = self.writer
        return not self._waiting and writer.acknowledged >= writer.last and not writer.failure

    async def safe(self) -> None:
        """Return when all that was appended so far is acknowledged."""
        if not self.is_safe:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.after(lambda: None if done.done() else done.set_result(None))
            await done

    def mark(self) -> None:
        """When nothing else is to be written, tell the log that all before is durable."""
        if self.writer.idle_mark(0) is not None and not self._scheduled:
            self._soon()

    def save(self, work: Callable[[], None]) -> None:
        """Do ``work`` on the thread, before records that are appended from now on are written;
        callers that wait from now on wait for it, too. When it raises, the log has failed. (On the
        loop, a slow disk would hold heartbeats up.)"""
        self._saves.append(work)
        self.append(Closed(0))  # with it, the work is acknowledged

    def _soon(self) -> None:
        """At the end of this turn of the loop: records that its other steps append go along."""
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        flush = self.writer.step()
        if flush is not None:
            saves, self._saves = self._saves, []
            self._offload(partial(self._carry_out, saves, flush), self._go_on)

    def look(self) -> None:
        """Whether there is room again, when nothing is written because there was none."""
        if self.room.refusal is not None and not self.waits_for_room:
            self._offload(self._look, lambda: None)

    def _look(self) -> Callable[[], None]:
        """On the thread."""
        return partial(self.room.on_free, self.room.free())

    def _carry_out(
        self, saves: Sequence[Callable[[], None]], flush: Flush, start: int = 0
    ) -> Callable[[], None]:
        """On the thread."""
        began = self._clock.monotonic()
        try:
            for work in saves:
                work()
            self._files.carry_out(flush, start)
        except DiskFull as full:
            place = self._files.stopped_at
            if place is None:
                return partial(self._broken, full)
            return partial(self._wait_for_room, full, flush, place)
        except RemudaError as error:
            return partial(self._broken, error)
        seconds = self._clock.monotonic() - began
        free = self.room.free()
        zeros = self._files.zeros_wanted() if self.writer.mode is SyncMode.FSYNC else 0
        room = zeros > 0 and free is not None and free[0] - zeros >= free[1]
        return partial(self._flushed, flush.size, seconds, free, room)

    def _zero_ahead(self) -> Callable[[], None]:
        """On the thread, after the records for which somebody waits. Those that come meanwhile wait
        for the zeros, so these are few at a time."""
        try:
            self._files.zero_ahead()
        except RemudaError as error:
            return partial(self._broken, error)
        return _nothing

    def _wait_for_room(self, full: DiskFull, flush: Flush, place: int) -> None:
        self.waits_for_room = True
        self.room.on_full(full)
        if self._closed is not None:
            self._end()
            return
        loop = asyncio.get_running_loop()
        self._trying = loop.call_later(TRY_EVERY, self._try, flush, place)

    def _try(self, flush: Flush, place: int) -> None:
        self._trying = None
        self._offload(partial(self._carry_out, (), flush, place), self._go_on)

    async def close(self, last: Record) -> None:
        """Write what waits, and ``last``. On a disk that is full or fails, what waits is given up:
        a member must end, and nobody was told of it."""
        if self.writer.failure is not None:
            return
        self._closed = asyncio.get_running_loop().create_future()
        self.append(last, sync=True)
        self.after(self._end)
        if self._trying is not None:
            self._trying.cancel()
            self._end()
        await self._closed

    def _end(self) -> None:
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def _flushed(
        self, size: int, seconds: float, free: tuple[int, int] | None, zeros_wanted: bool
    ) -> None:
        self._zeros_wanted = zeros_wanted
        self._durations.observe(seconds)
        self.waits_for_room = False
        self.room.on_free(free)
        self.bytes += size
        self.groups += 1
        self.writer.on_flushed()

    def _broken(self, error: RemudaError) -> None:
        if self.writer.failure is not None:
            return
        self.writer.on_failed(error)
        self._end()
        self._failed(error)

    def _go_on(self) -> None:
        self._flush()  # first: the disk works while the others hear
        acknowledged = self.writer.acknowledged
        while self._waiting and self._waiting[0][0] <= acknowledged:
            attempt("what waited for the log", self._waiting[0][1])
            self._waiting.popleft()  # not before: what is said meanwhile comes behind it
        if self._zeros_wanted:
            self._zeros_wanted = False
            self._offload(self._zero_ahead, _nothing)

    @property
    def waiting(self) -> int:
        return len(self._waiting)


def _nothing() -> None:
    """Nothing follows."""
