"""Rolling restarts under mixed load, and under psycopg's pool: no request fails (see ``rolling``
and ``pooled``)."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import sparking
from pooled import Pooled
from rolling import Fleet, Load, Restart, report

pytestmark = pytest.mark.cluster

LEAVE_TIMEOUT = 30
"""Seconds; the transactions of the load take far less than a quarter of it."""

SPARK_ROWS = 60_000
"""Of a job that writes or reads a whole table."""


def rolling(folder: Path, members: int, restarts: int, pause: float, **settings: object) -> str:
    """Restart one member after the other. The figures; fails if any request has failed."""
    found: list[Restart] = []
    with Fleet(folder, members, {"leave_timeout": LEAVE_TIMEOUT, **settings}) as fleet:
        load = Load(fleet.addresses)
        load.begin()
        with Pooled(load, fleet.doors):
            for place in range(restarts):
                time.sleep(pause)
                found.append(fleet.restart(place % members))
        load.end()
    text = report(load, found)
    assert not load.failures, text
    assert not any(one.status for one in found), text
    return text


def test_a_restart_of_one_of_three_members_fails_no_request(tmp_path: Path) -> None:
    rolling(tmp_path, members=3, restarts=1, pause=0.1, heartbeat_interval=0.25)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("members", [3, 5])
def test_twenty_rolling_restarts(
    tmp_path: Path, members: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints what each restart took, and the bytes that were moved for it."""
    text = rolling(tmp_path, members, restarts=20, pause=1.0)
    with capsys.disabled():
        print(f"\n{members} members, 20 restarts\n{text}")


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("members", [3, 5])
def test_members_that_return_fail_no_request(
    tmp_path: Path, members: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """With folders: nothing is copied elsewhere when they leave, and little when they return."""
    text = rolling(tmp_path, members, restarts=6, pause=1.0, data_dir="data", return_within=60)
    with capsys.disabled():
        print(f"\n{members} members that return, 6 restarts\n{text}")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_that_leave_at_once_fail_no_request(tmp_path: Path) -> None:
    with Fleet(tmp_path, 5, {"leave_timeout": LEAVE_TIMEOUT}) as fleet:
        load = Load(fleet.addresses)
        load.begin()
        for pair in ([0, 1], [3, 4], [2, 0]):
            time.sleep(1.0)
            assert fleet.leave(pair) == [0, 0]
            for place in pair:
                fleet.start(place, through=next(p for p in range(5) if p not in pair))
            fleet.until_complete()
        load.end()
    assert not load.failures, report(load, [])


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(sparking.missing()), reason=sparking.missing())
def test_spark_jobs_that_run_while_members_leave_end_with_the_right_rows(tmp_path: Path) -> None:
    """Each member in turn leaves, and comes back, while jobs write and read whole tables."""
    from remuda.spark import read, write  # noqa: PLC0415 (an optional package)
    from remuda.spark.session import session  # noqa: PLC0415

    spark = session("leaving", "local[2,4]", quick=True, log=tmp_path / "spark.log")
    jobs: list[int] = []
    problems: list[str] = []
    over = threading.Event()

    def work(addresses: str) -> None:
        """No job fails. A task that wrote to a member that leaves is tried again, by Spark."""
        while not over.is_set() and not problems:
            number = len(jobs)
            try:
                frame = spark.range(0, SPARK_ROWS, 1, 4).selectExpr("id", f"{number}L AS n")
                write(frame, addresses, "spark_rows", key="id")
                found = read(spark, addresses, "spark_rows")
                (row,) = found.selectExpr("count(*)", "min(n)", "max(n)", "sum(id)").collect()
            except Exception as error:  # noqa: BLE001 (whatever it is, the test shows it)
                problems.append(f"job {number}: " + repr(error))
                return
            expected = (SPARK_ROWS, number, number, SPARK_ROWS * (SPARK_ROWS - 1) // 2)
            if tuple(row) != expected:
                problems.append(f"job {number}: {tuple(row)}, not {expected}")
            jobs.append(number)

    with Fleet(tmp_path, 3, {"leave_timeout": LEAVE_TIMEOUT}) as fleet:
        thread = threading.Thread(target=work, args=(",".join(fleet.addresses),))
        thread.start()
        try:
            for place in range(3):
                at_first = len(jobs)
                while len(jobs) == at_first and not problems:
                    time.sleep(0.1)
                assert fleet.restart(place).status == 0
        finally:
            over.set()
            thread.join(120)
    assert not thread.is_alive()
    assert not problems, problems
    assert len(jobs) > 3


@pytest.mark.soak
def test_members_that_all_leave_just_end(tmp_path: Path) -> None:
    """Nobody waits for a handover that is impossible."""
    with Fleet(tmp_path, 3, {"leave_timeout": LEAVE_TIMEOUT}) as fleet:
        began = time.monotonic()
        assert fleet.leave([0, 1, 2]) == [0, 0, 0]
        assert time.monotonic() - began < LEAVE_TIMEOUT / 2
