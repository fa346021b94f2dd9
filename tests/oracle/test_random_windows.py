"""Random window calls give DuckDB's answers, on one and three members and with one-row batches."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import remuda

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "120")) // 4
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))
SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))

DEFINITION = (
    "CREATE TABLE w (id BIGINT PRIMARY KEY, g VARCHAR, q INTEGER, p DECIMAL(9,2),"
    " x DOUBLE PRECISION, d DATE)"
)
VARIANTS = {
    "one-member": {"members": 1},
    "three-members": {"members": 3},
    "one-row-batches": {"members": 2, "settings": {"batch_rows": 1}},
}


def rows_of(chance: random.Random) -> list[tuple[object, ...]]:
    def maybe(value: object) -> object:
        return None if chance.random() < 0.15 else value

    return [
        (
            i,
            maybe(chance.choice(["ant", "bee", "cat", ""])),
            maybe(chance.randrange(-20, 20)),
            maybe(Decimal(chance.randrange(-999, 999)).scaleb(-2)),
            maybe(chance.randrange(-40, 40) / 4),
            maybe(dt.date(2020, 1, 1) + dt.timedelta(days=chance.randrange(60))),
        )
        for i in range(120)
    ]


class Generator:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def window(self, *, unique: bool, framed: bool) -> str:
        """``unique``: the order leaves no ties, so that the answer is determined."""
        chance = self.chance
        text = chance.choice(["", "PARTITION BY g ", "PARTITION BY q % 3, g ", "PARTITION BY id "])
        keys = chance.sample(["g", "q", "p", "x", "d"], chance.randrange(0, 3))
        if framed and not unique and len(keys) == 1 and keys[0] != "g" and chance.random() < 0.6:
            return f"{text}ORDER BY {self.key(keys[0])} {self.range_frame(keys[0])}"
        if unique:
            keys.append("id")
        if keys:
            text += "ORDER BY " + ", ".join(self.key(key) for key in keys)
        if framed and chance.random() < 0.7:
            units = (["ROWS"] if unique else []) + (["GROUPS"] if keys else [])
            if units:
                text += f" {chance.choice(units)} {self.bounds(['1', '3', '0'])}"
        return text

    def key(self, key: str) -> str:
        direction = self.chance.choice(["ASC", "DESC"])
        return f"{key} {direction} NULLS {self.chance.choice(['FIRST', 'LAST'])}"

    def bounds(self, offsets: list[str]) -> str:
        kinds = ["UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING",
                 "UNBOUNDED FOLLOWING"]  # fmt: skip
        start = self.chance.randrange(0, 4)
        end = self.chance.randrange(max(start, 1), 5)
        first, last = (kinds[i].format(self.chance.choice(offsets)) for i in (start, end))
        return f"BETWEEN {first} AND {last}"

    def range_frame(self, key: str) -> str:
        offsets = {
            "q": ["2", "0", "7"],
            "p": ["1.25", "3", "0.01"],
            "x": ["1.5", "0.25"],
            "d": ["INTERVAL '3' DAY", "INTERVAL '1' MONTH"],
        }[key]
        return f"RANGE {self.bounds(offsets)}"

    def call(self) -> str:
        chance = self.chance
        roll = chance.random()
        if roll < 0.15:
            name = chance.choice(["rank", "dense_rank", "percent_rank", "cume_dist"])
            return f"{name}() OVER ({self.window(unique=False, framed=False)})"
        if roll < 0.3:
            name = chance.choice(["row_number()", "ntile(3)", "ntile(7)"])
            return f"{name} OVER ({self.window(unique=True, framed=False)})"
        column = chance.choice(["g", "q", "p", "x", "d"])
        if roll < 0.45:
            name = chance.choice(["lag", "lead"])
            more = chance.choice(["", ", 2", ", 0", ", -1", ", q", ", 3, " + column])
            return f"{name}({column}{more}) OVER ({self.window(unique=True, framed=False)})"
        if roll < 0.6:
            name = chance.choice(
                [f"first_value({column})", f"last_value({column})", f"nth_value({column}, 2)"]
            )
            return f"{name} OVER ({self.window(unique=True, framed=True)})"
        number = chance.choice(["q", "p", "x"])
        name = chance.choice(
            [f"sum({number})", f"avg({number})", f"count({column})", "count(*)", f"min({column})",
             f"max({column})"]
        )  # fmt: skip
        if chance.random() < 0.25:
            name += " FILTER (WHERE q > 0)"
        unique = chance.random() < 0.5
        return f"{name} OVER ({self.window(unique=unique, framed=True)})"

    def statement(self) -> str:
        calls = ", ".join(self.call() for _ in range(self.chance.randrange(1, 4)))
        where = self.chance.choice(["", " WHERE q > -5", " WHERE g <> 'cat'"])
        text = f"SELECT id, {calls} FROM w{where}"
        if self.chance.random() < 0.2:
            text = f"SELECT * FROM (SELECT g, {text.removeprefix('SELECT ')}) AS t WHERE g = 'ant'"
        return text


def canonical(value: object) -> object:
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return "0" if number == 0 or math.isnan(number) else f"{number:.9g}"
    return str(value)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(DEFINITION)
        connection.executemany(
            "INSERT INTO w VALUES (?, ?, ?, ?, ?, ?)", rows_of(random.Random(SEED))
        )
        yield connection


@pytest.fixture(scope="module", params=list(VARIANTS))
def client(
    request: pytest.FixtureRequest, cluster_of: Any, duck: duckdb.DuckDBPyConnection
) -> Iterator[remuda.Client]:
    with cluster_of(**VARIANTS[request.param]) as cluster, cluster.connect() as found:
        found.sql(DEFINITION).close()
        found.map("w").put_all(duck.sql("FROM w").to_arrow_table())
        yield found


def test_random_windows(client: remuda.Client, duck: duckdb.DuckDBPyConnection) -> None:
    play(client, duck, QUERIES)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_windows(client: remuda.Client, duck: duckdb.DuckDBPyConnection) -> None:
    play(client, duck, SOAK_QUERIES)


def play(client: remuda.Client, duck: duckdb.DuckDBPyConnection, queries: int) -> None:
    wrong: list[str] = []
    compared = 0
    for number in range(queries):
        text = Generator(random.Random(SEED * 1_000_003 + number)).statement()
        try:
            expected = duck.execute(text).fetchall()
        except duckdb.Error:
            continue
        with client.sql(text) as cursor:
            actual = [tuple(row) for row in cursor]
        compared += 1
        left = sorted((tuple(canonical(v) for v in row) for row in actual), key=repr)
        right = sorted((tuple(canonical(v) for v in row) for row in expected), key=repr)
        if left != right:
            pairs = [(a, b) for a, b in zip(left, right, strict=False) if a != b][:3]
            wrong.append(f"{text}\n   {len(left)} rows, {len(right)} expected; (got, not): {pairs}")
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(wrong[:10])
    assert compared > queries / 2
