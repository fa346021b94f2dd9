"""The tables of the random queries: NULL-heavy, empty, replicated, with composite keys."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

WORDS = ["ant", "bee", "cat", "dog", "eel", "Fox", "", "gnu", "a%b", "näive", "long enough words"]
SPECIALS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e300, 1e-300, 0.5]

Row = tuple[object, ...]


@dataclass(frozen=True)
class Table:
    """``kinds``: of each column, what expressions it may stand in. "big" numbers are compared and
    summed but not multiplied; "special" floats (NaN, infinities) are compared and grouped only."""

    name: str
    definition: str
    options: str
    kinds: dict[str, str]
    make: Callable[[random.Random], list[Row]]


def maybe(chance: random.Random, value: object, rate: float = 0.15) -> object:
    return None if chance.random() < rate else value


def cents(chance: random.Random, limit: int, scale: int) -> Decimal:
    return Decimal(chance.randrange(-limit, limit)).scaleb(-scale)


def day(chance: random.Random) -> dt.date:
    return dt.date(2019, 11, 20) + dt.timedelta(days=chance.randrange(500))


def moment(chance: random.Random) -> dt.datetime:
    start = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
    return start + dt.timedelta(seconds=chance.randrange(10**7), microseconds=chance.choice([0, 7]))


def facts(chance: random.Random) -> list[Row]:
    return [
        (
            i,
            maybe(chance, chance.randrange(40)),
            maybe(chance, chance.choice(WORDS)),
            maybe(chance, chance.randrange(-20, 20)),
            maybe(chance, cents(chance, 99999, 2)),
            maybe(chance, chance.randrange(-400, 400) / 4),
            maybe(chance, day(chance)),
            maybe(chance, chance.random() < 0.5),
        )
        for i in range(300)
    ]


def middles(chance: random.Random) -> list[Row]:
    return [
        (
            k,
            maybe(chance, f"name{k % 13}"),
            maybe(chance, chance.choice(WORDS)),
            maybe(chance, cents(chance, 9999, 3)),
            maybe(chance, day(chance)),
        )
        for k in range(50)
    ]


def labels(chance: random.Random) -> list[Row]:
    return [
        (g, maybe(chance, "label " + g), maybe(chance, chance.randrange(10)))
        for g in chance.sample(WORDS, 9)
    ]


def composites(chance: random.Random) -> list[Row]:
    return [
        (
            a,
            c,
            maybe(chance, chance.randrange(-(10**12), 10**12)),
            maybe(chance, cents(chance, 10**24, 6)),
            maybe(chance, chance.choice(SPECIALS)),
            maybe(chance, moment(chance)),
        )
        for a in range(12)
        for c in chance.sample(WORDS, 5)
    ]


def nulls(chance: random.Random) -> list[Row]:
    return [
        (
            i,
            maybe(chance, chance.randrange(4), 0.6),
            maybe(chance, chance.choice(WORDS[:3]), 0.8),
            maybe(chance, chance.randrange(-5, 6), 0.5),
            maybe(chance, chance.random() < 0.5, 0.7),
        )
        for i in range(40)
    ]


def nothing(_: random.Random) -> list[Row]:
    return []


TABLES = (
    Table(
        "f",
        "id BIGINT PRIMARY KEY, k INTEGER, g VARCHAR, q INTEGER, p DECIMAL(9,2),"
        " x DOUBLE PRECISION, d DATE, b BOOLEAN",
        "",
        {
            "id": "int",
            "k": "int",
            "g": "text",
            "q": "int",
            "p": "dec",
            "x": "float",
            "d": "date",
            "b": "bool",
        },
        facts,
    ),
    Table(
        "m",
        "k INTEGER PRIMARY KEY, name VARCHAR, g VARCHAR, w DECIMAL(12,3), d DATE",
        "",
        {"k": "int", "name": "text", "g": "text", "w": "dec", "d": "date"},
        middles,
    ),
    Table(
        "r",
        "g VARCHAR PRIMARY KEY, label VARCHAR, n INTEGER",
        " WITH (replicated = true)",
        {"g": "text", "label": "text", "n": "int"},
        labels,
    ),
    Table(
        "h",
        "a INTEGER, c VARCHAR, v BIGINT, w DECIMAL(30,6), y DOUBLE PRECISION, t TIMESTAMP,"
        " PRIMARY KEY (a, c)",
        " WITH (partition_by = 'a')",
        {"a": "int", "c": "text", "v": "big", "w": "big", "y": "special", "t": "time"},
        composites,
    ),
    Table(
        "z",
        "id INTEGER PRIMARY KEY, k SMALLINT, g VARCHAR, n INTEGER, b BOOLEAN",
        " WITH (replicated = true)",
        {"id": "int", "k": "int", "g": "text", "n": "int", "b": "bool"},
        nulls,
    ),
    Table(
        "e",
        "id INTEGER PRIMARY KEY, k INTEGER, g VARCHAR, p DECIMAL(9,2), d DATE",
        "",
        {"id": "int", "k": "int", "g": "text", "p": "dec", "d": "date"},
        nothing,
    ),
)
BY_NAME = {table.name: table for table in TABLES}
