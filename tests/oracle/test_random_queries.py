"""Random queries over random tables give DuckDB's answers, with batches of any size."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import Engines, compare, expected
from oracle_generator import Generator, Query

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "36"))
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))


def query_of(chance: random.Random, number: int) -> Query:
    return Generator(chance, parameters=number % 4 == 0).query()


@pytest.mark.parametrize("part", range(4))
def test_random_queries(part: int, engines: Engines) -> None:
    compare(engines, range(part, QUERIES, 4), query_of)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_queries(engines: Engines) -> None:
    compare(engines, range(QUERIES, QUERIES + SOAK_QUERIES), query_of)


def test_queries_are_what_they_claim_to_be(duck: duckdb.DuckDBPyConnection) -> None:
    """The generator makes every construct, and most answers have rows."""
    texts: list[str] = []
    some = 0
    for number in range(400):
        query = query_of(random.Random(number), number)
        assert query.text.count("?") == len(query.parameters)
        texts.append(query.text)
        some += bool(expected(duck, query))
    everything = "\n".join(texts)
    for construct in (
        "WITH w AS", " UNION ALL ", " UNION SELECT", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ",
        " CROSS JOIN ", " EXISTS (", " NOT EXISTS (", " NOT IN (SELECT", " IN (SELECT",
        " FILTER (WHERE", "count(DISTINCT", " HAVING ", " OFFSET ", " LIMIT ", "SELECT DISTINCT",
        " NULLS FIRST", "CASE WHEN", "extract(", "INTERVAL '", "?", "IS NOT DISTINCT FROM",
        " LIKE ", " ILIKE ", "date_trunc(", " DIV ", "(SELECT max(",
    ):  # fmt: skip
        assert construct in everything, construct
    assert some > 200
