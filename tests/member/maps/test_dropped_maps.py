"""The rows of a dropped map are freed at once: members seldom look for what refers to itself."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest


@pytest.fixture
def no_collections():
    """Nothing but the end of the last reference frees an object."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("members", [1, 2])
def test_nothing_refers_to_the_store_of_a_dropped_map(in_cluster, no_collections, members):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, w BIGINT)")
        await client.sql("CREATE INDEX by_v ON t (v)")
        await client.sql("CREATE UNIQUE INDEX by_w ON t USING hash (w)")
        await client.sql("INSERT INTO t SELECT g, 'x' || g, g FROM generate_series(1, 2000) g(g)")
        await client.sql("ANALYZE t")
        schema = await client.schema("t")
        await client.put(schema, (1, "y", 1))
        await client.get(schema, 1, 2, 3)
        await client.remove(schema, 4)
        await client.sql("UPDATE t SET v = 'z' WHERE k < 100")
        await client.sql("SELECT a.v, count(*) FROM t a JOIN t b ON a.v = b.v GROUP BY a.v")
        await client.sql("SELECT k FROM t WHERE v > 'x1' ORDER BY v LIMIT 3")
        await client.sql("ALTER TABLE t ADD COLUMN u TEXT")
        await client.sql("SELECT * FROM t WHERE w = 7")
        stores = [
            weakref.ref(store)
            for member in cluster.members
            for stores in (member.core.stores, member.core.backup_stores)
            for map_id, store in stores.items()
            if map_id == schema.map_id
        ]
        assert len(stores) >= members
        await client.sql("DROP TABLE t")
        while any(store() is not None for store in stores):  # the suite's timeout bounds it
            await asyncio.sleep(0.01)

    in_cluster(scenario, members)
