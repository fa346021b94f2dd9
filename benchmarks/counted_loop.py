"""An event loop on which Python calls, messages, bytes and syncs of one operation are counted.

Members and client run their own code on it, from the protocol of a connection (``rpc.transport``)
upwards. Below, a write is handed to the other end in a later turn of the loop, as uvloop and the
kernel do without any Python. Tasks and callbacks carry the context of the operation that
causes them, and bytes carry it through the pipes to other members. Calls in such a context
count, others are background. Time stands still while an operation runs, so that no timer fires
in the middle of it. No thread runs: pools take turns of the loop.
"""

# ruff: noqa: SLF001  (a loop calls what asyncio has for loops alone)

from __future__ import annotations

import asyncio
import heapq
import sys
from asyncio import events
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, TypeVar

from remuda.world import Appender, SystemDisk, SystemMemory, World

T = TypeVar("T")
EPOCH_MICROS = 1_700_000_000_000_000
TURN = 1e-6
"""Seconds that a callback takes on this loop's clock."""
COUNTED: ContextVar[Count | None] = ContextVar("COUNTED", default=None)
NOT_COUNTED = frozenset((__file__, events.__file__))
"""The loop itself, which uvloop replaces without Python."""


@dataclass
class Count:
    """Of one operation. ``calls``: calls of Python functions and resumptions of generators and
    coroutines, by their code."""

    calls: Counter[CodeType] = field(default_factory=Counter)
    sent: dict[Pipe, list[bytes]] = field(default_factory=dict)
    writes: int = 0
    syncs: int = 0

    @property
    def total(self) -> int:
        return sum(self.calls.values())

    @property
    def files(self) -> int:
        """Without those of generated code, which has no file."""
        return len({code.co_filename for code in self.calls if code.co_filename[0] != "<"})

    @property
    def bytes(self) -> int:
        return sum(len(data) for pieces in self.sent.values() for data in pieces)

    @property
    def messages(self) -> int:
        return sum(pipe.messages(b"".join(pieces)) for pipe, pieces in self.sent.items())

    def hook(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename not in NOT_COUNTED:
            self.calls[frame.f_code] += 1


def _frames(data: bytes) -> int:
    """Each begins with its length (``rpc.frame``)."""
    count = start = 0
    while start < len(data):
        length = shift = 0
        while True:
            digit = data[start]
            start += 1
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                break
        start += length
        count += 1
    return count


class CountingLoop(asyncio.AbstractEventLoop):
    """Callbacks run in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.problems: list[str] = []
        self.listeners: dict[tuple[str, int], Listener] = {}
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._counter = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ports = 40000

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        self._counter += 1
        heapq.heappush(self._timers, (when, self._counter, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.problems.append(f"{context.get('message')}: {context.get('exception')!r}")

    async def create_server(self, protocol_factory: Any, *_: Any, **options: Any) -> Any:
        return Listener(self, options["sock"], protocol_factory)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        listener = self.listeners.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(111, "Connection refused")
        here = Transport(self, (host, port))
        there = Transport(self, ("127.0.0.1", self.free_port()))
        here.pipe, there.pipe = Pipe(self, there), Pipe(self, here)
        there.protocol, here.protocol = listener.make(), protocol_factory()
        self.call_soon(there.protocol.connection_made, there)
        self.call_soon(here.protocol.connection_made, here)
        await asyncio.sleep(0)
        return here, here.protocol

    def free_port(self) -> int:
        self._ports += 1
        return self._ports

    # --- running ---

    def complete(self, work: Awaitable[T], limit: float = 600.0) -> T:
        """Run until ``work`` is done; time goes on to the next timer when nothing else is left."""
        deadline = self.now + limit

        async def whole() -> T:
            return await work

        task = self.create_task(whole())
        self._run(lambda: task.done() or self.now > deadline)
        if not task.done():
            raise TimeoutError(f"{work} did not end: {self.problems}")
        return task.result()

    def rest(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        self.call_at(end, lambda: None)
        self._run(lambda: self.now >= end)

    def count(self, work: Callable[[int], Awaitable[Any]], number: int) -> Count:
        """Count ``work(number)`` and all that it causes, until only timers of it are left."""
        count = Count()
        context = copy_context()
        context.run(COUNTED.set, count)

        async def operation() -> None:
            await work(number)

        task = self.create_task(operation(), context=context)
        self._run(lambda: task.done() and not any(_causes(each) is count for each in self._ready))
        context.run(COUNTED.set, None)
        task.result()
        return count

    def count_all(self, seconds: float) -> Count:
        """Count everything that happens in so much time, whatever its cause."""
        count, before = Count(), sys.getprofile()
        sys.setprofile(count.hook)
        try:
            self.rest(seconds)
        finally:
            sys.setprofile(before)
        return count

    def _run(self, done: Callable[[], bool]) -> None:
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while not done():
                self._step()
        finally:
            events._set_running_loop(before)

    def _step(self) -> None:
        if not self._ready:
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self.now = max(self.now, when)
                self._ready.append(timer)
            return
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        self.now += TURN
        count = _causes(handle)
        if count is None:
            handle._run()
            return
        before = sys.getprofile()
        sys.setprofile(count.hook)
        try:
            handle._run()
        finally:
            sys.setprofile(before)


def _causes(handle: asyncio.Handle) -> Count | None:
    """The count of the operation that a callback belongs to."""
    found: Count | None = handle._context.get(COUNTED)  # type: ignore[attr-defined]
    return found


class Listener:
    """``asyncio.Server`` of an address of this loop."""

    def __init__(self, loop: CountingLoop, sock: Socket, make: Callable[[], Any]) -> None:
        self._loop, self.sockets, self.make = loop, [sock], make
        loop.listeners[sock.address] = self

    def close(self) -> None:
        self._loop.listeners.pop(self.sockets[0].address, None)

    async def wait_closed(self) -> None:
        """Nothing lingers."""


class Socket:
    """An address, as ``world.Network.listen`` gives it."""

    def __init__(self, host: str, port: int) -> None:
        self.address = host, port

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def setsockopt(self, *_: object) -> None:
        """Nothing to set."""


class Pipe:
    """One direction of a connection: what is written in one turn arrives in the next one, in the
    context of who wrote it."""

    def __init__(self, loop: CountingLoop, target: Transport) -> None:
        self._loop, self.target = loop, target
        self.messages = _frames
        """Counts the messages in what was written."""

    def send(self, data: bytes) -> None:
        count = COUNTED.get()
        if count is not None:
            count.writes += 1
            count.sent.setdefault(self, []).append(data)
        self._loop.call_soon(self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self.target.closed:
            room = self.target.protocol.get_buffer(-1)
            size = min(len(room), len(view))
            room[:size] = view[:size]
            view = view[size:]
            self.target.protocol.buffer_updated(size)

    def end(self) -> None:
        self._loop.call_soon(self.target.close)


class Transport(asyncio.Transport):
    """One end of a connection."""

    protocol: Any
    pipe: Pipe

    def __init__(self, loop: CountingLoop, peer: tuple[str, int]) -> None:
        super().__init__()
        self._loop, self._peer, self.closed = loop, peer, False

    def speak(self, messages: Callable[[bytes], int]) -> None:
        """Both directions have another protocol, whose messages this counts."""
        self.pipe.messages = messages
        self.pipe.target.pipe.messages = messages

    def write(self, data: Any) -> None:
        if not self.closed:
            self.pipe.send(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.pipe.end()
            self._loop.call_soon(self.protocol.connection_lost, None)

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return Socket("", 0)
        return self._peer if name == "peername" else default


# --- the doors of a member on this loop ---


class LoopClock:
    def __init__(self, loop: CountingLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.now

    def wall_micros(self) -> int:
        return EPOCH_MICROS + int(self._loop.now * 1e6)


class SeededChance:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def bits(self, count: int) -> int:
        return self._random.getrandbits(count)

    def fraction(self) -> float:
        return self._random.random()


class LoopNetwork:
    def __init__(self, loop: CountingLoop) -> None:
        self._loop = loop

    def listen(self, host: str, port: int) -> Any:
        return Socket(host, port or self._loop.free_port())

    def adopt(self, descriptor: int) -> Any:
        raise NotImplementedError("no process hands a socket over here")

    def connect(self, host: str, port: int, timeout: float) -> Any:
        raise NotImplementedError("a blocking socket would stop the members of this loop")


class CountingDisk(SystemDisk):
    """The real disk. It counts the syncs of files that grow."""

    def create(self, path: Path) -> Appender:
        return CountingAppender(super().create(path))


class CountingAppender:
    def __init__(self, file: Appender) -> None:
        self.append, self.extend, self.cut, self.close = (
            file.append,
            file.extend,
            file.cut,
            file.close,
        )
        self._file = file

    def sync(self) -> None:
        count = COUNTED.get()
        if count is not None:
            count.syncs += 1
        self._file.sync()


class NoThreads:
    def available(self, wanted: int) -> int:
        return 0

    def start_thread(self, target: Callable[[], None], name: str) -> Any:
        raise NotImplementedError(f"no thread runs here, and {name} was to be one")


def counted_world(loop: CountingLoop, seed: int) -> World:
    return World(
        LoopClock(loop),
        SeededChance(seed),
        LoopNetwork(loop),
        CountingDisk(),
        NoThreads(),
        SystemMemory(),
    )
