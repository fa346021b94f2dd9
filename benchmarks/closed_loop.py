"""Clients that ask, wait for the answer, and ask again: threads in a few processes.

Python runs one thread of a process at a time, so the clients of one subject share at most
``PROCESSES`` processes, the same number for every subject.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

PROCESSES = 4
WARM_UP = 0.3
"""Seconds before anything counts."""


class Session(Protocol):
    """What one client thread has: operations by name, each takes a source of chance."""

    operations: dict[str, Callable[[random.Random], object]]

    def close(self) -> None: ...


class Subject(Protocol):
    """A database to measure; small enough to be sent to other processes."""

    @property
    def name(self) -> str: ...

    def session(self) -> Session: ...


@dataclass
class Figures:
    """Of one operation with one number of clients."""

    rate: float
    """Operations per second, all clients together."""
    p50: float
    p99: float
    """Seconds."""
    failed: int
    times: list[float]
    """Sorted."""


class Clients:
    """Processes that run sessions of one subject."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def run(self, operation: str, clients: int, seconds: float) -> Figures:
        shares = [clients // len(self._pipes)] * len(self._pipes)
        for index in range(clients % len(self._pipes)):
            shares[index] += 1
        asked = [(pipe, share) for pipe, share in zip(self._pipes, shares, strict=True) if share]
        for pipe, share in asked:
            pipe.send((operation, share, seconds))
        times: list[float] = []
        failed = 0
        for pipe, _ in asked:
            answer = pipe.recv()
            if isinstance(answer, str):
                raise RuntimeError(f"a client failed:\n{answer}")
            times += answer[0]
            failed += answer[1]
        times.sort()
        if not times:
            raise RuntimeError(f"not one {operation} ended within {seconds:g} s")
        p99 = times[int(len(times) * 0.99)]
        return Figures(len(times) / seconds, statistics.median(times), p99, failed, times)


@contextlib.contextmanager
def clients(subject: Subject) -> Iterator[Clients]:
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, subject), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        for pipe in pipes:
            if (answer := pipe.recv()) != "ready":
                raise RuntimeError(f"a client of {subject.name} failed:\n{answer}")
        yield Clients(pipes)
    finally:
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in processes:
            process.join(10)


def _work(pipe: Connection, subject: Subject) -> None:
    sessions: list[Session] = []
    try:
        sessions.append(subject.session())
        pipe.send("ready")
        while (order := pipe.recv()) is not None:
            operation, threads, seconds = order
            while len(sessions) < threads:
                sessions.append(subject.session())
            pipe.send(_round(sessions[:threads], operation, seconds))
    except EOFError:  # the benchmark was stopped
        return
    except Exception:  # noqa: BLE001 (told to the benchmark)
        pipe.send(traceback.format_exc())
    finally:
        for session in sessions:
            session.close()


def _round(
    sessions: Sequence[Session], operation: str, seconds: float
) -> tuple[list[float], int] | str:
    begin = time.perf_counter() + WARM_UP
    results: list[tuple[list[float], int] | str] = []

    def loop(session: Session) -> None:
        try:
            results.append(_loop(session.operations[operation], begin, begin + seconds))
        except Exception:  # noqa: BLE001 (told to the benchmark)
            results.append(traceback.format_exc())

    threads = [threading.Thread(target=loop, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times: list[float] = []
    failed = 0
    for result in results:
        if isinstance(result, str):
            return result
        times += result[0]
        failed += result[1]
    return times, failed


class Conflict(Exception):
    """An operation that was refused because of others, and may be tried again."""


def _loop(act: Callable[[random.Random], Any], begin: float, end: float) -> tuple[list[float], int]:
    chance = random.Random()
    clock = time.perf_counter
    times: list[float] = []
    failed = 0
    while (now := clock()) < end:
        try:
            act(chance)
        except Conflict:
            failed += 1
            continue
        if now >= begin:
            times.append(clock() - now)
    return times, failed
