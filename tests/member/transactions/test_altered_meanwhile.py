"""Rows that are under way to a backup while their map is altered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.datatypes.timestamp import FOREVER

InCluster = Callable[..., None]


def test_a_backup_keeps_a_row_of_a_schema_that_lasted_a_moment(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes of the map, a few milliseconds apart, and a row that was made between them."""

    async def scenario(cluster: Any) -> None:
        client, primary = await cluster.client(1), cluster.member(1)
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        router = primary.maps.open("t").router
        key = next(
            k for k in range(30) if primary.core.view.owners[router.key_partition((k,))] == 1
        )
        held: list[tuple[int, Any]] = []
        shell = primary.transactions.shell
        await client.sql("ALTER TABLE t ADD COLUMN a BIGINT")
        with monkeypatch.context() as patched:
            keep = lambda to, frame: held.append((to, frame))  # noqa: E731
            patched.setattr(shell.outgoing, "send_frame", keep)
            put = asyncio.ensure_future(client.put(await client.schema("t"), (key, 1, 2)))
            while not held:
                await asyncio.sleep(0)
            await client.sql("ALTER TABLE t ADD COLUMN b BIGINT DEFAULT 7")
        for to, frame in held:
            shell.outgoing.send_frame(to, frame)
        await put
        backup = cluster.member(2).core
        while backup.catalog.version < primary.core.catalog.version:
            await asyncio.sleep(0)
        map_id = primary.core.schema("t").map_id
        for store in (primary.core.stores[map_id], backup.backup_store(map_id)):
            assert store.get((key,), FOREVER - 1) == (key, 1, 2, 7)

    in_cluster(scenario, members=2, backups=1)
