"""Streams: how long a commit takes until a reader has it, and how long a micro-batch takes.

One cluster, one Spark session. ``changes`` is the time from before a put until its change is read
by a stream of the blocking client. The others are micro-batches of Spark, each of so many rows:
``source`` out of a map into nothing, beside Spark's source of Parquet files, one file of as many
rows each; ``sink`` out of Spark's rate source into a map, beside Spark's Parquet sink. The streams
take turns, round by round; the times are Spark's own (``durationMs``), the ratios are those of the
medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import remuda
import remuda.spark


def change_latencies(client: remuda.Client, rounds: int) -> list[float]:
    """Milliseconds."""
    numbers, found = client.map("source"), []
    with numbers.changes() as stream:
        for number in range(rounds):
            began = time.perf_counter()
            numbers.put(number % 100, {"v": number})
            while stream.read() is None:
                pass
            found.append((time.perf_counter() - began) * 1000)
    return found


def batches(query: Any, count: int) -> list[float]:
    """Milliseconds of so many micro-batches with rows, after two that warm up."""
    found: dict[int, float] = {}
    while len(found) < count + 2:
        time.sleep(0.01)
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                found[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
    query.stop()
    return [found[number] for number in sorted(found)][2 : count + 2]


def shown(name: str, times: list[float]) -> float:
    """The median."""
    ordered = sorted(times)
    median, worst = statistics.median(ordered), ordered[int(len(ordered) * 0.95) - 1]
    print(f"| {name} | {median:.1f} | {worst:.1f} | {len(ordered)} |", flush=True)
    return median


class Streams:
    """Streaming queries by name, each started with a checkpoint of its own."""

    def __init__(self, spark: Any, address: str, folder: Path, rows: int) -> None:
        self._spark, self._address, self._folder, self._rows = spark, address, folder, rows
        self._started = 0
        self.by_name: dict[str, Callable[[], Any]] = {
            "source": self.source,
            "Parquet source": self.parquet_source,
            "sink": self.sink,
            "Parquet sink": self.parquet_sink,
        }

    def _begin(self, writer: Any) -> Any:
        self._started += 1
        return writer.option("checkpointLocation", f"{self._folder}/check-{self._started}").start()

    def source(self) -> Any:
        reader = self._spark.readStream.format("remuda").options(
            address=self._address,
            map="source",
            startingFrom="earliest",
            maxRowsPerTrigger=self._rows,
        )
        return self._begin(reader.load().writeStream.format("noop"))

    def parquet_source(self) -> Any:
        reader = self._spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        files = reader.parquet(str(self._folder / "files"))
        return self._begin(files.writeStream.format("noop"))

    def _rate(self) -> Any:
        rate = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self._rows)
        return rate.load().selectExpr("value AS k", "value AS v").writeStream

    def sink(self) -> Any:
        return self._begin(
            self._rate().format("remuda").options(address=self._address, map="sink", key="k")
        )

    def parquet_sink(self) -> Any:
        place = self._folder / f"out-{self._started}"
        return self._begin(self._rate().format("parquet").option("path", str(place)))


def write_files(folder: Path, rows: int, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        keys = range(number * rows, (number + 1) * rows)
        pq.write_table(pa.table({"k": keys, "v": keys}), folder / f"{number:03}.parquet")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="rows of a micro-batch")
    parser.add_argument("--batches", type=int, default=10, help="of each stream in each round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--members", type=int, default=2)
    arguments = parser.parse_args()
    rows, count = arguments.rows, arguments.batches
    with (
        remuda.start(members=arguments.members) as cluster,
        cluster.connect() as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        client.sql(
            "CREATE TABLE source (k BIGINT PRIMARY KEY, v BIGINT) WITH (change_retention = '1 h')"
        )
        print(f"{rows} rows in a micro-batch, {arguments.members} members\n")
        print("| | median ms | 95 % ms | of |\n|---|---|---|---|")
        shown("changes", change_latencies(client, 200))
        last = 999 + rows * (count + 3)
        client.sql(f"INSERT INTO source SELECT i, i FROM generate_series(1000, {last}) g(i)")
        write_files(Path(folder) / "files", rows, count + 3)
        settings = {"spark.log.level": "OFF"}  # a stream that is stopped is no error
        spark = remuda.spark.session("streams", master="local[2]", settings=settings)
        streams = Streams(spark, cluster.address, Path(folder), rows)
        times: dict[str, list[float]] = {name: [] for name in streams.by_name}
        for _ in range(arguments.rounds):
            for name, start in streams.by_name.items():
                times[name] += batches(start(), count)
        medians = {name: shown(name, found) for name, found in times.items()}
        for name in ("source", "sink"):
            ratio = medians[name] / medians[f"Parquet {name}"]
            print(f"a micro-batch of the {name} takes {ratio:.2f} x that of Spark's Parquet {name}")
        spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
