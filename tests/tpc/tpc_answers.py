"""What the TPC tests share: a loaded cluster, DuckDB over the same files, and their comparison."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from weakref import WeakKeyDictionary

import duckdb

import remuda

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import tpc_data

Suites = dict[str, tuple[str, ...]]
"""Suite -> its tables; () for all."""


@contextmanager
def loaded(
    members: int, suites: Suites, scale: float, settings: Mapping[str, object] | None = None
) -> Iterator[remuda.Client]:
    with remuda.start(members=members, settings=settings) as cluster, cluster.connect() as client:
        for suite, tables in suites.items():
            tpc_data.load(client, suite, tpc_data.generate(suite, scale, tables), tables)
        yield client


Rows = list[tuple[object, ...]]
_ANSWERS: WeakKeyDictionary[duckdb.DuckDBPyConnection, dict[str, Rows]] = WeakKeyDictionary()


def answers(oracle: duckdb.DuckDBPyConnection, text: str) -> Rows:
    """DuckDB's answer, asked for once however many clusters it is compared with."""
    known = _ANSWERS.setdefault(oracle, {})
    if text not in known:
        known[text] = oracle.execute(text).fetchall()
    return known[text]


@contextmanager
def views(suites: Suites, scale: float) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for suite, tables in suites.items():
            folder = tpc_data.generate(suite, scale, tables)
            for table, _ in tpc_data.definitions(suite):
                if not tables or table in tables:
                    connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        yield connection


def close(left: object, right: object, tolerance: float = 1e-9) -> bool:
    numbers = (int, float, Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return abs(float(left) - float(right)) <= tolerance * max(1.0, abs(float(right)))
    return left == right


def compare(
    text: str, client: remuda.Client, oracle: duckdb.DuckDBPyConnection, tolerance: float = 1e-9
) -> int:
    """Run ``text`` on both, compare row by row; the number of rows."""
    expected = answers(oracle, text)
    with client.sql(text) as cursor:
        actual = [tuple(row) for row in cursor]
    assert len(actual) == len(expected)
    for left, right in zip(actual, expected, strict=True):
        assert all(close(a, b, tolerance) for a, b in zip(left, right, strict=True)), (left, right)
    return len(expected)
