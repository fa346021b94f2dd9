"""Every TPC-H answer with secondary indexes of every kind on the columns of joins and filters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import remuda

sys.path.insert(0, str(Path(__file__).parent))

from tpc_answers import Suites, compare, loaded, tpc_data, views

SCALE = 0.1
SUITES: Suites = {"tpch": ()}
INDEXES = (
    "lineitem USING sorted (l_shipdate)",
    "lineitem USING sorted (l_partkey, l_suppkey)",
    "lineitem USING hash (l_suppkey)",
    "lineitem USING bitmap (l_shipmode)",
    "lineitem USING bitmap (l_returnflag)",
    "lineitem USING sorted (l_quantity)",
    "orders USING sorted (o_orderdate DESC)",
    "orders USING hash (o_custkey)",
    "orders USING bitmap (o_orderstatus)",
    "customer USING bitmap (c_mktsegment)",
    "customer USING sorted (c_nationkey, c_acctbal DESC)",
    "part USING sorted (p_type)",
    "part USING hash (p_brand, p_container)",
    "part USING bitmap (p_size)",
    "partsupp USING sorted (ps_suppkey)",
    "supplier USING hash (s_nationkey)",
    "nation USING sorted (n_name)",
)

pytestmark = pytest.mark.cluster


ONE_MEMBER = pytest.param(1, id="one-member", marks=pytest.mark.soak)
"""Its plans are those of the three, without exchanges."""


@pytest.fixture(scope="module", params=[ONE_MEMBER, pytest.param(3, id="three-members")])
def client(request: pytest.FixtureRequest) -> Iterator[remuda.Client]:
    with loaded(request.param, SUITES, SCALE) as client:
        for index in INDEXES:
            client.sql(f"CREATE INDEX ON {index}").close()
        yield client


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with views(SUITES, SCALE) as connection:
        yield connection


@pytest.mark.parametrize("number", range(1, 23))
def test_every_tpch_query(
    number: int, client: remuda.Client, oracle: duckdb.DuckDBPyConnection
) -> None:
    assert compare(tpc_data.query("tpch", number), client, oracle), "it would prove nothing"


def test_indexes_are_used(client: remuda.Client) -> None:
    """At least somewhere: a date out of the ordinary, a rare combination."""
    for condition in ("l_shipdate = DATE '1992-01-05'", "l_partkey = 17 AND l_suppkey > 5"):
        text = f"EXPLAIN SELECT count(*) FROM lineitem WHERE {condition}"
        with client.sql(text) as cursor:
            assert any("Index scan" in row[0] for row in cursor), condition
