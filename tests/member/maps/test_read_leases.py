"""Reads of many requests: a timestamp that all members keep while somebody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.client.asynchronous.client import Client
from remuda.client.asynchronous.connect import connect
from remuda.client.blocking.tool_access import core_of
from remuda.client.requests import requests
from remuda.errors import InputError, LimitExceeded, SnapshotTooOld
from remuda.member import upkeep
from remuda.member.maps import read_leases
from remuda.member.sessions import pins as transaction_pins

InCluster = Callable[..., None]


async def read_lease(
    client: Client, run: str, at: int | None = None, *, seconds: int = 60, member: int | None = None
) -> int | None:
    return await core_of(client).call(member, requests.read_lease(run, at, seconds))


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not met():
            await asyncio.sleep(0.01)


def test_versions_are_kept_while_a_read_lasts(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_pins, "PIN_AFTER", 0)
    monkeypatch.setattr(transaction_pins, "PIN_INTERVAL", 0.02)

    async def scenario(cluster: Any) -> None:
        members = [cluster.member(number) for number in (1, 2, 3)]
        client = await connect(f"127.0.0.1:{members[0].core.info.user_port}")
        async with client:
            await client.sql("CREATE TABLE m (id BIGINT PRIMARY KEY, v INTEGER)")
            await client.sql("INSERT INTO m SELECT i, 1 FROM generate_series(1, 100) AS g(i)")
            at = (await client.cluster_info()).clock
            assert await read_lease(client, "job 1", member=1) is None
            assert await read_lease(client, "job 1", at, member=1) == at
            assert await read_lease(client, "job 1", at + 5, member=1) == at, "the first one counts"
            await until(lambda: all(m.open.pins.oldest_read() == at for m in members))
            await client.sql("UPDATE m SET v = 2")
            monkeypatch.setattr(upkeep, "VERSIONS_KEPT", 0)
            assert [m.upkeep.horizon() for m in members] == [at] * 3
            stores = [store for m in members for store in m.core.stores.values()]
            old = await client.query("SELECT sum(v) FROM m", at=at)
            assert [tuple(row) for row in await old.fetchall()] == [(100,)]
            assert await read_lease(client, "job 1", seconds=0, member=1) is None
            await until(lambda: all(store.floor > at for store in stores))
            with pytest.raises(SnapshotTooOld):
                await (await client.query("SELECT sum(v) FROM m", at=at)).fetchall()
            with pytest.raises(SnapshotTooOld, match="given it up"):
                await read_lease(client, "job 1", at, member=1)
        await cluster.idle()

    in_cluster(scenario)


def test_leases_end(in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_leases, "LEASES_MAX", 2)

    async def scenario(cluster: Any) -> None:
        first = cluster.member(1)
        async with await connect(f"127.0.0.1:{first.core.info.user_port}") as client:
            at = (await client.cluster_info()).clock
            assert await read_lease(client, "short", at, seconds=1, member=1) == at
            assert await read_lease(client, "long", at, seconds=60, member=1) == at
            assert first.read_leases.count == 2
            with pytest.raises(LimitExceeded):
                await read_lease(client, "more", at, member=1)
            await until(lambda: (first.read_leases.oldest_read(), first.read_leases.count)[1] == 1)
            with pytest.raises(SnapshotTooOld, match="nobody asked for it for 1 s"):
                await read_lease(client, "short", at, member=1)
            for run, seconds in (("", 1), ("x" * 201, 1), ("x", -1), ("x", 3601)):
                with pytest.raises(InputError):
                    await read_lease(client, run, at, seconds=seconds, member=1)
            await read_lease(client, "long", seconds=0, member=1)
        await cluster.idle()

    in_cluster(scenario, members=1)
