"""Random set operations, grouping sets and DISTINCT ON give DuckDB's answers."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import Engines, compare
from oracle_generator import Query
from oracle_sets import OPERATIONS, SetGenerator

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "40")) // 2
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))


def query_of(chance: random.Random, _number: int) -> Query:
    return SetGenerator(chance).set_query()


def test_random_sets(engines: Engines) -> None:
    compare(engines, range(QUERIES), query_of)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_sets(engines: Engines) -> None:
    compare(engines, range(QUERIES, QUERIES + SOAK_QUERIES), query_of)


def test_queries_are_what_they_claim_to_be() -> None:
    texts = "\n".join(query_of(random.Random(number), number).text for number in range(200))
    for construct in (*OPERATIONS, "ROLLUP", "CUBE", "GROUPING SETS", "grouping(", "DISTINCT ON"):
        assert construct in texts, construct
