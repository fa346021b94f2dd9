"""Dates that Python cannot hold arrive as text, and everything beside them as usual."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator

import pytest

import remuda
import remuda.aio
import remuda.dbapi

pytestmark = pytest.mark.cluster

FAR = "SELECT DATE '12026-01-01', DATE '2026-01-01', DATE '0044-03-15 BC'"
FAR_VALUES = ("12026-01-01", dt.date(2026, 1, 1), "0044-03-15 BC")
MANY = "SELECT g, CASE WHEN g = 7 THEN DATE '12026-01-01' ELSE DATE '2026-01-01' + g END"
MANY += ", CASE WHEN g = 8 THEN TIMESTAMPTZ '12026-01-01 02:00+00' ELSE now() END"
MANY += " FROM generate_series(1, 5000) g ORDER BY g"


@pytest.fixture(scope="module")
def grid(three_members: remuda.Cluster) -> remuda.Cluster:
    with three_members.connect() as client:
        client.sql("CREATE TABLE moments (id BIGINT PRIMARY KEY, d DATE, t TIMESTAMP)")
        client.sql("INSERT INTO moments VALUES (1, '12026-01-01', '10000-01-01 01:02:03')")
        client.sql("INSERT INTO moments VALUES (2, '2026-01-01', '2026-01-01')")
    return three_members


@pytest.fixture(scope="module")
def client(grid: remuda.Cluster) -> Iterator[remuda.Client]:
    with grid.connect() as found:
        yield found


STORED = ("12026-01-01", "10000-01-01 01:02:03")


def test_one_far_value_does_not_fail_its_result(client: remuda.Client) -> None:
    assert client.sql(FAR).fetchall() == [FAR_VALUES]
    rows = client.sql(MANY).fetchall()
    assert [row[0] for row in rows] == list(range(1, 5001))
    assert rows[6][1] == "12026-01-01"
    assert rows[7][2] == "12026-01-01 02:00:00+00"
    assert {type(row[1]) for row in rows if row[0] != 7} == {dt.date}
    assert {row[2].utcoffset() for row in rows if row[0] != 8} == {dt.timedelta(0)}


def test_parts_of_arrays_and_rows(client: remuda.Client) -> None:
    found = client.sql(
        "SELECT ARRAY[DATE '2026-01-01', NULL, '12026-01-01'], ROW(1, TIMESTAMP '12026-01-01')"
    ).fetchone()
    assert found == ([dt.date(2026, 1, 1), None, "12026-01-01"], (1, "12026-01-01 00:00:00"))


def test_arrow_keeps_the_value(client: remuda.Client) -> None:
    (column,) = client.sql("SELECT d FROM moments WHERE id = 1").to_arrow().columns
    assert column.cast("int32").to_pylist() == [3_672_879]


def test_objects_of_maps(client: remuda.Client) -> None:
    moments = client.map("moments")
    assert tuple(moments.get(1))[-2:] == STORED
    assert tuple(moments.get(2))[-2:] == (
        dt.date(2026, 1, 1), dt.datetime(2026, 1, 1),  # noqa: DTZ001
    )  # fmt: skip
    assert {key: tuple(value)[-2:] for key, value in moments.items()}[1] == STORED


def test_asyncio_and_dbapi(grid: remuda.Cluster) -> None:
    async def fetch() -> list[remuda.Row]:
        async with await remuda.aio.connect(grid.addresses) as client:
            cursor = await client.sql(FAR)
            return await cursor.fetchall()

    assert asyncio.run(fetch()) == [FAR_VALUES]
    with remuda.dbapi.connect(grid.addresses) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT d, t FROM moments ORDER BY id")
        assert cursor.fetchone() == STORED
