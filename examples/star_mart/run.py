"""A star schema of TPC-DS by a pipeline file, and questions to it: see examples/README.md.

./run python examples/star_mart/run.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import remuda
import remuda.spark
from remuda.spark import pipeline

HERE = Path(__file__).parent
TABLES = ("store_sales", "date_dim", "item", "store")
QUESTION = """
    SELECT d.year, i.category, sum(f.amount) AS amount, count(*) AS sales
    FROM fact_sales f
    JOIN dim_day d ON d.day_id = f.day_id
    JOIN dim_item i ON i.item_id = f.item_id
    WHERE i.category IS NOT NULL
    GROUP BY d.year, i.category
    ORDER BY amount DESC, d.year, i.category
"""


def generate(folder: Path, scale: float) -> None:
    """The four tables as Parquet."""
    tool = Path(sys.executable).parent / "tpcgen-cli"
    subprocess.run(  # noqa: S603
        [str(tool), "tpcds", "parquet", "-s", f"{scale:g}", "-T", ",".join(TABLES),
         "-o", str(folder), "--quiet"],
        check=True,
    )  # fmt: skip


def main(
    spark: Any, address: str, data: Path, out: Path, *, runs: int = 2,
    say: Callable[[str], None] = print,
) -> list[pipeline.RunReport]:  # fmt: skip
    """Run the pipeline over the Parquet files in ``data``, and ask the mart."""
    file = pipeline.parse(HERE / "mart.yml")
    environment = {"TPCDS": str(data), "OUT": str(out)}
    reports = [
        pipeline.run(spark, file, address=address, environment=environment, run_id=f"run-{number}")
        for number in range(1, runs + 1)
    ]
    for report in reports:
        say(f"run {report.run}: {report.view('facts')}")
        for target in report.targets:
            say(f"  {target}")
    with remuda.connect(address) as client:
        rows = client.sql(QUESTION).fetchall()
        for year, category, amount, sales in rows[:5]:
            say(f"{year}  {category:<12} {amount:>14,} in {sales:,} sales")
    return reports


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, remuda.start(members=3) as cluster:
        generate(Path(scratch), 0.1)
        session = remuda.spark.session("star mart", quick=True)
        try:
            main(session, cluster.address, Path(scratch), Path(scratch))
        finally:
            session.stop()
