"""A program of its own, run by ``test_faults``: jobs that write while executors are slow, lost or
told to stop, in a Spark cluster with executors of their own. One line of JSON tells what was seen.
(A process has one Spark session, and speculation needs more than its own executor.)

    faults_run.py MASTER FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from hosting_run import executor_of
from pyspark import InheritableThread, TaskContext

import remuda
from remuda.errors import RemudaError, UndefinedMap
from remuda.spark import read, write
from remuda.spark.session import session

ROWS = 4_000
PATIENCE = 300.0


def main() -> None:
    master, folder = sys.argv[1], Path(sys.argv[2])
    settings = {
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.25",
        "spark.speculation.minTaskRuntime": "500ms",
    }
    spark = session("faults", master, quick=True, settings=settings)
    spark.sparkContext.addPyFile(str(Path(__file__).with_name("hosting_run.py")))
    try:
        with remuda.start(members=2) as cluster, cluster.connect() as client:
            address = ",".join(cluster.addresses)
            seen = {
                case.__name__: case(spark, client, address, folder)
                for case in (speculation, lost_while_writing, lost_while_reading, cancelled)
            }
    finally:
        spark.stop()
    print(json.dumps(seen))


def speculation(spark: Any, client: Any, address: str, folder: Path) -> dict[str, Any]:
    """One task stands still in its middle until another attempt of it has told all its rows, and
    then tells the rest of its own."""

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        mark = folder / f"told-{context.partitionId()}"
        wait = context.partitionId() == 3 and context.attemptNumber() == 0
        for batch in batches:
            for start in range(0, batch.num_rows, 100):
                yield batch.slice(start, 100)
                if wait and start:
                    wait_for(mark.exists)
        mark.touch()

    frame = spark.range(0, ROWS, 1, 4).mapInArrow(slow, "id long")
    write(frame, address, "speculated", key="id")
    return counted(client, "speculated")


def lost_while_writing(spark: Any, client: Any, address: str, folder: Path) -> dict[str, Any]:
    frame = spark.range(0, ROWS, 1, 4).mapInArrow(killing(folder / "writing"), "id long")
    write(frame, address, "written", key="id")
    return counted(client, "written")


def lost_while_reading(spark: Any, client: Any, address: str, folder: Path) -> dict[str, Any]:
    client.sql("CREATE TABLE kept (id BIGINT PRIMARY KEY)")
    client.sql(f"INSERT INTO kept SELECT g FROM generate_series(0, {ROWS - 1}) AS s(g)")
    frame = read(spark, address, "kept", partitions_per_member=2)
    frame = frame.mapInArrow(killing(folder / "reading"), "id long")
    row = frame.selectExpr("count(*)", "count(DISTINCT id)", "sum(id)").collect()[0]
    return {"rows": row[0], "keys": row[1], "total": row[2]}


def killing(mark: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The executor is killed once, when a task has told a part of its rows."""

    def kill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, 100):
                yield batch.slice(start, 100)
                if TaskContext.get().partitionId() == 1 and start and not mark.exists():
                    mark.touch()
                    os.kill(executor_of(os.getpid()), signal.SIGKILL)

    return kill


def cancelled(spark: Any, client: Any, address: str, folder: Path) -> dict[str, Any]:
    """The user ends all jobs while one of them writes a new map, and another one an old map."""
    client.sql("CREATE TABLE old (id BIGINT PRIMARY KEY)")
    marks = [folder / "begun-new", folder / "begun-old"]
    errors: list[str] = []

    def wait(mark: Path) -> Any:
        def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                mark.touch()
                time.sleep(PATIENCE)

        return spark.range(0, ROWS, 1, 1).mapInArrow(tell, "id long")

    def run(frame: Any, name: str) -> None:
        try:
            write(frame, address, name, key="id")
        except RemudaError as error:
            errors.append(f"{type(error).__name__}: {error.message}")

    threads = [
        InheritableThread(target=run, args=(wait(mark), name))
        for mark, name in zip(marks, ("new", "old"), strict=True)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: all(mark.exists() for mark in marks))
    spark.sparkContext.cancelAllJobs()
    for thread in threads:
        thread.join()
    try:
        client.describe("new")
    except UndefinedMap:
        known = False
    else:
        known = True
    write(spark.range(ROWS), address, "old")
    return {"known": known, "errors": errors, **counted(client, "old")}


def counted(client: Any, name: str) -> dict[str, Any]:
    row = client.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM {name}").fetchone()
    return {"rows": row[0], "keys": row[1], "total": int(row[2])}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() >= deadline:
            raise TimeoutError("what is waited for does not come")
        threading.Event().wait(0.05)


if __name__ == "__main__":
    main()
