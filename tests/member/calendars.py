"""A calendar of a whole cluster that a test moves, and a look at all versions on all copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.member.conftest import TestCluster

import remuda.aio
from remuda.storage.maps.transfer import EVERY_PARTITION


class Calendar:
    """The calendar of all members of a cluster, and of those that a test adds."""

    def __init__(self, cluster: TestCluster) -> None:
        self.micros = 0
        for member in cluster.members:
            self.take(member)

    def take(self, member: Any) -> None:
        system = member.core._wall_micros
        member.core._wall_micros = lambda: system() + self.micros

    def advance(self, seconds: float) -> None:
        self.micros += round(seconds * 1_000_000)


@asynccontextmanager
async def client_of(cluster: TestCluster) -> AsyncIterator[Any]:
    addresses = [
        (member.info.host, member.info.user_port)
        for member in cluster.members
        if not member.core.stopping
    ]
    async with remuda.aio.connect(addresses) as client:
        yield client


def versions(
    store: Any, partitions: frozenset[int] = EVERY_PARTITION
) -> dict[tuple[Any, ...], tuple[int, int]]:
    """The rows of a store with their begins and ends. A partition that was given away and came
    back has each version in two pieces, cut where it was given away: they count as one."""
    pieces: dict[tuple[Any, ...], dict[int, int]] = {}
    for each in store.extraction(partitions).versions():
        for row, begin, end in zip(
            each.batch.to_pylist(), each.begins.tolist(), each.ends.tolist(), strict=True
        ):
            pieces.setdefault(tuple(row.values()), {})[begin] = end
    found = {}
    for row, ends in pieces.items():
        for begin in sorted(ends, reverse=True):
            ends[begin] = ends.pop(ends[begin], ends[begin])
        for begin, end in ends.items():
            found[*row, begin] = (begin, end)
    return found


def check_copies(cluster: TestCluster, name: str) -> int:
    """Every version is on two members, with the same times; how many there are."""
    primary: dict[Any, Any] = {}
    backup: dict[Any, Any] = {}
    for member in cluster.members:
        core = member.core
        if not core.stopping:
            map_id = core.catalog.get(name).map_id
            replicas = enumerate(core.view.replicas)
            led = frozenset(partition for partition, row in replicas if row[0] == core.number)
            primary |= versions(core.stores[map_id], led)
            backup |= versions(core.backup_stores[map_id], EVERY_PARTITION)
    assert primary == backup
    return len(primary)
