"""``prepare(text)(values)`` gives what ``sql(text, values)`` gives, or the same error."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import remuda
import remuda.aio
from remuda import dbapi
from remuda.errors import RemudaError, SqlSyntaxError, UndefinedColumn

pytestmark = pytest.mark.cluster

COLUMNS = ("id", "bi", "f", "n", "s", "d", "ts", "u", "b", "j", "a")
VALUES = (
    None, True, 0, 1, -3, 2**40, 2**70, 1.5, 2.0, float("nan"), Decimal("1.50"), Decimal(7),
    "1", "1.5", "x", "", "2024-01-01", "2024-01-01 03:00", "true", "[1]",
    "00112233-4455-6677-8899-aabbccddeeff", dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 3),  # noqa: DTZ001

    dt.datetime(2024, 1, 1, 3, tzinfo=dt.UTC), dt.time(3), dt.timedelta(days=1),
    uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), b"ab", [1, 2], [], ["a", None], [1.5],
    {"a": 1},
)  # fmt: skip
TEXTS = (
    "SELECT ?", "SELECT ? AS x, 1", "VALUES (?)", "SELECT ? IS NULL", "SELECT ? + 1", "SELECT -?",
    "SELECT ? || 'a'", "SELECT ?::integer", "SELECT CAST(? AS VARCHAR)", "SELECT ?::date",
    "SELECT pg_typeof(?)", "SELECT sum(?)", "SELECT ? AND true", "SELECT NOT ?", "SELECT ARRAY[?]",
    "SELECT id FROM t LIMIT ?", "SELECT id FROM t ORDER BY id OFFSET ?", "EXPLAIN SELECT ?",
    "SELECT id FROM t WHERE id = ANY(?)", "SELECT CASE WHEN ? THEN 1 ELSE 2 END",
    "SELECT date_trunc('day', ?)", "SELECT id FROM t WHERE ? ORDER BY id", "SELECT abs(?)",
    "SELECT id FROM t WHERE id = ?", "SELECT length(?)", "SELECT nosuch(?)", "SELECT (?)[1]",
    "UPDATE t SET f = ? WHERE id = -1", "INSERT INTO t (id, n) VALUES (-1, ?) RETURNING n",
    *(f"SELECT id FROM t WHERE {column} = ? ORDER BY id" for column in COLUMNS),
    *(f"SELECT id FROM t WHERE {column} > ? ORDER BY id" for column in COLUMNS),
    *(f"INSERT INTO t (id, {column}) VALUES (-2, ?) RETURNING {column}" for column in COLUMNS[1:]),
)  # fmt: skip
PAIRS = (
    "SELECT coalesce(?, ?)", "SELECT ? = ?", "SELECT ? < ?", "SELECT ? + ?", "SELECT nullif(?, ?)",
    "SELECT id FROM t WHERE id BETWEEN ? AND ? ORDER BY id", "SELECT greatest(?, ?)",
    "SELECT id FROM t WHERE n IN (?, ?) ORDER BY id", "SELECT ? IN (?, 1)", "SELECT ROW(?, ?)",
    "SELECT $1, $2, $1", "SELECT concat(?, ?)", "SELECT x FROM (VALUES (?), (?)) v(x)",
)  # fmt: skip
SETUP = (
    (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, bi BIGINT, f DOUBLE PRECISION, n DECIMAL(9, 2),"
        " s VARCHAR, d DATE, ts TIMESTAMP, u UUID, b BOOLEAN, j JSON, a INTEGER[])"
    ),
    (
        "INSERT INTO t VALUES (1, 1, 1.5, 1.5, '1', '2024-01-01', '2024-01-01 03:00',"
        " '00112233-4455-6677-8899-aabbccddeeff', true, '{\"a\": 1}', ARRAY[1, 2]),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    ),
)
SEED = 20_261_122
TRIED = 60


@pytest.fixture(scope="module")
def cluster(three_members: remuda.Cluster) -> remuda.Cluster:
    with three_members.connect() as client:
        for text in SETUP:
            client.sql(text)
    return three_members


def _cases() -> list[tuple[str, tuple[Any, ...]]]:
    ones = [(text, (value,)) for text, value in itertools.product(TEXTS, VALUES)]
    twos = [(text, pair) for text in PAIRS for pair in itertools.product(VALUES, repeat=2)]
    chance = random.Random(SEED)
    return [
        *chance.sample(ones, TRIED),
        *chance.sample(twos, TRIED),
        ("SELECT 1", ()), ("SELECT 1", (1,)), ("SELECT ?", ()), ("SELECT ?", (1, 2)),
    ]  # fmt: skip


def _outcome(ask: Callable[[], Any]) -> object:
    try:
        cursor = ask()
        return repr([(column.name, column.type) for column in cursor.columns]), repr(list(cursor))
    except RemudaError as error:
        return error.sqlstate, str(error)


def test_a_prepared_statement_takes_what_sql_takes(cluster):
    succeeded = 0
    with cluster.connect() as client:
        for text, values in _cases():
            expected = _outcome(lambda t=text, v=values: client.sql(t, v))
            client.sql("DELETE FROM t WHERE id < 0")
            found = _outcome(lambda t=text, v=values: client.prepare(t)(v))
            client.sql("DELETE FROM t WHERE id < 0")
            assert found == expected, (text, values)
            succeeded += len(expected[0]) > 5
    assert succeeded > TRIED // 3


def test_one_prepared_statement_takes_values_of_any_types(cluster):
    with cluster.connect() as client:
        statement = client.prepare("SELECT ?, id FROM t WHERE id <= ?")
        for _ in range(2):
            for value, bound in ((1, 1), ("x", 1.5), (None, 1.0), ([1], Decimal("1.5"))):
                assert statement(value, bound).fetchall() == [(value, 1)]
        assert client.prepare("SELECT id FROM t WHERE d = ?")("2024-01-01").scalar() == 1


def test_what_no_value_can_mend_is_refused_when_it_is_prepared(cluster):
    with cluster.connect() as client:
        with pytest.raises(SqlSyntaxError):
            client.prepare("SELECT ? FORM t x")
        with pytest.raises(UndefinedColumn):
            client.prepare("SELECT nosuch FROM t WHERE id = ?")
        assert [t.kind.name for t in client.prepare("SELECT ?, ?").parameter_types] == ["NULL"] * 2


def test_asyncio_and_the_database_api_take_the_same(cluster):
    async def scenario() -> None:
        async with remuda.aio.connect(cluster.addresses) as client:
            statement = await client.prepare("SELECT ?")
            for value in (1, "x", None, [1, 2]):
                assert [row async for row in await statement(value)] == [(value,)]

    asyncio.run(scenario())
    with dbapi.connect(cluster.addresses) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t (id, d, n) VALUES (?, ?, ?)", [(-5, "2024-02-01", "1.5")])
        cursor.execute("SELECT d, n FROM t WHERE id = ?", (-5,))
        assert cursor.fetchall() == [(dt.date(2024, 2, 1), Decimal("1.50"))]
        cursor.execute("DELETE FROM t WHERE id = ?", ("-5",))
