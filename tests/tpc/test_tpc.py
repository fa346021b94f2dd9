"""TPC-H and TPC-DS answers equal DuckDB's over the same files, on one member and on three."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import remuda

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import tpc_data

SCALE = float(os.environ.get("REMUDA_TPC_SCALE", "1"))
SMALL_SCALE = 0.1
CASES = [("tpch", number) for number in tpc_data.TPCH_QUERIES] + [("tpcds", 3)]
ALL_TPCH = range(1, 23)

pytestmark = pytest.mark.cluster


@contextmanager
def loaded(members: int, suites: tuple[str, ...], scale: float) -> Iterator[remuda.Client]:
    with remuda.start(members=members) as cluster, cluster.connect() as client:
        for suite in suites:
            tpc_data.load(client, suite, tpc_data.generate(suite, scale))
        yield client


@contextmanager
def views(suites: tuple[str, ...], scale: float) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for suite in suites:
            folder = tpc_data.generate(suite, scale)
            for table, _ in tpc_data.definitions(suite):
                connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        yield connection


@pytest.fixture(scope="module", params=[1, 3], ids=["one-member", "three-members"])
def client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    with loaded(request.param, ("tpch", "tpcds"), SCALE) as client:
        yield client


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with views(("tpch", "tpcds"), SCALE) as connection:
        yield connection


@pytest.fixture(scope="module", params=[1, 3], ids=["one-member", "three-members"])
def small_client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    with loaded(request.param, ("tpch",), SMALL_SCALE) as client:
        yield client


@pytest.fixture(scope="module")
def small_oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with views(("tpch",), SMALL_SCALE) as connection:
        yield connection


def close(left: object, right: object) -> bool:
    numbers = (int, float, Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return abs(float(left) - float(right)) <= 1e-9 * max(1.0, abs(float(right)))
    return left == right


def compare(text: str, client: remuda.Client, oracle: duckdb.DuckDBPyConnection) -> None:
    expected = oracle.execute(text).fetchall()
    with client.sql(text) as cursor:
        actual = [tuple(row) for row in cursor]
    assert len(actual) == len(expected)
    assert expected, "the comparison would prove nothing"
    for left, right in zip(actual, expected, strict=True):
        assert all(close(a, b) for a, b in zip(left, right, strict=True)), (left, right)


@pytest.mark.parametrize(("suite", "number"), CASES)
def test_answer(
    suite: str, number: int, client: remuda.Client, oracle: duckdb.DuckDBPyConnection
) -> None:
    compare(tpc_data.query(suite, number), client, oracle)


@pytest.mark.parametrize("number", ALL_TPCH)
def test_every_tpch_query(
    number: int, small_client: remuda.Client, small_oracle: duckdb.DuckDBPyConnection
) -> None:
    compare(tpc_data.query("tpch", number), small_client, small_oracle)
