"""Random conditions, orders and joins over maps with random secondary indexes give DuckDB's
answers, while rows change and indexes come and go."""

from __future__ import annotations

import datetime as dt
import os
import random
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import remuda

sys.path.insert(0, str(Path(__file__).parent))
from oracle_answers import difference, rows_of

pytestmark = pytest.mark.cluster

ROUNDS = int(os.environ.get("REMUDA_ORACLE_INDEX_ROUNDS", "5"))
SOAK_ROUNDS = int(os.environ.get("REMUDA_ORACLE_INDEX_SOAK_ROUNDS", "200"))
QUERIES = 24
ROWS = 3000
WORDS = ["ant", "bee", "cat", "dog", "eel", "Fox", "", "gnu", "a%b", "näive", "ant eater"]
COLUMNS = {
    "g": "INTEGER",
    "s": "VARCHAR",
    "n": "BIGINT",
    "p": "DECIMAL(10,2)",
    "w": "DECIMAL(25,3)",
    "x": "DOUBLE",
    "d": "DATE",
    "t": "TIMESTAMP",
    "b": "BOOLEAN",
}

Value = object


def value(chance: random.Random, column: str) -> Value:
    if chance.random() < 0.08:
        return None
    made: dict[str, Callable[[], Value]] = {
        "g": lambda: chance.randrange(12),
        "s": lambda: chance.choice(WORDS) + str(chance.randrange(60)),
        "n": lambda: chance.choice([chance.randrange(-2000, 2000), 2**62 + chance.randrange(5)]),
        "p": lambda: Decimal(chance.randrange(-40000, 40000)).scaleb(-2),
        "w": lambda: Decimal(chance.randrange(-(10**20), 10**20)).scaleb(-3),
        "x": lambda: chance.choice([chance.randrange(400) / 8, float("nan"), float("-inf"), -0.0]),
        "d": lambda: dt.date(2020, 1, 1) + dt.timedelta(days=chance.randrange(700)),
        "t": lambda: dt.datetime(2020, 1, 1) + dt.timedelta(seconds=chance.randrange(10**7)),  # noqa: DTZ001
        "b": lambda: chance.random() < 0.1,
    }
    return made[column]()


def literal(item: Value) -> str:
    match item:
        case None:
            return "NULL"
        case bool():
            return str(item).upper()
        case str():
            return "'" + item.replace("'", "''") + "'"
        case float():
            return f"CAST('{item}' AS DOUBLE PRECISION)"
        case dt.datetime():
            return f"TIMESTAMP '{item}'"
        case dt.date():
            return f"DATE '{item}'"
        case _:
            return str(item)


class Conditions:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def atom(self) -> str:
        chance = self.chance
        column = chance.choice(list(COLUMNS))
        one, two = (literal(value(chance, column)) for _ in range(2))
        if column == "b" and chance.random() < 0.6:
            return chance.choice(["m.b", "NOT m.b", "m.b IS NULL"])
        if column == "s" and chance.random() < 0.5:
            prefix = chance.choice(WORDS)[: chance.randrange(1, 5)] + chance.choice(["", "1"])
            pattern = prefix.split("%")[0] + "%"
            how = [f"m.s LIKE {literal(pattern)}", f"starts_with(m.s, {literal(prefix)})"]
            return chance.choice(how)
        kind = chance.randrange(8)
        if kind < 3:
            return f"m.{column} = {one}"
        if kind == 3:
            listed = ", ".join(
                literal(value(chance, column)) for _ in range(chance.randrange(1, 5))
            )
            return f"m.{column} {chance.choice(['', '', 'NOT '])}IN ({listed})"
        if kind == 4:
            return f"m.{column} BETWEEN {one} AND {two}"
        if kind == 5:
            return f"m.{column} IS {chance.choice(['', '', 'NOT '])}NULL"
        return f"m.{column} {chance.choice(['<', '<=', '>', '>=', '<>', '>'])} {one}"

    def condition(self, depth: int = 0) -> str:
        if depth == 2 or self.chance.random() < 0.35:
            return self.atom()
        joint = self.chance.choice([" AND ", " AND ", " OR "])
        count = self.chance.randrange(2, 4)
        return "(" + joint.join(self.condition(depth + 1) for _ in range(count)) + ")"

    def query(self) -> tuple[str, bool]:
        """The text, and whether the order of its rows is defined."""
        chance = self.chance
        where = self.condition()
        kind = chance.randrange(10)
        if kind < 3:
            return f"SELECT m.id, m.s FROM m WHERE {where}", False
        if kind > 7:
            return self.first_rows_of_join(where), True
        if kind == 3:
            return f"SELECT count(*), min(m.n), max(m.p) FROM m WHERE {where}", False
        if kind == 4:
            down = chance.random() < 0.5
            columns = chance.sample(["g", "n", "p", "d", "t"], chance.randrange(1, 3))
            order = ", ".join(f"m.{c}{_direction(down)}" for c in columns)
            limit = chance.randrange(1, 40)
            text = f"SELECT {', '.join('m.' + c for c in columns)} FROM m"
            text += f" WHERE {where}" if chance.random() < 0.5 else ""
            return f"{text} ORDER BY {order} LIMIT {limit}", True
        join = chance.choice(["m.g = o.g", "m.id = o.k", "m.s = o.s", "m.g = o.g AND m.d = o.d"])
        if kind == 5:
            return f"SELECT o.k, m.id FROM o JOIN m ON {join} WHERE {where}", False
        if kind == 6:
            return f"SELECT o.k, m.id FROM o LEFT JOIN m ON {join} AND {where}", False
        no = chance.choice(["", "NOT "])
        return (
            f"SELECT o.k FROM o WHERE {no}EXISTS (SELECT 1 FROM m WHERE {join} AND {where})",
            False,
        )

    def first_rows_of_join(self, where: str) -> str:
        chance = self.chance
        key = chance.choice("gsd")
        columns = [f"m.{key}", *chance.sample(["m.n", "m.p", "m.t"], chance.randrange(2))]
        chance.shuffle(columns)
        down = chance.random() < 0.5
        order = ", ".join(f"{column}{_direction(down)}" for column in columns)
        join = chance.choice(["JOIN", "JOIN", "LEFT JOIN"])
        text = f"SELECT {', '.join(columns)} FROM m {join} o ON m.{key} = o.{key}"
        text += f" WHERE {where}" if chance.random() < 0.3 else ""
        return f"{text} ORDER BY {order} LIMIT {chance.randrange(1, 30)}"


def _direction(down: bool) -> str:
    return " DESC NULLS FIRST" if down else " ASC NULLS LAST"


class Both:
    """Remuda and DuckDB with the same rows."""

    def __init__(self, client: remuda.Client) -> None:
        self.client = client
        self.duck = duckdb.connect()

    def run(self, text: str) -> None:
        self.client.sql(text).close()
        self.duck.execute(text)

    def compare(self, text: str, ordered: bool) -> None:
        with self.client.sql(text) as cursor:
            actual = rows_of([tuple(row) for row in cursor], ordered)
        expected = rows_of(self.duck.execute(text).fetchall(), ordered)
        wrong = difference(actual, expected)
        if wrong:
            with self.client.sql("EXPLAIN " + text) as cursor:
                plan = "\n".join(str(row[0]) for row in cursor)
            raise AssertionError(f"{text}\n{wrong}\n{plan}")

    def fill(self, chance: random.Random) -> None:
        listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self.run(f"CREATE TABLE m (id INTEGER PRIMARY KEY, {listed})")
        self.run("CREATE TABLE o (k INTEGER PRIMARY KEY, g INTEGER, s VARCHAR, d DATE)")
        self.insert(chance, range(ROWS))
        rows = [(k, *(value(chance, c) for c in "gsd")) for k in range(0, 200, 9)]
        listed = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        self.run(f"INSERT INTO o VALUES {listed}")

    def insert(self, chance: random.Random, ids: range) -> None:
        rows = [(i, *(value(chance, column) for column in COLUMNS)) for i in ids]
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        self.duck.executemany(f"INSERT INTO m VALUES ({marks})", rows)
        new = self.duck.sql(f"SELECT * FROM m WHERE id BETWEEN {ids[0]} AND {ids[-1]}")
        self.client.map("m").put_all(new.to_arrow_table())

    def change(self, chance: random.Random, number: int) -> None:
        column = chance.choice(list(COLUMNS))
        where = f"id % {chance.randrange(5, 30)} = 1"
        self.run(f"UPDATE m SET {column} = {literal(value(chance, column))} WHERE {where}")
        self.run(f"DELETE FROM m WHERE id % 41 = {chance.randrange(41)}")
        self.insert(chance, range(100_000 + 50 * number, 100_000 + 50 * number + 50))

    def index(self, chance: random.Random) -> list[str]:
        made = []
        for number in range(chance.randrange(3, 8)):
            kind = chance.choice(["sorted", "sorted", "hash", "bitmap"])
            columns = chance.sample(
                list(COLUMNS), 1 if kind == "bitmap" else chance.randrange(1, 4)
            )
            if kind == "sorted":
                columns = [c + chance.choice(["", " DESC"]) for c in columns]
            self.client.sql(
                f"CREATE INDEX i{number} ON m USING {kind} ({', '.join(columns)})"
            ).close()
            made.append(f"i{number}")
        self.client.sql(f"CREATE INDEX io ON o USING sorted ({chance.choice('gsd')})").close()
        return [*made, "io"]


@pytest.fixture(params=[{"members": 1}, {"members": 3}], ids=["one member", "three members"])
def both(request: pytest.FixtureRequest, cluster_of: Any) -> Iterator[Both]:
    with cluster_of(**request.param) as cluster, cluster.connect() as client:
        yield Both(client)


def test_random_indexes(both: Both) -> None:
    play(both, ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_indexes(both: Both) -> None:
    play(both, SOAK_ROUNDS)


def play(both: Both, rounds: int) -> None:
    chance = random.Random(17)
    both.fill(chance)
    used = 0
    for number in range(rounds):
        made = both.index(chance)
        conditions = Conditions(chance)
        for _ in range(QUERIES):
            text, ordered = conditions.query()
            both.compare(text, ordered)
            with both.client.sql("EXPLAIN " + text) as cursor:
                plan = "\n".join(str(row[0]) for row in cursor)
            used += "Index scan" in plan or " by i" in plan
        both.change(chance, number)
        for name in made:
            both.client.sql(f"DROP INDEX {name}").close()
    assert used > rounds * QUERIES // 5, "most queries do not use an index at all"
