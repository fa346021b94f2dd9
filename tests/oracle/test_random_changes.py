"""Random UPDATE, DELETE and INSERT statements leave the same rows as in DuckDB."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import remuda
from remuda.errors import RemudaError

pytestmark = pytest.mark.cluster

STATEMENTS = int(os.environ.get("REMUDA_ORACLE_CHANGES", "100"))
SEED = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
TABLES = {
    "a": "id BIGINT PRIMARY KEY, x INTEGER, y INTEGER NOT NULL, s VARCHAR",
    "b": "id BIGINT, part INTEGER, x INTEGER, s VARCHAR, PRIMARY KEY (id, part)",
    "r": "id BIGINT PRIMARY KEY, x INTEGER, y INTEGER NOT NULL, s VARCHAR",
}
KEYS = {"a": "id", "b": "id, part", "r": "id"}
COLUMNS = {"a": ["x", "y", "s"], "b": ["x", "s"], "r": ["x", "y", "s"]}


class Generator:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def number(self, table: str, depth: int = 0) -> str:
        roll = self.chance.random()
        columns = [c for c in (*COLUMNS[table], "id") if c != "s"]
        if roll < 0.5:
            return f"{table}.{self.chance.choice(columns)}"
        if roll < 0.75 or depth > 1:
            return str(self.chance.randrange(-5, 40))
        if roll < 0.9:
            left, right = (self.number(table, depth + 1) for _ in range(2))
            return f"({left} {self.chance.choice('+-')} {right})"
        other = self.chance.choice([name for name in TABLES if name != table])
        return f"(SELECT {self.chance.choice(['max', 'min', 'count'])}({other}.x) FROM {other})"

    def text(self, table: str) -> str:
        return self.chance.choice(
            [f"{table}.s", "'new'", "NULL", f"upper({table}.s)", f"{table}.s || '!'"]
        )

    def value(self, table: str, column: str) -> str:
        if column == "s":
            return f"CAST(left({self.text(table)}, 8) AS VARCHAR)"
        return f"CAST({self.number(table)} AS INTEGER)"

    def condition(self, table: str) -> str:
        chance = self.chance
        if chance.random() < 0.2:
            other = chance.choice(list(TABLES))
            return f"{table}.id IN (SELECT id FROM {other} WHERE x > 10)"
        parts = [
            f"{self.number(table)} {chance.choice(['<', '>', '<=', '='])} {self.number(table)}",
            f"{table}.id % {chance.randrange(2, 6)} = {chance.randrange(3)}",
            f"{table}.s IS NULL",
            f"{table}.id = {chance.randrange(40)}",
        ]
        chosen = chance.sample(parts, chance.randrange(1, 3))
        return "(" + chance.choice([" AND ", " OR "]).join(chosen) + ")"

    def statement(self) -> str:
        chance = self.chance
        table = chance.choice(list(TABLES))
        kind = chance.choice(
            ["update", "update", "from", "key", "delete", "using"] + ["insert"] * 4
        )
        where = f" WHERE {self.condition(table)}"
        if kind == "delete":
            return f"DELETE FROM {table}{where} AND {table}.id % 3 = 0"
        if kind == "using":
            other = chance.choice([name for name in TABLES if name != table])
            return (
                f"DELETE FROM {table} USING {other} WHERE {table}.id = {other}.id"
                f" AND {self.condition(other)}"
            )
        if kind == "insert":
            return self.insert(table)
        columns = chance.sample(COLUMNS[table], chance.randrange(1, len(COLUMNS[table]) + 1))
        sets = ", ".join(f"{column} = {self.value(table, column)}" for column in columns)
        if kind == "key":
            return f"UPDATE {table} SET id = {table}.id + 1000, {sets}{where}"
        if kind == "from":  # a unique key: otherwise the engines may choose different rows
            other = chance.choice([name for name in ("a", "r") if name != table])
            return (
                f"UPDATE {table} SET x = {table}.x + {other}.y FROM {other}"
                f" WHERE {table}.id = {other}.id AND {self.condition(other)}"
            )
        return f"UPDATE {table} SET {sets}{where}"

    def insert(self, table: str) -> str:
        chance = self.chance
        rows = []
        for key in chance.sample(range(60), chance.randrange(1, 8)):
            part = f"{chance.randrange(2)}, " if table == "b" else ""
            numbers = [str(chance.randrange(30)) for _ in COLUMNS[table][:-1]]
            rows.append(f"({key}, {part}{', '.join(numbers)}, 'row {key % 7}')")
        text = f"INSERT INTO {table} VALUES {', '.join(rows)}"
        roll = chance.random()
        if roll < 0.2:
            return text
        if roll < 0.5:
            return f"{text} ON CONFLICT DO NOTHING"
        where = " WHERE excluded.x > 10" if roll > 0.8 else ""
        return (
            f"{text} ON CONFLICT ({KEYS[table]}) DO UPDATE SET x = {table}.x + excluded.x,"
            f" s = excluded.s{where}"
        )


@pytest.fixture(scope="module")
def engines(cluster_of: Any) -> Iterator[tuple[remuda.Client, duckdb.DuckDBPyConnection]]:
    with cluster_of(3) as cluster, cluster.connect() as client, duckdb.connect() as duck:
        for table, columns in TABLES.items():
            duck.execute(f"CREATE TABLE {table} ({columns})")
            suffix = " REPLICATED" if table == "r" else ""
            client.sql(f"CREATE TABLE {table} ({columns}){suffix}").close()
        yield client, duck


def rows_of(execute, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in execute(f"SELECT * FROM {table} ORDER BY {KEYS[table]}")]


def test_random_changes(engines: tuple[remuda.Client, duckdb.DuckDBPyConnection]) -> None:
    client, duck = engines
    chance = random.Random(SEED)
    done = refused = 0

    def ours(text: str) -> list[object]:
        with client.sql(text) as cursor:
            return list(cursor)

    for table, columns in COLUMNS.items():
        for key in range(40):
            part = "0, " if table == "b" else ""
            numbers = ", ".join(str(chance.randrange(30)) for _ in columns[:-1])
            text = f"INSERT INTO {table} VALUES ({key}, {part}{numbers}, 'first {key % 5}')"
            duck.execute(text)
            ours(text)
    for _ in range(STATEMENTS):
        text = Generator(chance).statement()
        try:
            [(expected,)] = duck.execute(text).fetchall()
        except duckdb.Error as error:
            if "over-eager" in str(error) or "Binder" in str(error):
                continue
            refused += 1
            with pytest.raises(RemudaError):
                ours(text)
        else:
            with client.sql(text) as cursor:
                list(cursor)
                assert cursor.rowcount == expected, text
            done += 1
        for table in TABLES:
            theirs = rows_of(lambda query: duck.execute(query).fetchall(), table)
            assert rows_of(ours, table) == theirs, f"{table} after {text}"
    assert done > STATEMENTS / 2
    assert refused > 0
