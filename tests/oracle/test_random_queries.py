"""Random queries over random tables give DuckDB's answers on a cluster of three members."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest

import remuda
from remuda.errors import RemudaError

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "400"))
SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))

DEFINITIONS = (
    "CREATE TABLE f (id BIGINT PRIMARY KEY, k INTEGER, g VARCHAR, q INTEGER, p DECIMAL(9,2),"
    " x DOUBLE PRECISION, d DATE, b BOOLEAN)",
    "CREATE TABLE m (k INTEGER PRIMARY KEY, name VARCHAR, g VARCHAR, w DECIMAL(12,3))",
    "CREATE TABLE r (g VARCHAR PRIMARY KEY, label VARCHAR, n INTEGER)",
)
NUMBERS = ["f.id", "f.k", "f.q", "f.p", "m.k", "m.w", "r.n"]
TEXTS = ["f.g", "m.name", "m.g", "r.g", "r.label"]


def rows_of(chance: random.Random) -> dict[str, list[tuple[object, ...]]]:
    def maybe(value: object, rate: float = 0.15) -> object:
        return None if chance.random() < rate else value

    day = dt.date(2020, 1, 1)
    groups = ["ant", "bee", "cat", "dog", "eel", "Fox", ""]
    return {
        "f": [
            (
                i,
                maybe(chance.randrange(40)),
                maybe(chance.choice(groups)),
                maybe(chance.randrange(-20, 20)),
                maybe(Decimal(chance.randrange(-99999, 99999)).scaleb(-2)),
                maybe(chance.randrange(-400, 400) / 4),
                maybe(day + dt.timedelta(days=chance.randrange(700))),
                maybe(chance.random() < 0.5),
            )
            for i in range(300)
        ],
        "m": [
            (
                k,
                maybe(f"name{k % 13}"),
                maybe(chance.choice(groups)),
                maybe(Decimal(chance.randrange(-9999, 9999)).scaleb(-3)),
            )
            for k in range(50)
        ],
        "r": [(g, maybe("label " + g), maybe(chance.randrange(10))) for g in groups],
    }


class Generator:
    """Builds one SELECT; every construct in it is inside the dialect of both engines."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.tables = ["f"]

    def number(self, depth: int = 0) -> str:
        columns = [c for c in NUMBERS if c.split(".")[0] in self.tables]
        roll = self.chance.random()
        if depth > 2 or roll < 0.55:
            return self.chance.choice(columns)
        if roll < 0.7:
            return str(self.chance.randrange(-9, 30))
        if roll < 0.9:
            operator = self.chance.choice("+-*")
            return f"({self.number(depth + 1)} {operator} {self.number(depth + 1)})"
        if roll < 0.95:
            return f"coalesce({self.number(depth + 1)}, {self.chance.randrange(5)})"
        return f"CASE WHEN {self.condition(depth + 1)} THEN {self.number(depth + 1)} ELSE 0 END"

    def text(self) -> str:
        return self.chance.choice([c for c in TEXTS if c.split(".")[0] in self.tables])

    def condition(self, depth: int = 0) -> str:
        roll = self.chance.random()
        if depth < 2 and roll < 0.25:
            operator = self.chance.choice(["AND", "OR"])
            return f"({self.condition(depth + 1)} {operator} {self.condition(depth + 1)})"
        if depth < 2 and roll < 0.32:
            return f"NOT ({self.condition(depth + 1)})"
        if roll < 0.5:
            operator = self.chance.choice(["=", "<>", "<", "<=", ">", ">="])
            return f"{self.number(1)} {operator} {self.number(1)}"
        if roll < 0.6:
            return f"{self.text()} {self.chance.choice(['=', '<', '>='])} 'cat'"
        if roll < 0.68:
            return f"{self.text()} LIKE '{self.chance.choice(['%a%', 'b%', '_o_', '%t', '%'])}'"
        if roll < 0.76:
            values = ", ".join(str(self.chance.randrange(30)) for _ in range(3))
            return f"{self.number(2)} {self.chance.choice(['IN', 'NOT IN'])} ({values})"
        if roll < 0.84:
            low = self.chance.randrange(-5, 15)
            return f"{self.number(2)} BETWEEN {low} AND {low + self.chance.randrange(20)}"
        if roll < 0.92:
            return f"{self.chance.choice([self.number(2), self.text()])} IS {self.chance.choice(['', 'NOT '])}NULL"
        if roll < 0.96:
            return "f.b"
        return f"f.d >= DATE '2020-{self.chance.randrange(1, 13):02}-15'"

    def source(self) -> str:
        text = "f"
        for table, keys in (("m", ["f.k = m.k", "f.g = m.g", "f.id = m.k"]), ("r", ["f.g = r.g"])):
            if self.chance.random() < 0.5:
                kind = self.chance.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
                self.tables.append(table)
                text += f" {kind} {table} ON {self.chance.choice(keys)}"
                if self.chance.random() < 0.25 and kind != "FULL JOIN":
                    text += f" AND {self.condition(1)}"
        return text

    def statement(self) -> str:
        source = self.source()
        where = f" WHERE {self.condition()}" if self.chance.random() < 0.7 else ""
        if self.chance.random() < 0.5:
            groups = self.chance.sample(
                [self.text(), "f.q % 3", "f.b", "f.k"], self.chance.randrange(0, 3)
            )
            calls = [
                f"{self.chance.choice(['sum', 'min', 'max', 'count', 'avg'])}({self.number(1)})",
                "count(*)",
                f"count(DISTINCT {self.text()})",
                f"min({self.text()})",
            ]
            items = groups + self.chance.sample(calls, self.chance.randrange(1, 4))
            group_by = f" GROUP BY {', '.join(groups)}" if groups else ""
            having = " HAVING count(*) > 2" if groups and self.chance.random() < 0.3 else ""
            return f"SELECT {', '.join(items)} FROM {source}{where}{group_by}{having}"
        items = [self.number(), self.text(), "f.d", "f.b", "f.x"]
        chosen = self.chance.sample(items, self.chance.randrange(1, 5))
        distinct = "DISTINCT " if self.chance.random() < 0.2 else ""
        order = ""
        if self.chance.random() < 0.4:
            keys = [
                f"{i + 1}{self.chance.choice(['', ' DESC'])}{self.chance.choice([' NULLS FIRST', ' NULLS LAST'])}"
                for i in range(len(chosen))
            ]
            order = f" ORDER BY {', '.join(keys)}"
            if self.chance.random() < 0.6:
                order += (
                    f" LIMIT {self.chance.randrange(0, 40)} OFFSET {self.chance.randrange(0, 10)}"
                )
        return f"SELECT {distinct}{', '.join(chosen)} FROM {source}{where}{order}"


def canonical(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return "0" if number == 0 or math.isnan(number) else f"{number:.9g}"
    return str(value)


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[remuda.Client, duckdb.DuckDBPyConnection]]:
    data = rows_of(random.Random(SEED))
    with remuda.start(members=3) as cluster, cluster.connect() as client, duckdb.connect() as duck:
        for table, definition in zip(data, DEFINITIONS, strict=True):
            duck.execute(definition)
            suffix = " WITH (replicated = true)" if table == "r" else ""
            client.sql(definition + suffix).close()
            marks = ", ".join("?" * len(data[table][0]))
            duck.executemany(f"INSERT INTO {table} VALUES ({marks})", data[table])
            client.map(table).put_all(duck.sql(f"FROM {table}").to_arrow_table())
        yield client, duck


@pytest.mark.parametrize("part", range(4))
def test_random_queries(
    part: int, engines: tuple[remuda.Client, duckdb.DuckDBPyConnection]
) -> None:
    client, duck = engines
    wrong: list[str] = []
    compared = 0
    for number in range(part, QUERIES, 4):
        text = Generator(random.Random(SEED * 1_000_003 + number)).statement()
        try:
            expected = duck.execute(text).fetchall()
        except duckdb.Error:
            continue  # e.g. a DECIMAL that only DuckDB refuses to multiply
        try:
            with client.sql(text) as cursor:
                actual = [tuple(row) for row in cursor]
        except RemudaError as error:
            wrong.append(f"{text}\n   {type(error).__name__}: {error}")
            continue
        compared += 1
        left = [tuple(canonical(v) for v in row) for row in actual]
        right = [tuple(canonical(v) for v in row) for row in expected]
        if "ORDER BY" not in text:
            left.sort(key=repr)
            right.sort(key=repr)
        if left != right:
            wrong.append(
                f"{text}\n   got {left[:5]} … ({len(left)})\n   not {right[:5]} … ({len(right)})"
            )
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(wrong[:10])
    assert compared > QUERIES / 8
