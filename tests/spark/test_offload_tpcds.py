"""All queries of TPC-DS on both engines: long, run by ``./run soak``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from offload_service import loaded, offloading, same, tpc_data

from remuda.errors import DivisionByZero

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def tpcds(spark: Any, grid: Any) -> Iterator[Any]:
    tables = tuple(table for table, _ in tpc_data.definitions("tpcds"))
    with offloading(spark, grid) as client, loaded(client, "tpcds", tables):
        yield client


@pytest.mark.parametrize("number", range(1, 100))
def test_every_query(tpcds: Any, number: int) -> None:
    """One of them divides by zero in so few rows, on both engines."""
    text = tpc_data.query("tpcds", number)
    try:
        tpcds.sql(f"/*+ ENGINE(grid) */ {text}").fetchall()
    except DivisionByZero:
        with pytest.raises(DivisionByZero):
            tpcds.sql(f"/*+ ENGINE(spark) */ {text}").fetchall()
    else:
        same(tpcds, text, digits=9)
