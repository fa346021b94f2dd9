"""Members remember how thousands of jobs have ended: little of each, all of it counted as held."""

from __future__ import annotations

import gc
from collections.abc import Callable
from enum import Enum
from sys import getsizeof
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pyarrow as pa
import pytest

import remuda.aio
from remuda.client.operations import bulk
from remuda.errors import RemudaError, UniqueViolation
from remuda.member.commits.jobs import ENDED_SIZE
from remuda.member.state.commit_work import DECIDED_SIZE

InCluster = Callable[..., None]
JOBS = 20
ENTRY_SIZE = 150
"""Bytes of an entry of an ordered table of Python: its own, and the share of the table."""


def reached(root: object) -> list[object]:
    """All objects that ``root`` keeps alive, but for what is there anyway."""
    found: dict[int, object] = {}
    left = [root]
    while left:
        one = left.pop()
        if id(one) not in found and not isinstance(one, type | Enum | ModuleType | FunctionType):
            found[id(one)] = one
            left += gc.get_referents(one)
    return list(found.values())


def size(*roots: object) -> int:
    return sum({id(one): getsizeof(one) for root in roots for one in reached(root)}.values())


def test_little_is_kept_of_jobs_that_have_ended(in_cluster: InCluster) -> None:
    """Each writes into many partitions, of two members with backups."""

    async def scenario(cluster: Any) -> None:
        async with remuda.aio.connect(cluster.member(1).addresses()["user"]) as client:
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)")
            held = [member.core.room.stored for member in cluster.members]
            for number in range(JOBS):
                ids = range(number * 1000, number * 1000 + 1000)
                await client.map("t").put_all(pa.table({"id": list(ids), "v": ["x" * 50] * 1000}))
            refused = await client.begin_job("t")
            twice = bulk.engine_batches(refused.schema, pa.table({"id": [-1], "v": ["x"]}))
            tasks = [await refused.write(twice, task) for task in ("0:0", "1:0")]
            with pytest.raises(UniqueViolation):
                await refused.commit(tasks)
            with pytest.raises(UniqueViolation):
                await refused.commit(tasks)  # of a job that has ended
        failed = [member.jobs._ended.get(refused.id) for member in cluster.members]
        assert any(isinstance(outcome, RemudaError) for outcome in failed)
        for member, account in zip(cluster.members, held, strict=True):
            commits = member.commits.participants
            decided = list(commits._decided.values())
            assert len(decided) >= JOBS
            assert size(*decided) <= (DECIDED_SIZE - ENTRY_SIZE) * len(decided)
            for taking in decided:
                assert not any(isinstance(one, FrameType) for one in reached(taking))
            for name, outcome in member.jobs._ended.items():
                assert not any(isinstance(one, FrameType) for one in reached(outcome))
                assert size(name) + ENTRY_SIZE <= ENDED_SIZE
            member.core.room.measure()
            assert account.held >= DECIDED_SIZE * len(decided)

    in_cluster(scenario, members=2, backups=1)


def test_ends_of_pauses_are_forgotten_by_their_coordinator(in_cluster: InCluster) -> None:
    """It asks itself as well, and hears of no end of its own."""

    async def scenario(cluster: Any) -> None:
        async with remuda.aio.connect(cluster.member(1).addresses()["user"]) as client:
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)")
            for number in range(JOBS):
                rows = pa.table({"id": list(range(100)), "v": [str(number)] * 100})
                await client.map("t").put_all(rows)
        for member in cluster.members:
            held = member.jobs._pauses._held
            assert sum(map(len, held._over.values())) <= 3

    in_cluster(scenario, members=2, backups=1)
