"""What a query leaves behind is freed at once: the collector of cycles seldom runs."""

from __future__ import annotations

import asyncio
import gc

import pytest

from remuda.errors import RemudaError
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.fragment import FragmentInstance
from remuda.execution.root_sink import RootSink
from remuda.member.queries.cursors import Cursor, Results

PARTS = (FragmentInstance, RootSink, Inbox, Outbox, Cursor, Results)


def parts() -> list[str]:
    return [type(found).__name__ for found in gc.get_objects() if isinstance(found, PARTS)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*), sum(v) FROM t WHERE v > 5",
        "SELECT k, v FROM t ORDER BY v, k",
        "SELECT v % 7, count(*) FROM t GROUP BY 1",
        "SELECT a.v FROM t a JOIN t b ON a.v = b.k LIMIT 3",
        "SELECT 1 / (v - v) FROM t",
    ],
)
def test_a_query_hangs_together_in_no_circle(in_cluster, text):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        await client.sql("INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 500) g(g)")

        async def run():
            try:
                await client.sql(text)
            except RemudaError as error:
                assert error.sqlstate == "22012"

        await run()
        gc.collect()
        gc.disable()
        try:
            before = parts()
            for _ in range(5):
                await run()
            async with asyncio.timeout(100):
                while len(parts()) > len(before):
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()

    # A collection of all objects of the process stops both members: their leases must outlive it.
    in_cluster(scenario, 2, heartbeat_timeout=90.0)


def test_work_that_is_cancelled_before_it_begins_is_let_go(in_cluster):
    """As a probe of a member is when its own member stops in the very step."""

    async def scenario(cluster):
        core = cluster.member(1).core

        async def probe():
            raise AssertionError("it never begins")

        work = probe()
        task = core.spawn(work, "a probe")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert work.cr_frame is None, "it is closed, and nothing warns of it"

    in_cluster(scenario, 1)
