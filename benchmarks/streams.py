"""Streams: how long a commit takes until a reader has it, and how long a micro-batch takes.

One cluster, one Spark session. ``changes`` is the time from before a put until its change is read
by a stream of the blocking client. ``source`` and ``sink`` are micro-batches of Spark, one after
the other, each of so many rows: out of a map into nothing, and out of Spark's rate source into a
map; the times are Spark's own (``durationMs``).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any

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
    return [found[number] for number in sorted(found)][2:]


def shown(name: str, times: list[float]) -> None:
    ordered = sorted(times)
    median, worst = statistics.median(ordered), ordered[int(len(ordered) * 0.95) - 1]
    print(f"{name:8} median {median:8.1f} ms   95 % {worst:8.1f} ms   of {len(ordered)}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000, help="rows of a micro-batch")
    parser.add_argument("--rounds", type=int, default=10, help="micro-batches")
    parser.add_argument("--members", type=int, default=2)
    arguments = parser.parse_args()
    rows, rounds = arguments.rows, arguments.rounds
    with (
        remuda.start(members=arguments.members) as cluster,
        cluster.connect() as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        client.sql(
            "CREATE TABLE source (k BIGINT PRIMARY KEY, v BIGINT) WITH (change_retention = '1 h')"
        )
        shown("changes", change_latencies(client, 200))
        last = 999 + rows * (rounds + 2)
        client.sql(f"INSERT INTO source SELECT i, i FROM generate_series(1000, {last}) g(i)")
        spark = remuda.spark.session("benchmark of streams", master="local[2]")
        source = (
            spark.readStream.format("remuda")
            .options(address=cluster.address, map="source", startingFrom="earliest")
            .options(maxRowsPerTrigger=rows)
            .load()
        )
        written = source.writeStream.format("noop").option("checkpointLocation", f"{folder}/a")
        shown("source", batches(written.start(), rounds))
        rate = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", rows)
            .load()
            .selectExpr("value AS k", "value AS v")
        )
        sink = rate.writeStream.format("remuda").options(address=cluster.address, map="sink")
        sink = sink.options(key="k", checkpointLocation=f"{folder}/b")
        shown("sink", batches(sink.start(), rounds))
        spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
