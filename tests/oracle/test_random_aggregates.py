"""Random grouped queries over every aggregate that DuckDB has, too, give DuckDB's answers."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_AGGREGATES", "36"))
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))
SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
ROWS = 400
COLUMNS = (
    "id BIGINT PRIMARY KEY, g INTEGER, h VARCHAR, i INTEGER, b BIGINT, d DECIMAL(12,3), "
    "x DOUBLE PRECISION, y DOUBLE PRECISION, t VARCHAR, f BOOLEAN, dd DATE"
)
NUMBERS = ("i", "b", "d", "x", "y", "i + 1", "x * 2", "id")
SPREADS = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
PAIRS = (
    "corr", "covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx",
    "regr_syy", "regr_sxy", "regr_slope", "regr_intercept",
)  # fmt: skip


def _rows(chance: random.Random) -> Iterator[tuple[object, ...]]:
    for identity in range(ROWS):

        def some(value: object) -> object:
            return None if chance.random() < 0.15 else value

        yield (
            identity,
            some(chance.randrange(12)),
            some(chance.choice("abcäß")),
            some(chance.randrange(-50, 50)),
            some(chance.choice((10**18, 0)) + chance.randrange(-5, 9)),
            some(Decimal(chance.randrange(-99999, 99999)).scaleb(-3)),
            some(round(chance.uniform(-100, 100), chance.randrange(3))),
            some(chance.choice((1e6, 0.0)) + chance.random()),
            some("".join(chance.choices("xyzäÖ ", k=chance.randrange(4)))),
            some(chance.random() < 0.6),
            some(f"20{chance.randrange(10, 30)}-0{chance.randrange(1, 9)}-15"),
        )


class Generator:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def query(self) -> tuple[str, int]:
        """A query and the number of its keys, which come first."""
        chance = self.chance
        keys = chance.choice(("", "g", "h", "g, h", "f"))
        calls = [self.call() for _ in range(chance.randrange(1, 5))]
        items = ", ".join(([keys] if keys else []) + calls)
        where = chance.choice(("", "", " WHERE i > 0", " WHERE x IS NULL", " WHERE id < 20"))
        group = f" GROUP BY {keys}" if keys else ""
        return f"SELECT {items} FROM m{where}{group}", len(keys.split(", ")) if keys else 0

    def call(self) -> str:
        chance = self.chance
        number = chance.choice(NUMBERS)
        column = chance.choice(("i", "b", "d", "x", "t", "dd", "h"))
        text = chance.choice(
            (
                f"{chance.choice(SPREADS)}({chance.choice(('i', 'd', 'x', 'y', 'i + 1'))})",
                f"{chance.choice(PAIRS)}({chance.choice('xyi')}, {chance.choice('xyid')})",
                f"{chance.choice(('sum', 'count', 'min', 'max'))}({self.distinct()}{number})",
                f"{chance.choice(('bool_and', 'bool_or'))}({chance.choice(('f', 'i > 0'))})",
                f"{chance.choice(('bit_and', 'bit_or', 'bit_xor'))}({chance.choice('ib')})",
                "string_agg(t, ',' ORDER BY id)",
                "string_agg(h, '' ORDER BY t, id)",
                "string_agg(DISTINCT h, '-' ORDER BY h)",
                f"{chance.choice(('min_by', 'max_by', 'arg_min', 'arg_max'))}({column}, id)",
                f"median({chance.choice(('i', 'x', 'd::DOUBLE PRECISION'))})",
                (
                    f"percentile_cont({chance.choice((0, 0.25, 0.5, 0.9, 1))}) "
                    f"WITHIN GROUP (ORDER BY {chance.choice(('x', 'y', 'i::DOUBLE PRECISION'))})"
                ),
                (
                    f"percentile_disc({chance.choice((0.1, 0.5, 0.75, 1))}) "
                    f"WITHIN GROUP (ORDER BY {column}{chance.choice(('', ' DESC'))})"
                ),
                f"count(DISTINCT {column})",
            )
        )
        if chance.random() < 0.25 and "WITHIN" not in text:
            text += f" FILTER (WHERE {chance.choice(('f', 'i > 10', 'x < 0 OR t IS NULL'))})"
        return text

    def distinct(self) -> str:
        return "DISTINCT " if self.chance.random() < 0.3 else ""


def _plain(value: object) -> object:
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None  # DuckDB's corr of equal values; PostgreSQL's is NULL
    return value


def _same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-5)
    return left == right


def _by_keys(rows: list[tuple[object, ...]], keys: int) -> list[tuple[object, ...]]:
    plain = [tuple(_plain(value) for value in row) for row in rows]
    return sorted(plain, key=lambda row: [(v is not None, str(v)) for v in row[:keys]])


@pytest.mark.parametrize("members", [1, 3])
def test_aggregates_like_duckdb(members: int, cluster_of: Any) -> None:
    play(members, cluster_of, QUERIES)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("members", [1, 3])
def test_many_aggregates_like_duckdb(members: int, cluster_of: Any) -> None:
    play(members, cluster_of, SOAK_QUERIES)


def play(members: int, cluster_of: Any, queries: int) -> None:
    chance = random.Random(SEED)
    oracle = duckdb.connect()
    oracle.execute(f"CREATE TABLE m ({COLUMNS})")
    rows = list(_rows(chance))
    oracle.executemany(f"INSERT INTO m VALUES ({', '.join('?' * 11)})", rows)
    generator = Generator(chance)
    with cluster_of(members) as cluster, cluster.connect() as client:
        client.sql(f"CREATE TABLE m ({COLUMNS})").close()
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        client.sql(f"INSERT INTO m VALUES {values}").close()
        for number in range(queries):
            query, keys = generator.query()
            with client.sql(query) as cursor:
                found = _by_keys([tuple(row) for row in cursor], keys)
            expected = _by_keys(oracle.execute(query).fetchall(), keys)
            assert len(found) == len(expected), f"{number}: {query}"
            for left, right in zip(found, expected, strict=True):
                assert all(_same(a, b) for a, b in zip(left, right, strict=True)), (
                    f"{number}: {query}\n{left}\n{right}"
                )


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)
