"""Pipelines of a blocking client: requests do not wait for the answers of those before.

The calling thread notes requests; the loop of ``background`` carries them out, many at a time over
connections that they share. Requests for one key are carried out in the order in which they were
noted, others in any order.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from remuda.client.asynchronous.map import Map as AsyncMap
from remuda.client.asynchronous.map_changes import Expression, Where
from remuda.client.asynchronous.map_lifetimes import Ttl
from remuda.client.blocking.background import background
from remuda.client.core.core import Core
from remuda.client.network.contact import client_closed
from remuda.errors import InputError, RemudaError

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

IN_FLIGHT = 256
"""Requests that are noted and not ended, unless told otherwise."""
TOGETHER = 32
"""So many requests are handed to the loop at a time, or fewer when somebody waits."""
_LOOK = 1.0
"""Seconds between two looks at whether the client was closed."""

Run = Callable[[AsyncMap[Any, Any]], Coroutine[Any, Any, Any]]


class Outcome(Generic[T]):
    """The end of one request of a pipeline, which may not have come yet."""

    __slots__ = ("_error", "_pipeline", "_seen", "_value", "done")

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._value: Any = None
        self._error: BaseException | None = None
        self._seen = False
        self.done = False
        """Whether the request has ended, well or not."""

    def result(self) -> T:
        """Wait until the request has ended, and return its value. Raises its error."""
        error = self.error()
        if error is not None:
            raise error
        value: T = self._value
        return value

    def error(self) -> BaseException | None:
        """Wait until the request has ended, and return its error, or None."""
        if not self.done:
            self._pipeline._wait_for(self)  # noqa: SLF001 (its own part)
        self._seen = True
        return self._error

    def take(self, value: T) -> None:
        self._value = value

    def fail(self, error: BaseException) -> None:
        self._error = error

    def end(self, error: BaseException | None = None) -> Self:
        """``error``: why it ended before it was carried out, or in the middle of that."""
        self._error = self._error or error
        self.done = True
        return self

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error."""
        return self.done and self._error is not None

    @property
    def unseen(self) -> BaseException | None:
        """The error of a request that has ended, if nobody has looked at it."""
        return None if self._seen else self._error


@dataclass(slots=True)
class _Request:
    map: AsyncMap[Any, Any]
    key: Any
    run: Run
    outcome: Outcome[Any]


class _Order:
    """The requests for one map that have not ended. Of the loop."""

    def __init__(self) -> None:
        self._by_key: dict[Any, asyncio.Task[None]] = {}
        """The newest request of each key."""
        self._running: set[asyncio.Task[None]] = set()
        self._barrier: asyncio.Task[None] | None = None
        """The newest request whose key could not be told from others: all later ones wait for it,
        as it waits for all before."""

    def begin(self, request: _Request, ended: Callable[[Outcome[Any]], None]) -> None:
        place = _place(request)
        if place is None:
            before = set(self._running)
        else:
            both = (self._by_key.get(place), self._barrier)
            before = {task for task in both if task is not None}
        task = asyncio.get_running_loop().create_task(_carried_out(request, before))
        self._running.add(task)
        if place is None:
            self._barrier = task
        else:
            self._by_key[place] = task

        def forget(task: asyncio.Task[None]) -> None:
            self._running.discard(task)
            if self._barrier is task:
                self._barrier = None
            if place is not None and self._by_key.get(place) is task:
                del self._by_key[place]
            error = client_closed(may_have_run=True) if task.cancelled() else None
            ended(request.outcome.end(error))

        task.add_done_callback(forget)


def _place(request: _Request) -> Any:
    """The key as members know it: 1 and Decimal(1) may be one key. None while the map is not known,
    and for a key that does not fit it."""
    binding = request.map._binding  # noqa: SLF001 (a part of the client)
    if binding is None:
        return None
    try:
        return binding.codec.key(request.key)
    except RemudaError:
        return None


async def _carried_out(request: _Request, before: set[asyncio.Task[None]]) -> None:
    if before:
        await asyncio.wait(before)
    try:
        request.outcome.take(await request.run(request.map))
    except Exception as error:  # noqa: BLE001 (raised where the outcome is asked for)
        request.outcome.fail(error)


class Pipeline:
    """Requests that do not wait for each other; of one thread. Use it in a ``with`` statement.

        with client.pipeline() as pipeline:
            items = pipeline.map("items", Item)
            old = items.get(1)
            for key, item in new_items:
                items.put(key, item)
        print(old.result())

    Each request has an ``Outcome`` of its own, and the error of one fails no other. Requests for
    one key of a map are carried out in order; others are not, and nothing is atomic. While
    ``in_flight`` requests have not ended, the next one waits.
    """

    def __init__(self, core: Core, in_flight: int) -> None:
        if isinstance(in_flight, bool) or not isinstance(in_flight, int) or in_flight < 1:
            raise InputError(f"in_flight is a number of requests, 1 or more, found {in_flight!r}")
        if core.in_transaction or core.shared.held is not None:
            raise InputError(
                "a pipeline takes no part in a transaction",
                hint="Commit the transaction first, or use its own maps one request at a time.",
            )
        self._front = core
        self._there = background(core)
        timeout = core.settings.timeout
        there = self._there.core
        self._core = there if timeout is None else there.with_timeout(timeout)
        self._in_flight = in_flight
        self._orders: dict[str, _Order] = {}
        self._noted: list[_Request] = []
        self._failed: list[Outcome[Any]] = []
        """Since the last ``flush``."""
        self._changed = threading.Condition()
        self._open = 0
        """Requests that were handed to the loop and have not ended."""
        self._awaited = 0
        """Somebody waits until no more than so many are open."""

    def map(
        self, name: str, value_type: type[V] | None = None, *, key_type: type[K] | None = None
    ) -> PipelinedMap[K, V]:
        """A handle of the map ``name`` whose requests go through this pipeline."""
        self._orders.setdefault(name, _Order())
        return PipelinedMap(self, AsyncMap(self._core, name, value_type, key_type))

    def flush(self) -> list[Outcome[Any]]:
        """Wait until all requests have ended; the outcomes of those that failed since the last
        ``flush``."""
        self._hand_over()
        self._wait_until(0)
        failed, self._failed = self._failed, []
        return failed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """``flush``. Raises the first error of a request that nobody has looked at, unless the
        block itself has failed."""
        failed = self.flush()
        unseen = next((each.unseen for each in failed if each.unseen is not None), None)
        if error is None and unseen is not None:
            raise unseen

    # --- inside ---

    def note(self, of: AsyncMap[Any, Any], key: Any, run: Run) -> Outcome[Any]:
        outcome: Outcome[Any] = Outcome(self)
        self._noted.append(_Request(of, key, run, outcome))
        if len(self._noted) >= min(TOGETHER, self._in_flight):
            self._hand_over()
        return outcome

    def _hand_over(self) -> None:
        noted, self._noted = self._noted, []
        if not noted:
            return
        if self._open + len(noted) > self._in_flight:
            self._wait_until(min(self._in_flight - len(noted), self._in_flight // 2))
        core = self._core
        core.clock.value = max(core.clock.value, self._front.clock.value)
        with self._changed:
            self._open += len(noted)
        try:
            self._there.soon(lambda: self._begin(noted))
        except RemudaError:
            with self._changed:
                self._open -= len(noted)
            raise

    def _begin(self, noted: list[_Request]) -> None:
        """On the loop."""
        for request in noted:
            self._orders[request.map.name].begin(request, self._ended)

    def _ended(self, outcome: Outcome[Any]) -> None:
        """On the loop."""
        with self._changed:
            if outcome.failed:
                self._failed.append(outcome)
            self._open -= 1
            if self._open <= self._awaited:
                self._changed.notify_all()

    def _wait_until(self, count: int) -> None:
        """Until no more than so many requests are open."""
        with self._changed:
            self._awaited = count
            while self._open > count:
                self._changed.wait(_LOOK)
                if self._open > count and self._there.closed:
                    raise client_closed(may_have_run=True)
            self._awaited = 0
        self._take_over_clock()

    def _wait_for(self, outcome: Outcome[Any]) -> None:
        self._hand_over()
        with self._changed:
            while not outcome.done:
                self._awaited = self._open - 1  # each end is a reason to look
                self._changed.wait(_LOOK)
                if not outcome.done and self._there.closed:
                    raise client_closed(may_have_run=True)
            self._awaited = 0
        self._take_over_clock()

    def _take_over_clock(self) -> None:
        """The client reads what its pipeline has written, also from near caches."""
        front = self._front
        front.clock.value = max(front.clock.value, self._core.clock.value)
        for name in self._orders:
            front.wrote(name)


class PipelinedMap(Generic[K, V]):
    """A map whose requests go through a pipeline: they mean the same as those of ``Map``, and give
    an ``Outcome`` at once."""

    def __init__(self, pipeline: Pipeline, of: AsyncMap[K, V]) -> None:
        self._pipeline, self._map = pipeline, of

    def get(self, key: K, default: Any = None) -> Outcome[Any]:
        return self._note(key, lambda m: m.get(key, default))

    def contains(self, key: K) -> Outcome[bool]:
        return self._note(key, lambda m: m.contains(key))

    def put(self, key: K, value: V, *, ttl: Ttl = None) -> Outcome[None]:
        return self._note(key, lambda m: m.put(key, value, ttl=ttl))

    def get_and_put(
        self, key: K, value: V, default: Any = None, *, ttl: Ttl = None
    ) -> Outcome[Any]:
        return self._note(key, lambda m: m.get_and_put(key, value, default, ttl=ttl))

    def put_if_absent(self, key: K, value: V, *, ttl: Ttl = None) -> Outcome[bool]:
        return self._note(key, lambda m: m.put_if_absent(key, value, ttl=ttl))

    def replace(self, key: K, value: V) -> Outcome[bool]:
        return self._note(key, lambda m: m.replace(key, value))

    def remove(self, key: K, default: Any = None) -> Outcome[Any]:
        return self._note(key, lambda m: m.remove(key, default))

    def delete(self, key: K) -> Outcome[bool]:
        return self._note(key, lambda m: m.delete(key))

    def compute(
        self,
        key: K,
        expression: Expression,
        *params: Any,
        where: Where = None,
        insert: Any = None,
        return_old: bool = False,
    ) -> Outcome[Any]:
        options: dict[str, Any] = {"where": where, "insert": insert, "return_old": return_old}
        return self._note(key, lambda m: m.compute(key, expression, *params, **options))

    def _note(self, key: K, run: Run) -> Outcome[Any]:
        return self._pipeline.note(self._map, key, run)
