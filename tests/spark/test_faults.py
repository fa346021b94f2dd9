"""What executors and users do to jobs that read and write: rows exactly once, or none at all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standalone_cluster import standalone_cluster

pytest.importorskip("pyspark")

from pyspark import InheritableThread

from remuda.errors import RemudaError, UndefinedMap
from remuda.spark import write

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

RUN = Path(__file__).parent / "faults_run.py"
ROWS = 4_000
WHOLE = {"rows": ROWS, "keys": ROWS, "total": ROWS * (ROWS - 1) // 2}


@pytest.mark.soak
@pytest.mark.timeout(1000)
def test_slow_tasks_lost_executors_and_cancelled_jobs(tmp_path: Path) -> None:
    """Spark begins second attempts on other machines alone: here, other addresses."""
    with standalone_cluster(tmp_path, ("127.0.0.1", "127.0.0.2")) as master:
        done = subprocess.run(
            [sys.executable, str(RUN), master, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (tmp_path / "told-3").exists()
    assert seen["speculation"] == WHOLE, "the rows of one attempt alone"
    assert seen["lost_while_writing"] == WHOLE
    assert seen["lost_while_reading"] == WHOLE
    errors = seen["cancelled"].pop("errors")
    assert seen["cancelled"] == {"known": False, **WHOLE}
    assert [error.partition(":")[0] for error in errors] == ["JobAborted"] * 2
    assert all("cancel" in error for error in errors), errors


def test_a_job_that_its_user_cancels_leaves_nothing(
    spark: Any, grid: Any, address: str, tmp_path: Path
) -> None:
    mark = tmp_path / "begun"
    errors: list[RemudaError] = []

    def wait(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            mark.touch()
            while mark.exists():  # it is killed; the folder ends it all the same
                time.sleep(0.02)

    def run() -> None:
        spark.sparkContext.setJobGroup("unwanted", "a write", interruptOnCancel=True)
        frame = spark.range(0, 100, 1, 1).mapInArrow(wait, "id long")
        try:
            write(frame, address, "unwanted", key="id")
        except RemudaError as error:
            errors.append(error)

    thread = InheritableThread(target=run)
    thread.start()
    while not mark.exists():
        assert thread.is_alive(), errors
        thread.join(0.02)
    spark.sparkContext.cancelJobGroup("unwanted")
    thread.join()
    mark.unlink()
    (error,) = errors
    assert "cancelled" in error.message
    with grid.connect() as client, pytest.raises(UndefinedMap):
        client.describe("unwanted")
