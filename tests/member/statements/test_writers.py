"""Open transactions of one member that change the same entry go one after the other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from transacting import Session

from remuda.errors import SerializationFailure
from remuda.member.statements.transaction_changes import TransactionChanges
from remuda.member.statements.writers import Writers

pytestmark = pytest.mark.cluster

InCluster = Callable[..., None]
TABLES = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
    "CREATE TABLE late (id BIGINT NOT NULL, n BIGINT NOT NULL)",
    "INSERT INTO t SELECT x, 0 FROM generate_series(1, 9) g(x)",
    "INSERT INTO late SELECT x, 0 FROM generate_series(1, 9) g(x)",
    "ALTER TABLE late ADD PRIMARY KEY (id)",
)
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


@pytest.fixture
def nobody_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, and clients send one statement at a time, as at the door for
    PostgreSQL's clients."""
    before = TransactionChanges._reads_before
    monkeypatch.setattr(Writers, "_idle", lambda *_: False)
    monkeypatch.setattr(
        TransactionChanges,
        "_reads_before",
        lambda self, statement, transaction: before(
            self, replace(statement, unaided=True), transaction
        ),
    )


async def sessions(cluster: Any, count: int = 2) -> list[Session]:
    found = [Session(await cluster.client()) for _ in range(count)]
    for text in TABLES:
        await found[0].sql(text)
    return found


async def waiting(session: Session, text: str, cluster: Any) -> asyncio.Task[str]:
    """A statement that has come to wait for another transaction."""
    writers = cluster.member(1).statements._writes._own._writers
    before = len(writers._waits)
    task = asyncio.ensure_future(session.told(text))
    while len(writers._waits) == before:
        assert not task.done(), task.result()
        await asyncio.sleep(0)
    return task


@pytest.mark.usefixtures("nobody_is_idle")
@pytest.mark.parametrize("table", ["t", "late"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_second_one_waits_and_reads_what_the_first_one_wrote(
    in_cluster: InCluster, level: str, table: str
) -> None:
    """But for REPEATABLE READ: its reads are not known, so its snapshot stays."""

    async def scenario(cluster: Any) -> None:
        one, two = await sessions(cluster)
        for session in (one, two):
            await session.sql(f"BEGIN ISOLATION LEVEL {level}")
        await two.sql(f"UPDATE {table} SET n = n + 1 WHERE id = 3")
        await two.sql(f"SELECT n FROM {table} WHERE id = 3")
        await one.sql(f"UPDATE {table} SET n = n + 1 WHERE id = 1")
        late = await waiting(two, f"UPDATE {table} SET n = n + 10 WHERE id = 1", cluster)
        assert await one.told("COMMIT") == "COMMIT"
        if level == "REPEATABLE READ":
            assert (await late).startswith("40001")
            return
        assert await late == "UPDATE 1"
        assert await two.told(f"SELECT n FROM {table} WHERE id IN (1, 3)") == "1; 11"
        assert await two.told("COMMIT") == "COMMIT"
        assert await one.told(f"SELECT n FROM {table} WHERE id IN (1, 3)") == "1; 11"

    in_cluster(scenario, members=1)


READS = (
    "SELECT n FROM t WHERE id = 1",
    "SELECT n FROM t WHERE id = 2",
    "SELECT n FROM late WHERE id = 1",
    "SELECT sum(n) FROM t",
    "SELECT count(*) FROM late WHERE n > 50",
)


@pytest.mark.usefixtures("nobody_is_idle")
@pytest.mark.parametrize("read", READS)
def test_a_transaction_that_has_read_what_was_changed_fails(
    in_cluster: InCluster, read: str
) -> None:
    """Write skew and lost updates, although its snapshot may move; a scan is not looked at, and
    keeps the snapshot where it is."""

    async def scenario(cluster: Any) -> None:
        one, two = await sessions(cluster)
        await two.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        await two.sql(read)
        await one.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        for text in ("t SET n = 60 WHERE id IN (1, 2)", "late SET n = 60 WHERE id = 1"):
            await one.sql(f"UPDATE {text}")
        late = await waiting(two, "UPDATE t SET n = n + 10 WHERE id = 1", cluster)
        assert await one.told("COMMIT") == "COMMIT"
        assert (await late).startswith("40001")
        assert await two.told("COMMIT") == "ROLLBACK"

    in_cluster(scenario, members=1)


@pytest.mark.usefixtures("nobody_is_idle")
def test_a_rollback_lets_the_next_one_go_on_and_nobody_waits_in_a_circle(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        one, two, three = await sessions(cluster, 3)
        for session in (one, two, three):
            await session.sql("BEGIN")
        await one.sql("UPDATE t SET n = 1 WHERE id = 1")
        second = await waiting(two, "UPDATE t SET n = n + 2 WHERE id = 1", cluster)
        third = await waiting(three, "UPDATE t SET n = n + 4 WHERE id = 1", cluster)
        await one.sql("ROLLBACK")
        assert await second == "UPDATE 1"
        assert not third.done()
        assert await two.told("COMMIT") == "COMMIT"
        assert await third == "UPDATE 1"
        assert await three.told("COMMIT") == "COMMIT"
        assert await one.told("SELECT n FROM t WHERE id = 1") == "6"

        for session, key in ((one, 1), (two, 2)):
            await session.sql("BEGIN")
            await session.sql(f"UPDATE t SET n = n + 5 WHERE id = {key}")
        late = await waiting(one, "UPDATE t SET n = 1 WHERE id = 2", cluster)
        assert await two.told("UPDATE t SET n = 1 WHERE id = 1") == "UPDATE 1"
        assert await two.told("COMMIT") == "COMMIT"
        assert (await late).startswith("40001")
        await one.sql("ROLLBACK")
        writers = cluster.member(1).statements._writes._own._writers
        assert not writers._lines and not writers._taken and not writers._waits

    in_cluster(scenario, members=1)


def test_nobody_waits_for_a_transaction_that_does_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        one, two = await sessions(cluster)
        for session in (one, two):
            await session.sql("BEGIN")
        await one.sql("UPDATE t SET n = 1 WHERE id = 1")
        assert await two.told("UPDATE t SET n = 2 WHERE id = 1") == "UPDATE 1"
        assert await two.told("COMMIT") == "COMMIT"
        assert (await one.told("COMMIT")).startswith("40001")

    in_cluster(scenario, members=1)


@pytest.mark.usefixtures("nobody_is_idle")
@pytest.mark.parametrize("members", [1, 3])
def test_counters_lose_nothing(in_cluster: InCluster, members: int) -> None:
    """Of many who change one entry, and others, at once; at one member nearly nothing is done in
    vain."""
    ends: Counter[str] = Counter()

    async def worker(session: Session, number: int) -> None:
        for turn in range(12):
            while True:
                try:
                    await session.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
                    await session.sql(f"UPDATE t SET n = n + 1 WHERE id = {2 + number}")
                    await session.sql(f"SELECT n FROM t WHERE id = {2 + number}")
                    await session.sql(f"UPDATE late SET n = n + 1 WHERE id = {turn % 3 + 1}")
                    await session.sql("UPDATE t SET n = n + 1 WHERE id = 1")
                    await session.sql("COMMIT")
                except SerializationFailure:
                    ends["again"] += 1
                    if session.transaction:
                        await session.sql("ROLLBACK")
                else:
                    ends["done"] += 1
                    break

    async def scenario(cluster: Any) -> None:
        first = (await sessions(cluster, 1))[0]
        near = [Session(await cluster.client(1 + n % members)) for n in range(4)]
        async with asyncio.TaskGroup() as group:
            for number, session in enumerate(near):
                group.create_task(worker(session, number))
        assert await first.told("SELECT n FROM t WHERE id = 1") == "48"
        assert await first.told("SELECT sum(n) FROM t") == "96"
        assert await first.told("SELECT sum(n) FROM late") == "48"
        assert ends["done"] == 48
        if members == 1:
            assert ends["again"] < 24, ends

    in_cluster(scenario, members=members)
