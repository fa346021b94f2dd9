"""Statements about snapshots that run on this member: their progress, whether they are still
wanted, and the objects that they must not lose meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from remuda.rpc.messages import control_pb2

CREATE, RESTORE, VERIFY = "create", "restore", "verify"


@dataclass
class SnapshotTask:
    kind: str
    snapshot: str
    started: int
    """Microseconds since 1970."""
    check: Callable[[], None]
    """Raises when the statement is cancelled, or its client has gone."""
    increment: bool = False
    note: str = ""
    """Why it is a base, where an increment was asked for."""
    cut: int = 0
    attempt: int = 1
    objects: int = 0
    objects_total: int = 0
    rows: int = 0
    bytes: int = 0
    passing: int = 0
    """Of the rows: those that end by themselves, and may have ended meanwhile."""
    reads_at: int | None = None
    """Versions that exist then must be kept on all members."""

    def begin(self, objects: int) -> None:
        """Of an attempt."""
        self.passing = 0
        self.objects, self.rows, self.bytes, self.objects_total = 0, 0, 0, objects

    def done(self, rows: int, size: int, passing: int = 0) -> None:
        """One object more."""
        self.passing += passing
        self.objects += 1
        self.rows += rows
        self.bytes += size


class SnapshotTasks:
    def __init__(self, wall_micros: Callable[[], int]) -> None:
        self._wall_micros = wall_micros
        self._running: list[SnapshotTask] = []

    @contextmanager
    def task(self, kind: str, snapshot: str, check: Callable[[], None]) -> Iterator[SnapshotTask]:
        task = SnapshotTask(kind, snapshot, self._wall_micros(), check)
        self._running.append(task)
        try:
            yield task
        finally:
            self._running.remove(task)

    def __len__(self) -> int:
        return len(self._running)

    def oldest_read(self) -> int | None:
        """The lowest timestamp that a snapshot of this member's is made at."""
        reads = (task.reads_at for task in self._running)
        return min((read for read in reads if read is not None), default=None)

    def described(self) -> Iterator[control_pb2.SnapshotTask]:
        for task in self._running:
            yield control_pb2.SnapshotTask(
                kind=task.kind,
                snapshot=task.snapshot,
                cut=task.cut,
                started=task.started,
                attempt=task.attempt,
                objects=task.objects,
                objects_total=task.objects_total,
                rows=task.rows,
                bytes=task.bytes,
            )
