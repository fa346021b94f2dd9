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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

PROCESSES = 4
WARM_UP = 0.3
"""Seconds before anything counts."""
LATEST = 30.0
"""Seconds after the end of a measurement, in which every client ends one operation at least."""


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


@dataclass
class Done:
    """What clients have done. ``took``: seconds from a client's first operation that counts to the
    end of its last one, the most of all clients."""

    times: list[float] = field(default_factory=list)
    failed: int = 0
    took: float = 0.0

    def add(self, other: Done) -> None:
        self.times += other.times
        self.failed += other.failed
        self.took = max(self.took, other.took)


class Clients:
    """Processes that run sessions of one subject."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes
        self._rounds = 0

    def run(self, operation: str, clients: int, seconds: float) -> Figures:
        shares = [clients // len(self._pipes)] * len(self._pipes)
        for index in range(clients % len(self._pipes)):
            shares[index] += 1
        asked = [(pipe, share) for pipe, share in zip(self._pipes, shares, strict=True) if share]
        self._rounds += 1
        for pipe, share in asked:
            pipe.send((self._rounds, operation, share, seconds))
        # All of them, whatever one says: what stays in a pipe would answer a later round.
        answers = [self._answer(pipe) for pipe, _ in asked]
        done = Done()
        for answer in answers:
            if isinstance(answer, str):
                raise RuntimeError(f"a client failed:\n{answer}")
            done.add(answer)
        times = sorted(done.times)
        if not times:
            raise RuntimeError(f"not one {operation} ended within {seconds + LATEST:g} s")
        p99 = times[int(len(times) * 0.99)]
        rate = len(times) / max(seconds, done.took)
        return Figures(rate, statistics.median(times), p99, done.failed, times)

    def _answer(self, pipe: Connection) -> Done | str:
        """That of this round; one of a round that was interrupted here is dropped."""
        while True:
            try:
                number, answer = pipe.recv()
            except EOFError:
                return "its process has ended"
            if number == self._rounds:
                found: Done | str = answer
                return found


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
        try:
            sessions.append(subject.session())
        except Exception:  # noqa: BLE001 (told to the benchmark)
            pipe.send(traceback.format_exc())
            return
        pipe.send("ready")
        while (order := pipe.recv()) is not None:
            number, operation, threads, seconds = order
            answer: Done | str
            try:
                while len(sessions) < threads:
                    sessions.append(subject.session())
                answer = _round(sessions[:threads], operation, seconds)
            except Exception:  # noqa: BLE001 (told to the benchmark)
                answer = traceback.format_exc()
            pipe.send((number, answer))
    except EOFError:  # the benchmark was stopped
        return
    finally:
        for session in sessions:
            session.close()


def _round(sessions: Sequence[Session], operation: str, seconds: float) -> Done | str:
    begin = time.perf_counter() + WARM_UP
    results: list[Done | str] = []

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
    done = Done()
    for result in results:
        if isinstance(result, str):
            return result
        done.add(result)
    return done


class Conflict(Exception):
    """An operation that was refused because of others, and may be tried again."""


def _loop(act: Callable[[random.Random], Any], begin: float, end: float) -> Done:
    """What began between ``begin`` and ``end``; later, until there is one."""
    chance = random.Random()
    clock = time.perf_counter
    times: list[float] = []
    failed = 0
    began = ended = end
    while (now := clock()) < end or (not times and now < end + LATEST):
        try:
            act(chance)
        except Conflict:
            failed += 1
            continue
        if now >= begin:
            began, ended = min(began, now), clock()
            times.append(ended - now)
    return Done(times, failed, ended - began)
