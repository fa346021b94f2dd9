"""Heavy pieces of work off the loop: sorting and matching the rows of a commit, planning a long
statement.

They have threads of their own: on the pool of the fragments, a piece of up to a second would hold
queries up. NumPy and Arrow release the interpreter's lock for most of their work. Planning gives it
on every ``SWITCH_INTERVAL``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from remuda.execution.pool import Pool
from remuda.member.base.core import bug
from remuda.member.base.loop_handoff import Hop
from remuda.world import Workers

T = TypeVar("T")


class Offload:
    """One thread. ``offload(work, done)`` calls ``work`` on it, then its result and ``done`` on the
    loop. In a world without threads, ``work`` gets a turn of the loop.
    """

    def __init__(self, workers: Workers, name: str = "offload") -> None:
        self._workers = workers
        self._name = name
        self._pool: Pool | None = None
        self._hop: Hop | None = None

    def start(self, hop: Hop) -> None:
        self._hop = hop
        threads = self._workers.available(1)
        later = asyncio.get_running_loop().call_soon
        self._pool = Pool(threads, self._workers, self._name, later=later)

    def __call__(self, work: Callable[[], Callable[[], None]], done: Callable[[], None]) -> None:
        assert self._pool is not None
        assert self._hop is not None
        self._pool.submit(_Piece(work, done, self._hop))

    async def result(self, work: Callable[[], T]) -> T:
        """The result or the error of ``work`` on the thread."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def run() -> Callable[[], None]:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 (raised again, where it is awaited)
                problem = error
                return lambda: None if future.done() else future.set_exception(problem)
            return lambda: None if future.done() else future.set_result(value)

        self(run, _nothing)
        return await future

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()


class _Piece:
    query = None
    """It takes no turns: first come, first served."""

    def __init__(
        self, work: Callable[[], Callable[[], None]], done: Callable[[], None], hop: Hop
    ) -> None:
        self._work = work
        self._done = done
        self._hop = hop

    def run_slice(self) -> None:
        try:
            take_over = self._work()
        except Exception as error:  # noqa: BLE001 (the boundary: the thread must not end)
            bug(error, "work off the loop")
            take_over = _nothing
        self._hop(lambda: self._finish(take_over))

    def _finish(self, take_over: Callable[[], None]) -> None:
        for step in (take_over, self._done):
            try:
                step()
            except Exception as error:  # noqa: BLE001 (the boundary: one must not stop the others)
                bug(error, "what follows work off the loop")


def _nothing() -> None:
    """Nothing to take over, or nothing that follows."""
