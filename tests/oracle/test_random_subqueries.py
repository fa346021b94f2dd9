"""Random statements with subqueries of every shape give DuckDB's answers."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import Engines, compare, expected
from oracle_generator import Query
from oracle_subqueries import SubqueryGenerator

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "24"))
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))


def query_of(chance: random.Random, _: int) -> Query:
    return SubqueryGenerator(chance).query()


@pytest.mark.parametrize("part", range(4))
def test_random_subqueries(part: int, engines: Engines) -> None:
    compare(engines, range(part, QUERIES, 4), query_of)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_subqueries(engines: Engines) -> None:
    compare(engines, range(QUERIES, QUERIES + SOAK_QUERIES), query_of)


def test_subqueries_are_what_they_claim_to_be(duck: duckdb.DuckDBPyConnection) -> None:
    texts: list[str] = []
    some = 0
    for number in range(300):
        query = query_of(random.Random(number), number)
        texts.append(query.text)
        some += bool(expected(duck, query))
    everything = "\n".join(texts)
    for construct in (
        " EXISTS (", "NOT EXISTS (", " IN (SELECT", " NOT IN (SELECT", " ANY (SELECT",
        " ALL (SELECT", "(SELECT count(*)", " LIMIT 1", " OFFSET ", " UNION ALL ",
        "SELECT DISTINCT", " HAVING ", ", LATERAL (", "LEFT JOIN LATERAL (", "CASE WHEN",
        " OR ", "IS NOT DISTINCT FROM",
    ):  # fmt: skip
        assert construct in everything, construct
    assert some > 100
