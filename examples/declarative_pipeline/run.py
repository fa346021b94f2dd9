"""Spark Declarative Pipelines with a map as their sink.

    pip install "pyspark[pipelines]==4.3.0"    # about 50 MB more: gRPC, zstandard, ...
    python examples/declarative_pipeline/run.py

It starts a cluster of its own and runs the pipeline three times: with a first file, with nothing
new, and with another file. Each row arrives once, because Spark keeps how far it has read, and the
sink knows batches that it has seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import remuda
import remuda.spark

HERE = Path(__file__).resolve().parent


def arrive(folder: Path, name: str, first: int, rows: int) -> None:
    """A file of trades, of which every tenth has no quantity."""
    numbers = range(first, first + rows)
    trades = {
        "id": pa.array(numbers, pa.int64()),
        "symbol": [f"S{number % 7}" for number in numbers],
        "quantity": pa.array([number % 10 for number in numbers], pa.int32()),
    }
    pq.write_table(pa.table(trades), folder / name)


def specification(folder: Path) -> Path:
    """The file that Spark asks for. It must say, as an absolute URI, where checkpoints are kept."""
    file = folder / "spark-pipeline.yml"
    file.write_text(
        f"name: trades\nstorage: file://{folder}/storage\n"
        f"libraries:\n  - glob:\n      include: {HERE.name}/transformations/**\n",
        encoding="utf-8",
    )
    (folder / HERE.name).symlink_to(HERE)
    return file


def run(file: Path, environment: dict[str, str]) -> None:
    command = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    subprocess.run([command, "run", "--spec", file], check=True, env=environment)  # noqa: S603


def main(folder: Path) -> list[int]:
    """The rows in the map after each run."""
    landing = folder / "landing"
    landing.mkdir()
    file = specification(folder)
    java = remuda.spark.find_java()
    counts = []
    with remuda.start(members=2) as cluster, cluster.connect() as client:
        environment = os.environ | {
            "REMUDA_ADDRESS": cluster.address,
            "TRADES_FOLDER": str(landing),
            "PYSPARK_PYTHON": sys.executable,
        }
        if java.home is not None:
            environment["JAVA_HOME"] = str(java.home)
        for name, rows in (("first.parquet", 1000), ("", 0), ("second.parquet", 500)):
            if name:
                arrive(landing, name, sum(counts[-1:]) * 10, rows)
            run(file, environment)
            counts.append(client.sql("SELECT count(*) FROM trades").fetchone()[0])
    return counts


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for number, rows in enumerate(main(Path(folder)), 1):
            print(f"after run {number}: {rows} trades in the map")
