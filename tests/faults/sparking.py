"""Spark jobs that write and read while members die, join and leave: all rows of a job are there, or
none."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from workload import KINDS, Batches

from remuda.client.blocking.client import Client


class SparkJobs(Batches):
    """Whole tables as ``Batches``, written and read by jobs of a Spark session in this process."""

    name = "spark"
    map_name = "spark_rows"
    session: Any = None

    def prepare(self) -> None:
        from remuda.spark.session import session  # noqa: PLC0415 (an optional package)

        if SparkJobs.session is None:
            log = Path(tempfile.mkdtemp(prefix="faults-spark-")) / "spark.log"
            SparkJobs.session = session("faults", "local[2,4]", quick=True, log=log)
        self.wrong = []
        self.begun = self.acknowledged = 0
        self.failed = set()
        self.write(0)

    def write(self, number: int) -> None:
        from remuda.spark import write  # noqa: PLC0415

        frame = self.session.range(0, self.rows, 1, 3).selectExpr("id", f"{number}L AS n")
        write(frame, addresses(self.client), self.map_name, key="id")

    def seen(self) -> tuple[Any, ...]:
        if self.random.random() < 0.5:
            return super().seen()
        from remuda.spark import read  # noqa: PLC0415

        frame = read(self.session, addresses(self.client), self.map_name)
        (row,) = frame.selectExpr("min(n)", "max(n)", "count(*)").collect()
        return tuple(row)

    def check(self) -> list[str]:
        return [f"spark: {text}" for text in self.wrong[:5]]


def addresses(client: Client) -> str:
    """Of all members that the client knows."""
    client.cluster_info()
    return ",".join(f"{each.host}:{each.user_port}" for each in client._core.view.members)


def missing() -> str:
    """Why Spark does not run here; "": it does."""
    try:
        import pyspark  # noqa: F401, PLC0415

        from remuda.spark.java import JavaMissing, find_java  # noqa: PLC0415
    except ImportError:
        return "pyspark is not installed"
    try:
        find_java()
    except JavaMissing as error:
        return error.message
    return ""


KINDS[SparkJobs.name] = SparkJobs
