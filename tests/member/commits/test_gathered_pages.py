"""Rows that a statement has found go to their owners in few messages, however small their pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pyarrow as pa
import pytest

from remuda.member.commits import writes
from remuda.member.commits.writes import PAGE_ROWS, gathered


def page(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(range(first, first + rows), pa.int64())})


async def pages_of(*sizes: int) -> AsyncGenerator[pa.RecordBatch]:
    first = 0
    for rows in sizes:
        yield page(first, rows)
        first += rows


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), []),
        ((3,), [3]),
        ((1, 1, 1, 1), [4]),
        ((9, 1, 9), [10, 9]),
        ((1, 12, 1), [13, 1]),
        ((10, 10), [10, 10]),
        ((0, 2, 0), [2]),
    ],
)
def test_small_pages_come_together_and_in_order(
    sizes: tuple[int, ...], expected: list[int]
) -> None:
    async def found() -> list[pa.RecordBatch]:
        return [each async for each in gathered(pages_of(*sizes), rows_enough=10)]

    pages = asyncio.run(found())
    assert [each.num_rows for each in pages] == expected
    values = [value for each in pages for value in each.column("x").to_pylist()]
    assert values == list(range(sum(sizes)))


def test_a_page_of_many_bytes_does_not_wait_for_others() -> None:
    async def found() -> list[int]:
        return [each.num_rows async for each in gathered(pages_of(4, 4, 1), enough=32)]

    assert asyncio.run(found()) == [4, 4, 1]


def test_pages_of_full_size_are_not_copied() -> None:
    given = page(0, PAGE_ROWS)

    async def one() -> AsyncGenerator[pa.RecordBatch]:
        yield given

    async def found() -> list[pa.RecordBatch]:
        return [each async for each in gathered(one())]

    assert asyncio.run(found())[0] is given


def test_the_query_ends_when_nobody_wants_its_pages() -> None:
    closed = []

    async def endless() -> AsyncGenerator[pa.RecordBatch]:
        try:
            while True:
                yield page(0, 5)
        finally:
            closed.append(True)

    async def first() -> int:
        pages = gathered(endless(), rows_enough=10)
        rows = (await anext(pages)).num_rows
        await pages.aclose()
        return rows

    assert asyncio.run(first()) == 10
    assert closed == [True]


def test_statements_stage_small_pages_together(in_cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batches of one row. Each page took two round trips."""
    staged: list[int] = []
    stage_there = writes.stage_there

    async def counted(core, peers, member, message, body) -> None:
        staged.append(member)
        await stage_there(core, peers, member, message, body)

    async def scenario(cluster) -> None:
        client = await cluster.client()
        for name in ("t", "f"):
            await client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, n BIGINT)")
        await client.sql("INSERT INTO f SELECT x, 0 FROM generate_series(1, 200) AS g(x)")
        monkeypatch.setattr(writes, "stage_there", counted)
        for text, rows in (
            ("INSERT INTO t SELECT id, n FROM f", 200),
            ("UPDATE f SET n = n + 1", 200),
            ("DELETE FROM f WHERE id > 10", 190),
        ):
            staged.clear()
            result = await client.run(text)
            assert (result.error, result.affected) == (None, rows)
            assert 0 < len(staged) <= 4, text

    in_cluster(scenario, members=2, batch_rows=1)
