"""Random tables with foreign keys, and random statements and transactions over them: PostgreSQL
leaves the same rows, or refuses them with the same SQLSTATE. Needs PostgreSQL's server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from beside_postgresql import postgresql
from transacting import Session

from remuda.errors import RemudaError

__all__ = ["postgresql"]
pytestmark = pytest.mark.soak
InCluster = Callable[..., None]
BLOCKS = int(os.environ.get("REMUDA_FOREIGN_KEY_BLOCKS", "400"))
SCHEMAS = int(os.environ.get("REMUDA_FOREIGN_KEY_SCHEMAS", "6"))
TABLES = "a", "b", "c"
KEYS = 6
ACTIONS = "NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"
SEVERAL = {"23502", "23503", "23505"}
"""A row that breaks several constraints is refused by the one that is looked at first."""


class Grammar:
    """Tables ``a``, ``b`` and ``c``: each has a key, a unique value, and columns that name others
    and, perhaps, itself; ``w`` has a key of two columns, and ``x`` names it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.deferrable: list[str] = []

    # --- definitions ---

    def tables(self) -> Iterator[str]:
        for place, table in enumerate(TABLES):
            yield (
                f"CREATE TABLE {table} (k INT PRIMARY KEY, u INT UNIQUE, r INT, "
                f"s INT DEFAULT {self.chance.randrange(KEYS)})"
            )
            others = TABLES[: place + 1]
            for column in ("r", "s"):
                if self.chance.random() < (0.4 if len(others) == 1 else 0.9):
                    yield self._key(table, column, self.chance.choice(others))
        yield "CREATE TABLE w (a INT, b INT, PRIMARY KEY (a, b))"
        yield "CREATE TABLE x (k INT PRIMARY KEY, a INT, b INT)"
        match = self.chance.choice(("MATCH FULL", "MATCH SIMPLE"))
        yield (
            f"ALTER TABLE x ADD FOREIGN KEY (a, b) REFERENCES w {match} "
            f"ON DELETE {self.action()} ON UPDATE {self.action()}"
        )

    def _key(self, table: str, column: str, parent: str) -> str:
        name, deferral = f"{table}_{column}", ""
        if self.chance.random() < 0.4:
            self.deferrable.append(name)
            deferral = self.chance.choice((" DEFERRABLE", " INITIALLY DEFERRED"))
        return (
            f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}) "
            f"REFERENCES {parent} ({self.chance.choice('kku')}) "
            f"ON DELETE {self.action()} ON UPDATE {self.action()}{deferral}"
        )

    def action(self) -> str:
        return self.chance.choice(ACTIONS)

    # --- statements ---

    def block(self) -> list[str]:
        """One statement, or a transaction of several."""
        if self.chance.random() < 0.6:
            return [self.one()]
        middle = [self.within() for _ in range(self.chance.randrange(1, 6))]
        return ["BEGIN", *middle, self.chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))]

    def within(self) -> str:
        if not self.deferrable or self.chance.random() < 0.7:
            return self.one()
        names = self.chance.choice(("ALL", self.chance.choice(self.deferrable)))
        return f"SET CONSTRAINTS {names} {self.chance.choice(('DEFERRED', 'IMMEDIATE'))}"

    def one(self) -> str:
        kind = self.chance.choice(
            ("insert", "insert", "insert", "update", "update", "delete", "merge", "meet", "pair")
        )
        found: str = getattr(self, kind)()
        return found

    def value(self) -> str:
        return "NULL" if self.chance.random() < 0.2 else str(self.chance.randrange(KEYS))

    def row(self) -> str:
        last = self.chance.choice((self.value(), "DEFAULT"))
        return f"({self.chance.randrange(KEYS)}, {self.value()}, {self.value()}, {last})"

    def insert(self) -> str:
        return f"INSERT INTO {self.chance.choice(TABLES)} VALUES {self.row()}"

    def update(self) -> str:
        changes = (
            f"k = {self.chance.randrange(KEYS)}",
            f"u = {self.value()}",
            f"r = {self.value()}",
            f"s = {self.value()}, r = {self.value()}",
            "s = DEFAULT",
            f"k = {self.chance.randrange(KEYS)}, u = {self.value()}, r = {self.value()}",
        )
        return f"UPDATE {self.chance.choice(TABLES)} SET {self.chance.choice(changes)} {self.at()}"

    def at(self) -> str:
        return f"WHERE k = {self.chance.randrange(KEYS)}"

    def delete(self) -> str:
        where = self.chance.choice((self.at(), self.at(), self.at(), "WHERE k % 3 = 1", ""))
        return f"DELETE FROM {self.chance.choice(TABLES)} {where}".rstrip()

    def merge(self) -> str:
        table = self.chance.choice(TABLES)
        matched = self.chance.choice(
            ("UPDATE SET k = s.n", "UPDATE SET u = s.n", "UPDATE SET r = s.n", "DELETE")
        )
        return (
            f"MERGE INTO {table} AS t USING (VALUES ({self.chance.randrange(KEYS)}, "
            f"{self.chance.randrange(KEYS)})) AS s (k, n) ON t.k = s.k "
            f"WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN INSERT VALUES {self.row()}"
        )

    def meet(self) -> str:
        target, change = self.chance.choice(
            (
                ("k", f"u = {self.value()}"),
                ("k", "r = excluded.r"),
                ("u", "k = excluded.k"),
                ("u", "r = excluded.r"),
            )
        )
        return (
            f"INSERT INTO {self.chance.choice(TABLES)} VALUES {self.row()} "
            f"ON CONFLICT ({target}) DO UPDATE SET {change}"
        )

    def pair(self) -> str:
        a, b = self.chance.randrange(3), self.chance.randrange(3)
        return self.chance.choice(
            (
                f"INSERT INTO w VALUES ({a}, {b})",
                f"INSERT INTO x VALUES ({self.chance.randrange(9)}, {self._part()}, {b})",
                f"INSERT INTO x VALUES ({self.chance.randrange(9)}, {a}, {self._part()})",
                f"UPDATE w SET a = {a} WHERE a = {b} AND b = {self.chance.randrange(3)}",
                f"UPDATE x SET b = {self._part()} WHERE k = {self.chance.randrange(9)}",
                f"DELETE FROM w WHERE a = {a} AND b = {b}",
            )
        )

    def _part(self) -> str:
        return "NULL" if self.chance.random() < 0.3 else str(self.chance.randrange(3))


ROWS = (*(f"SELECT * FROM {table} ORDER BY k" for table in (*TABLES, "x")),
        "SELECT * FROM w ORDER BY a, b")  # fmt: skip


def agree(ours: str, theirs: str) -> bool:
    return ours == theirs or (ours in SEVERAL and theirs in SEVERAL)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(SCHEMAS))
def test_the_same_rows_and_refusals(
    in_cluster: InCluster, postgresql: psycopg.Connection[Any], number: int
) -> None:
    seed = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
    grammar = Grammar(Random(f"{seed}/{number}"))
    ends: Counter[str] = Counter()
    texts: list[str] = []

    def theirs(text: str) -> str:
        try:
            postgresql.execute(text)
        except psycopg.Error as error:
            return error.sqlstate or ""
        return ""

    async def scenario(cluster: Any) -> None:
        session = Session(await cluster.client())

        async def ours(text: str) -> str:
            try:
                await session.sql(text)
            except RemudaError as error:
                return error.sqlstate
            return ""

        for text in grammar.tables():
            texts.append(text)
            assert (await ours(text), theirs(text)) == ("", ""), text
        for _ in range(BLOCKS):
            block = grammar.block()
            texts.append("; ".join(block))
            for text in block:
                state, wanted = await ours(text), theirs(text)
                ends[f"{text.split()[0]} {state}"] += 1
                assert agree(state, wanted), (text, state, wanted, texts)
                if state and block[0] == "BEGIN":
                    if block[-1] != text:
                        assert (await ours("ROLLBACK"), theirs("ROLLBACK")) == ("", "")
                    break
            for text in ROWS:
                wanted_rows = postgresql.execute(text).fetchall()
                assert await session.sql(text) == wanted_rows, texts
        await cluster.idle()

    in_cluster(scenario, backups=1)
    assert ends["INSERT "] and ends["INSERT 23503"] and ends["UPDATE 23503"], ends
