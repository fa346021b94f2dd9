"""TPC-H and TPC-DS answers equal DuckDB's over the same files, on one member and on three."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import remuda

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import tpc_data

SCALE = float(os.environ.get("REMUDA_TPC_SCALE", "1"))
CASES = [("tpch", number) for number in tpc_data.TPCH_QUERIES] + [("tpcds", 3)]

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", params=[1, 3], ids=["one-member", "three-members"])
def client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    with remuda.start(members=request.param) as cluster, cluster.connect() as client:
        for suite in ("tpch", "tpcds"):
            tpc_data.load(client, suite, tpc_data.generate(suite, SCALE))
        yield client


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for suite in ("tpch", "tpcds"):
            folder = tpc_data.generate(suite, SCALE)
            for table, _ in tpc_data.definitions(suite):
                connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        yield connection


def close(left: object, right: object) -> bool:
    numbers = (int, float, Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return abs(float(left) - float(right)) <= 1e-9 * max(1.0, abs(float(right)))
    return left == right


@pytest.mark.parametrize(("suite", "number"), CASES)
def test_answer(
    suite: str, number: int, client: remuda.Client, oracle: duckdb.DuckDBPyConnection
) -> None:
    text = tpc_data.query(suite, number)
    expected = oracle.execute(text).fetchall()
    with client.sql(text) as cursor:
        actual = [tuple(row) for row in cursor]
    assert len(actual) == len(expected)
    assert expected, "the comparison would prove nothing"
    for left, right in zip(actual, expected, strict=True):
        assert all(close(a, b) for a, b in zip(left, right, strict=True)), (left, right)
