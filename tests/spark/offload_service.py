"""What the tests of statements on Spark share: a cluster with a service, and the comparison of what
both engines say."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from remuda.client.blocking.client import connect
from remuda.errors import SparkServiceMissing

sys.path.insert(0, str(Path(__file__).parents[1] / "tpc"))
from tpc_answers import tpc_data

__all__ = ["both", "loaded", "offloading", "same", "tpc_data"]

SCALE = 0.01


@contextmanager
def offloading(spark: Any, grid: Any) -> Iterator[Any]:
    """A client of ``grid`` while a service of ``spark`` runs its statements."""
    from remuda.spark.service import SparkService  # noqa: PLC0415 (no Spark, no tests of it)

    client = connect(",".join(grid.addresses))
    made = SparkService(spark, ",".join(grid.addresses))
    ready = threading.Event()
    thread = threading.Thread(target=made.serve, kwargs={"ready": lambda _: ready.set()})
    thread.start()
    try:
        ready.wait()
        _until_known(client)
        yield client
    finally:
        made.stop()
        thread.join()


def _until_known(client: Any) -> None:
    """Until every member has heard of the service."""
    missing = len(client.cluster_info().view.members)
    while missing:
        try:
            client.sql("/*+ ENGINE(spark) */ SELECT 1").fetchall()
            missing -= 1
        except SparkServiceMissing:
            threading.Event().wait(0.05)


@contextmanager
def loaded(client: Any, suite: str, tables: tuple[str, ...]) -> Iterator[None]:
    """Tables of a TPC benchmark; they go again."""
    tpc_data.load(client, suite, tpc_data.generate(suite, SCALE, tables), tables)
    yield
    for table in tables:
        client.sql(f"DROP TABLE {table}").fetchall()


def both(client: Any, text: str, *parameters: Any) -> tuple[pa.Table, pa.Table]:
    """The answers of the grid and of Spark."""
    found = []
    for engine in ("grid", "spark"):
        with client.sql(f"/*+ ENGINE({engine}) */ {text}", *parameters) as cursor:
            found.append(cursor.to_arrow())
    return found[0], found[1]


def same(client: Any, text: str, *parameters: Any, digits: int = 12) -> None:
    """Equal types and rows, in the same order where the text has one. Sums of floats depend on the
    order of the rows, on either engine: only so many ``digits`` of them count."""
    grid, spark = both(client, text, *parameters)
    assert spark.schema.equals(grid.schema), text
    ordered = "order by" in text.lower()
    assert _rows(spark, digits, ordered=ordered) == _rows(grid, digits, ordered=ordered), text


def _rows(table: pa.Table, digits: int, *, ordered: bool) -> list[str]:
    columns = [column.to_pylist() for column in table.columns]
    rows = [
        repr(tuple(_rounded(value, digits) for value in row)) for row in zip(*columns, strict=True)
    ]
    return rows if ordered else sorted(rows)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{digits}g}") + 0.0
    return value
