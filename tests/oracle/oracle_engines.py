"""Remuda and DuckDB over the same tables, and the comparison of their answers."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb
from oracle_answers import Rows, difference, rows_of
from oracle_generator import Query
from oracle_tables import TABLES

import remuda
from remuda.errors import RemudaError

SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
VARIANTS: dict[str, tuple[int, dict[str, object]]] = {
    "three-members": (3, {}),
    "small-batches": (2, {"batch_rows": 3}),
}
EXPLAIN_EVERY = 5
ROWS_MAX = 20_000
"""Larger answers are not compared: the time goes into rows that are all alike."""

Engines = tuple[remuda.Client, duckdb.DuckDBPyConnection]


@contextmanager
def filled_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as duck:
        duck.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        chance = random.Random(SEED)
        for table in TABLES:
            rows = table.make(chance)
            duck.execute(f"CREATE TABLE {table.name} ({table.definition})")
            if rows:
                marks = ", ".join("?" * len(table.kinds))
                duck.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)
        yield duck


def copy_tables(duck: duckdb.DuckDBPyConnection, client: remuda.Client) -> None:
    for table in TABLES:
        client.sql(f"CREATE TABLE {table.name} ({table.definition}){table.options}").close()
        rows = duck.sql(f"FROM {table.name}").to_arrow_table()
        if rows.num_rows:
            client.map(table.name).put_all(rows)


@contextmanager
def filled(
    cluster_of: Callable[..., AbstractContextManager[remuda.Cluster]], variant: str
) -> Iterator[Engines]:
    with (
        cluster_of(*VARIANTS[variant]) as cluster,
        cluster.connect() as client,
        filled_duckdb() as duck,
    ):
        copy_tables(duck, client)
        yield client, duck


def answer(client: remuda.Client, query: Query) -> Rows:
    with client.sql(query.remuda(), *query.parameters) as cursor:
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
        with client.sql(f"{word} {query.remuda()}", *query.parameters) as cursor:
            assert any("Root" in line for (line,) in cursor)


def compare(
    engines: Engines, numbers: Iterable[int], query_of: Callable[[random.Random, int], Query]
) -> None:
    """Every query of ``query_of(chance, number)`` gives DuckDB's answer."""
    client, duck = engines
    wrong: list[str] = []
    compared = asked = 0
    for number in numbers:
        asked += 1
        chance = random.Random(SEED * 1_000_003 + number)
        query = query_of(chance, number)
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
    assert compared > asked * 0.9
