"""TPC-H and TPC-DS answers equal DuckDB's over the same files, on one member and on three."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import remuda

sys.path.insert(0, str(Path(__file__).parent))

from tpc_answers import Suites, compare, loaded, tpc_data, views

SOAK_SCALE = float(os.environ.get("REMUDA_TPC_SCALE", "1"))
SMALL_SCALE = 0.1
SUITES: Suites = {"tpch": (), "tpcds": tpc_data.TPCDS_3_TABLES}
CASES = [("tpch", number) for number in range(1, 23)] + [("tpcds", 3)]

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", params=[1, 3], ids=["one-member", "three-members"])
def client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    with loaded(request.param, SUITES, SOAK_SCALE) as client:
        yield client


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with views(SUITES, SOAK_SCALE) as connection:
        yield connection


@pytest.fixture(scope="module", params=[1, 3], ids=["one-member-two-threads", "three-members"])
def small_client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    threads = {"workers": 2, "parallel_rows": 1, "parallel_scans": "partitions"}
    settings = threads if request.param == 1 else {}
    with loaded(request.param, {"tpch": ()}, SMALL_SCALE, settings) as client:
        yield client


@pytest.fixture(scope="module")
def small_oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with views({"tpch": ()}, SMALL_SCALE) as connection:
        yield connection


@pytest.mark.soak
@pytest.mark.parametrize(("suite", "number"), CASES)
def test_answer_at_scale_1(
    suite: str, number: int, client: remuda.Client, oracle: duckdb.DuckDBPyConnection
) -> None:
    assert compare(tpc_data.query(suite, number), client, oracle), "it would prove nothing"


@pytest.mark.parametrize("number", range(1, 23))
def test_every_tpch_query(
    number: int, small_client: remuda.Client, small_oracle: duckdb.DuckDBPyConnection
) -> None:
    rows = compare(tpc_data.query("tpch", number), small_client, small_oracle)
    assert rows, "the comparison would prove nothing"


def test_every_tpch_query_with_little_memory(
    monkeypatch: pytest.MonkeyPatch, small_oracle: duckdb.DuckDBPyConnection
) -> None:
    """Joins, aggregates and sorts larger than their memory go on from disk."""
    monkeypatch.setenv("REMUDA_STATEMENT_MEMORY", str(24 << 20))
    with loaded(3, {"tpch": ()}, SMALL_SCALE) as client:
        for number in range(1, 23):
            compare(tpc_data.query("tpch", number), client, small_oracle)
