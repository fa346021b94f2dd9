"""Statements that differ only in their literals share a plan, and mean what they would mean with a
plan of their own: a comment in the text keeps its literals where they are."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from remuda.session.lifting import Fits, Forms, Lifted

SEED = int(os.environ.get("REMUDA_SEED", "1"))
STATEMENTS = int(os.environ.get("REMUDA_SHARED_STATEMENTS", "120"))
ALONE = " /* with a plan of its own */"

COLUMNS = {
    "id": "INTEGER PRIMARY KEY", "s": "SMALLINT", "n": "BIGINT", "d": "DECIMAL(10, 2)",
    "f": "DOUBLE PRECISION", "r": "REAL", "v": "VARCHAR(5)", "c": "CHAR(4)", "x": "VARCHAR",
    "dt": "DATE", "ts": "TIMESTAMP", "p": "TIMESTAMP(2)", "z": "TIMESTAMP WITH TIME ZONE",
    "b": "BOOLEAN", "u": "UUID",
}  # fmt: skip
NUMBERS = (
    "0", "1", "5", "7", "-1", "-5", "127", "128", "007", "32767", "32768", "70000", "2147483647",
    "2147483648", "-2147483648", "9223372036854775807", "-9223372036854775808",
    "99999999999999999999", "1.5", "-0.01", "2.0", "1.005", "0.1", "12345678.99", "123456789.5",
    "1e3", ".5", "5.",
)  # fmt: skip
STRINGS = (
    "", "a", "ab ", "it''s", "abcdef", "5", "-7", " 5", "1.5", "2024-01-31", "today", "2024-02-30",
    "2024-01-31 10:00", "2024-01-31 10:00:00.123", "2024-01-31 10:00+02", "infinity", "é", "$1",
    "x = 5", "now", "true", "00000000-0000-0000-0000-000000000005", "-- no", "1e3", "20240131",
)  # fmt: skip


class Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def literal(self) -> str:
        kind = self.chance.random()
        if kind < 0.55:
            return self.chance.choice(NUMBERS)
        if kind < 0.95:
            return f"'{self.chance.choice(STRINGS)}'"
        return self.chance.choice(("NULL", "TRUE", "E'a\\'b'", "DATE '2024-01-31'", "5::smallint"))

    def suited(self, column: str) -> str:
        """A literal that the column mostly takes."""
        pick = self.chance.choice
        if self.chance.random() < 0.2:
            return self.literal()
        match column:
            case "id" | "s" | "n" | "f" | "r" | "d":
                return pick(NUMBERS[:9] + NUMBERS[18:24])
            case "v" | "c" | "x":
                return f"'{pick(STRINGS[:9])}'"
            case "b":
                return pick(("TRUE", "FALSE", "'true'"))
            case "u":
                return "'00000000-0000-0000-0000-000000000005'"
            case _:
                return f"'{pick(STRINGS[9:15])}'"

    def column(self) -> str:
        return self.chance.choice(list(COLUMNS))

    def expression(self, column: str) -> str:
        literal, pick = self.suited(column), self.chance.choice
        return pick((
            literal, literal, literal, column, f"({literal})",
            f"{column} {pick('+-*/%')} {literal}",
            f"{literal} {pick('+-*')} {column}", f"{column} + ({literal})", f"-({literal})",
            f"{column} - -{literal.lstrip('-')}",
            f"{literal}::{pick(('int', 'varchar(3)', 'date'))}",
            f"CASE WHEN {column} = {literal} THEN ({self.suited(column)}) ELSE {column} END",
            f"abs({literal})", f"coalesce({column}, {literal})", f"{column} || {literal}",
            f"CAST({literal} AS {COLUMNS[column].removesuffix(' PRIMARY KEY')})",
        ))  # fmt: skip

    def condition(self) -> str:
        column, pick = self.column(), self.chance.choice
        compared = pick(("=", "<>", "<", "<=", ">", ">=", "!=", "IS DISTINCT FROM"))
        return pick((
            f"{column} {compared} {self.expression(column)}",
            f"{self.suited(column)} {compared} {column}",
            f"NOT ({column}={self.suited(column)} OR {column}<{self.suited(column)})",
            f"{column} IN ({self.suited(column)}, {self.suited(column)})",
            f"{column} BETWEEN {self.suited(column)} AND {self.suited(column)}",
            f"x LIKE {self.literal()}", f"{self.suited(column)} = {self.suited(column)}",
        ))  # fmt: skip

    def key(self) -> str:
        number = self.chance.choice(("1", "2", "3", "5", "'5'", "5.0", "-1", "2 + 3", "7"))
        return self.chance.choice((
            f"id = {number}", f"id={number}", f"{number} = id", f"id IN (1, {number})",
            f"id = ({number})", "id = -1",
        ))  # fmt: skip

    def where(self) -> str:
        more = f" AND {self.condition()}" if self.chance.random() < 0.6 else ""
        return f"WHERE {self.key()}{more}"

    def statement(self) -> str:
        """With {} in place of the table."""
        pick, column = self.chance.choice, self.column()
        match self.chance.randrange(8):
            case 0 | 1:
                names = ["id", *self.chance.sample(list(COLUMNS)[1:], self.chance.randint(1, 4))]
                values = [self.expression(n) if n != "id" else self.suited(n) for n in names]
                conflict = pick((
                    "", "", " ON CONFLICT DO NOTHING",
                    f" ON CONFLICT (id) DO UPDATE SET {column} = {self.suited(column)}",
                ))  # fmt: skip
                back = pick(("", "", "", f" RETURNING {self.expression(column)}"))
                row = f"({', '.join(names)}) VALUES ({', '.join(values)})"
                return f"INSERT INTO {{}} AS t {row}{conflict}{back}"
            case 2 | 3 | 4:
                back = pick(("", "", f" RETURNING {self.expression(column)}, 5"))
                return f"UPDATE {{}} SET {column} = {self.expression(column)} {self.where()}{back}"
            case 5:
                return f"DELETE FROM {{}} {self.where()}"
            case _:
                item = pick(("*", column, f"{column}, 'a', 5", self.expression(column)))
                tail = pick(("", "", "", " ORDER BY 1", " LIMIT 1", " ORDER BY 1, 1", ";"))
                return f"SELECT {item} FROM {{}} {self.where()}{tail}"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Lifted]]:
    """The texts whose plans were shared: each form, from its first text on."""
    found: list[Lifted] = []
    real = Fits.values

    def values(self: Fits, lifted: Lifted, zone: str) -> Any:
        result = real(self, lifted, zone)
        if result is not None:
            found.append(lifted)
        return result

    monkeypatch.setattr(Fits, "values", values)
    wanted = Forms.wanted
    monkeypatch.setattr(
        Forms, "wanted", lambda self, *key: wanted(self, *key) or wanted(self, *key)
    )
    yield found


async def outcome(client: Any, table: str, text: str) -> tuple[Any, ...]:
    result = await client.start(text)
    await result.done.wait()
    if result.error is not None:
        error = result.error
        return (error.sqlstate, str(error.message).replace(f'"{table}', '"t'), error.position)
    pages = result.pages
    return (
        result.columns,
        pages and pages[0].schema,
        result.rows if pages else [],
        result.affected,
    )


def test_random_statements_mean_the_same(in_cluster: Any, shared: list[Lifted]) -> None:
    definition = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        for table in ("one", "two"):
            await client.sql(f"CREATE TABLE {table} ({definition})")
        writer = Writer(random.Random(SEED))
        for number in range(STATEMENTS):
            statement = writer.statement()
            together = await outcome(client, "one", statement.format("one"))
            alone = await outcome(client, "two", statement.format("two") + ALONE)
            assert together == alone, (SEED, number, statement)
        rows = [await client.sql(f"SELECT * FROM {table} ORDER BY id") for table in ("one", "two")]
        assert rows[0] == rows[1]
        assert len(shared) > STATEMENTS / 10, "few statements share plans"

    in_cluster(scenario, members=1)
