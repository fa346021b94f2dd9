"""Who is told of a commit may begin another transaction, at another member, before the decision has
reached all copies: it waits for the older one, and is not refused because of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from transacting import Session

from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import PartWork, Scan, Write
from remuda.transaction.states import TransactionId

CREATE = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)"
YOUNGEST = TransactionId(2**62, 1)


class Other:
    """A transaction that is prepared here, and whose decision is under way."""

    def __init__(self, cluster: Any, schema: Any, work: PartWork, began: int = 0) -> None:
        member = cluster.member(1)
        self.shell = member.transactions._shell
        now = member.core.timestamp()
        partition = Router(schema).key_partition((1,))
        owner = TransactionId(began or now, 1)
        self.address = owner, partition
        self.shell.pending.add(self.address, work, now, readers_wait=False)

    def ends(self) -> None:
        self.shell.pending.remove(self.address)


async def waiting(other: Other, done: asyncio.Future[Any]) -> bool:
    """Whether a part waits in front of the member."""
    while not len(other.shell.admission) and not done.done():
        await asyncio.sleep(0)
    return not done.done()


def works(schema: Any) -> dict[str, PartWork]:
    key = (schema.map_id, (1,))
    return {
        "reads the key": PartWork(1, reads=(key,)),
        "writes the key": PartWork(1, (Write(schema.map_id, schema.version, (1,), (1, 5)),)),
        "reads by a condition": PartWork(1, scans=(Scan(schema.map_id, schema.version),)),
    }


@pytest.mark.parametrize("what", ["reads the key", "writes the key", "reads by a condition"])
def test_the_younger_one_waits(in_cluster: Any, what: str) -> None:
    async def scenario(cluster: Any) -> None:
        session = Session(await cluster.client(1))
        await session.sql(CREATE)
        await session.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        schema = await session.client.schema("t")
        for text in ("UPDATE t SET v = v + 1 WHERE k = 1", "UPDATE t SET v = v + 1 WHERE v > 0"):
            await session.sql("BEGIN")
            await session.sql(text)
            other = Other(cluster, schema, works(schema)[what])
            committing = asyncio.ensure_future(session.told("COMMIT"))
            assert await waiting(other, committing)
            other.ends()
            assert await committing == "COMMIT"

    in_cluster(scenario, members=1)


def test_rows_beside_a_condition_are_not_waited_for(in_cluster: Any) -> None:
    """Whoever waited for what others do elsewhere in its partition would wait for ever where there
    is always somebody."""

    async def scenario(cluster: Any) -> None:
        session = Session(await cluster.client(1))
        await session.sql(CREATE)
        await session.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        schema = await session.client.schema("t")
        await session.sql("BEGIN")
        await session.sql("UPDATE t SET v = v + 1 WHERE v > 1")
        beside = Write(schema.map_id, schema.version, (1,), (1, 0))
        other = Other(cluster, schema, PartWork(1, (beside,)))
        assert await session.told("COMMIT") == "COMMIT"
        other.ends()

    in_cluster(scenario, members=1)


def test_the_older_one_is_refused_at_once(in_cluster: Any) -> None:
    """Both waiting for each other would be a circle."""

    async def scenario(cluster: Any) -> None:
        session = Session(await cluster.client(1))
        await session.sql(CREATE)
        await session.sql("INSERT INTO t VALUES (1, 1)")
        schema = await session.client.schema("t")
        await session.sql("BEGIN")
        await session.sql("UPDATE t SET v = v + 1 WHERE k = 1")
        other = Other(cluster, schema, works(schema)["reads the key"], YOUNGEST.began)
        assert (await session.told("COMMIT")).startswith("40001")
        other.ends()

    in_cluster(scenario, members=1)
