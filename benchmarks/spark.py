"""Spark into Remuda and out of it, beside what Spark does alone with the same rows.

    ./run bench spark, or: python benchmarks/spark.py [--rows 5000000] [--rounds 3] [--json FILE]

Six columns per row (bigint key, int, double, text, date, timestamp). Measured, one after the other
in each round so that a noisy machine hits all alike; medians and ratios are printed:

- file load: ``remuda.spark.load`` of a Parquet file into a new map,
- Parquet write: Spark reads the same file and writes it as Parquet,
- DataFrame write: ``df.write.format("remuda")`` of rows that Spark holds in memory, into a
  new map,
- Arrow only: Spark turns the same rows into Arrow batches that a Python function only counts,
- scan: a map read through the data source into Spark's no-op sink,
- constant source: a data source in Python that has no rows to fetch: it yields the same Arrow
  batch of these columns again and again into that sink, in as many tasks; what Spark lets any
  such source reach,
- Parquet read: the same file read by Spark into that sink,
- upsert: the DataFrame write again, over the same keys,
- overwrite: it again, in place of all rows.

With ``--tpch SCALE``, instead: all tables of TPC-H are loaded from Parquet files by
``remuda.spark.load`` into a new cluster, one after the other, and beside it by
``spark.read.parquet().cache()`` and a count of each, in turns; the ratio is that of a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from remuda.client.blocking.client import connect
from remuda.client.embedded.cluster import start
from remuda.spark.datasource import prepare
from remuda.spark.frames import read
from remuda.spark.loading.loader import load
from remuda.spark.session import session
from tpc_data import definitions, generate

MAP = "bench_spark"
SPARK_COLUMNS = "id bigint, quantity int, price double, symbol string, day date, at timestamp_ntz"
CONSTANT_ROWS = 64 * 1024
"""Of a batch: as many as a page of a scan has."""


class ConstantSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "constant_rows"

    def schema(self) -> str:
        return SPARK_COLUMNS

    def reader(self, schema: object) -> DataSourceReader:
        options = self.options
        return ConstantReader(options["file"], int(options["rows"]), int(options["tasks"]))


class ConstantReader(DataSourceReader):
    def __init__(self, file: str, rows: int, tasks: int) -> None:
        self.file = file
        self.rows = rows
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        group = pq.ParquetFile(self.file).read_row_group(0).slice(0, CONSTANT_ROWS)
        (batch,) = group.combine_chunks().to_batches()
        left = self.rows // self.tasks
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows


def make_file(path: Path, rows: int) -> None:
    random = np.random.default_rng(7)
    table = pa.table(
        {
            "id": pa.array(np.arange(rows, dtype=np.int64)),
            "quantity": pa.array(random.integers(0, 1000, rows).astype(np.int32)),
            "price": pa.array(random.random(rows)),
            "symbol": pa.array(np.char.add("sym", random.integers(0, 500, rows).astype(str))),
            "day": pa.array(random.integers(15_000, 20_000, rows).astype(np.int32)).cast(
                pa.date32()
            ),
            "at": pa.array(random.integers(0, 10**15, rows)).cast(pa.timestamp("us")),
        }
    )
    pq.write_table(table, path, row_group_size=256 * 1024)


def run(rows: int, rounds: int, members: int) -> dict[str, float]:
    """Median seconds by measurement; the first round warms up and does not count."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as scratch:
        file = Path(scratch) / "rows.parquet"
        make_file(file, rows)
        spark = session("remuda bench", "local[2,3]", log=Path(scratch) / "spark.log")
        try:
            with start(members=members) as cluster:
                return measure(spark, cluster.addresses, file, rounds)
        finally:
            spark.stop()


def measure(spark: Any, addresses: Sequence[str], file: Path, rounds: int) -> dict[str, float]:
    prepare(spark)
    spark.dataSource.register(ConstantSource)
    address, tasks = ",".join(addresses), len(addresses)
    cached = spark.read.parquet(str(file)).cache()
    rows = cached.count()

    def file_load() -> None:
        load(spark, file, address=address, map=MAP, key=["id"])

    def parquet_write() -> None:
        out = str(file.with_name("out"))
        spark.read.parquet(str(file)).write.mode("overwrite").parquet(out)

    def frame_write() -> None:
        options = {"address": address, "map": MAP, "key": "id"}
        cached.write.format("remuda").options(**options).mode("append").save()

    def arrow_only() -> None:
        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            total = sum(batch.num_rows for batch in batches)
            yield pa.record_batch({"n": pa.array([total])})

        assert cached.mapInArrow(count, "n long").groupBy().sum().collect()[0][0] > 0

    def scan() -> None:
        read(spark, address, map=MAP).write.format("noop").mode("overwrite").save()

    def constant_source() -> None:
        reader = spark.read.format("constant_rows").options(file=str(file), rows=rows, tasks=tasks)
        reader.load().write.format("noop").mode("overwrite").save()

    def parquet_read() -> None:
        spark.read.parquet(str(file)).write.format("noop").mode("overwrite").save()

    def overwrite() -> None:
        options = {"address": address, "map": MAP}
        cached.write.format("remuda").options(**options).mode("overwrite").save()

    work: dict[str, Callable[[], None]] = {
        "file load": file_load,
        "Parquet write": parquet_write,
        "DataFrame write": frame_write,
        "Arrow only": arrow_only,
        "scan": scan,
        "constant source": constant_source,
        "Parquet read": parquet_read,
        "upsert": frame_write,
        "overwrite": overwrite,
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(rounds + 1):
        for name, function in work.items():
            if name in ("file load", "DataFrame write"):
                with connect(address) as client:
                    client.drop_map(MAP, if_exists=True)
            begun = time.perf_counter()
            function()
            if number > 0:
                times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def tpch(scale: float, members: int, rounds: int) -> None:
    """All tables, end to end, on both sides in turns."""
    folder = generate("tpch", scale)
    tables = definitions("tpch")
    spark = session("remuda bench", "local[2,3]", settings={"spark.driver.memory": "6g"})

    def into_grid() -> float:
        with start(members=members) as cluster, cluster.connect() as client:
            begun = time.perf_counter()
            for table, statement in tables:
                client.sql(statement)
                load(spark, folder / f"{table}.parquet", address=cluster.address, map=table)
            taken = time.perf_counter() - begun
            for table, _ in tables:
                held = client.sql(f"SELECT count(*) FROM {table}").fetchone()
                assert held == (spark.read.parquet(str(folder / f"{table}.parquet")).count(),)
            return taken

    def into_cache() -> float:
        begun = time.perf_counter()
        for table, _ in tables:
            spark.read.parquet(str(folder / f"{table}.parquet")).cache().count()
        taken = time.perf_counter() - begun
        spark.catalog.clearCache()
        return taken

    print(f"\n| TPC-H {scale:g} | into the grid s | Spark's cache s | cache / grid |")
    print("|---|---|---|---|")
    pairs = []
    try:
        for number in range(rounds + 1):
            pair = into_grid(), into_cache()
            name = f"round {number}" if number else "warm-up"
            print(
                f"| {name} | {pair[0]:.1f} | {pair[1]:.1f} | {pair[1] / pair[0]:.2f} |", flush=True
            )
            if number:
                pairs.append(pair)
    finally:
        spark.stop()
    medians = [statistics.median(times) for times in zip(*pairs, strict=True)]
    ratio = statistics.median(cache / grid for grid, cache in pairs)
    print(f"| median | {medians[0]:.1f} | {medians[1]:.1f} | **{ratio:.2f}** |")


def report(result: dict[str, float], rows: int, members: int) -> None:
    print(f"{rows:,} rows of six columns, {members} members, Spark local[2], one machine")
    for name, seconds in result.items():
        print(f"  {name:<16} {seconds:7.2f} s   {rows / seconds / 1e6:6.2f} M rows/s")
    ratio = result["Parquet write"] / result["file load"]
    print(f"  file load is {ratio:.2f} times as fast as Spark writing Parquet")
    ratio = result["Parquet read"] / result["scan"]
    print(f"  scan reaches {ratio:.2f} of the rate of Spark reading Parquet")
    ratio = result["constant source"] / result["scan"]
    print(f"  scan reaches {ratio:.2f} of the rate of a Python source of constant batches")
    ratio = result["Parquet read"] / result["constant source"]
    print(f"  and that one {ratio:.2f} of the rate of Spark reading Parquet")
    ratio = result["Parquet write"] / result["DataFrame write"]
    print(f"  DataFrame write reaches {ratio:.2f} of the rate of Spark writing Parquet")
    ratio = result["Arrow only"] / result["DataFrame write"]
    print(f"  DataFrame write reaches {ratio:.2f} of the rate of Arrow conversion alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tpch", type=float, metavar="SCALE")
    arguments = parser.parse_args()
    if arguments.tpch:
        tpch(arguments.tpch, arguments.members, arguments.rounds)
        return
    result = run(arguments.rows, arguments.rounds, arguments.members)
    report(result, arguments.rows, arguments.members)
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": arguments.rows, "seconds": result}))


if __name__ == "__main__":
    main()
