"""Members that leave in the middle of a write or a read of Spark: every row once, or an error that
promises that no row was written."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark import TaskContext

import remuda
from remuda.config import MemberConfig
from remuda.errors import JobInterrupted
from remuda.member.member import Member
from remuda.spark import failures, read, write
from remuda.world import system_world

pytestmark = [pytest.mark.spark, pytest.mark.soak]

ROWS = 4_000
PARTS = 4
"""Tasks of a write; two run at a time."""
PATIENCE = 240.0
"""Seconds for a whole scenario, on a machine under load too. Gates open at its end, so jobs of
Spark go on and end with the members."""
FIGURES = ("count(*)", "count(DISTINCT id)", "sum(id)", "min(n)", "max(n)")
SETTINGS = {"backups": 1, "heartbeat_interval": 0.05, "heartbeat_timeout": 30.0, "lease": 10.0}

Rows = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Begun = Callable[[], int]
"""How many jobs have begun so far."""


@pytest.fixture
def begun(caplog: pytest.LogCaptureFixture) -> Begun:
    caplog.set_level(logging.INFO, "remuda.member.commits.jobs")
    return lambda: sum(record.message == "job begun" for record in caplog.records)


class Grid:
    """Members in the event loop of the test."""

    def __init__(self, members: list[Member]) -> None:
        self.staying = members

    @property
    def addresses(self) -> str:
        return ",".join(member.addresses()["user"] for member in self.staying)

    @property
    def coordinator(self) -> Member:
        """Of the only job."""
        (found,) = (member for member in self.staying if member.jobs.count)
        return found

    async def leave(self, member: Member) -> None:
        """It leaves, and ends as its process would."""
        await member.leave()
        self.staying.remove(member)
        await member.stop()

    async def found(self) -> tuple[Any, ...]:
        def ask() -> tuple[Any, ...]:
            with remuda.connect(self.addresses) as client:
                return tuple(client.sql(f"SELECT {', '.join(FIGURES)} FROM t").fetchone())

        return await asyncio.to_thread(ask)


def whole(n: int) -> tuple[int, ...]:
    """The answer of ``Grid.found`` when all rows of write ``n`` are there, each once."""
    return (ROWS, ROWS, ROWS * (ROWS - 1) // 2, n, n)


@asynccontextmanager
async def grid_of(size: int, **more: Any) -> AsyncIterator[Grid]:
    settings = {**SETTINGS, **more}
    members: list[Member] = []
    try:
        members.append(Member(MemberConfig(cluster_size=1, **settings), system_world()))
        await members[0].start()
        for _ in range(size - 1):
            seed = members[0].addresses()["control"]
            members.append(Member(MemberConfig(join=seed, **settings), system_world()))
            await members[-1].start()
        yield Grid(members)
    finally:
        for member in reversed(members):
            await member.stop()


def passed(pipe: Path) -> None:
    """Waits until another opens it to write."""
    os.close(os.open(pipe, os.O_RDONLY))


class Gate:
    """Functions of tasks, in other processes, wait at it until it is opened. Its two named pipes
    block without a look at the time; leaving the ``with`` opens it, so no task waits for ever."""

    def __init__(self, folder: Path, name: str) -> None:
        self._reached = folder / f"{name}-reached"
        self._opened = folder / f"{name}-opened"
        os.mkfifo(self._reached)
        os.mkfifo(self._opened)
        self._ends: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        for end in self._ends:
            os.close(end)

    def open(self) -> None:
        """Openings of the pipes return at once from here on: both have ends that stay."""
        self._ends += [os.open(each, os.O_RDWR) for each in (self._reached, self._opened)]

    async def reached(self, running: asyncio.Task[Any]) -> None:
        """Until a task waits. Raises what ends ``running`` before."""
        waiting = asyncio.ensure_future(asyncio.to_thread(passed, self._reached))
        await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            self._ends.append(os.open(self._reached, os.O_RDWR))
            await waiting
            await running
            raise AssertionError("it has not waited")

    def functions(self) -> tuple[Rows, Rows]:
        """They hold names of no module of the tests: workers cannot import it.

        The first is for ``PARTS`` tasks: the first of these passes, and all others wait. The third
        begins when the first has ended, as two run at a time. By the second one, the first two
        tasks wait when they have read: no other task runs meanwhile."""
        reached, opened = str(self._reached), str(self._opened)

        def told() -> None:
            os.close(os.open(reached, os.O_WRONLY))

        def wait() -> None:
            os.close(os.open(opened, os.O_RDONLY))

        def before(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            number = TaskContext.get().partitionId()
            if number == 2:
                told()
            if number:
                wait()
            yield from batches

        def after(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches
            if TaskContext.get().partitionId() < 2:
                told()
                wait()

        return before, after


def frame_of(spark: Any, n: int, gate: Gate) -> Any:
    frame = spark.range(0, ROWS, 1, PARTS).selectExpr("id", f"{n}L AS n")
    return frame.mapInArrow(gate.functions()[0], frame.schema)


def in_grid(scenario: Callable[[Grid], Awaitable[None]], size: int, **settings: Any) -> None:
    async def main() -> None:
        async with grid_of(size, **settings) as grid, asyncio.timeout(PATIENCE):
            await scenario(grid)

    asyncio.run(main())


def started(work: Callable[..., Any], *given: Any, **more: Any) -> asyncio.Task[Any]:
    """It runs beside the members."""
    return asyncio.ensure_future(asyncio.to_thread(work, *given, **more))


def test_jobs_do_not_notice_members_that_leave(spark: Any, begun: Begun, tmp_path: Path) -> None:
    """A job that writes while another member leaves, one whose coordinator wants to leave and waits
    for its end, and a job that reads what was planned on a member that leaves."""

    async def scenario(grid: Grid) -> None:
        with Gate(tmp_path, "another-leaves") as gate:
            writing = started(write, frame_of(spark, 1, gate), grid.addresses, "t", key="id")
            await gate.reached(writing)
            coordinator = grid.coordinator
            await grid.leave(next(each for each in grid.staying if each is not coordinator))
            gate.open()
            await writing
        assert await grid.found() == whole(1)
        assert begun() == 1

        with Gate(tmp_path, "coordinator-leaves") as gate:
            frame = frame_of(spark, 2, gate)
            writing = started(write, frame, grid.addresses, "t", mode="overwrite")
            await gate.reached(writing)
            coordinator = grid.coordinator
            leaving = asyncio.ensure_future(grid.leave(coordinator))
            while not coordinator.core.departure.refusing:
                assert not leaving.done()
                await asyncio.sleep(0)
            gate.open()
            await writing
            await leaving
        assert await grid.found() == whole(2)
        assert begun() == 2, "it was not written again"

        with Gate(tmp_path, "planned") as gate:
            frame = await started(read, spark, grid.addresses, "t", partitions_per_member=2)
            rows = frame.mapInArrow(gate.functions()[1], frame.schema)
            reading = started(rows.selectExpr(*FIGURES).collect)
            await gate.reached(reading)
            await grid.leave(grid.staying[-1])
            gate.open()
            assert tuple((await reading)[0]) == whole(2)

    in_grid(scenario, 4)


def test_jobs_whose_coordinator_leaves_before_their_end(
    spark: Any, begun: Begun, tmp_path: Path
) -> None:
    """The grid has rolled them back. ``remuda.spark.write`` writes again; Spark's own interface
    raises an error that may be retried, and its user writes again."""

    async def scenario(grid: Grid) -> None:
        with Gate(tmp_path, "written-again") as gate:
            writing = started(write, frame_of(spark, 1, gate), grid.addresses, "t", key="id")
            await gate.reached(writing)
            await grid.leave(grid.coordinator)
            gate.open()
            await writing
        assert await grid.found() == whole(1)
        assert begun() == 2

        with Gate(tmp_path, "raises") as gate:
            frame = frame_of(spark, 2, gate).write.format("remuda").mode("append")
            frame = frame.options(address=grid.addresses, map="t")
            writing = started(failures.explained()(frame.save))
            await gate.reached(writing)
            await grid.leave(grid.coordinator)
            gate.open()
            with pytest.raises(JobInterrupted, match=r"has left the cluster|was aborted") as error:
                await writing
            assert error.value.retryable
            assert await grid.found() == whole(1), "none of its rows"
            await asyncio.to_thread(frame.save)
        assert await grid.found() == whole(2)

    in_grid(scenario, 3, leave_timeout=0.3)
