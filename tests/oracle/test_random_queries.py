"""Random queries over random tables give DuckDB's answers, with batches of any size."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import remuda
from remuda.errors import RemudaError

sys.path.insert(0, str(Path(__file__).parent))
from oracle_answers import Rows, difference, rows_of
from oracle_generator import Generator, Query
from oracle_tables import TABLES

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "400"))
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))
SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
VARIANTS: dict[str, tuple[int, dict[str, object]]] = {
    "three-members": (3, {}),
    "small-batches": (2, {"batch_rows": 3}),
}
EXPLAIN_EVERY = 5
ROWS_MAX = 20_000
"""Larger answers are not compared: the time goes into rows that are all alike."""

Engines = tuple[remuda.Client, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module", params=list(VARIANTS))
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    members, settings = VARIANTS[request.param]
    with (
        remuda.start(members=members, settings=settings) as cluster,
        cluster.connect() as client,
        duckdb.connect() as duck,
    ):
        duck.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        chance = random.Random(SEED)
        for table in TABLES:
            rows = table.make(chance)
            definition = f"CREATE TABLE {table.name} ({table.definition})"
            duck.execute(definition)
            client.sql(definition + table.options).close()
            if rows:
                marks = ", ".join("?" * len(table.kinds))
                duck.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)
                client.map(table.name).put_all(duck.sql(f"FROM {table.name}").to_arrow_table())
        yield client, duck


def answer(client: remuda.Client, query: Query) -> Rows:
    with client.sql(query.remuda(), list(query.parameters)) as cursor:
        return rows_of([tuple(row) for row in cursor], query.ordered)


def expected(duck: duckdb.DuckDBPyConnection, query: Query) -> Rows | None:
    """None when DuckDB refuses the query, or its answer is too large."""
    try:
        rows = duck.execute(query.duckdb(), list(query.parameters)).fetchall()
    except duckdb.Error:
        return None  # e.g. a DECIMAL that only DuckDB refuses to add
    return rows_of(rows, query.ordered) if len(rows) <= ROWS_MAX else None


def second_opinion(duck: duckdb.DuckDBPyConnection, query: Query) -> Rows | None:
    """DuckDB's answer without its optimizer, which now and then loses rows."""
    duck.execute("PRAGMA disable_optimizer")
    try:
        return expected(duck, query)
    finally:
        duck.execute("PRAGMA enable_optimizer")


def explained(client: remuda.Client, query: Query) -> None:
    for word in ("EXPLAIN", "EXPLAIN ANALYZE"):
        with client.sql(f"{word} {query.remuda()}", list(query.parameters)) as cursor:
            assert any("Root" in line for (line,) in cursor)


def compare(engines: Engines, numbers: range) -> None:
    client, duck = engines
    wrong: list[str] = []
    compared = 0
    for number in numbers:
        chance = random.Random(SEED * 1_000_003 + number)
        query = Generator(chance, parameters=number % 4 == 0).query()
        rows = expected(duck, query)
        if rows is None:
            continue
        compared += 1
        try:
            found = answer(client, query)
            problem = difference(found, rows)
            if problem and found == second_opinion(duck, query):
                problem = ""
            if number % EXPLAIN_EVERY == 0:
                explained(client, query)
        except RemudaError as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            wrong.append(f"{number}: {query.remuda()} {query.parameters}\n   {problem}")
    assert not wrong, f"{len(wrong)} of {compared} are wrong:\n" + "\n".join(wrong[:10])
    assert compared > len(numbers) * 0.9


@pytest.mark.parametrize("part", range(4))
def test_random_queries(part: int, engines: Engines) -> None:
    compare(engines, range(part, QUERIES, 4))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_queries(engines: Engines) -> None:
    compare(engines, range(QUERIES, QUERIES + SOAK_QUERIES))


def test_queries_are_what_they_claim_to_be(engines: Engines) -> None:
    """The generator makes every construct, and most answers have rows."""
    _, duck = engines
    texts: list[str] = []
    some = 0
    for number in range(400):
        query = Generator(random.Random(number), parameters=number % 4 == 0).query()
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
